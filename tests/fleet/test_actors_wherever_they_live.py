"""Every verb reaches its actor, whichever node of a fleet it is asked of; on Postgres and in a folder that processes share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from onefold import App, Run, actuator
from onefold.cell import Cell, Resident, Spawned
from onefold.fleet.words import Claimed
from onefold.terms.errors import BadArguments, Contended, KeyConflict, NotFound, OwnedElsewhere
from onefold.terms.turns import ProgramRaised
from tests.contracts.backends import store_of
from tests.fleet.served import SECRET, keys_of, node, nodes, shared_out, standing

STORES = ("sqlite", "postgres")


class Room(Cell):
    visits: int = 0
    names: list[str] = []  # noqa: RUF012 - a field's default

    def greet(self, name: str) -> str:
        if not name:
            raise ValueError("nobody to greet")
        self.visits += 1
        self.names.append(name)
        return f"hello {name}"


class Ask(BaseModel):
    number: int


class Go(BaseModel):
    by: int = 1


@actuator
async def double(run: Run, input: Ask) -> int:
    return await run.step(times_two)(input.number)


async def times_two(number: int) -> int:
    return number * 2


@actuator
async def waits(run: Run, input: Ask) -> int:
    """Until somebody says by how much."""
    go = await run.wait_for_event(Go)
    return input.number * go.by


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    return store_of(request.param, tmp_path)


@pytest.fixture
async def pair(store: str) -> AsyncIterator[tuple[App, App]]:
    async with nodes(store, Room, double, waits) as (a, b):
        yield a, b


async def test_each_slot_has_one_owner_and_each_node_its_share(pair: tuple[App, App]) -> None:
    held = [set(standing(app).held_slots()) for app in pair]
    assert held[0] | held[1] == set(range(1024))
    assert not held[0] & held[1]
    assert min(map(len, held)) > 400


async def test_a_cell_has_its_turns_in_one_order_whoever_asks(pair: tuple[App, App]) -> None:
    for owner in pair:
        (key,) = keys_of(owner, "Room", 1)
        rooms = [app.cell(Room, key) for app in pair]
        assert await asyncio.gather(*(room.spawn() for room in rooms)) in (
            [Spawned(), Resident()],
            [Resident(), Spawned()],
        )
        await asyncio.gather(*(room.turn(Room.greet)(f"g{n}") for n in range(20) for room in rooms))
        assert [(await room.read()).visits for room in rooms] == [40, 40]
        turn = await rooms[1].run('greet(name="x")\ny = greet(name="y")\ny')
        assert (turn.value, turn.ran) == ("hello y", 3)
        assert await rooms[0].get("visits") == 42


async def test_one_key_is_one_turn_through_whichever_node_it_comes(pair: tuple[App, App]) -> None:
    (key,) = keys_of(pair[1], "Room", 1)
    rooms = [app.cell(Room, key) for app in pair]
    await rooms[0].spawn()
    told = await asyncio.gather(*(room.turn(Room.greet, key="once")("ann") for room in rooms for _ in range(5)))
    assert set(told) == {"hello ann"}
    assert (await rooms[0].read()).visits == 1
    for room in rooms:
        with pytest.raises(KeyConflict):
            await room.turn(Room.greet, key="once")("ben")


async def test_a_refusal_is_the_same_from_near_and_from_afar(pair: tuple[App, App]) -> None:
    (key,) = keys_of(pair[1], "Room", 1)
    said = []
    for app in pair:
        room = app.cell(Room, key)
        with pytest.raises(NotFound) as missing:
            await room.turn(Room.greet)("x")
        said.append([str(missing.value)])
    await pair[0].cell(Room, key).spawn()
    for app, known in zip(pair, said, strict=True):
        room = app.cell(Room, key)
        with pytest.raises(ProgramRaised) as raised:
            await room.turn(Room.greet)("")
        with pytest.raises(ProgramRaised) as within:
            await room.run('greet(name="kept by nobody")\ngreet(name="")')
        with pytest.raises(BadArguments) as bad:
            await app.host.cells.turn("Room", key, "greet", {"name": 7}, caller=app.caller)
        known += [str(raised.value), str(within.value), str(bad.value)]
    assert said[0] == said[1]
    assert (await pair[0].cell(Room, key).read()).visits == 0


async def test_a_capture_on_a_borrow_is_contended_across_nodes(pair: tuple[App, App]) -> None:
    (key,) = keys_of(pair[1], "Room", 1)
    near, far = (app.cell(Room, key) for app in (pair[1], pair[0]))
    await near.spawn()
    async with far.capture() as draft:
        draft.visits = 7
    assert (await near.read()).visits == 7
    late = far.capture()
    draft = await late.__aenter__()
    draft.visits = 70
    await near.turn(Room.greet)("between")
    with pytest.raises(Contended):
        await late.__aexit__(None)
    assert (await far.read()).visits == 8


async def test_custody_is_for_the_node_that_owns_the_cell(pair: tuple[App, App]) -> None:
    (key,) = keys_of(pair[1], "Room", 1)
    with pytest.raises(OwnedElsewhere) as elsewhere:
        await pair[0].open(Room, key).__aenter__()
    assert elsewhere.value.node == "b"
    async with pair[1].open(Room, key) as room:
        await room.turn(Room.greet)("owner")
        late = asyncio.ensure_future(pair[0].cell(Room, key).turn(Room.greet)("late"))
        await asyncio.wait((late,), timeout=0.05)
        assert not late.done()
    assert await late == "hello late"
    assert (await pair[0].cell(Room, key).read()).names == ["owner", "late"]


async def test_custody_ends_where_its_cell_moves(pair: tuple[App, App]) -> None:
    (key,) = keys_of(pair[1], "Room", 1)
    async with pair[1].open(Room, key) as room:
        assert isinstance(await pair[0].fleet.claim(f"Room/{key}"), Claimed)
        await pair[1].host.fleet.membership.look()  # type: ignore[union-attr]
        with pytest.raises(OwnedElsewhere):
            await room.turn(Room.greet)("owner")
        with pytest.raises(OwnedElsewhere):
            await room.run('greet(name="x")\ngreet(name="y")')
        assert await pair[1].cell(Room, key).turn(Room.greet)("guest") == "hello guest"
    assert (await pair[0].cell(Room, key).read()).names == ["guest"]


async def test_letters_reach_their_cell_in_order_from_everywhere(pair: tuple[App, App]) -> None:
    (key,) = keys_of(pair[1], "Room", 1)
    far = pair[0].cell(Room, key)
    await far.spawn()
    for n in range(20):
        assert (await far.post(f'greet(name="{n}")', key=f"k{n}")).owner == "b"
    await pair[1].host.fleet.drain(f"Room/{key}", caller=pair[1].caller)  # type: ignore[union-attr]
    names = (await far.read()).names
    assert names == [str(n) for n in range(20)]


async def test_a_call_is_answered_wherever_its_run_is(pair: tuple[App, App]) -> None:
    told = await asyncio.gather(*(app.call(double, Ask(number=n), key=f"n{n}") for n in range(8) for app in pair))
    assert told == [n * 2 for n in range(8) for _ in pair]
    for app in pair:
        assert len((await app.runs.list(program="double")).items) == 8


async def test_a_run_that_waits_is_told_and_watched_from_afar(pair: tuple[App, App]) -> None:
    for n, (asks, tells) in enumerate((pair, pair[::-1])):
        receipt = await asks.start(waits, Ask(number=21), key=f"w{n}")
        ended = asyncio.ensure_future(asks.call(waits, Ask(number=21), key=f"w{n}"))
        await (await tells.receipt(receipt.run_id)).send(Go(by=2))
        assert await ended == 42
        assert [row.kind for row in await tells.runs.journal(receipt.run_id)] == ["event"]


async def test_whoever_leaves_hands_over_and_whoever_comes_gets_a_share(store: str) -> None:
    async with node(store, Room, name="a") as a:
        keys = [f"r{n}" for n in range(20)]
        for key in keys:
            await a.cell(Room, key).spawn()
        async with node(store, Room, name="b") as b:
            await shared_out([a, b])
            assert 400 < len(standing(a).held_slots()) < 620
            for key in keys:
                await b.cell(Room, key).turn(Room.greet)("b")
        await shared_out([a])
        assert len(standing(a).held_slots()) == 1024
        for key in keys:
            assert await a.cell(Room, key).turn(Room.greet)("a") == "hello a"
            assert (await a.cell(Room, key).read()).visits == 2


async def test_a_node_that_cannot_look_any_more_lets_its_lease_end(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with node(store, Room, name="a", lease="1 second") as a:
        membership = a.host.fleet.membership  # type: ignore[union-attr]

        async def falls() -> None:
            raise RuntimeError("no store would raise this")

        with monkeypatch.context() as broken:
            broken.setattr(membership, "look", falls)
            membership.nudge()
            async with asyncio.timeout(60):
                while (await a.host.ready())["ready"]:
                    await asyncio.wait((asyncio.ensure_future(asyncio.sleep(0.05)),))
