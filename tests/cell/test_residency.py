"""A cell may leave memory at any time but in a turn, the longest unused one first; nothing of it is lost, but what ended."""

from __future__ import annotations

import asyncio

import pytest

from onefold import testing
from onefold.cell import Absent, Evicted, Resident, Spawned
from onefold.terms.errors import NotFound
from onefold.terms.turns import TurnFailed, UnknownCall
from onefold.testing import AwaitedApp
from tests.cell.rooms import Memory, Room


async def resident(app: AwaitedApp, *ids: str) -> set[str]:
    """Which of these cells are in memory. None of them is after it."""
    return {id for id in ids if await app.cell(Room, id).evict() == Evicted()}


async def test_whoever_has_custody_leaves_the_cell_out_of_memory() -> None:
    async with testing.open(Room) as app:
        async with app.open(Room, "lobby") as room:
            await room.turn(Room.greet)("a")
        assert await app.cell(Room, "lobby").evict() == Absent()
        room = await app.open(Room, "lobby").__aenter__()
        await room.hibernate()
        assert await app.cell(Room, "lobby").evict() == Absent()
        assert (await app.cell(Room, "lobby").read()).visits == 1


async def test_the_longest_unused_cell_makes_room() -> None:
    async with testing.open(Room, config={"node": {"capacity": 3}}) as app:
        for id in "abc":
            await app.cell(Room, id).spawn()
        await app.cell(Room, "a").turn(Room.greet)("x")
        await app.cell(Room, "d").spawn()
        assert await resident(app, *"abcd") == {"a", "c", "d"}
        assert (await app.cell(Room, "b").read()) == Room()
        assert await app.cell(Room, "b").spawn() == Resident()


@pytest.mark.parametrize("turns_of_the_loop", range(4))
async def test_a_cell_in_a_turn_finishes_it_before_it_leaves_memory(turns_of_the_loop: int) -> None:
    async with testing.open(Room) as app:
        verbs, lobby = app.host.cells, app.cell(Room, "lobby")
        await lobby.spawn()
        turns = [asyncio.ensure_future(lobby.turn(Room.greet)(str(n))) for n in range(3)]
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        assert await verbs.evict("Room", "lobby", caller=app.caller) == "evicted"
        assert await asyncio.gather(*turns) == ["hello 0", "hello 1", "hello 2"]
        assert (await lobby.read()).visits == 3


async def test_a_cell_in_a_program_finishes_it_before_it_leaves_memory() -> None:
    async with testing.open(Room) as app:
        lobby = app.cell(Room, "lobby")
        await lobby.spawn()
        turns = [asyncio.ensure_future(lobby.turn(Room.greet)(str(n))) for n in range(3)]
        program = asyncio.ensure_future(lobby.run("greet('x')\ngreet('y')"))
        for _ in range(3):
            await asyncio.sleep(0)
        assert await lobby.evict() == Evicted()
        assert await asyncio.gather(*turns) == ["hello 0", "hello 1", "hello 2"]
        assert (await program).value == "hello y"
        assert (await lobby.read()).visits == 5


async def test_the_owner_may_let_its_cell_leave_memory_and_goes_on() -> None:
    async with testing.open(Room) as app, app.open(Room, "lobby") as room:
        assert await room.evict() == Evicted()
        assert await room.turn(Room.greet)("a") == "hello a"


async def test_what_is_retired_begins_anew_with_nothing_of_before() -> None:
    async with testing.open(Room) as app:
        lobby = app.cell(Room, "lobby")
        await lobby.spawn()
        await lobby.turn(Room.greet)("a")
        await lobby.retire()
        with pytest.raises(NotFound):
            await lobby.read()
        await lobby.evict()
        with pytest.raises(NotFound):
            await lobby.read()
        assert await lobby.spawn() == Spawned()
        assert await lobby.read() == Room()


async def test_what_is_retired_on_demand_has_forgotten_all() -> None:
    async with testing.open(Memory) as app:
        memory = app.cell(Memory, "c42")
        await memory.turn(Memory.remember)("rent", "on the 1st")
        await memory.retire()
        assert await memory.turn(Memory.recall)("rent") is None
        assert await memory.read() == Memory()


class Inner(Room):
    """A room with a method of its own that is none of its scope."""

    def _reset(self) -> None:
        self.visits = 0


@pytest.mark.parametrize("source", ["_reset()", "x = 1\n_reset()", "self._reset()", "__init__()", "now()", "visits()"])
async def test_what_is_not_registered_is_not_callable(source: str) -> None:
    async with testing.open(Inner) as app:
        lobby = app.cell(Inner, "lobby")
        await lobby.spawn()
        await lobby.turn(Inner.greet)("a")
        with pytest.raises(UnknownCall if "self" not in source else TurnFailed):
            await lobby.run(source)
        assert (await lobby.read()).visits == 1
