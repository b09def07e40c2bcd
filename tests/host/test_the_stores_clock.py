"""The clock that the nodes of a fleet share never goes back, and no wait on it is longer than it was asked for."""

from __future__ import annotations

import asyncio

from onefold.host.clock import StoreClock


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
