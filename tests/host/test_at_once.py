"""A function that only computes ends in the commit that starts its run; one that acts never runs before it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import BaseModel

from onefold import Run, actuator
from onefold.actuators.at_once import names_a_verb
from onefold.terms.errors import KeyConflict
from onefold.testing import staged
from tests.contracts.backends import store_of


class Pair(BaseModel):
    a: int
    b: int


asked: list[str] = []


@actuator
async def add(run: Run, pair: Pair) -> int:
    """Add two numbers."""
    asked.append(run.id)
    return pair.a + pair.b


@actuator
async def divide(run: Run, pair: Pair) -> float:
    """Divide two numbers."""
    return pair.a / pair.b


@actuator
async def nap(run: Run, pair: Pair) -> int:
    """Waits through the loop, not through a verb."""
    await asyncio.sleep(pair.a)
    return pair.b


async def act() -> int:
    asked.append("acted")
    return 1


@actuator
async def acting(run: Run, pair: Pair) -> int:
    """Names a verb."""
    asked.append("body")
    return await run.step(act)()


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
async def test_it_is_one_commit_and_counts_once(store: str, tmp_path: Path) -> None:
    async with staged(add, store=store_of(store, tmp_path / "s")) as stage:
        caller = stage.caller()
        await stage.host.start("add", {"a": 0, "b": 0}, caller=caller)
        points: list[str] = []
        stage.failpoint = points.append
        first = await stage.host.start("add", {"a": 1, "b": 2}, key="k", caller=caller)
        await stage.settle()
        assert first.receipt.to_json()["result"] == 3
        assert points.count("before-commit") == 1
        assert "before-send" not in points

        again = await stage.host.start("add", {"a": 1, "b": 2}, key="k", caller=caller)
        assert (again.replayed, again.receipt.run_id) == (True, first.receipt.run_id)
        with pytest.raises(KeyConflict):
            await stage.host.start("add", {"a": 2, "b": 2}, key="k", caller=caller)
        await stage.crash()
        receipt = await stage.host.receipt(first.receipt.run_id, caller=caller)
        assert (receipt.status, receipt.to_json()["result"]) == ("done", 3)


async def test_a_raise_is_a_run_that_failed_with_its_error(tmp_path: Path) -> None:
    async with staged(divide) as stage:
        begun = await stage.host.start("divide", {"a": 1, "b": 0}, caller=stage.caller())
        await stage.settle()
        failed = (await stage.host.receipt(begun.receipt.run_id, caller=stage.caller())).to_json()
        assert failed["status"] == "failed"
        assert "ZeroDivisionError" in failed["error"]["message"]


async def test_a_wait_of_the_loop_is_still_a_durable_wait() -> None:
    async with staged(nap) as stage:
        begun = await stage.host.start("nap", {"a": 60, "b": 7}, caller=stage.caller())
        await stage.settle()
        waiting = await stage.host.receipt(begun.receipt.run_id, caller=stage.caller())
        assert waiting.status == "waiting"
        await stage.crash()
        await stage.advance("2m")
        done = await stage.host.receipt(begun.receipt.run_id, caller=stage.caller())
        assert done.to_json()["result"] == 7


async def test_a_function_that_acts_is_not_asked_before_its_run_exists() -> None:
    asked.clear()
    async with staged(acting) as stage:
        await stage.host.start("acting", {"a": 1, "b": 1}, caller=stage.caller())
        await stage.settle()
    assert asked == ["body", "acted"]


def test_verbs_are_found_in_functions_inside_too() -> None:
    async def outer(run: Run) -> None:
        async def inner() -> None:
            await run.sleep("1s")

        await inner()

    async def plain(run: Run) -> int:
        return 1

    assert names_a_verb(outer)
    assert not names_a_verb(plain)
