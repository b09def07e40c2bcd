"""What no row can hold fails its run at once; what is much is made durable in parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from onefold.actuators import Run, actuator
from onefold.actuators.carried import Raised
from onefold.actuators.executing import run_pass
from onefold.terms.errors import TooLarge
from tests.actuators.home import Failing, World

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


def stopped() -> tuple[Callable[[], Any], asyncio.Event]:
    """A step that begins and then waits for ever, and the event of its beginning."""
    begun = asyncio.Event()

    async def never() -> str:
        SEEN.append("begun")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            SEEN.append("cut")
        return "?"

    return never, begun


async def act(what: str) -> str:
    SEEN.append(what)
    return what


async def test_a_result_too_large_for_a_row_fails_the_run_at_once() -> None:
    async def large(n: int) -> str:
        SEEN.append(n)
        return "x" * n

    async def main(run: Run) -> int:
        return len(await run.step(large)(1_048_576))

    world = World(actuator(main))
    await world.play()
    assert world.state.status == "failed"
    trouble = world.state.trouble
    assert trouble is not None
    assert (trouble.kind, trouble.step) == ("TooLarge", "large")
    assert "1048578 bytes; the limit is 1040384" in trouble.message
    assert SEEN == [1_048_576]


class Refusing(Failing):
    """An actor whose store will never take a fold."""

    async def fold(self, event: Any, id: str, /) -> Any:
        raise TooLarge("the facts", 2, 1)


async def test_a_fold_that_will_never_be_taken_fails_the_run_instead_of_trying_for_ever() -> None:
    async def main(run: Run) -> str:
        return await run.step(act)("x")

    async def waits(run: Run) -> str:
        return await asyncio.wait_for(run.step(never)(), 5)

    never, _ = stopped()
    for function, step in ((main, "act"), (waits, "the waits")):
        world = World(actuator(function))
        ended = await run_pass(Refusing(world, 0), world.actuator)
        assert isinstance(ended, Raised)
        assert (ended.trouble.kind, ended.trouble.step) == ("TooLarge", step)


async def test_thousands_of_waits_are_made_durable_a_thousand_at_a_time_and_all_ring() -> None:
    async def main(run: Run) -> int:
        async def one(n: int) -> int:
            await run.sleep("1 hour")
            return n

        return sum(await asyncio.gather(*(one(n) for n in range(2_500))))

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    assert len(world.state.open) == 2_500
    assert all(len(turn) < 500_000 for turn in world.rows.turns)
    await world.play()
    assert world.result == sum(range(2_500))
    assert all(len(turn) < 500_000 for turn in world.rows.turns)


async def test_tasks_nested_deeply_have_short_names() -> None:
    async def main(run: Run) -> str:
        async def deeper(n: int) -> str:
            if n == 0:
                return await run.step(act)("bottom")
            return await asyncio.create_task(deeper(n - 1))

        return await deeper(120)

    world = World(actuator(main))
    await world.play()
    assert world.result == "bottom"
    (entry,) = world.state.journal
    assert len(entry.call) < 110
