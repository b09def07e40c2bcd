"""Letters to cells: committed when posted, each a turn that counts once, in the order of posting, and parked with a way out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import onefold
from onefold.cell import Turn
from onefold.fleet import mailbox
from onefold.host import postman
from onefold.host.caller import inside
from onefold.host.config import settle
from onefold.host.opening import open_host
from onefold.host.postman import CARRIERS, Postman
from onefold.node.lane import Lane
from onefold.program.monty import Interpreter
from onefold.terms.errors import BadArguments, Busy, KeyConflict, NotFound
from onefold.terms.turns import ParseFailed, ProgramRaised, UnknownCall
from onefold.testing import VirtualClock
from tests.cell.rooms import Memory, Room
from tests.contracts.backends import store_of


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def app(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[onefold.App]:
    monkeypatch.setenv("ONEFOLD_SECRET", "known to every test, and of no use")
    store = store_of(request.param, tmp_path / "store")
    async with onefold.App(Room, Memory, store=store) as app:
        yield app


def broken(*given: object) -> None:
    raise OSError("no process can be started")


async def settled(app: onefold.App) -> None:
    while not app.host.quiet:  # noqa: ASYNC110 - quiet is a state of many parts, and nothing to wait on
        await asyncio.sleep(0)


async def test_a_letter_is_a_turn_that_counts_once(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    for _ in range(3):
        assert (await lobby.post("greet('a')", key="k")).id == "k"
    await settled(app)
    assert (await lobby.read()).visits == 1
    assert await lobby.run("greet('a')", key="k") == Turn("", "hello a", 1)
    await lobby.post("greet('a')", key="k")
    await settled(app)
    assert (await lobby.read()).visits == 1


async def test_a_letter_under_the_key_of_another_turn_is_refused_at_the_door(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    await lobby.post("greet('a')", key="letter")
    await settled(app)
    await lobby.turn(Room.greet, key="turn")("a")
    await lobby.run("greet('a')", key="run")
    for key in ("letter", "turn", "run"):
        with pytest.raises(KeyConflict):
            await lobby.post("greet('b')", key=key)
    for key in ("letter", "run"):
        await lobby.post("greet('a')", key=key)
    await settled(app)
    assert (await lobby.read()).visits == 3
    assert await app.host.parked_count() == 0


async def test_letters_of_one_sender_keep_their_order(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    for n in range(100):
        source = f"enter('{n}', at_most=1000)" if n % 2 else f"x = '{n}'\nenter(x, at_most=1000)"
        await lobby.post(source, key=str(n))
    await settled(app)
    assert (await lobby.read()).occupants == [str(n) for n in range(100)]


async def test_a_letter_that_is_no_program_is_refused_at_the_door(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    with pytest.raises(UnknownCall):
        await lobby.post("greeet('a')", key="k")
    with pytest.raises(ParseFailed):
        await lobby.post("greet(", key="k")
    with pytest.raises(BadArguments):
        await lobby.post("greet('a')", key="")


async def test_a_verdict_settles_a_letter(app: onefold.App) -> None:
    lobby = app.cell(Room, "lobby")
    await lobby.spawn()
    await lobby.post("spoil()", key="bad")
    await lobby.post("greet('a')", key="good")
    await settled(app)
    assert (await lobby.read()).visits == 1
    with pytest.raises(ProgramRaised):
        await lobby.run("spoil()", key="bad")


async def test_a_letter_for_a_cell_that_never_was_waits_and_is_parked_with_a_way_out(tmp_path: Path) -> None:
    clock = VirtualClock()
    host = await open_host(settle(code={"store": str(tmp_path)}), [Room], clock=clock)
    caller = inside(None)
    await host.cells.post("Room", "lobby", "greet('a')", key="k", caller=caller)

    async def rest() -> None:
        while not host.quiet:  # noqa: ASYNC110 - quiet is a state of many parts, and nothing to wait on
            await asyncio.sleep(0)

    for _ in range(40):
        await rest()
        clock.step_to(clock.now() + 60_000)
    await rest()
    (item,) = await host.parked_list(caller=caller)
    assert (item.kind, item.program, item.id.rpartition(".")[0]) == ("letter", "Room", "letter.main")
    assert "No Room 'lobby' exists" in item.cause
    shown = await host.parked_show(item.id, caller=caller)
    assert (shown.key, shown.body, shown.tries) == ("lobby", {"program": "greet('a')"}, 8)
    assert await host.parked_count() == 1
    await host.cells.spawn("Room", "lobby", caller=caller)
    await host.parked_retry(item.id, caller=caller)
    await rest()
    assert (await host.cells.read("Room", "lobby", caller=caller)).state["visits"] == 1
    assert await host.parked_list(caller=caller) == []
    with pytest.raises(NotFound):
        await host.parked_drop(item.id, reason="none", caller=caller)
    await host.close()


async def test_a_letter_whose_turn_breaks_is_tried_again_and_takes_no_carrier_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    host = await open_host(settle(code={"store": str(tmp_path)}), [Room], clock=clock)
    caller = inside(None)

    async def rest() -> None:
        while not host.quiet:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)

    with monkeypatch.context() as breaking:
        breaking.setattr(Interpreter, "run", broken)
        for n in range(CARRIERS + 1):
            await host.cells.spawn("Room", str(n), caller=caller)
            await host.cells.post("Room", str(n), "greet('a')\ngreet('b')", key="k", caller=caller)
        await rest()
    await host.cells.spawn("Room", "lobby", caller=caller)
    await host.cells.post("Room", "lobby", "greet('a')", key="k", caller=caller)
    await rest()
    assert (await host.cells.read("Room", "lobby", caller=caller)).state["visits"] == 1
    clock.step_to(clock.now() + 60_000)
    await rest()
    for n in range(CARRIERS + 1):
        assert (await host.cells.read("Room", str(n), caller=caller)).state["visits"] == 2
    await host.close()


@pytest.mark.parametrize("program", ["greet('a')", "greet('a')\nNone"], ids=["one call", "a program"])
async def test_a_letter_that_a_full_queue_refuses_waits_however_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    clock = VirtualClock()
    host = await open_host(settle(code={"store": str(tmp_path)}), [Room], clock=clock)
    caller = inside(None)

    async def rest() -> None:
        while not host.quiet:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)

    refused = 0

    def full(*given: object) -> None:
        nonlocal refused
        refused += 1
        raise Busy("Room lobby", 1)

    await host.cells.spawn("Room", "lobby", caller=caller)
    with monkeypatch.context() as crowded:
        crowded.setattr(Lane, "submit", full)
        for n in range(3):
            await host.cells.post("Room", "lobby", program, key=str(n), caller=caller)
        for _ in range(4 * mailbox.TRIES):
            clock.step_to(clock.now() + 60_000)
            await rest()
        assert refused > mailbox.TRIES
        assert await host.parked_count() == 0
    clock.step_to(clock.now() + 60_000)
    await rest()
    assert (await host.cells.read("Room", "lobby", caller=caller)).state["visits"] == 3
    await host.close()


async def test_letters_behind_one_that_waits_are_not_looked_at_before_it_is_due_and_hide_nobody_elses(
    app: onefold.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postman, "AT_ONCE", 3)
    monkeypatch.setattr(postman, "TOGETHER", 3)
    looks = 0
    once = Postman._once

    async def counted(self: Postman) -> int | None:
        nonlocal looks
        looks += 1
        return await once(self)

    monkeypatch.setattr(Postman, "_once", counted)
    lobby, caller = app.cell(Room, "lobby"), inside(None)
    await lobby.spawn()
    with monkeypatch.context() as breaking:
        breaking.setattr(Interpreter, "run", broken)
        for n in range(7):
            await lobby.post("greet('a')\ngreet('b')", key=str(n))
        await settled(app)
        looks = 0
        await asyncio.sleep(0.2)
        assert looks < 20
        other = replace(caller, name="another")
        await app.host.cells.post("Room", "lobby", "greet('c')", key="other", caller=other)
        await settled(app)
        assert (await lobby.read()).visits == 1


async def test_letters_that_the_ring_has_no_room_for_are_carried_from_their_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postman, "ROOM", 1)
    monkeypatch.setattr(postman, "WORKED", 0)
    host = await open_host(settle(code={"store": str(tmp_path)}), [Room], clock=VirtualClock())
    caller, ids = inside(None), [str(n) for n in range(20)]
    await asyncio.gather(*(host.cells.spawn("Room", id, caller=caller) for id in ids))
    await asyncio.gather(*(host.cells.post("Room", id, "greet('a')", key="k", caller=caller) for id in ids))
    while not host.quiet:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    seen = [(await host.cells.read("Room", id, caller=caller)).state["visits"] for id in ids]
    assert seen == [1] * 20
    await host.close()


async def test_what_was_posted_is_carried_by_the_next_life(tmp_path: Path) -> None:
    host = await open_host(settle(code={"store": str(tmp_path)}), [Room], clock=VirtualClock())
    caller = inside(None)
    await host.cells.spawn("Room", "lobby", caller=caller)
    for n in range(20):
        await host.cells.post("Room", "lobby", f"enter('{n}', at_most=100)", key=str(n), caller=caller)
    await host.abandon()
    host = await open_host(settle(code={"store": str(tmp_path)}), [Room], clock=VirtualClock())
    while not host.quiet:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    seen = await host.cells.read("Room", "lobby", caller=caller)
    assert seen.state["occupants"] == [str(n) for n in range(20)]
    await host.close()
