"""Letters that are refused are told to whoever waits for them; those that only newer code can read wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from onefold import Cell
from onefold.errors import NotFound
from onefold.fleet.mailbox import MAIL, letter
from onefold.fleet.posting import Post, posting
from onefold.store.contract import Done, Query
from onefold.terms.codec import canonical
from onefold.terms.ids import ActorId
from tests.fleet.nodes import SECRET, Fleet, Node, a_key, until


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)


class Room(Cell):
    names: list[str] = []  # noqa: RUF012 - a draft never shares it

    def greet(self, name: str) -> str:
        self.names.append(name)
        return f"hello {name}"


Old = Room
NOWHERE = "http://127.0.0.1:1"


def newer() -> Any:
    """The same shape, of the next release."""

    class Room(Cell):
        names: list[str] = []  # noqa: RUF012 - as above

        def greet(self, name: str) -> str:
            self.names.append(name)
            return f"hello {name}"

        def wave(self, name: str) -> str:
            self.names.append(f"{name}!")
            return f"waved to {name}"

    return Room


New = newer()


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    fleet = Fleet()
    try:
        yield fleet
    finally:
        await fleet.close()


async def pair(fleet: Fleet, of_a: Any, of_b: Any, at: str | None = None) -> tuple[Node, Node]:
    """at: where the second says that it is reached."""
    a, b = await fleet.start("a", of_a), await fleet.start("b", of_b, advertise=at)
    await fleet.settled()
    return a, b


async def names(node: Node, key: str) -> list[str]:
    room = fleet_room(node)
    return list((await node.app.cell(room, key).read()).names)


def fleet_room(node: Node) -> Any:
    return node.host.catalog.shape("Room").cls


async def are(node: Node, key: str, expected: list[str]) -> bool:
    return await names(node, key) == expected


async def test_a_turn_that_went_as_a_letter_is_refused_as_it_would_be_here(fleet: Fleet) -> None:
    a, b = await pair(fleet, Room, Room, at=NOWHERE)
    key = a_key(b, "Room")
    cell = a.app.cell(Room, key)
    for _ in range(2):  # nothing is kept of the first
        with pytest.raises(NotFound) as refused:
            await cell.turn(Room.greet, key="k")("x")
        with pytest.raises(NotFound) as of_program:
            await cell.run('greet(name="x")', key="p")
        assert key in str(refused.value)
        assert str(refused.value) == str(of_program.value)
    (rows,) = await (await a.host.space("main")).look(Query(MAIL))
    assert rows == []
    await cell.spawn()
    assert await cell.turn(Room.greet, key="k")("x") == "hello x"
    assert await names(b, key) == ["x"]


async def test_a_refusal_that_nobody_waited_for_is_parked_and_sent_again_is_tried_anew(fleet: Fleet) -> None:
    a, b = await pair(fleet, Room, Room, at=NOWHERE)
    key = a_key(b, "Room")
    carriers = b.host._core.postman._tasks
    for task in carriers:
        task.cancel()  # nobody delivers but who drains
    cell = a.app.cell(Room, key)
    call = asyncio.ensure_future(cell.turn(Room.greet, key="k")("x"))
    space = await a.host.space("main")

    async def is_posted() -> bool:
        (rows,) = await space.look(Query(MAIL))
        return bool(rows)

    await until(is_posted)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await b.app.fleet.drain(f"Room/{key}")
    assert (await b.part.mail()) == {"waiting": 0, "parked": 1}
    (item,) = await b.host.parked_list(caller=b.app.caller)
    assert f"No Room '{key}' exists" in item.cause
    b.host._core.postman.start()
    await cell.spawn()
    assert await cell.turn(Room.greet, key="k")("x") == "hello x"
    assert await names(b, key) == ["x"]
    assert (await b.part.mail()) == {"waiting": 0, "parked": 0}


async def test_in_a_rolling_restart_letters_wait_for_the_code_that_can_read_them(fleet: Fleet) -> None:
    a, b = await pair(fleet, New, Old)
    key = a_key(b, "Room")
    cell = a.app.cell(New, key)
    await cell.spawn()
    sources = ['greet(name="0")', 'wave(name="1")', 'greet(name="2")', 'x = "3"\nwave(name=x)', 'greet(name="4")']
    for n, source in enumerate(sources):
        await cell.post(source, key=str(n))
    run = asyncio.ensure_future(cell.run('wave(name="run")', key="run"))
    turn = asyncio.ensure_future(cell.turn(New.wave, key="turn")("turn"))
    await until(partial(are, b, key, ["0"]))
    space = await a.host.space("main")

    async def met() -> bool:
        (rows,) = await space.look(Query(MAIL, where=(("error", "null", False),)))
        return bool(rows)

    await until(met)
    assert (await a.part.mail())["parked"] == 0
    assert not run.done()
    assert not turn.done()
    await b.stop()
    del fleet.nodes["b"]
    b = await fleet.start("b", New)
    assert (await run).value == "waved to run"
    assert await turn == "waved to turn"

    async def all_came() -> bool:
        return [name for name in await names(a, key) if name[0].isdigit()] == ["0", "1!", "2", "3!", "4"]

    await until(all_came)
    assert (await a.part.mail()) == {"waiting": 0, "parked": 0}


async def test_a_letter_that_no_code_of_the_fleet_can_read_is_parked_and_those_behind_it_go(fleet: Fleet) -> None:
    a, b = await pair(fleet, Room, Room)
    key = a_key(b, "Room")
    await a.app.cell(Room, key).spawn()
    space, core = await a.host.space("main"), a.host._core
    at = ActorId("Room", None, key)
    for n, source in enumerate(['greet(name="0")', "nosuch()", 'greet(name="2")']):
        body = canonical({"program": source})
        row = letter(space.mint(MAIL), at, f"d/{n}", "x", body, core.clock.now(), core.slots)
        assert isinstance(await space.transact(posting([Post(row)])), Done)
    core.router.told(at)  # type: ignore[union-attr]
    await until(partial(are, b, key, ["0", "2"]))
    assert (await a.part.mail()) == {"waiting": 0, "parked": 1}
