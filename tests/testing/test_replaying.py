"""Replayed at every await, a function that gives two answers is found where it does."""

from __future__ import annotations

import asyncio

import pytest

from onefold import Run, actuator, blocking, testing
from onefold.errors import RunParked
from onefold.testing import Durable
from tests.testing.programs import count, trying


@pytest.mark.parametrize("replay", [None, "every-await"])
def test_a_sound_function_runs_its_steps_once_under_both(
    durable: Durable, replay: testing.opening.Replay | None
) -> None:
    @actuator
    async def both(run: Run) -> list[int]:
        """Steps side by side, a sleep, and a timeout."""
        first = await asyncio.gather(*(run.step(count)("a" * n) for n in range(4)))
        await asyncio.sleep(60)
        async with asyncio.timeout(3600):
            return [*first, await run.step(count)("last")]

    app = durable(both, replay=replay)
    receipt = app.start(both)
    app.clock.advance("2 minutes")
    assert receipt.result() == [0, 1, 2, 3, 4]
    assert len(app.calls(count)) == 5


def test_divergence_shows_at_once(durable: Durable) -> None:
    turns: list[int] = []

    @actuator
    async def moody(run: Run) -> int:
        """Does something else each time it is replayed."""
        turns.append(1)
        await run.step(count)("a")
        return await run.step(count)("b" * len(turns))

    assert durable(moody).call(moody) == 1, "nothing replays it, so nobody sees"
    turns.clear()
    app = durable(moody, replay="every-await")
    with pytest.raises(RunParked, match=r"'count' \(call 2 of task 0\)"):
        app.call(moody)


def test_a_result_of_chance_is_divergence_too(durable: Durable) -> None:
    turns: list[int] = []

    @actuator
    async def moody(run: Run) -> int:
        """Answers otherwise each time."""
        turns.append(1)
        await run.step(count)("a")
        return len(turns)

    with pytest.raises(RunParked, match="the result 1"):
        durable(moody, replay="every-await").call(moody)


def test_a_replay_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="every-await"), testing.open(trying, replay="often"):  # type: ignore[arg-type]
        pass


def test_divergence_of_a_plain_function_shows_too(durable: Durable) -> None:
    turns: list[int] = []

    @actuator
    def moody(run: blocking.Run) -> int:
        """Does something else each time it is replayed, in its own thread."""
        turns.append(1)
        run.step(count)("a")
        return run.step(count)("b" * len(turns))

    app = durable(moody, replay="every-await")
    with pytest.raises(RunParked, match=r"'count' \(call 2 of task 0\)"):
        app.call(moody)


def test_what_is_printed_outside_of_steps_is_all_that_a_replay_repeats(durable: Durable) -> None:
    begun: list[str] = []

    @actuator
    async def telling(run: Run) -> int:
        """Says that it began, each time."""
        begun.append("begun")
        await run.step(count)("a")
        return await run.step(count)("ab")

    app = durable(telling, replay="every-await")
    assert app.call(telling) == 2
    assert len(begun) == 3, "the pass itself, and a replay for each of its two entries"
    assert len(app.calls(count)) == 2
