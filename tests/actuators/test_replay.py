"""Replay takes the same steps, whatever the program joins and wherever the process dies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.json import decode

from onefold.actuators import Run, actuator
from onefold.actuators.carried import Returned
from onefold.actuators.executing import run_pass
from onefold.actuators.state import State
from onefold.actuators.words import Finished, StepDone
from onefold.kernel.port import Step
from tests.actuators import programs
from tests.actuators.home import World
from tests.actuators.programs import LEDGER, PROGRAM, generated, nodes

LIVES = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def begin(program: Any) -> World:
    programs.LEDGER.__init__()  # type: ignore[misc]
    PROGRAM[0] = program
    world = World(generated)
    LEDGER.world = world
    return world


def before_the_end(world: World) -> State:
    """The state as it was just before the run finished."""
    state: State = world.life.module.initial
    for turn in world.rows.turns:
        for fact in world.life.codecs.fact.decode_many(turn):
            if isinstance(fact, Finished):
                return state
            state = world.life.module.evolve(state, fact)
    return state


class Looking:
    """An actor that only looks: nothing may be folded in a replay of a whole journal."""

    stand_in = None
    children: Any = None

    def __init__(self, state: State) -> None:
        self.state = state

    def watch(self, callback: Any, /) -> Any:
        return lambda: None

    async def fold(self, event: Any, id: str, /) -> Any:
        raise AssertionError(f"a replay folded {event!r}")

    async def blob(self, digest: bytes, /) -> bytes:
        raise AssertionError("every value is in its row")

    async def author(self, *args: Any, **more: Any) -> Any:
        raise AssertionError("a replay wrote")


def committed(world: World) -> list[str]:
    """The keys of the steps whose results are journaled, in the order of commits."""
    return [decode(entry.result).split()[0] for entry in world.state.journal if isinstance(entry, StepDone)]


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
@given(nodes, st.integers(1, 3), st.booleans())
async def test_killed_at_commit_after_commit_each_step_is_journaled_once(program: Any, skip: int, before: bool) -> None:
    world = begin(program)
    for _ in range(200):
        known, ran = committed(world), list(LEDGER.done)
        died = await world.survive(world.rows.commits + 1 + skip, before=before)
        again = {key for key, _ in LEDGER.done[len(ran) :]}
        assert not again & set(known), "a committed step ran again"
        assert committed(world)[: len(known)] == known
        if not died and world.state.status == "done":
            break
    assert world.state.status == "done", world.state.trouble
    assert len(committed(world)) == len(set(committed(world)))
    assert all(len(told) == 1 for told in LEDGER.arguments.values()), "one key was used for two different acts"
    ended = await run_pass(Looking(before_the_end(world)), generated)
    assert isinstance(ended, Returned)
    assert bytes(ended.result) == bytes(world.state.result)


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
    FIRST[0] = "order-2"
    world = World(race)
    await world.survive(kill_at, before=before)
    FIRST[0] = "order-1"  # the second life's steps answer in the other order
    world.restart()
    await world.play()
    assert sorted(world.result) == ["paid order-1", "paid order-2"]
    assert {key: {o for k, o in PAID if k == key} for key, _ in PAID} == {key: {order} for key, order in PAID}
    assert {order for _, order in PAID} == {"order-1", "order-2"}
    keys = {order: key for key, order in PAID}
    assert len(set(keys.values())) == 2
