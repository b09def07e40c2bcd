"""The programs that the page of the public API prints run as they are printed, in both colours, and pass mypy --strict."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import assert_type

import apsw
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import onefold
from onefold.cell import Resident, Spawned, Turn
from onefold.fleet import Posted
from onefold.reflex import Fired, Ingested, Preview, Signal
from onefold.testing import Durable, every_crash, module_laws
from tests.api import nightly
from tests.api.bank import (
    Accepted,
    Bounced,
    Confirmed,
    Declined,
    Deposit,
    PaidOut,
    PayOut,
    Released,
    Reserved,
    bank,
    transfer,
)
from tests.api.billing import billing
from tests.api.nightly import Night, Summary, most, nightly_report, send_statement
from tests.api.rooms import Entered, Memory, Room
from tests.testing import refund

RENT = 'if recall(topic="rent") is None:\n    remember(topic="rent", text="on the 1st")\nrecall(topic="rent")'


def test_nightly_serves_everybody_ten_at_a_time(durable: Durable) -> None:
    most.clear()
    app = durable(nightly_report, send_statement)
    app.clock.advance_to(datetime(2026, 3, 1, tzinfo=UTC))
    receipt = app.start(nightly_report, Night(day=date(2026, 3, 1)))
    app.clock.advance("4 hours")
    assert receipt.refresh().status == "waiting"
    app.clock.advance("2 hours")
    assert receipt.result() == Summary(sent=23, failed=["c7", "c9"])
    assert max(most) == 10


def test_nightly_killed_anywhere_sends_each_statement_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly, "EVERYBODY", ["c1", "c9"])
    for app in every_crash(nightly_report, send_statement):
        receipt = app.start(nightly_report, Night(day=date(2025, 3, 1)), key="k")
        app.clock.advance("1 minute")
        assert receipt.result() == Summary(sent=1, failed=["c9"])
        assert sorted(one.status for one in app.runs.list(program="send_statement").items) == ["done", "failed"]


async def test_bank_pays_once_it_was_confirmed(durable: Durable) -> None:
    app = onefold.App(bank, transfer, store="memory:")
    async with app:
        reply = await app.deliver(bank, Deposit(id="d1", account="a", amount=Decimal(9)))
        assert_type(reply, Accepted | Declined)
        assert reply == Accepted(Decimal(9))
        paid = PayOut(id="p1", account="a", iban="AT1", amount=Decimal(5))
        assert await app.deliver(bank, paid) == await app.deliver(bank, paid) == Accepted(Decimal(4))
        assert await app.deliver(bank, PayOut("p2", "a", "AT1", Decimal(50))) == Declined(short_by=Decimal(46))
        balance = await app.read(bank, "a")
        assert_type(balance, Decimal)
        assert balance == Decimal(4)
        shown: object = await app.read(bank, "nobody")  # as print takes it
        assert shown == Decimal(0)
    events = [Deposit("d", "a", Decimal(9)), PayOut("p", "a", "AT1", Decimal(5)), PayOut("q", "a", "AT1", Decimal(99))]
    module_laws(bank, events=events, answers={"transfer": [Confirmed("r1"), Bounced("closed")]})


def test_bank_lets_go_of_what_nobody_confirmed(durable: Durable) -> None:
    app = durable(bank, transfer)
    app.stub(transfer, raises=ConnectionError("closed"))
    app.deliver(bank, Deposit(id="d1", account="a", amount=Decimal(9)))
    app.deliver(bank, PayOut(id="p1", account="a", iban="AT1", amount=Decimal(5)))
    app.clock.advance("73 hours")
    assert [type(row.fact) for row in app.history(bank, "a")][1:] == [Reserved, Released]
    assert PaidOut not in [type(row.fact) for row in app.history(bank, "a", after=1)]
    for item in app.parked.list():
        app.parked.drop(item.id, "the bank is closed for good")


async def test_rooms_take_turns() -> None:
    app = onefold.App(Room, Memory, store="memory:")
    async with app:
        async with app.open(Room, "room-7") as room:
            async with room.capture() as draft:
                draft.visits += 1
            assert draft.visits == 1
        lobby = app.cell(Room, "lobby")
        assert_type(await lobby.spawn(), Spawned | Resident)
        hello = await lobby.turn(Room.greet)("guest")
        assert_type(hello, str)
        assert hello == "hello guest"
        assert await lobby.turn(Room.enter, key="k")(who="guest") == Entered("guest")
        turn = await app.cell(Memory, "c42").run(RENT)
        assert turn == Turn(branch="", value="on the 1st", ran=2)
        assert isinstance(await lobby.post('enter(who="b")', key="p1"), Posted)


async def test_billing_is_previewed_and_fired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(apsw.Connection(str(tmp_path / "shop.db"))) as shop:
        shop.execute("CREATE TABLE due (tenant TEXT, month TEXT, subscription_id TEXT, amount TEXT)")
    monkeypatch.setenv("SHOP_DB", f"sqlite:///{tmp_path}/shop.db")
    app = onefold.App(billing, store="memory:")
    async with app:
        studio = app.acting_as("studio_42")
        seen = await studio.reflexes.preview("billing.charge-due")
        assert isinstance(seen, Preview)
        fired = await studio.reflexes.fire("billing.charge-due", input={}, by="manager")
        assert isinstance(fired, Fired)
        chain = await studio.reflexes.explain(fired.id)
        assert [(cause.kind, cause.principal) for cause in chain][-1][1] == "studio_42"
        told = await studio.ingest(Signal("stripe", {"type": "invoice.paid"}, dedupe_key="evt_92"))
        assert isinstance(told, Ingested)
        assert (await studio.ingest(Signal("stripe", {"type": "invoice.paid"}, dedupe_key="evt_92"))).duplicate


def test_the_script_needs_no_await() -> None:
    with onefold.App(refund.refund_order, bank, transfer, store="memory:") as app:
        total = app.deliver(bank, Deposit(id="e1", account="visits", amount=Decimal(1)))
        receipt = app.start(refund.refund_order, refund.Refund(order_id="7", bill_id="b7", amount=Decimal(400)))
        assert (total, receipt.cancel().status) == (Accepted(Decimal(1)), "cancelled")


async def test_it_stands_beside_another_app_by_one_line() -> None:
    durable = onefold.App(bank, transfer, store="memory:")
    api = Starlette(routes=[Route("/mine", lambda request: PlainTextResponse("mine"))])
    api.add_middleware(durable.asgi, at="/onefold")
    async with durable, httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1") as client:
        assert (await client.get("/mine")).text == "mine"
        assert (await client.get("/onefold/healthz")).json() == {"ok": True}
