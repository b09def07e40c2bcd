"""The clock that the nodes of a fleet share never goes back, and no wait on it is longer than it was asked for."""

from __future__ import annotations

import asyncio

import pytest

from onefold.host.clock import Clock, StoreClock, WallClock
from onefold.testing import VirtualClock


async def test_a_wait_is_no_longer_than_asked_for_where_the_stores_clock_is_set_back() -> None:
    clock, store = StoreClock(), [1_000_000]
    clock.follow(lambda: store[0])
    asked = clock.now()
    store[0] -= 120_000
    await asyncio.wait_for(clock.wait(asked + 20, asyncio.Event()), 60)
    assert clock.now() == asked  # it stands still: whoever waited looks again
    store[0] = asked + 5
    assert clock.now() == asked + 5


async def test_a_wait_ends_when_its_instant_comes_or_it_is_woken() -> None:
    clock, store = StoreClock(), [1_000_000]
    clock.follow(lambda: store[0])
    waits = [asyncio.create_task(clock.wait(1_000_000 + ms, asyncio.Event())) for ms in (0, 600_000)]
    woken = asyncio.Event()
    wakes = [asyncio.create_task(clock.wait(until, woken)) for until in (None, 2_000_000)]
    await waits[0]
    await asyncio.sleep(0)
    assert [task.done() for task in (waits[1], *wakes)] == [False, False, False]
    woken.set()
    await asyncio.gather(*wakes)
    store[0] += 600_000
    await asyncio.wait_for(waits[1], 60)


@pytest.mark.parametrize("clock", [WallClock(), StoreClock(), VirtualClock()], ids=lambda clock: type(clock).__name__)
@pytest.mark.parametrize("ms", [None, 600_000])
async def test_who_is_cancelled_in_the_moment_in_which_they_are_woken_is_cancelled(
    clock: Clock, ms: int | None
) -> None:
    """Two nodes end together: one wakes the other, whose task was told to end. It went on, and the process never ended."""
    woken = asyncio.Event()
    waiting = asyncio.create_task(clock.wait(None if ms is None else clock.now() + ms, woken))
    for _ in range(3):
        await asyncio.sleep(0)
    woken.set()
    for _ in range(2):  # it may take a turn of the loop until what it waits for has heard of it
        waiting.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await waiting
