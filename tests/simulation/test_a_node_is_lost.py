"""A node that dies, stops or is cut off: its actors answer elsewhere, nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.simulation.fleet_callers import KEYS, Load
from tests.simulation.fleets import TAKEN_OVER_S, Fleet, Member, client, within

SEEDS = range(8) if os.environ.get("ONEFOLD_DEEP") else range(1)
pytestmark = pytest.mark.parametrize("seed", SEEDS)


@pytest.fixture
async def fleet(postgres: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet(postgres, tmp_path) as fleet:
        yield fleet


async def busiest(fleet: Fleet) -> tuple[Member, str]:
    """The node with the most of the callers' cells, and one of them."""
    mine = {name: await fleet.cells_of(name, KEYS) for name in fleet.members}
    name = max(mine, key=lambda each: len(mine[each]))
    return fleet.members[name], mine[name][0]


async def test_the_actors_of_a_node_that_was_killed_answer_elsewhere(fleet: Fleet, seed: int) -> None:
    await fleet.nodes("abc")
    await fleet.settled("abc")
    fleet.watch()
    load = Load(fleet, seed)
    async with load:
        await load.some(150)
        lost, key = await busiest(fleet)
        del fleet.members[lost.name]
        await lost.kill()
        async with asyncio.timeout(TAKEN_OVER_S):
            assert await load.turn(key, "count", f"after-{seed}", fleet.urls)
        await fleet.settled("".join(fleet.members))
        await load.some(100)
    assert await load.judge() == []


async def test_a_node_that_stood_still_past_its_lease_neither_writes_nor_shows_what_is_old(
    fleet: Fleet, seed: int
) -> None:
    await fleet.nodes("abc")
    await fleet.settled("abc")
    fleet.watch()
    load = Load(fleet, seed)
    async with load, client(30.0) as patient:
        await load.some(150)
        still, key = await busiest(fleet)
        before, _ = (await fleet.lives())[still.name]
        still.send(signal.SIGSTOP)
        others = [member.url for member in fleet.members.values() if member is not still]
        async with asyncio.timeout(TAKEN_OVER_S):
            written = await load.turn(key, "count", f"after-{seed}", others)
        asked = [asyncio.create_task(load.read(key, still.url, patient)) for _ in range(8)]
        still.send(signal.SIGCONT)
        for shown in await asyncio.gather(*asked):
            assert shown is None or shown["total"] >= written

        async def back() -> bool:
            incarnation, state = (await fleet.lives())[still.name]
            return incarnation > before and state == "live"

        await within(TAKEN_OVER_S, "it is back, in a new life", back)
        await fleet.settled("abc")
        await load.some(100)
    assert await load.judge() == []
