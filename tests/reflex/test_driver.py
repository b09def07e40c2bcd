"""An engine driven on its own: woken by facts, asleep until something is due, stopped cleanly. No test waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from onefold.reflex.driver import BEAT_MS, SOON_MS, Driver
from onefold.reflex.engine import Engine
from onefold.reflex.words import OnSignal, Report, Selection, Signal
from onefold.store.contract import Refused
from onefold.terms.errors import StoreUnavailable
from onefold.terms.instant import down, moment
from onefold.testing.clock import VirtualClock
from onefold.testing.store_suite.ground import turns
from tests.reflex.ground import T0, Act, At, reflex, until

PING = OnSignal("ping")
DAILY = {"every": "day", "at": "03:00", "tz": "UTC"}


class Clock(VirtualClock):
    """Keeps how long anybody wanted to wait."""

    def __init__(self) -> None:
        super().__init__(down(T0))
        self.waits: list[int] = []

    async def wait(self, until: int | None, woken: asyncio.Event) -> None:
        assert until is not None
        self.waits.append(until - self.now())
        await super().wait(until, woken)


class Driven:
    """An engine, its driver and its clock. `told`: what the driver said of each advance."""

    def __init__(self, at: At, engine: Engine) -> None:
        self.at, self.engine, self.clock = at, engine, Clock()
        self.told: list[Report | Exception] = []
        self.driver = Driver(engine, self.clock, told=self.told.append)

    async def rest(self) -> None:
        await self.driver.quiet()

    async def step(self, **delta: float) -> None:
        """Let time pass as it does: nobody who waits is passed over."""
        end = self.clock.now() + int(timedelta(**delta).total_seconds() * 1000)
        while self.clock.now() < end:
            await turns()
            self.clock.step_to(self.clock.next_stop(end))
            self.at.now = self.clock.moment
            await turns()
            await self.rest()


@asynccontextmanager
async def driven(at: At, *reflexes: Any, **given: Any) -> AsyncIterator[Driven]:
    engine = await at.engine(**given)
    await at.load(engine, reflexes)
    one = Driven(at, engine)
    async with one.driver:
        await one.rest()
        yield one


async def test_a_fact_wakes_it_and_its_whole_chain_is_done_before_it_sleeps(at: At) -> None:
    at.acts |= {f"e{n}": Act(f"e{n}", does=_emits(f"s{n + 1}")) for n in range(5)}
    chain = [reflex(f"r{n}", OnSignal(f"s{n}"), effect=f"e{n}") for n in range(5)]
    async with driven(at, *chain) as one:
        await at.signal(one.engine, "s0")
        await one.rest()
        assert [run["state"] for run in await at.runs()] == ["settled"] * 5
        assert one.clock.now() == down(T0)


def _emits(name: str) -> Any:
    return lambda task, input: task.emit(Signal(name, {}))


async def test_it_sleeps_until_an_occurrence_is_due_and_not_a_moment_longer(at: At) -> None:
    async with driven(at, reflex("a", DAILY)) as one:
        await one.step(hours=3, milliseconds=-1)
        assert at.act.tasks == []
        await one.step(milliseconds=1)
        assert [task.now for task in at.act.tasks] == [T0 + timedelta(hours=3)]


async def test_a_delayed_fact_a_backoff_and_a_lapsed_lease_wake_it_too(at: At) -> None:
    def does(task: Any, input: Any) -> None:
        if task.attempt == 1:
            raise ConnectionError("once")

    at.act.does = does
    async with driven(at, reflex("a", PING, base_ms=90_500)) as one:
        await at.signal(one.engine, not_before=T0 + timedelta(seconds=10, milliseconds=500))
        await one.rest()
        await one.step(minutes=5)
        assert [(task.now - T0).total_seconds() for task in at.act.tasks] == [10.5, 101.0]


async def test_the_beat_finds_what_nobody_woke_it_for(at: At) -> None:
    async with driven(at, reflex("a", PING)) as one:
        other = await at.engine()
        await at.signal(other)
        await one.step(milliseconds=BEAT_MS)
        assert [run["state"] for run in await at.runs()] == ["settled"]


async def test_no_wait_is_longer_than_a_beat_however_far_the_next_thing_is(at: At) -> None:
    """A loop's timer holds about 24 days."""
    async with driven(at, reflex("a", {"every": "year", "on": "12-24", "at": "18:00", "tz": "UTC"})) as one:
        await one.step(minutes=10)
        one.clock.step_to(down(T0 + timedelta(days=298, hours=18)))
        await turns()
        await one.rest()
        assert len(at.act.tasks) == 1
        assert max(one.clock.waits) <= BEAT_MS


