"""Ports that cannot dedupe: looked up after a doubtful send, or parked for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from onefold.actuators import Retry, Run, actuator
from onefold.kernel.port import Port, Step, lookup, neither
from tests.actuators.home import Killed, World

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    SEEN.clear()
    yield
    LIVES.clear()


async def asked(step: Step, body: str) -> str | None:
    SEEN.append(f"find {body}")
    return "found" if "found" in FOUND else None


FOUND: set[str] = set()
LIVES: list[World] = []


async def sent(step: Step, body: str) -> str:
    SEEN.append(f"send {body} {step.attempt}")
    if "fails" in FOUND:
        raise ConnectionError("lost")
    if "dies" in FOUND:
        FOUND.discard("dies")
        LIVES[-1].life.dead = True  # nothing is committed any more: what a step raises is counted, a death is not
        raise Killed
    return f"sent {body}"


LOOKUP: Port[str, str] = lookup("looked", find=asked)(sent)
NEITHER: Port[str, str] = neither("blind")(sent)


def through(port: Port[str, str]) -> World:
    async def main(run: Run) -> str:
        return await run.step(port, retry=Retry(attempts=2))("x")

    FOUND.clear()
    LIVES[:] = [World(actuator(capabilities=[port])(main))]
    return LIVES[0]


async def dies(world: World) -> None:
    with pytest.raises(Killed):
        await world.play()
    world.restart()


async def test_an_attempt_is_committed_before_its_first_byte_leaves() -> None:
    world = through(LOOKUP)
    FOUND.add("dies")
    await dies(world)
    assert world.state.trying == frozenset({"0#0"})
    assert not len(world.state.journal)


@pytest.mark.parametrize("was", [True, False])
async def test_a_doubtful_send_is_looked_up_first(was: bool) -> None:
    world = through(LOOKUP)
    FOUND.add("dies")
    await dies(world)
    if was:
        FOUND.add("found")
    await world.play()
    assert world.result == ("found" if was else "sent x")
    assert ["send x 1", "find x", *([] if was else ["send x 1"])] == SEEN


async def test_a_failed_send_is_looked_up_before_the_next() -> None:
    world = through(LOOKUP)
    FOUND.update({"fails", "found"})
    await world.play()
    assert world.result == "found"
    assert SEEN == ["send x 1", "find x"]


async def test_a_send_nobody_can_be_asked_about_parks_for_a_person() -> None:
    world = through(NEITHER)
    FOUND.add("dies")
    await dies(world)
    await world.play()
    assert world.state.status == "parked"
    trouble = world.life.module.view(world.state).trouble
    assert trouble is not None
    assert trouble.code == "uncertain"
    assert "the process ended while it was sent" in trouble.message
    assert SEEN == ["send x 1"]
    world.reopen()
    await world.play()
    assert world.result == "sent x"
    assert SEEN == ["send x 1", "send x 1"]


async def test_a_send_that_raised_and_cannot_be_asked_about_parks_too() -> None:
    world = through(NEITHER)
    FOUND.add("fails")
    await world.play()
    assert world.state.status == "parked"
    assert "raised ConnectionError" in world.state.trouble.message  # type: ignore[union-attr]
    assert SEEN == ["send x 1"]
