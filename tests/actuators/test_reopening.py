"""A failed run is tried again: what succeeded is kept, what failed is made anew."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from onefold.actuators import Retry, Run, actuator
from onefold.terms.errors import StepFailed
from tests.actuators.home import World

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


async def act(what: str) -> str:
    SEEN.append(what)
    return what


async def test_a_failed_run_tried_again_keeps_what_succeeded_and_tries_its_step_anew() -> None:
    fails = [True]

    async def broken() -> str:
        SEEN.append("broken")
        if fails[0]:
            raise ConnectionError("down")
        return "up"

    async def main(run: Run) -> str:
        first = await run.step(act)("first")
        return first + await run.step(broken, retry=Retry(attempts=2))()

    world = World(actuator(main))
    await world.play()
    assert world.state.status == "failed"
    assert SEEN == ["first", "broken", "broken"]
    fails[0] = False
    assert world.reopen().changed
    assert not world.reopen().changed
    await world.play()
    assert world.result == "firstup"
    assert SEEN == ["first", "broken", "broken", "broken"]


async def test_a_failure_the_function_dealt_with_is_not_taken_back() -> None:
    fails = [True]

    async def broken(what: str) -> str:
        SEEN.append(what)
        if fails[0]:
            raise ConnectionError(what)
        return what

    async def main(run: Run) -> str:
        once = Retry(attempts=1)
        with contextlib.suppress(StepFailed):
            await run.step(broken, retry=once)("a")
        return await run.step(broken, retry=once)("b")

    world = World(actuator(main))
    await world.play()
    fails[0] = False
    world.reopen()
    await world.play()
    assert world.result == "b"
    assert SEEN == ["a", "b", "b"]


async def test_an_approval_is_asked_again_when_its_failed_run_is_tried_again() -> None:
    fails = [True]

    async def broken() -> None:
        if fails[0]:
            raise ConnectionError

    async def main(run: Run) -> str:
        async def asks() -> str:
            return type(await run.wait_for_approval("m", "Pay?", notify="m", timeout=None)).__name__

        told, _ = await asyncio.gather(asks(), run.step(broken, retry=Retry(attempts=2))())
        return str(told)

    world = World(actuator(main))
    await world.play()
    assert world.state.status == "failed"
    assert world.decide("m", True).outcome == "cancelled"
    fails[0] = False
    world.reopen()
    await world.play()
    assert world.state.status == "waiting"
    assert len(world.rows.notices) == 2
    world.decide("m", True)
    await world.play()
    assert world.result == "Approved"
