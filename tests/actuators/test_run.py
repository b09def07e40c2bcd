"""What a run knows, its chances, and where it may be used."""

from __future__ import annotations

import asyncio
import itertools
import random
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from onefold.actuators import Run, actuator
from onefold.kernel.port import Step
from onefold.kernel.port import _port as port_of
from onefold.terms.errors import OutsideStep
from tests.actuators.home import T0, World, played

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


async def test_now_random_and_uuid_are_the_same_on_every_replay() -> None:
    async def tick() -> None:
        world.rows.now += 1_500

    async def main(run: Run) -> str:
        SEEN.append([])

        def look() -> str:
            told = f"{run.now().isoformat()} {run.random.random()} {run.uuid()}"
            SEEN[-1].append(told)
            return told

        look()
        await run.step(tick)()
        look()
        await run.sleep("1 hour")
        look()
        await asyncio.sleep(1)
        return look()

    world = World(actuator(main))
    await world.play()
    assert len(SEEN) == 3
    for earlier, later in itertools.pairwise(SEEN):
        assert later[: len(earlier)] == earlier
    instants = [datetime.fromisoformat(told.split()[0]) for told in SEEN[-1]]
    assert instants[0].timestamp() * 1000 == T0
    assert [(b - a).total_seconds() for a, b in itertools.pairwise(instants)] == [1.5, 3600, 1]
    assert len({UUID(told.split()[2]) for told in SEEN[-1]}) == 4


async def test_two_runs_have_different_chances() -> None:
    async def main(run: Run) -> str:
        return f"{run.id} {run.random.random()}"

    made = actuator(main)
    one, two = World(made), World(made)
    two.life.state.run = "run_2"
    for world in (one, two):
        await world.play()
    assert one.result.split()[1] != two.result.split()[1]
    assert isinstance(random.Random, type)


async def test_a_run_knows_its_id_key_and_principal() -> None:
    async def main(run: Run) -> list[str | None]:
        return [run.id, run.key, run.principal]

    assert (await played(main, key="order-7", principal="studio")).result == ["run_1", "order-7", "studio"]


async def test_a_verb_used_inside_a_step_is_refused() -> None:
    held: list[Run] = []

    async def sneaky() -> str:
        try:
            _ = held[0].sleep("1 s")
        except RuntimeError as wrong:
            return str(wrong)
        return "?"

    async def main(run: Run) -> str:
        held.append(run)
        return await run.step(sneaky)()

    assert "was used outside its function: inside a step" in (await played(main)).result


async def test_a_port_called_outside_a_step_is_refused_and_one_not_declared_too() -> None:
    async def send(step: Step, body: str) -> str:
        SEEN.append(step.key)
        return body.upper()

    upper = port_of("upper", "dedupes")(send)

    async def main(run: Run) -> list[str]:
        told = []
        try:
            upper("x")
        except OutsideStep as wrong:
            told.append(str(wrong))
        told.append(await run.step(upper)("x"))
        return told

    world = World(actuator(capabilities=[upper])(main))
    await world.play()
    assert world.result == [
        "upper was called outside a step, where its effect could happen twice. Use run.step(upper).",
        "X",
    ]
    world = await played(main)
    assert world.state.status == "failed"
    assert "main does not declare 'upper'" in world.state.trouble.message  # type: ignore[union-attr]
