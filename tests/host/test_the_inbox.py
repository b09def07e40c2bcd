"""The inbox finds the runs that ask by their row, and wakes none of those that sleep."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from pydantic import BaseModel

from onefold import Approved, Expired, Rejected, Run, actuator
from onefold.actuators.tables import RUN, RUNS
from onefold.store.contract import AddIndex, Query
from onefold.store.sqlite import sql
from onefold.testing import staged
from tests.contracts.backends import store_of


class Order(BaseModel):
    order_id: str
    asks: bool = False


@actuator
async def ship(run: Run, order: Order) -> str:
    """Sleep, or ask two people."""
    if not order.asks:
        await run.sleep("30 days")
        return "slept"
    for name in ("boss", "owner"):
        match await run.wait_for_approval(name, "ship?", notify="mailto:b@example.com", timeout="1 day"):
            case Rejected():
                return "no"
            case Expired():
                return "nobody"
            case Approved():
                pass
    return "yes"


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_run_is_listed_for_as_long_as_it_asks_and_no_sleeper_is_woken(kind: str, tmp_path: Path) -> None:
    async with staged(ship, store=store_of(kind, tmp_path / "store")) as stage:
        caller = stage.caller()
        for n in range(30):
            await stage.host.start("ship", {"order_id": str(n)}, caller=caller)
        run = (await stage.host.start("ship", {"order_id": "x", "asks": True}, caller=caller)).receipt.run_id
        await stage.settle()
        await stage.crash()
        await stage.settle()
        for name in ("boss", "owner"):
            assert [each.name for each in await stage.host.approvals_list(caller=caller)] == [name]
            assert stage.host.resident_count == 1
            await stage.host.approvals_decide(run, name, approve=True, by="b", caller=caller)
            await stage.settle()
        assert await stage.host.approvals_list(caller=caller) == []
        space = await stage.host.space("ship")
        (rows,) = await space.look(Query(RUN))
        assert {row[RUN.at["asks"]] for row in rows} == {0}


async def test_a_run_from_before_it_was_counted_is_found_all_the_same(tmp_path: Path) -> None:
    async with staged(ship, store=tmp_path / "store") as stage:
        await stage.host.start("ship", {"order_id": "x", "asks": True}, caller=stage.caller())
        await stage.settle()
    db = apsw.Connection(str(tmp_path / "store" / "ship.db"))
    added = next(step for step in RUNS.migrations[1].steps if isinstance(step, AddIndex))
    for statement in (
        f"drop index _onefold_run__by_{'_'.join(added.columns)}",
        "alter table _onefold_run drop column asks",
        "delete from _onefold__migration where room='actuators' and number=2",
    ):
        db.execute(statement)
    db.close()
    async with staged(ship, store=tmp_path / "store") as stage:
        (only,) = await stage.host.approvals_list(caller=stage.caller())
        assert only.name == "boss"


def test_the_inbox_is_read_by_an_index() -> None:
    db = apsw.Connection("")
    for migration in RUNS.migrations:
        for step in migration.steps:
            for statement in sql.changed(step):
                db.execute(statement)
    for question in (
        "explain query plan select * from _onefold_run where asks>0",
        "explain query plan select * from _onefold_run where asks is null and status in ('waiting','running')",
    ):
        plan = db.execute(question).fetchall()
        assert "USING INDEX _onefold_run__by_asks_status_actor" in str(plan[0][3])
