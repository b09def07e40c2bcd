"""Promise 7: a replay does what the first life did, or its run stops by name; no result is given to another step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from onefold import Actuator, Run, actuator
from onefold.testing import Stage
from tests.guarantees.conftest import Stages

DONE: list[str] = []
SLOW: set[str] = set()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    DONE.clear()
    SLOW.clear()


async def pick(order: str) -> str:
    for _ in range(8 if order in SLOW else 0):
        await asyncio.sleep(0)
    return order


async def pay(order: str) -> str:
    DONE.append(f"paid {order}")
    return f"paid {order}"


async def ship(order: str) -> str:
    DONE.append(f"shipped {order}")
    return f"shipped {order}"


async def first(run: Run) -> list[str]:
    paid = await run.step(pay)("a")
    await run.sleep("1 minute")
    return [paid, await run.step(ship)("a")]


async def _other_step(run: Run) -> list[str]:
    shipped = await run.step(ship)("a")
    await run.sleep("1 minute")
    return [shipped, await run.step(pay)("a")]


async def _other_arguments(run: Run) -> list[str]:
    paid = await run.step(pay)("b")
    await run.sleep("1 minute")
    return [paid, await run.step(ship)("a")]


async def _fewer(run: Run) -> list[str]:
    await run.sleep("1 minute")
    return []


async def race(run: Run) -> list[str]:
    told = []
    for coming in asyncio.as_completed([_picked(run, "order-1"), _picked(run, "order-2")]):
        told.append(await run.step(pay)(await coming))
    return told


async def _picked(run: Run, order: str) -> str:
    return await run.step(pick)(order)


def program(function: Callable[[Run], Awaitable[list[str]]]) -> Actuator[Any, Any]:
    async def errand(run: Run) -> list[str]:
        """Run what it is given."""
        return await function(run)

    return actuator(errand)


async def started(stage: Stage) -> str:
    return (await stage.host.start("errand", {}, key="k", caller=stage.caller())).receipt.run_id


async def ended(stage: Stage, run: str) -> dict[str, Any]:
    await stage.advance("10 minutes")
    return (await stage.host.receipt(run, caller=stage.caller())).to_json()


async def test_the_same_code_goes_on_where_it_was_and_does_nothing_again(stages: Stages) -> None:
    stage = await stages(program(first))
    run = await started(stage)
    await stage.settle()
    for _ in range(3):
        await stage.crash()
        await stage.settle()
    told = await ended(stage, run)
    assert told["result"] == ["paid a", "shipped a"]
    assert DONE == ["paid a", "shipped a"]


@pytest.mark.parametrize(
    "changed,names", [(_other_step, ("pay", "ship")), (_other_arguments, ("pay",)), (_fewer, ("pay",))]
)
async def test_changed_code_stops_by_name_and_does_nothing(
    stages: Stages, changed: Callable[[Run], Awaitable[list[str]]], names: tuple[str, ...]
) -> None:
    stage = await stages(program(first))
    run = await started(stage)
    await stage.settle()
    stage.parts = (program(changed),)
    await stage.restart()
    told = await ended(stage, run)

    assert (told["status"], told["error"]["code"]) == ("parked", "diverged")
    assert all(name in told["error"]["message"] for name in names), told["error"]
    assert DONE == ["paid a"]
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert (item.id, item.kind) == (run, "run")

    stage.parts = (program(first),)
    await stage.restart()
    await stage.host.parked_retry(run, caller=stage.caller())
    assert (await ended(stage, run))["result"] == ["paid a", "shipped a"]
    assert DONE == ["paid a", "shipped a"]


@pytest.mark.parametrize("hit", range(1, 9))
async def test_no_result_is_given_to_another_step_whichever_answers_first_in_the_next_life(
    stages: Stages, hit: int
) -> None:
    SLOW.add("order-1")
    stage = await stages(program(race))
    stage.kill_at("after-commit", hit=hit)
    starting = asyncio.create_task(started(stage))
    await stage.let_die()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    SLOW.clear()
    SLOW.add("order-2")
    stage.live_on()
    await stage.open()
    told = await ended(stage, await started(stage))
    assert sorted(told["result"]) == ["paid order-1", "paid order-2"]
    assert set(DONE) == {"paid order-1", "paid order-2"}