async def test_an_idle_driver_looks_once_a_beat(at: At) -> None:
    async with driven(at, reflex("a", PING)) as one:
        before = len(one.told)
        await one.step(milliseconds=BEAT_MS * 10)
        assert len(one.told) - before <= 11


async def test_what_is_due_and_does_not_move_is_not_asked_for_without_rest(at: At) -> None:
    """A run that was put off kept its past instant, and the driver spun."""
    at.rows.down = ConnectionError("down")
    due = Selection({"from": "due"}, "each", "id")
    async with driven(at, reflex("a", PING, select=due)) as one:
        await at.signal(one.engine)
        await one.rest()
        await one.step(minutes=30)
        assert len(at.rows.asked) == 11
        assert len(one.told) < 120


async def test_a_store_that_fails_is_asked_again_a_little_later(at: At) -> None:
    async with driven(at, reflex("a", PING)) as one:
        parts = await one.engine._opened()
        transact = parts.space.transact

        async def fails(body: Any) -> Any:
            if "matching" in body.__qualname__:
                return Refused(StoreUnavailable("main", "the disk is full"))
            return await transact(body)

        parts.space.transact = fails  # type: ignore[method-assign]
        await at.signal(one.engine)
        await one.rest()
        await one.step(seconds=5)
        failed = [told for told in one.told if isinstance(told, StoreUnavailable)]
        assert 4 <= len(failed) <= 7
        parts.space.transact = transact  # type: ignore[method-assign]
        await one.step(milliseconds=SOON_MS)
        assert [run["state"] for run in await at.runs()] == ["settled"]


async def test_a_slow_effect_keeps_no_other_waiting(at: At) -> None:
    let = asyncio.Event()
    at.acts["slow"] = Act("slow", does=lambda task, input: let.wait())
    async with driven(at, reflex("a", PING, effect="slow"), reflex("b", OnSignal("pong")), reflex("c", DAILY)) as one:
        await at.signal(one.engine)
        await turns()
        await at.signal(one.engine, "pong")

        async def are_settled(id: str) -> bool:
            return [run["state"] for run in await at.runs(reflex=id)] == ["settled"]

        try:
            await until(lambda: are_settled("b"))
            one.clock.step_to(down(T0 + timedelta(hours=3)) + SOON_MS)
            await until(lambda: are_settled("c"))
        finally:
            let.set()
        await one.rest()


async def test_it_stops_when_what_is_under_way_has_ended_and_begins_nothing_more(at: At) -> None:
    let = asyncio.Event()
    at.act.does = lambda task, input: let.wait()
    async with driven(at, reflex("a", PING), reflex("b", DAILY)) as one:
        await at.signal(one.engine)
        await turns(40)
        asyncio.get_running_loop().call_later(0, let.set)
    assert [task["state"] for task in await at.tasks()] == ["done"]
    one.clock.step_to(down(T0 + timedelta(days=3)))
    await turns(40)
    assert await at.runs(reflex="b") == []


async def test_a_driver_that_begins_later_finds_all_that_came_before(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY, overlap="allow")])
    one = Driven(at, engine)
    one.clock.step_to(down(T0 + timedelta(days=3)))
    async with one.driver:
        await one.rest()
    assert [run["state"] for run in await at.runs()] == ["settled"] * 3


async def test_what_is_no_fault_of_the_store_is_reported_and_does_not_stop_it(at: At) -> None:
    async with driven(at, reflex("a", PING)) as one:
        advance = one.engine.advance

        async def breaks(now: Any, limit: int = 100) -> Report:
            raise ZeroDivisionError

        one.engine.advance = breaks  # type: ignore[method-assign]
        await at.signal(one.engine)
        await turns(40)
        one.engine.advance = advance  # type: ignore[method-assign]
        assert [type(told) for told in one.told if isinstance(told, Exception)] == [ZeroDivisionError]
        await one.step(milliseconds=SOON_MS)
        assert [run["state"] for run in await at.runs()] == ["settled"]


@pytest.mark.parametrize("days", [1, 400])
async def test_time_that_jumps_ahead_is_caught_up_with(at: At, days: int) -> None:
    async with driven(at, reflex("a", DAILY, overlap="allow")) as one:
        one.clock.step_to(down(T0 + timedelta(days=days)))
        await turns(40)
        await one.rest()
        assert len(await at.runs()) == days
        assert moment(one.clock.now()) == T0 + timedelta(days=days)
