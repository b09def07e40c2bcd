"""What the caller's side knows: what it asked for, what it was told, what the provider and the mailbox saw.

For: judging a crash from outside. What was acknowledged is there, what was not is whole or absent, what was once
seen stays as it was seen, and the world was acted upon once.
Never: believes the app about itself where the other side can be asked.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from onefold.terms.codec import parse
from tests.example.shop import Shop

GOING = ("running", "waiting")


def instant(text: str) -> datetime:
    """A receipt's instant. As texts, a whole second would come after its own milliseconds."""
    return datetime.fromisoformat(text)


@dataclass
class Ledger:
    """By the key of each call: its arguments, the newest receipt that came, the decision that was confirmed."""

    asked: dict[str, dict[str, str]] = field(default_factory=dict)
    receipts: dict[str, dict[str, Any]] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)

    def asks(self, key: str, arguments: dict[str, str]) -> None:
        assert self.asked.setdefault(key, arguments) == arguments

    def told(self, key: str, receipt: dict[str, Any]) -> dict[str, Any]:
        """A receipt that came. It goes on from the one before it, and an end is the end."""
        before = self.receipts.get(key)
        if before is not None:
            assert receipt["run_id"] == before["run_id"]
            assert receipt["started_at"] == before["started_at"]
            assert instant(receipt["updated_at"]) >= instant(before["updated_at"])
            if before["status"] not in GOING:
                assert receipt == before
        assert receipt["status"] in (*GOING, "done"), receipt
        self.receipts[key] = receipt
        return receipt

    async def agrees(self, shop: Shop) -> None:
        """One refund and one notice for each call that was answered, and none without a call."""
        book = (await shop.provider.book())["refunds"]
        assert [parse(line) for line in (shop.folder / "ledger.jsonl").read_bytes().splitlines()] == book
        bills = [refund["bill"] for refund in book]
        assert len(set(bills)) == len(bills), book
        by_bill = {refund["bill"]: refund for refund in book}
        assert set(by_bill) <= {arguments["bill_id"] for arguments in self.asked.values()}
        for key, receipt in self.receipts.items():
            arguments = self.asked[key]
            if receipt["status"] == "done":
                refund = by_bill[arguments["bill_id"]]
                assert refund["amount"] == arguments["amount"]
                assert receipt["result"] == {"type": "Refunded", "refund_id": refund["id"]}
            letters = {str(letter["message-id"]) for letter in shop.post.about(arguments["order_id"])}
            assert len(letters) == (float(arguments["amount"]) > 100), (arguments, letters)


@dataclass(frozen=True)
class Left:
    """What a killed process left of one call: whether its run is there, and its facts by name."""

    there: bool
    facts: tuple[str, ...] = ()


def left(store: Path, key: str) -> Left:
    """Look into a copy, since opening the files would mend them. All of a fold is there, or nothing of it."""
    if not (store / "refund_order.db").exists():
        return Left(False)
    with tempfile.TemporaryDirectory() as copied:
        copy = Path(copied) / "store"
        shutil.copytree(store, copy)
        db = apsw.Connection(str(copy / "refund_order.db"))
        try:
            return _left(db, key)
        finally:
            db.close()


def _left(db: apsw.Connection, key: str) -> Left:
    assert list(db.execute("pragma integrity_check")) == [("ok",)]
    if not db.table_exists("main", "_onefold_run"):
        return Left(False)
    actors = {row[0] for row in db.execute("select actor from _onefold_turn")}
    assert actors == {row[0] for row in db.execute("select actor from _onefold_run")}
    assert actors == {row[0] for row in db.execute("select n from _onefold_actor")}
    owing = {row[0] for row in db.execute("select actor from _onefold_owed where next_at is not null")}
    parked = {row[0] for row in db.execute("select actor from _onefold_owed where next_at is null")}
    armed = {row[0] for row in db.execute("select actor from _onefold_alarm where at is not null")}
    assert owing <= armed  # what is owed is due at some time, whoever calls
    for actor, status in db.execute("select actor, status from _onefold_run"):
        assert actor in armed | parked or status not in GOING
    found = list(db.execute("select actor from _onefold_run where key = ?", (key,)))
    if not found:
        return Left(False)
    turns = db.execute("select facts from _onefold_turn where actor = ? order by n", found[0])
    facts: list[Any] = [fact for (raw,) in turns for fact in parse(bytes(raw))]
    return Left(True, tuple(str(fact["type"]) for fact in facts))
