"""Cells through an app: turns, programs, captures, custody, and what each outcome is told as."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import onefold
from onefold.cell import UNSET, Absent, Borrow, Custody, Evicted, Resident, Spawned, Turn
from onefold.program.monty import Interpreter
from onefold.terms.errors import (
    BadArguments,
    Contended,
    KeyConflict,
    NotFound,
    NotOwner,
    Undeclared,
)
from onefold.terms.limits import QUEUE_PER_ACTOR
from onefold.terms.turns import BadHandle, LimitHit, ParseFailed, ProgramRaised, TurnFailed, UnknownCall
from tests.cell.rooms import Entered, Full, Memory, Mumbler, Room
from tests.contracts.backends import store_of


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def app(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[onefold.App]:
    monkeypatch.setenv("ONEFOLD_SECRET", "known to every test, and of no use")
    store = store_of(request.param, tmp_path / "store")
    async with onefold.App(Room, Memory, store=store) as app:
        yield app


async def test_a_cell_begins_once_and_a_sleeping_one_is_resident(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    with pytest.raises(NotFound):
        await lobby.read()
    with pytest.raises(NotFound):
        await lobby.turn(Room.greet)("guest")
    assert await lobby.spawn() == Spawned()
    assert await lobby.evict() == Evicted()
    assert await lobby.evict() == Absent()
    assert await lobby.spawn() == Resident()


async def test_a_turn_is_one_method_and_one_commit(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    assert await lobby.turn(Room.greet)("guest") == "hello guest"
    assert await lobby.turn(Room.enter)("a", at_most=1) == Entered("a")
    assert await lobby.turn(Room.enter)(who="b", at_most=1) == Full(1)
    assert await lobby.read() == Room(visits=1, occupants=["a"], price=Decimal("1.50"))
    assert (await lobby.turn(Room.when)()).tzinfo is not None


async def test_one_key_is_one_turn(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    for _ in range(3):
        assert await lobby.turn(Room.greet, key="k")("guest") == "hello guest"
        assert await lobby.run("x = greet(name='a')\nx", key="p") == Turn("", "hello a", 2)
        assert await lobby.run("greet('b')", key="q") == Turn("", "hello b", 1)
    assert (await lobby.read()).visits == 3
    with pytest.raises(KeyConflict):
        await lobby.turn(Room.greet, key="k")("other")
    with pytest.raises(KeyConflict):
        await lobby.run("x = greet(name='b')\nx", key="p")


async def test_a_method_that_raises_keeps_nothing_and_counts(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    for _ in range(2):
        with pytest.raises(ProgramRaised, match="the room is spoilt"):
            await lobby.turn(Room.spoil, key="k")()
    with pytest.raises(ProgramRaised, match="visits"):
        await lobby.turn(Room.wrong)()
    assert await lobby.read() == Room()


async def test_an_exception_that_cannot_say_what_it_is_is_a_verdict_too() -> None:
    async with onefold.App(Mumbler, store="memory:") as app:
        one = app.cell(Mumbler, "one")
        await one.spawn()
        for source in ("mumble()", "x = 1\nmumble()"):
            with pytest.raises(ProgramRaised, match=r"raised: (Unsayable|Exception)"):
                await one.run(source)
        with pytest.raises(ProgramRaised, match="Unsayable"):
            await one.turn(Mumbler.mumble)()
        assert await one.read() == Mumbler()


async def test_programs_that_take_long_keep_no_plain_function_from_its_thread(
    app: onefold.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = [app.cell(Room, str(n)) for n in range(40)]  # more than a loop's own pool has threads
    for room in rooms:
        await room.spawn()
    begin, run, begun, ends = Interpreter.begin, Interpreter.run, 0, threading.Event()

    def begins(interpreter: Interpreter, *given: Any) -> Any:
        nonlocal begun
        begun += 1
        return begin(interpreter, *given)

    def takes_long(interpreter: Interpreter, *given: Any) -> Any:
        ends.wait()
        return run(interpreter, *given)

    monkeypatch.setattr(Interpreter, "begin", begins)
    monkeypatch.setattr(Interpreter, "run", takes_long)
    running = [asyncio.ensure_future(room.run("greet('a')\ngreet('b')")) for room in rooms]
    try:
        while begun < len(rooms):  # noqa: ASYNC110 - nobody is told that a program waits for a worker
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await asyncio.to_thread(lambda: None)
        assert not any(each.done() for each in running)
    finally:
        ends.set()
    assert await asyncio.gather(*running) == [Turn("", "hello b", 2)] * len(rooms)


async def test_who_waits_for_custody_and_goes_away_takes_no_place(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    async with app.open(Room, "lobby"):
        for _ in range(3):
            gone = [asyncio.ensure_future(lobby.turn(Room.greet)("a")) for _ in range(QUEUE_PER_ACTOR // 2)]
            await asyncio.sleep(0)
            for each in gone:
                each.cancel()
            await asyncio.gather(*gone, return_exceptions=True)
        waiting = asyncio.ensure_future(lobby.turn(Room.greet)("b"))
        await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting == "hello b"


async def test_bad_arguments_are_told_before_anything_exists(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    with pytest.raises(BadArguments, match="name: must be text"):
        await lobby.turn(Room.greet)(3)  # type: ignore[arg-type] # that is the case
    with pytest.raises(TypeError):
        await lobby.turn(Room.greet)()  # type: ignore[call-arg] # that is the case
    with pytest.raises(BadArguments, match="is no method of Room"):
        lobby.turn(Memory.recall)  # type: ignore[arg-type] # that is the case
    with pytest.raises(BadArguments, match="handles"):
        await lobby.turn(Room.seat)(4)


async def test_a_program_is_all_or_nothing(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    turn = await lobby.run("for who in ['a', 'b', 'c']:\n    last = enter(who, at_most=2)\nlast")
    assert turn == Turn("Full", {"type": "Full", "at_most": 2}, 2)
    with pytest.raises(ProgramRaised) as raised:
        await lobby.run("greet('x')\nspoil()\ngreet('y')")
    assert (raised.value.ran, raised.value.of) == (1, 3)
    assert await lobby.read() == Room(occupants=["a", "b"])


async def test_a_conditional_increment_is_one_program(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    source = "if len(str(enter('x', at_most=5))) and True:\n    greet('x')"
    await asyncio.gather(*(lobby.run(source) for _ in range(8)), *(lobby.turn(Room.greet)("y") for _ in range(8)))
    read = await lobby.read()
    assert (read.visits, len(read.occupants)) == (16, 5)


@pytest.mark.parametrize(
    "source, kind, told",
    [
        ("greet(", ParseFailed, {"line": 1}),
        ("x = 1\ngreeet('x')", UnknownCall, {"name": "greeet", "nearest": "greet"}),
        ("x = 1\n1 / 0", ProgramRaised, {"ran": 1, "of": 2}),
        ("for _ in range(300):\n    greet('x')", LimitHit, {"limit": "200 for its calls"}),
        ("s = seat(4)\ntake(s)\ntake(s)", BadHandle, {"token": "h:Seat:1", "ran": 2}),
        ("take('h:Seat:1')", BadHandle, {"token": "h:Seat:1"}),
        ("greet()", ProgramRaised, {"message": "name: must be given"}),
    ],
)
async def test_a_turn_that_failed_is_a_case_with_its_facts(
    app: onefold.App, source: str, kind: type[TurnFailed], told: dict[str, object]
) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    with pytest.raises(kind) as failed:
        await lobby.run(source)
    assert {name: getattr(failed.value, name) for name in told} == told
    assert await lobby.read() == Room()


async def test_handles_cross_as_tokens(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    assert await lobby.run("s = seat(number=4)\n[s, look(s), take(s)]") == Turn("", ["h:Seat:1", 4, 4], 2)


async def test_a_cell_on_demand_begins_with_its_first_turn(app: onefold.App) -> None:
    memory = app.cell(Memory, "c42")
    source = 'if recall(topic="rent") is None:\n    remember(topic="rent", text="on the 1st")\nrecall(topic="rent")'
    assert await memory.read() == Memory()
    assert (await memory.run(source)).value == "on the 1st"
    assert await memory.spawn() == Resident()


# --- captures -----------------------------------------------------------------------------------------


async def test_a_capture_commits_once_where_its_block_ends(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    async with lobby.capture() as draft:
        draft.visits += 41
        draft.visits += 1
        draft.occupants.append("a")
        assert await lobby.read() == Room()
    assert draft == await lobby.read() == Room(visits=42, occupants=["a"])
    with pytest.raises(TypeError, match="is read here"):
        draft.visits = 1


async def test_a_capture_that_raises_keeps_nothing(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    with pytest.raises(ZeroDivisionError):
        async with lobby.capture() as draft:
            draft.visits = 1 // 0
    with pytest.raises(Undeclared, match="Room does not declare 'visit'"):
        async with lobby.capture() as draft:
            draft.visit = 1
    with pytest.raises(BadArguments, match="visits"):
        async with lobby.capture() as draft:
            draft.visits = "many"  # type: ignore[assignment] # that is the case
    assert await lobby.read() == Room()


async def test_a_capture_on_a_borrow_is_refused_when_a_turn_came_between(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()

    async def between() -> None:
        async with lobby.capture() as draft:
            await lobby.turn(Room.greet)("first")
            draft.visits = 100

    with pytest.raises(Contended):
        await between()
    assert (await lobby.read()).visits == 1


async def test_a_capture_is_opened_and_nothing_else(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    with pytest.raises(TypeError, match="begins with `async with"):
        _ = lobby.capture().visits


# --- reading, custody, the end ------------------------------------------------------------------------


async def test_a_field_is_a_value_unset_or_unknown(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    with pytest.raises(NotFound):
        await lobby.get("visits")
    await lobby.spawn()
    assert await lobby.get("visits") is UNSET
    await lobby.turn(Room.greet)("guest")
    assert await lobby.get("visits") == 1
    with pytest.raises(Undeclared, match="Room does not declare 'visit'"):
        await lobby.get("visit")


async def test_custody_has_turns_alone_and_hibernates_at_its_end(app: onefold.App) -> None:
    lobby = app.cell(Room, "room-7")
    async with app.open(Room, "room-7") as room:
        waiting = asyncio.ensure_future(lobby.turn(Room.greet)("other"))
        async with room.capture() as draft:
            draft.visits = 10
        assert await room.turn(Room.greet)("own") == "hello own"
        assert await room.run("x = greet('own')\nx") == Turn("", "hello own", 2)
        assert not waiting.done()
        assert (await lobby.read()).visits == 12
    assert await waiting == "hello other"
    assert (await lobby.read()).visits == 13
    with pytest.raises(NotOwner):
        await room.turn(Room.greet)("late")


async def test_custody_is_taken_in_turns(app: onefold.App) -> None:
    inside = 0

    async def alone(n: int) -> None:
        nonlocal inside
        async with app.open(Room, "room-7") as room:
            inside += 1
            assert inside == 1
            await room.turn(Room.greet)(str(n))
            inside -= 1

    await asyncio.gather(*(alone(n) for n in range(6)))
    assert (await app.cell(Room, "room-7").read()).visits == 6


async def test_handles_are_annotated_by_the_names_of_their_room(app: onefold.App) -> None:
    async def greeted(room: Borrow[Room]) -> str:
        return await room.turn(Room.greet)("a")

    async def ended(room: Custody[Room]) -> None:
        await room.hibernate()

    async with app.open(Room, "room-7") as room:
        assert await greeted(room) == "hello a"
        await ended(room)
    assert isinstance(app.cell(Room, "room-7"), Borrow)
    assert not isinstance(app.cell(Room, "room-7"), Custody)
    with pytest.raises(AttributeError, match="Borow"):
        _ = onefold.cell.Borow  # type: ignore[attr-defined] # that is the case


async def test_only_the_owner_may_hibernate(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    with pytest.raises(NotOwner):
        await lobby.hibernate()  # type: ignore[attr-defined] # a type checker refuses it too
    async with app.open(Room, "lobby") as room:
        await room.hibernate()
        with pytest.raises(NotOwner):
            await room.hibernate()
        assert await lobby.turn(Room.greet)("guest") == "hello guest"


async def test_what_is_retired_is_gone_and_may_begin_anew(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    await lobby.turn(Room.greet)("guest")
    await lobby.retire()
    for asked in (lobby.read(), lobby.retire(), lobby.get("visits")):
        with pytest.raises(NotFound):
            await asked
    assert await lobby.spawn() == Spawned()
    assert await lobby.get("visits") is UNSET


async def test_cells_of_another_principal_are_others(app: onefold.App) -> None:
    await app.cell(Room, "lobby").spawn()
    with pytest.raises(NotFound):
        await app.acting_as("studio").cell(Room, "lobby").read()


async def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    async with onefold.App(Room, store=tmp_path) as app:
        lobby = app.cell(Room, "lobby")
        await lobby.spawn()
        for n in range(450):  # past two snapshots
            await lobby.turn(Room.enter)(str(n), at_most=1_000)
    async with onefold.App(Room, store=tmp_path) as app:
        read = await app.cell(Room, "lobby").read()
        assert read.occupants == [str(n) for n in range(450)]
        assert await app.cell(Room, "lobby").spawn() == Resident()


def test_the_blocking_twin_is_the_same() -> None:
    with onefold.App(Room, Memory, store="memory:") as app:
        lobby = app.cell(Room, "lobby")
        assert lobby.spawn() == Spawned()
        assert lobby.turn(Room.greet)("guest") == "hello guest"
        assert lobby.run("x = greet('a')\nx") == Turn("", "hello a", 2)
        with app.open(Room, "lobby") as room, room.capture() as draft:
            draft.visits = 10
        assert lobby.read() == Room(visits=10)
        assert lobby.get("occupants") is UNSET
        assert lobby.evict() == Evicted()
        with pytest.raises(NotOwner):
            lobby.hibernate()  # type: ignore[attr-defined] # a type checker refuses it too
        lobby.retire()


def test_the_public_names() -> None:
    import onefold.cell

    assert set(onefold.cell.__all__) >= {"Cell", "Turn", "UNSET", "cost", "Spawned", "Resident", "Evicted", "Absent"}


async def test_the_cells_of_a_shape_are_listed(app: onefold.App) -> None:
    for name in ("b", "a"):
        await app.cell(Room, name).spawn()
    assert await app.actors(Room) == [{"key": "a"}, {"key": "b"}]
    assert await app.actors(Room, after="a", limit=1) == [{"key": "b"}]
