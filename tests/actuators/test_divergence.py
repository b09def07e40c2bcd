"""Replay that meets changed code stops by name, and hands nothing to another call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from pydantic import BaseModel, Field

from onefold.actuators import Run, actuator
from onefold.actuators.carried import Diverged
from tests.actuators.home import Killed, World

DONE: list[str] = []
Main = Callable[[Run], Coroutine[Any, Any, str]]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    DONE.clear()


async def charge(order: str) -> str:
    DONE.append(order)
    return f"charged {order}"


async def ship(order: str) -> str:
    DONE.append(f"ship {order}")
    return f"shipped {order}"


async def before(run: Run) -> str:
    await run.step(charge)("a")
    await run.step(ship)("a")
    await run.sleep("1 hour")
    return "done"


async def _renamed(run: Run) -> str:
    await run.step(charge, name="bill")("a")
    await run.step(ship)("a")
    await run.sleep("1 hour")
    return "done"


async def _other_arguments(run: Run) -> str:
    await run.step(charge)("b")
    await run.step(ship)("a")
    await run.sleep("1 hour")
    return "done"


async def _swapped(run: Run) -> str:
    await run.step(ship)("a")
    await run.step(charge)("a")
    await run.sleep("1 hour")
    return "done"


async def _shorter(run: Run) -> str:
    await run.step(charge)("a")
    return "done"


async def _inserted(run: Run) -> str:
    await run.step(charge)("a")
    await run.sleep("1 second")
    await run.step(ship)("a")
    await run.sleep("1 hour")
    return "done"


async def _stuck(run: Run) -> str:
    await run.step(charge)("a")
    await asyncio.Event().wait()
    return "done"


async def _in_tasks(run: Run) -> str:
    async def one() -> None:
        await run.step(charge)("a")

    await asyncio.create_task(one())
    await run.step(ship)("a")
    await run.sleep("1 hour")
    return "done"


async def _other_wait(run: Run) -> str:
    await run.step(charge)("a")
    await run.step(ship)("a")
    await run.sleep("2 hours")
    return "done"


async def _no_wait(run: Run) -> str:
    await run.step(charge)("a")
    await run.step(ship)("a")
    return "done"


async def changed(after: Main) -> World:
    """A run that began with the code of `before` goes on with that of `after`."""
    made = actuator(name="order")(before)
    world = World(made)
    await world.play(until=lambda w: w.state.status == "waiting")
    world.actuator = actuator(name="order")(after)
    world.restart()
    DONE.clear()
    world.ring()
    await world.play()
    return world


@pytest.mark.parametrize(
    "after, expected, found",
    [
        (_renamed, "'charge' (call 1 of task 0)", "'bill' (call 1 of task 0)"),
        (_other_arguments, "'charge' (call 1 of task 0)", "'charge' (call 1 of task 0) with other arguments"),
        (_swapped, "'charge' (call 1 of task 0)", "'ship' (call 1 of task 0)"),
        (_shorter, "'ship' (call 2 of task 0)", "the function's end"),
        (_inserted, "'ship' (call 2 of task 0)", "'sleep' (call 2 of task 0)"),
        (_stuck, "'ship' (call 2 of task 0)", "nothing of the kind"),
        (_in_tasks, "'charge' (call 1 of task 0)", "'charge' (call 1 of task 0.0)"),
        (_other_wait, "'sleep' (call 3 of task 0)", "'sleep' (call 3 of task 0) with other arguments"),
        (_no_wait, "'sleep' (call 3 of task 0)", "the function's end"),
    ],
)
async def test_changed_code_parks_by_name_and_does_nothing(after: Main, expected: str, found: str) -> None:
    world = await changed(after)
    assert world.state.status == "parked"
    ended = world.ended[-1]
    assert isinstance(ended, Diverged)
    assert (ended.expected, ended.found) == (expected, found)
    trouble = world.life.module.view(world.state).trouble
    assert trouble is not None
    assert trouble.code == "diverged"
    assert expected in trouble.message
    assert found in trouble.message
    assert DONE == []


@pytest.mark.parametrize("after", [_other_wait, _no_wait, _inserted])
async def test_a_wait_still_open_must_be_met_too(after: Main) -> None:
    made = actuator(name="order")(before)
    world = World(made)
    await world.play(until=lambda w: w.state.status == "waiting")
    world.actuator = actuator(name="order")(after)
    world.restart()
    # Nothing is due: the pass is run again because its process died before it was answered.
    from onefold.actuators.executing import run_pass

    ended = await run_pass(world.life, world.actuator)
    assert isinstance(ended, Diverged)


async def test_a_parked_run_goes_on_once_its_code_is_back() -> None:
    world = await changed(_renamed)
    assert world.cancel is not None
    world.actuator = actuator(name="order")(before)
    world.restart()
    assert world.reopen().changed
    await world.play()
    assert world.result == "done"
    assert DONE == []


async def test_what_a_parked_run_is_told_is_kept_for_when_it_goes_on() -> None:
    async def waits(run: Run) -> str:
        match await run.wait_for_approval("m", "Pay?", notify="m", timeout=None):
            case outcome:
                await run.step(charge)("a")
                return type(outcome).__name__

    async def renamed(run: Run) -> str:
        match await run.wait_for_approval("n", "Pay?", notify="m", timeout=None):
            case outcome:
                return type(outcome).__name__

    world = World(actuator(name="order")(waits))
    await world.play()
    world.actuator = actuator(name="order")(renamed)
    world.restart()
    world.send("Poke", b"1")
    world.state.passing = True  # as after a crash: its pass is run again
    from onefold.actuators.executing import run_pass
    from onefold.kernel.words import Answer
    from onefold.terms.instant import moment

    ended = await run_pass(world.life, world.actuator)
    decision = world.life.module.on_answer(world.state, Answer("pass/1", "pass", ended), moment(world.rows.now))
    world.life._commit(decision, "o/again")
    assert world.state.status == "parked"
    assert world.decide("m", True).outcome == "decided"
    assert world.state.status == "parked"
    assert not world.rows.owed
    world.actuator = actuator(name="order")(waits)
    world.restart()
    world.reopen()
    await world.play()
    assert world.result == "Approved"


class Old(BaseModel):
    amount: int


class New(BaseModel):
    amount: int = Field(le=10)


async def test_an_input_that_new_code_refuses_parks_the_run() -> None:
    async def old(run: Run, order: Old) -> int:
        await run.sleep("1 hour")
        return order.amount

    async def new(run: Run, order: New) -> int:
        await run.sleep("1 hour")
        return order.amount

    world = World(actuator(name="order")(old), Old(amount=20))
    await world.play(until=lambda w: w.state.status == "waiting")
    world.actuator = actuator(name="order")(new)
    world.restart()
    await world.play()
    assert world.state.status == "parked"
    assert "an input model that refuses it" in world.state.trouble.message  # type: ignore[union-attr]


async def test_tasks_that_wait_for_each_other_park_instead_of_sleeping_for_ever() -> None:
    async def main(run: Run) -> str:
        first, second = asyncio.Event(), asyncio.Event()

        async def other() -> None:
            await second.wait()
            first.set()

        task = asyncio.create_task(other())
        await first.wait()
        second.set()
        await task
        return "?"

    world = World(actuator(main))
    await world.play()
    assert world.state.status == "parked"
    trouble = world.state.trouble
    assert trouble is not None
    assert trouble.kind == "stuck"
    assert "0, 0.0" in trouble.message


async def test_an_unseen_entry_of_a_call_that_was_made_is_no_divergence() -> None:
    enough = [asyncio.ALL_COMPLETED]

    async def main(run: Run) -> str:
        tasks = [asyncio.ensure_future(run.step(charge)(order)) for order in ("a", "b")]
        done, _ = await asyncio.wait(tasks, return_when=enough[0])
        return str(len(done))

    # Both results are committed, and the process dies before the pass is answered. The function needs only one.
    world = World(actuator(main))
    world.restart(kill_at=4, before=True)
    with pytest.raises(Killed):
        await world.play()
    enough[0] = asyncio.FIRST_COMPLETED
    world.restart()
    await world.play()
    assert len(world.state.journal) == 2
    assert world.result == "1"
