"""The process dies at any statement of any stage, before and after any commit; the next one finds nothing amiss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from onefold.testing.store_suite.ground import Kill, quietly
from tests.reflex.flow import REFLEXES, check, send, stub
from tests.reflex.ground import DEEP, EVERY_STORE, T0, At, ground

END = T0 + timedelta(hours=6)
STEP = {"memory": 3, "sqlite": 13, "postgres": 40}  # with ONEFOLD_DEEP: every place


class Death:
    """Dies at the `hit`-th failpoint, whichever it is, and at all after it."""

    def __init__(self, hit: int) -> None:
        self.hit, self.met = hit, 0
        self.died = asyncio.Event()

    def __call__(self, point: str) -> None:
        self.met += 1
        if self.met >= self.hit:
            self.died.set()
            raise Kill(point)


async def live(at: At, death: Death | None, act: Callable[[At], Coroutine[Any, Any, None]]) -> bool:
    """One life of the process, until `act` is over or it dies. Whether it died."""
    await at.reopen(death)
    acting = asyncio.create_task(act(at))
    if death is None:
        await acting
        return False
    dying = asyncio.create_task(death.died.wait())
    await asyncio.wait((acting, dying), return_when=asyncio.FIRST_COMPLETED)
    for task in (acting, dying):
        task.cancel()
    (ended, _) = await asyncio.gather(acting, dying, return_exceptions=True)
    if not death.died.is_set() and ended is not None:
        raise ended
    return death.died.is_set()


async def billing(at: At) -> None:
    """All of it, from wherever the ledger is."""
    engine = await at.engine()
    await at.load(engine, REFLEXES, at=T0)
    await send(engine, T0)
    await at.pass_until(engine, END)


async def lives(store: str, hit: int) -> bool:
    """Dies once, at this failpoint, and lives on. False: it was never met."""
    async with ground(store) as at:
        calls = stub(at)
        died = await live(at, Death(hit), billing)
        if died:
            await live(at, None, billing)
        await at.reopen()
        await check(at)
        most = 2 if died else 1
        assert all(called.count(key) <= most for called in calls.values() for key in called)
        return died


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what was killed leaves halves behind
@pytest.mark.parametrize("store", EVERY_STORE)
async def test_dying_at_any_failpoint_loses_and_repeats_nothing(store: str) -> None:
    async with quietly():
        hit = 1
        while await lives(store, hit):
            hit += 1 if DEEP else STEP[store]
    assert hit > 150, f"{hit} places"
