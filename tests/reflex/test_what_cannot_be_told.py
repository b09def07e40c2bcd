"""Exceptions and outputs that cannot be told: their own task ends, and no advance waits for it for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.reflex.ground import EVERY_STORE, At, ground
from tests.reflex.test_acting import fan_out


@pytest.fixture(params=EVERY_STORE)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        yield found


class Unsayable(Exception):
    """An author's own, whose words fail as well."""

    def __str__(self) -> str:
        return self.nothing  # type: ignore[attr-defined,no-any-return] # that is the case


async def test_an_exception_that_cannot_say_what_it_is_fails_its_own_task_only(at: At) -> None:
    def does(task: Any, input: int) -> int:
        raise Unsayable

    at.act.does = does
    engine = await fan_out(at, 1, retry_max=0)
    await asyncio.wait_for(at.settle(engine), 60)
    (task,) = await at.tasks()
    assert task["state"] == "failed"
    assert task["error"].startswith("Unsayable: it cannot say what it is")


@pytest.mark.parametrize("output", ["a circle", "a giant", "a stranger"])
async def test_an_output_that_is_no_json_is_told_of_and_its_task_is_done(at: At, output: str) -> None:
    circle: list[Any] = []
    circle.append(circle)
    at.act.does = lambda task, input: {"a circle": circle, "a giant": 10**5_000, "a stranger": object()}[output]
    engine = await fan_out(at, 1, retry_max=0)
    await asyncio.wait_for(at.settle(engine), 60)
    (task,) = await at.tasks()
    assert task["state"] == "done"
    assert "was not kept" in task["error"]


async def test_a_selection_that_cannot_say_why_it_fails_puts_its_own_run_off(at: At) -> None:
    engine = await fan_out(at, 1)
    at.rows.down = Unsayable()
    for _ in range(2):
        await engine.advance(at.now)
    (run,) = await at.runs()
    assert "Unsayable: it cannot say what it is" in run["note"]
