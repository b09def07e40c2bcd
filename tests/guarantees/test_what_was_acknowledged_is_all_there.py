"""Promise 1: an event that was answered is there after any crash: its facts, what it owes, its id, its reply, its alarm."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from onefold.kernel.tables import ALARM, OWED, TURN
from onefold.store.contract import Query
from onefold.store.sqlite import SqliteWorld
from onefold.testing import Stage, VirtualClock
from onefold.testing.store_suite.tables import SCHEMA
from tests.guarantees.shop import Accepted, Deposit, Deposited, PayOut, Provider, Reserved, bank


@pytest.mark.parametrize("point", ["crash", "after-commit", "before-reply"])
async def test_every_part_of_an_answered_fold_is_there_after_a_crash(
    stage: Stage, provider: Provider, point: str
) -> None:
    caller = stage.caller()
    provider.failing = [ConnectionError("down")] * 100
    await stage.host.deliver(bank, Deposit("d1", "a", 100), caller=caller)
    until = stage.clock.moment + timedelta(minutes=60)
    if point == "crash":
        assert await stage.host.deliver(bank, PayOut("p1", "a", 40), caller=caller) == Accepted(60)
        await stage.crash()
    else:
        stage.kill_at(point)
        paying = asyncio.create_task(stage.host.deliver(bank, PayOut("p1", "a", 40), caller=caller))
        await stage.let_die()
        paying.cancel()
        await asyncio.gather(paying, return_exceptions=True)
        stage.live_on()
        await stage.open()

    facts = [row.fact for row in await stage.host.history(bank, "a", caller=caller)]
    assert facts == [Deposited(100), Reserved("p1", 40, until)]
    space = await stage.host.space("main")
    turns, owed, alarms = await space.look(Query(TURN, order=("n",)), Query(OWED), Query(ALARM))
    assert [row[TURN.at["event"]] for row in turns] == ["d/d1", "d/p1"]
    assert [(row[OWED.at["key"]], row[OWED.at["port"]]) for row in owed] == [("e/p1", "transfer")]
    assert alarms[0][ALARM.at["at"]] is not None
    assert alarms[0][ALARM.at["at"]] <= stage.clock.now() + 60 * 60_000
    assert await stage.host.deliver(bank, PayOut("p1", "a", 40), caller=caller) == Accepted(60)

    provider.failing = []
    await stage.advance("1h")
    assert list(provider.paid.values()) == [40]


@pytest.mark.parametrize("said,synchronous", [(None, 2), ("lossy-on-power-cut", 1)])
async def test_an_answer_waits_for_the_disk_unless_the_settings_name_what_is_given_up(
    tmp_path: Path, said: str | None, synchronous: int
) -> None:
    """2 is FULL: the log is on the disk before COMMIT returns."""
    more = {} if said is None else {"durability": said}
    world = SqliteWorld(tmp_path, clock=VirtualClock().now, **more)  # type: ignore[arg-type]
    space = await world.open("main", [SCHEMA])
    conn = space.engine.file.conn
    assert conn is not None
    assert (conn.pragma("journal_mode"), conn.pragma("synchronous")) == ("wal", synchronous)
    await world.close()
