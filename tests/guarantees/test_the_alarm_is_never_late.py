"""Promise 5: due work runs without outside traffic; the alarm row is early once, never late, and never spins."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onefold import Decision, Module
from onefold.kernel.tables import ALARM
from onefold.store.contract import Query
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Deposit, PayOut, Provider, Released, bank


@dataclass(frozen=True)
class Bell:
    at: datetime | None = None
    rung: int = 0
    broken: bool = False


@dataclass(frozen=True)
class SetBell:
    id: str
    bell: str
    in_minutes: int | None
    broken: bool = False


@dataclass(frozen=True)
class BellSet:
    at: datetime | None
    broken: bool


@dataclass(frozen=True)
class BellRang:
    at: datetime


def decide(bell: Bell, event: SetBell, now: datetime) -> Decision[BellSet | BellRang, int]:
    at = None if event.in_minutes is None else now + timedelta(minutes=event.in_minutes)
    return Decision(facts=[BellSet(at, event.broken)], reply=bell.rung)


def on_alarm(bell: Bell, now: datetime) -> Decision[BellSet | BellRang, None]:
    if bell.broken:
        raise RuntimeError("the bell is broken")
    return Decision(facts=[BellRang(now)])


def evolve(bell: Bell, fact: BellSet | BellRang) -> Bell:
    if isinstance(fact, BellSet):
        return replace(bell, at=fact.at, broken=fact.broken)
    return replace(bell, at=None, rung=bell.rung + 1)


def view(bell: Bell) -> Bell:
    return bell


def bell_module(rings: Any) -> Module[Bell, SetBell, BellSet | BellRang, int, Bell]:
    return Module(
        "bells",
        initial=Bell(),
        key=lambda event: event.bell,
        decide=decide,
        evolve=evolve,
        view=view,
        on_alarm=rings,
        wake=lambda bell: bell.at,
    )


bells = bell_module(on_alarm)


async def row(stage: Stage) -> tuple[int | None, int] | None:
    space = await stage.host.space("main")
    (rows,) = await space.look(Query(ALARM))
    return None if not rows else (rows[0][ALARM.at["at"]], rows[0][ALARM.at["tries"]])


async def rang(stage: Stage, key: str = "b") -> list[datetime]:
    rows = await stage.host.history(bells, key, caller=stage.caller())
    return [each.fact.at for each in rows if isinstance(each.fact, BellRang)]


async def set_bell(stage: Stage, id: str, minutes: int | None, *, broken: bool = False) -> None:
    await stage.host.deliver(bells, SetBell(id, "b", minutes, broken), caller=stage.caller())


async def test_it_rings_at_its_instant_without_traffic(stages: Stages) -> None:
    stage = await stages(bells)
    start = stage.clock.moment
    await set_bell(stage, "1", 10)
    await stage.advance("3 days")

    assert await rang(stage) == [start + timedelta(minutes=10)]
    assert await row(stage) is None


async def test_it_rings_after_a_crash_and_for_an_evicted_actor(stages: Stages) -> None:
    stage = await stages(bells)
    start = stage.clock.moment
    await set_bell(stage, "1", 10)
    await stage.crash()
    await stage.advance("1h")

    assert await rang(stage) == [start + timedelta(minutes=10)]


async def test_one_whose_commit_was_done_and_its_answer_lost_rings_at_its_instant(stages: Stages) -> None:
    stage = await stages(bells)
    await stage.advance("1s")  # the driver's next beat is far
    start = stage.clock.moment
    left = 1

    def lost(point: str) -> None:
        nonlocal left
        if point == "after-commit" and left:
            left -= 1
            raise OSError(errno.EIO, "Input/output error")

    stage.failpoint = lost
    await set_bell(stage, "1", 0)
    await stage.settle()

    assert await rang(stage) == [start]


async def test_one_that_passed_while_nobody_ran_rings_at_the_start(stages: Stages) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 10)
    await stage.close()
    stage.clock.step_to(stage.clock.now() + 24 * 3_600_000)
    await stage.open()
    await stage.settle()

    assert await rang(stage) == [stage.clock.moment]


async def test_a_wake_that_is_loosened_rings_early_once_and_is_then_exact(stages: Stages) -> None:
    stage = await stages(bells)
    start = stage.clock.now()
    await set_bell(stage, "1", 10)
    for index in range(5):
        await set_bell(stage, f"later {index}", 60)
    assert await row(stage) == (start + 10 * 60_000, 0)

    await stage.advance("11m")
    assert await rang(stage) == []
    assert await row(stage) == (start + 60 * 60_000, 0)

    await stage.advance("1h")
    assert len(await rang(stage)) == 1


async def test_a_wake_that_is_taken_back_leaves_no_row_after_its_early_ring(stages: Stages) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 10)
    await set_bell(stage, "2", None)
    await stage.advance("11m")

    assert await rang(stage) == []
    assert await row(stage) is None


async def test_a_wake_that_fails_backs_off_and_is_parked_with_its_error(stages: Stages) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 10, broken=True)
    await stage.advance("10m")
    first = await row(stage)
    assert first is not None
    assert first[1] == 1

    await stage.advance("6h")

    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert (item.kind, item.program) == ("alarm", "bells")
    assert "the bell is broken" in item.cause
    rings = stage.host.rung
    await stage.advance("2 days")
    assert stage.host.rung == rings


async def test_a_parked_alarm_can_be_retried_once_its_module_is_mended(stages: Stages) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 10, broken=True)
    await stage.advance("6h")
    stage.parts = (bell_module(lambda bell, now: Decision(facts=[BellRang(now)])),)
    await stage.restart()
    await stage.advance("1d")
    (item,) = await stage.host.parked_list(caller=stage.caller())

    await stage.host.parked_retry(item.id, caller=stage.caller())
    await stage.settle()

    assert len(await rang(stage)) == 1
    assert await stage.host.parked_list(caller=stage.caller()) == []


async def test_an_event_that_moves_the_wake_takes_it_out_of_the_park(stages: Stages) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 10, broken=True)
    await stage.advance("6h")
    await set_bell(stage, "2", 5)
    await stage.advance("10m")

    assert len(await rang(stage)) == 1
    assert await stage.host.parked_list(caller=stage.caller()) == []


@pytest.mark.parametrize("forgotten", [False, True], ids=["in memory", "read anew"])
async def test_an_event_that_takes_the_wake_back_takes_it_out_of_the_park(stages: Stages, forgotten: bool) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 10, broken=True)
    await stage.advance("6h")
    if forgotten:
        await stage.restart()
    await set_bell(stage, "2", None)

    assert await stage.host.parked_list(caller=stage.caller()) == []
    assert await row(stage) is None


async def test_a_dropped_alarm_rings_no_more(stages: Stages) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 10, broken=True)
    await stage.advance("6h")
    (item,) = await stage.host.parked_list(caller=stage.caller())

    await stage.host.parked_drop(item.id, reason="not needed", caller=stage.caller())
    await stage.advance("1d")

    assert await stage.host.parked_list(caller=stage.caller()) == []
    assert await rang(stage) == []


@pytest.mark.parametrize("forgotten", [False, True], ids=["in memory", "read anew"])
async def test_a_dropped_alarm_is_armed_again_by_the_next_event(stages: Stages, forgotten: bool) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 0, broken=True)
    await stage.advance("6h")
    (item,) = await stage.host.parked_list(caller=stage.caller())
    await stage.host.parked_drop(item.id, reason="not needed", caller=stage.caller())
    if forgotten:
        await stage.restart()
    assert await row(stage) is None

    await set_bell(stage, "2", -6 * 60, broken=True)  # the wake is what it was

    assert await row(stage) is not None


async def test_an_alarm_that_changes_nothing_does_not_spin(stages: Stages) -> None:
    idle = bell_module(lambda bell, now: Decision())
    stage = await stages(idle)
    await stage.host.deliver(idle, SetBell("1", "b", 0), caller=stage.caller())
    await stage.advance("1d")

    assert stage.host.rung < 40
    assert [item.kind for item in await stage.host.parked_list(caller=stage.caller())] == ["alarm"]


async def test_what_is_owed_and_what_wakes_share_one_alarm(stage: Stage, provider: Provider) -> None:
    await stage.host.deliver(bank, Deposit("d1", "a", 100), caller=stage.caller())
    provider.failing = [ConnectionError("down")] * 1_000
    await stage.host.deliver(bank, PayOut("p1", "a", 40, minutes=5), caller=stage.caller())
    await stage.advance("6m")

    history = await stage.host.history(bank, "a", caller=stage.caller())
    assert Released("p1", "too late") in [each.fact for each in history]
    assert len(provider.calls) > 5


async def test_ten_thousand_sleepers_ring_once_each(stages: Stages) -> None:
    import asyncio

    stage = await stages(bells, settings={"node": {"capacity": 500}})
    caller = stage.caller()
    await asyncio.gather(
        *(stage.host.deliver(bells, SetBell("1", f"b{i}", 1 + i % 5), caller=caller) for i in range(2_000))
    )
    await stage.advance("10m")

    assert stage.host.resident_count <= 600
    counts = [(await stage.host.read(bells, f"b{i}", caller=caller)).rung for i in range(0, 2_000, 97)]
    assert set(counts) == {1}
    assert await row(stage) is None


async def test_the_alarm_verb_folds_what_is_due_and_gives_the_next(stages: Stages) -> None:
    stage = await stages(bells)
    await set_bell(stage, "1", 10)
    due = await stage.host.alarm(bells, "b", caller=stage.caller())
    assert due == stage.clock.moment + timedelta(minutes=10)
    assert await stage.host.alarm(bells, "nobody", caller=stage.caller()) is None


async def test_within_an_actor_time_never_goes_back(stages: Stages) -> None:
    stage = await stages(bells)
    await stage.advance("1h")
    await set_bell(stage, "1", 0)
    await stage.settle()
    late = (await stage.host.history(bells, "b", caller=stage.caller()))[-1].at
    await stage.close()
    stage.clock.set_back(3_600_000)
    await stage.open()
    await set_bell(stage, "2", None)

    after = (await stage.host.history(bells, "b", caller=stage.caller()))[-1].at
    assert after >= late > datetime(2026, 1, 1, tzinfo=UTC)
