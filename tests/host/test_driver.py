"""The only clock: what it asks of spaces at rest, and that it lets others through in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from onefold.host.driver import AFTER_FAULT_MS, BEAT_MS, SAID_AGAIN_MS, Driver
from onefold.store.contract import Query
from onefold.terms.errors import OnefoldError, StoreUnavailable
from onefold.testing.clock import VirtualClock


class Space:
    """A space in which nobody is due before `at`."""

    def __init__(self, name: str, at: int | None) -> None:
        self.name = name
        self.kinds: Sequence[str] = (name,)
        self.at = at
        self.asked = 0
        self.fault: OnefoldError | None = None

    async def look(self, query: Query) -> Sequence[tuple[object, ...]]:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return () if self.at is None else [(1, self.name, 0, self.at, 0, None)]


Driven = Callable[..., tuple[Driver, VirtualClock]]


@pytest.fixture
async def driven() -> AsyncIterator[Driven]:
    started: list[Driver] = []

    def drive(*spaces: Space) -> tuple[Driver, VirtualClock]:
        clock = VirtualClock()
        nobody: Any = None  # nothing is due, so no actor is ever asked for
        started.append(Driver(clock, nobody, lambda: spaces))
        started[-1].start()
        return started[-1], clock

    yield drive
    for driver in started:
        await driver.stop()


async def quiet(driver: Driver) -> int:
    """Until it sleeps; how many turns others had meanwhile."""
    for turn in range(100_000):
        if driver.quiet:
            return turn
        await asyncio.sleep(0)
    raise AssertionError("it never came to rest")


async def test_a_space_at_rest_is_asked_once(driven: Driven) -> None:
    spaces = [Space("a", None), Space("b", 10**15), Space("c", 10**15)]
    driver, _ = driven(*spaces)
    await quiet(driver)
    assert [space.asked for space in spaces] == [1, 1, 1]


async def test_each_of_a_thousand_spaces_lets_others_through(driven: Driven) -> None:
    driver, clock = driven(*(Space(f"s{n}", 10**15) for n in range(1_000)))
    assert await quiet(driver) >= 1_000
    clock.step_to(clock.now() + BEAT_MS)
    await asyncio.sleep(0)
    assert await quiet(driver) >= 999


async def test_an_alarm_of_a_space_that_is_another_process_s_by_now_keeps_nobody_awake() -> None:
    clock, spaces = VirtualClock(), [Space("stays", None), Space("goes", None)]
    spaces[1].at = int(clock.now()) + 1_000
    nobody: Any = None
    driver = Driver(clock, nobody, lambda: tuple(spaces))
    driver.start()
    await quiet(driver)
    spaces.pop()
    clock.step_to(clock.now() + 2_000)
    await quiet(driver)
    assert driver.next_due is None
    await driver.stop()


async def test_a_driver_told_to_rest_asks_nothing_more(driven: Driven) -> None:
    space = Space("a", None)
    driver, clock = driven(space)
    await quiet(driver)
    driver.rest()
    clock.step_to(clock.now() + 10 * BEAT_MS)
    for _ in range(10):
        await asyncio.sleep(0)
    assert space.asked == 1


async def test_a_trouble_that_lasts_is_said_once_and_again_much_later(
    driven: Driven, caplog: pytest.LogCaptureFixture
) -> None:
    space = Space("ship", None)
    space.fault = StoreUnavailable("ship", "its disk is gone")
    driver, clock = driven(space)

    async def pass_on(by: int) -> list[str]:
        caplog.clear()
        clock.step_to(clock.now() + by)
        await asyncio.sleep(0)
        await quiet(driver)
        return caplog.messages

    await quiet(driver)
    assert len(caplog.messages) == 1
    for _ in range(20):
        assert await pass_on(AFTER_FAULT_MS) == []
    assert space.asked > 20
    assert len(await pass_on(SAID_AGAIN_MS)) == 1
    space.fault = StoreUnavailable("ship", "it is another's")
    assert "another's" in (await pass_on(AFTER_FAULT_MS))[0]
    space.fault = None
    assert await pass_on(AFTER_FAULT_MS) == ["the alarms of ship can be read again"]
    assert await pass_on(BEAT_MS) == []
