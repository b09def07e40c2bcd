"""The folds that are interrupted at every place, each with what comes before it and what must come of it.

A fold is prepared once, and its folder copied for each try. `act` does it and says what it was told before it waits
for what follows; doing it again must tell the same.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
from pydantic import BaseModel

from onefold import Run, Step, actuator
from onefold.testing import Stage
from tests.guarantees.shop import Deposit, PayOut, Provider, Sent, Transfer, make

Told = list[Any]
Dump = dict[str, list[Any]]


class Telling(Provider):
    """Tells of each payment as soon as it was made, before its answer leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.told: Callable[[str, int], None] = lambda key, amount: None

    def take(self, step: Step, body: Transfer) -> Sent:
        sent = super().take(step, body)
        self.told(step.key, body.amount)
        return sent


@dataclass
class World:
    """The other side of the ports, anew for each try."""

    provider: Telling = field(default_factory=Telling)


@dataclass(frozen=True)
class Fold:
    name: str
    parts: Callable[[World], Sequence[object]]
    prepare: Callable[[Stage], Awaitable[None]]
    act: Callable[[Stage, Told], Awaitable[None]]
    came_of_it: Callable[[Stage], Awaitable[Any]]


async def deliver(stage: Stage, event: Any) -> Any:
    return await stage.host.deliver(stage.parts[0], event, caller=stage.caller())  # type: ignore[arg-type]


async def account(stage: Stage) -> Any:
    """All that a caller can see of the account."""
    module: Any = stage.parts[0]
    caller = stage.caller()
    history = [row.fact for row in await stage.host.history(module, "a", caller=caller)]
    parked = await stage.host.parked_list(caller=caller)
    return history, await stage.host.read(module, "a", caller=caller), parked


async def one_deposit(stage: Stage) -> None:
    await deliver(stage, Deposit("d1", "a", 100))
    await stage.settle()


async def one_reserved(stage: Stage) -> None:
    await one_deposit(stage)
    await deliver(stage, PayOut("p0", "a", 40, minutes=1))
    await stage.settle()


def delivering(event: Any) -> Callable[[Stage, Told], Awaitable[None]]:
    async def act(stage: Stage, told: Told) -> None:
        told.append(await deliver(stage, event))
        await stage.settle()

    return act


async def a_minute(stage: Stage, told: Told) -> None:
    await stage.advance("61s")


class Order(BaseModel):
    order_id: str
    amount: int


def refund(world: World) -> Any:
    async def pay(step: Step, amount: int) -> str:
        return world.provider.take(step, Transfer(amount)).reference

    @actuator(migrations=["CREATE TABLE paid (order_id TEXT PRIMARY KEY, reference TEXT)"])
    async def refund(run: Run, order: Order) -> list[str]:
        """Pay back, and keep a row of it."""
        reference = await run.step(pay)(order.amount)
        await run.db.execute("INSERT INTO paid VALUES (:id, :ref)", id=order.order_id, ref=reference)
        return [str(row["order_id"]) for row in await run.db.fetch("SELECT order_id FROM paid ORDER BY order_id")]

    return refund


async def begin(stage: Stage, order: str) -> Any:
    arguments = {"order_id": order, "amount": 40}
    started = await stage.host.start("refund", arguments, key=order, caller=stage.caller())
    return started.receipt.run_id


async def one_run(stage: Stage) -> None:
    await begin(stage, "first")
    await stage.settle()


async def another_run(stage: Stage, told: Told) -> None:
    told.append(await begin(stage, "second"))
    await stage.advance("1m")


async def runs(stage: Stage) -> Any:
    caller = stage.caller()
    page = await stage.host.runs_list(caller=caller)
    _, rows, _ = await stage.host.table_rows("refund", "paid", caller=caller)
    ended = sorted((r.run_id, r.status, str(r.to_json().get("result"))) for r in page.items)
    return ended, sorted(rows), await stage.host.parked_list(caller=caller)


def with_bank(snapshot_every: int = 500, *, port: bool = True) -> Callable[[World], Sequence[object]]:
    return lambda world: (make(snapshot_every), *([world.provider.dedupes()] if port else []))


FOLDS = (
    Fold("an event with facts, owed, wake and the answer", with_bank(), one_deposit, delivering(PayOut("p1", "a", 40)), account),
    Fold("a duplicate", with_bank(), one_deposit, delivering(Deposit("d1", "a", 100)), account),
    Fold("a decline", with_bank(), one_deposit, delivering(PayOut("p1", "a", 4_000)), account),
    Fold("an alarm", with_bank(port=False), one_reserved, a_minute, account),
    Fold("a snapshot", with_bank(2), one_deposit, delivering(Deposit("d2", "a", 1)), account),
    Fold("a step and a database step", lambda world: (refund(world),), one_run, another_run, runs),
)  # fmt: skip


def dump(folder: Path) -> Dump:
    """Every row of every file, of ours and of authors; without what SQLite and the lookups may write late."""
    found: Dump = {}
    with tempfile.TemporaryDirectory(dir=folder.parent) as copied:
        copy = Path(copied) / "store"
        shutil.copytree(folder, copy)
        for path in sorted(copy.glob("*.db")):
            db = apsw.Connection(str(path))
            assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
            names = [name for (name,) in db.execute("select name from sqlite_schema where type = 'table'")]
            for name in names:
                if "__" not in name and not name.startswith("sqlite_") and name != "_onefold_meta":
                    rows = db.execute(f'select * from "{name}"').fetchall()  # noqa: S608 - a name out of the schema
                    found[f"{path.stem}.{name}"] = sorted(rows, key=repr)
            db.close()
    return found


async def until_dead_or_done(stage: Stage, attempt: asyncio.Future[Any], dead: Callable[[], bool]) -> None:
    turns = 0
    while not attempt.done() and not dead():
        turns += 1
        await asyncio.sleep(0 if turns < 300 else 0.0005)
    attempt.cancel()
    await asyncio.gather(attempt, return_exceptions=True)
