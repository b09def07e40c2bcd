"""The process killed at any point: every tick still comes, once by its id, and nothing is minted twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from onefold.testing import staged
from onefold.timers import Ack, Every, Supersede
from onefold.timers.facts import TickAcked
from tests.contracts.backends import store_of
from tests.guarantees.test_a_run_happens_once import counting, dies_or_ends
from tests.timers.home import SCHEDULE, Home, Owner, at, create, tick_id
from tests.timers.laws import check_alarm, check_history, check_owner

HALVES = Every("30 * * * *", tz="UTC")
FIRST, SECOND = tick_id(at(hours=1)), tick_id(at(hours=1, minutes=30), 1)


async def whole(home: Home) -> None:
    """A schedule's life, event by event. What was cut off by a kill is said again, with the same ids."""
    await home.say(create())
    await reach(home, 61)
    await home.say(Ack("a1", FIRST))
    await home.say(Supersede("s1", SCHEDULE, HALVES, {"say": "half past"}))
    await reach(home, 151)
    await home.say(Ack("a2", SECOND))
    await reach(home, 155)


async def reach(home: Home, minutes: int) -> None:
    """Let time pass to so long after the beginning, if it is not later already."""
    left = minutes * 60_000 - (home.stage.clock.now() - round(at().timestamp() * 1000))
    await home.later(f"{max(left, 0)}ms")


@asynccontextmanager
async def homes_at(store: str | Path) -> AsyncIterator[Home]:
    owner = Owner()
    timers = owner.timers()
    async with staged(timers, store=store) as stage:
        yield Home(stage, owner, timers)


POINTS = ("statement", "before-commit", "after-commit", "before-send", "after-send", "before-reply")


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_point_every_tick_comes_once_by_its_id(tmp_path: Path, store: str, point: str) -> None:
    for hit in kills(store, point):
        async with homes_at(store_of(store, tmp_path / str(hit))) as home:
            met = counting(home.stage, point, hit)
            await dies_or_ends(home.stage, asyncio.ensure_future(whole(home)))
            home.stage.live_on()
            await home.stage.open()
            await home.stage.settle()
            await whole(home)

            facts = await home.facts()
            check_history(facts)
            check_owner(home.owner, facts)
            await check_alarm(home)
            assert next(fact.tick for fact in facts if isinstance(fact, TickAcked)) == FIRST
            assert home.owner.ticks[0].id == FIRST
            assert (await home.shown()).generation == 1
            assert (await home.shown()).held is None
            if met() < hit:
                return
    pytest.fail("more kills than were looked for")


def kills(store: str, point: str) -> range:
    """Every one; of the many statements of a database some, since a commit has a dozen of them."""
    return range(1, 400, {"sqlite": 3, "postgres": 23}.get(store, 1) if point == "statement" else 1)


async def test_killed_again_and_again_it_comes_to_its_end(tmp_path: Path) -> None:
    async with homes_at(tmp_path / "store") as home:
        lives = 0
        while lives < 60:
            lives += 1
            met: Callable[[], int] = counting(home.stage, "after-commit", 2)
            await dies_or_ends(home.stage, asyncio.ensure_future(whole(home)))
            home.stage.live_on()
            await home.stage.open()
            if met() < 2:
                break
        await home.stage.settle()
        await whole(home)
        assert lives > 3
        check_history(await home.facts())
        check_owner(home.owner, await home.facts())
