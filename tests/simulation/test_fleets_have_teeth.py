"""Nodes without one of the things that keep two of them apart: what is asked of fleets must notice each."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.simulation.fleet_callers import KEYS, Load
from tests.simulation.fleets import TAKEN_OVER_S, Fleet, within


@pytest.fixture
async def fleet(postgres: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet(postgres, tmp_path) as fleet:
        yield fleet


def quiet(fleet: Fleet) -> Load:
    """Nobody calls but the test itself."""
    return Load(fleet, 0)


async def closed(fleet: Fleet, name: str) -> None:
    async def true() -> bool:
        return (await fleet.lives())[name][1] == "closed" and not await fleet.cells_of(name, KEYS)

    await within(TAKEN_OVER_S, f"{name} is taken for dead, and has nothing left", true)


@pytest.mark.parametrize("twins", [["blind"], ["blind", "compares_nothing"]])
async def test_epochs_alone_refuse_what_a_node_writes_that_knows_nothing_of_its_end(
    fleet: Fleet, twins: list[str]
) -> None:
    await fleet.node("b")
    still = await fleet.node("a", twins=twins)
    await fleet.settled("ab")
    load = quiet(fleet)
    mine = await fleet.cells_of("a", KEYS)
    for key in mine:
        await load.turn(key, "count", f"{key} first", [still.url])
    (fleet.place("a") / "deaf").touch()
    still.send(signal.SIGSTOP)
    await closed(fleet, "a")
    for key in mine:
        await load.turn(key, "count", f"{key} second", [fleet.members["b"].url])
    late = [asyncio.create_task(load.turn(key, "count", f"{key} {n}", [still.url])) for key in mine for n in range(4)]
    still.send(signal.SIGCONT)
    await asyncio.gather(*late)
    assert (await load.judge() == []) == ("compares_nothing" not in twins)


async def test_that_a_name_is_taken_without_a_new_epoch_is_noticed(fleet: Fleet) -> None:
    await fleet.nodes("ab", twins=["takes_under_the_same_epoch"])
    await fleet.settled("ab")
    await fleet.members.pop("a").kill()
    await fleet.settled("b")
    assert fleet.faults != []
