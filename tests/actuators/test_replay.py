"""Replay takes the same steps, whatever the program joins and wherever the process dies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onefold.actuators import Run, actuator
from onefold.actuators.executing import run_pass
from onefold.actuators.state import State
from onefold.actuators.words import Finished, Returned, StepDone
from onefold.kernel.port import Step
from tests.actuators import programs
from tests.actuators.home import Killed, MemoryActor, World
from tests.actuators.programs import LEDGER, PROGRAM, generated, nodes

LIVES = settings(
    max_examples=int(__import__("os").environ.get("EX", "60")), deadline=None, suppress_health_check=list(HealthCheck)
)


def begin(program: Any) -> World:
    programs.LEDGER.__init__()  # type: ignore[misc]
    PROGRAM[0] = program
    world = World(generated)
    LEDGER.world = world
    return world


def before_the_end(world: World) -> State:
    """The state as it was just before the run finished."""
    state = world.life.module.initial
    for turn in world.rows.turns:
        for fact in world.life.codecs.fact.decode_many(turn):
            if isinstance(fact, Finished):
                return state
            state = world.life.module.evolve(state, fact)
    return state


class Looking:
    """An actor that only looks: nothing may be folded in a replay of a whole journal."""

    def __init__(self, state: State) -> None:
        self.state = state

    def watch(self, callback: Any, /) -> Any:
        return lambda: None

    async def fold(self, event: Any, id: str, /) -> Any:
        raise AssertionError(f"a replay folded {event!r}")

    async def author(self, *args: Any, **more: Any) -> Any:
        raise AssertionError("a replay wrote")


def committed(world: World) -> list[str]:
    return [entry.call for entry in world.state.journal if isinstance(entry, StepDone)]


@LIVES
@given(nodes)
async def test_a_replay_of_the_whole_journal_gives_the_same_result_and_does_nothing(program: Any) -> None:
    world = begin(program)
    await world.play()
    assert world.state.status == "done", world.state.trouble
    done = len(LEDGER.done)
    whole = before_the_end(world)
    for _ in range(3):
        ended = await run_pass(Looking(whole), generated)
        assert isinstance(ended, Returned)
        assert bytes(ended.result) == bytes(world.state.result)
    assert len(LEDGER.done) == done


@LIVES
@given(nodes, st.booleans())
async def test_killed_at_every_commit_each_effect_is_journaled_once(program: Any, before: bool) -> None:
    world = begin(program)
    for kill_at in range(2, 200):
        if not await world.survive(world.rows.commits + 1 + kill_at % 3, before=before):
            break
        known = set(committed(world))
        counts = dict(LEDGER.counts)
        world.restart()
        keys = {call: key for key, call in ()}
        assert len(known) == len(committed(world)), keys
        assert all(LEDGER.counts[key] >= count for key, count in counts.items())
    assert world.state.status == "done", world.state.trouble
    assert len(committed(world)) == len(set(committed(world)))
    assert all(len(told) == 1 for told in LEDGER.arguments.values()), "one key was used for two different acts"
    ended = await run_pass(Looking(before_the_end(world)), generated)
    assert isinstance(ended, Returned)
    assert bytes(ended.result) == bytes(world.state.result)


@LIVES
@given(nodes, st.integers(2, 12), st.booleans())
async def test_a_committed_step_never_runs_again(program: Any, kill_at: int, before: bool) -> None:
    world = begin(program)
    await world.survive(kill_at, before=before)
    done = len(committed(world))
    ran = list(LEDGER.done)
    await world.play()
    assert world.state.status == "done", world.state.trouble
    again = LEDGER.done[len(ran) :]
    finished = len(committed(world)) - done
    failed_or_cut = len(again) - finished
    assert failed_or_cut >= 0
    results = [told for _, told in ran]
    for entry in list(world.state.journal)[:done]:
        if isinstance(entry, StepDone):
            told = bytes(entry.result).decode().strip('"')
            key = next((k for k, t in ran if t == told), None)
            assert key is not None
            assert told in results


# --- the sequence that gave one order's payment to another ------------------------------------------

PAID: list[tuple[str, str]] = []
FIRST = ["order-2"]


async def pick(order: str) -> str:
    """The other order answers first in the first life; both are journaled in the second."""
    import asyncio

    for _ in range(0 if order == FIRST[0] else 5):
        await asyncio.sleep(0)
    return order


async def refund(step: Step, order: str) -> str:
    PAID.append((step.key, order))
    return f"paid {order}"


@actuator
async def race(run: Run) -> list[str]:
    """Pay each order as soon as it is picked."""
    import asyncio

    told = []
    for coming in asyncio.as_completed([_picked(run, "order-1"), _picked(run, "order-2")]):
        order = await coming
        told.append(await run.step(refund)(order))
    return told


async def _picked(run: Run, order: str) -> str:
    return await run.step(pick)(order)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("kill_at", range(2, 9))
async def test_two_orders_that_race_are_paid_once_each_wherever_it_dies(kill_at: int, before: bool) -> None:
    PAID.clear()
    world = World(race)
    try:
        await world.survive(kill_at, before=before)
    except Killed:
        pytest.fail("the death was not seen")
    FIRST[0] = "order-1"  # the second life's steps answer in the other order
    try:
        for _ in range(3):
            ended = await run_pass(MemoryActor(world.rows, race, kill_at=world.rows.commits + 1, before=True), race)
            assert isinstance(ended, Returned)
            break
    except Killed:
        pass
    finally:
        FIRST[0] = "order-2"
    world.restart()
    await world.play()
    assert sorted(world.result) == ["paid order-1", "paid order-2"]
    assert {key: {o for k, o in PAID if k == key} for key, _ in PAID} == {key: {order} for key, order in PAID}
    assert {order for _, order in PAID} == {"order-1", "order-2"}
    keys = {order: key for key, order in PAID}
    assert len(set(keys.values())) == 2
