"""A cell in custody, a letter and an actor that does not rest: left behind, each fails the test and is named."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator

import pytest

import onefold
from onefold import Cell, testing
from onefold.fleet import Full, Ring, Taken
from onefold.fleet.mailbox import MAIL, letter
from onefold.fleet.posting import Post, posting
from onefold.fleet.ring import holding
from onefold.terms.errors import Broken
from onefold.terms.ids import ActorId, door_id
from onefold.testing import Durable, DurableApp, Stuck, Unsettled, every_crash, lives, stage
from tests.cell.rooms import Room

GATE = threading.Event()


class Slow(Cell, on_demand=True):
    """A cell whose method does not come back while the gate is closed."""

    count: int = 0

    def stay(self) -> None:
        self.count += 1
        GATE.wait(60)


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    GATE.clear()
    yield
    GATE.set()
    for ring in holding():
        ring.drop()


# --- what is left fails the test ---------------------------------------------------------------------------


def leave_custody(app: DurableApp) -> None:
    app.open(Room, "lobby").__enter__()


def leave_custody_with_a_letter_behind_it(app: DurableApp) -> None:
    app.open(Room, "lobby").__enter__()
    app.cell(Room, "lobby").post("greet('a')", key="k")


def leave_a_letter_in_a_ring(app: DurableApp) -> None:
    ring: Ring[str] = Ring(4)
    assert [ring.put(each) for each in "ab"] == [Taken(), Taken()]


def leave_a_letter_taken(app: DurableApp) -> None:
    async def take() -> None:
        ring: Ring[str] = Ring(1)
        await ring.offer("a")
        mail = await anext(aiter(ring))
        assert mail.forward(full) == Full()

    full: Ring[str] = Ring(1)
    full.put("another")
    app.wait_for(take())
    full.drop()


def leave_a_parked_letter(app: DurableApp) -> None:
    app.cell(Room, "nowhere").post("greet('a')", key="k")
    app.clock.advance("2 hours")


def leave_a_letter_in_its_box(app: DurableApp) -> None:
    async def slip_in() -> None:
        space = await app.awaited.host.space("main")
        to = ActorId("Room", None, "lobby")
        row = letter(space.mint(MAIL), to, door_id("k"), "test", b"{}", 0)
        await space.transact(posting([Post(row)]))

    app.wait_for(slip_in())


def leave_a_turn(app: DurableApp) -> None:
    async def hold() -> None:
        resident = await app.awaited.host._core.node.activate(ActorId("Room", None, "lobby"))
        resident.watchers.append(print)

    app.cell(Room, "lobby").spawn()
    app.wait_for(hold())


def leave_a_program(app: DurableApp) -> None:
    app.cell(Slow, "one").post("stay()\nstay()", key="k")


LEFT = [
    (leave_custody, r"Room lobby in custody: leave its block, or `await room\.hibernate\(\)`$"),
    (leave_custody_with_a_letter_behind_it, r"Room lobby in custody.*; the letter k to Room lobby due in its box"),
    (leave_a_letter_in_a_ring, r"2 letters of a ring, 0 of them taken and not settled: `await mail\.settle\(\)`"),
    (leave_a_letter_taken, "1 letters of a ring, 1 of them taken and not settled"),
    (leave_a_parked_letter, r"a letter to Room parked: No Room 'nowhere' exists.*`app\.parked\.retry\('letter\.main"),
    (leave_a_letter_in_its_box, "the letter k to Room lobby due in its box"),
    (leave_a_turn, "Room lobby in a turn"),
    (leave_a_program, "Slow one in a program; a letter to Slow one on its way"),
]


@pytest.mark.parametrize("leave, told", LEFT)
def test_residents_and_letters_left_behind_fail_the_test(
    leave: Callable[[DurableApp], None], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "LONGEST_S", 0.5)
    monkeypatch.setattr(lives, "LONGEST_S", 0.5)
    opening = testing.open(Room, Slow)
    app = opening.__enter__()
    leave(app)
    opened = threading.Timer(1.5, GATE.set)  # well after what is left was told; only then can its thread end
    opened.start()
    with pytest.raises(Unsettled, match=told):
        opening.__exit__(None, None, None)
    opened.cancel()


async def test_what_is_left_is_told_where_the_app_is_awaited_too() -> None:
    with pytest.raises(Unsettled, match="Room lobby in custody"):
        async with testing.open(Room) as app:
            await app.open(Room, "lobby").__aenter__()


def test_the_fault_of_a_test_is_not_hidden_by_a_custody_that_it_left() -> None:
    def fail() -> None:
        with testing.open(Room) as app:
            leave_custody(app)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


# --- what is no leaving ------------------------------------------------------------------------------------


def test_nothing_is_left_by_who_lets_go_settles_and_drops(durable: Durable) -> None:
    app = durable(Room)
    custody = app.open(Room, "lobby").__enter__()
    custody.hibernate()
    ring: Ring[str] = Ring(2)
    ring.put("a")
    assert ring.drop() == 1
    leave_a_parked_letter(app)
    (item,) = app.parked.list()
    app.parked.drop(item.id, reason="it was to be parked")
    leave_a_parked_letter(app)
    app.cell(Room, "nowhere").spawn()
    app.parked.retry(app.parked.list()[0].id)
    app.settle()
    assert app.cell(Room, "nowhere").read().visits == 1


def test_a_letter_that_waits_for_its_next_try_is_not_left(durable: Durable) -> None:
    app = durable(Room)
    app.cell(Room, "nowhere").post("greet('a')", key="k")
    app.settle()
    assert app.parked.list() == []


def test_letters_that_another_test_left_in_a_ring_are_not_this_ones(durable: Durable) -> None:
    older: Ring[str] = Ring(1)
    older.put("an older one")
    durable(Room).cell(Room, "lobby").spawn()
    assert older in holding()


# --- a verb on a cell is attended like any ------------------------------------------------------------------


def test_a_turn_behind_the_tests_own_custody_is_stuck_and_says_so(
    durable: Durable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lives, "HELD_S", 0.05)
    app = durable(Room)
    with app.open(Room, "lobby") as room:
        with pytest.raises(
            Stuck, match=r"a turn of Room lobby waits for the end of its custody\. What ends it: leaving"
        ):
            app.cell(Room, "lobby").turn(Room.greet)("a")
        assert room.turn(Room.greet)("a") == "hello a"
        assert app.cell(Room, "other").spawn() is not None
    assert app.cell(Room, "lobby").turn(Room.greet)("a") == "hello a"


async def test_a_turn_behind_a_custody_that_another_task_ends_goes_on() -> None:
    async with testing.open(Room) as app:
        async with app.open(Room, "lobby"):
            turn = asyncio.ensure_future(app.cell(Room, "lobby").turn(Room.greet)("a"))
            await asyncio.sleep(0)
        assert await turn == "hello a"


def test_what_does_not_come_to_rest_is_named(durable: Durable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "LONGEST_S", 0.3)
    app = durable(Slow)
    leave_a_program(app)
    with pytest.raises(Broken, match="Slow one in a program; a letter to Slow one on its way"):
        app.settle()
    GATE.set()
    monkeypatch.undo()
    app.settle()
    assert app.cell(Slow, "one").read().count == 2


def test_killed_anywhere_a_cell_keeps_each_turn_and_letter_once() -> None:
    crashed = set()
    for app in every_crash(Room):
        lobby = app.cell(Room, "lobby")
        lobby.spawn()
        assert lobby.turn(Room.greet, key="turn")("a") == "hello a"
        assert lobby.run("greet('a')\ngreet('b')", key="program").value == "hello b"
        lobby.post("greet('c')", key="letter")
        app.settle()
        with app.open(Room, "lobby") as room:
            assert room.read().visits == 4
        crashed |= set(app.crashed)
    assert crashed == {"before-commit", "after-commit", "before-reply"}


async def test_a_turn_without_a_key_that_a_crash_cut_is_told_as_unknown() -> None:
    async with testing.open(Room) as app:
        lobby = app.cell(Room, "lobby")
        await lobby.spawn()
        app.crash_at("after-commit")
        with pytest.raises(onefold.errors.OutcomeUnknown):
            await lobby.turn(Room.greet)("a")
        assert (await lobby.read()).visits == 1


# --- and outside of tests the process says so ---------------------------------------------------------------


async def test_a_process_that_closes_with_unsettled_letters_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "onefold")
    async with onefold.App(Slow, store="memory:") as app:
        Ring[str](2).put("a")
        for key in ("k", "l"):
            await app.cell(Slow, "one").post("stay()\nstay()", key=key)
        while not app.host.cells.held():  # noqa: ASYNC110 - a program runs in a thread, and tells nobody that it began
            await asyncio.sleep(0.001)
        asyncio.get_running_loop().call_later(0.05, GATE.set)
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "onefold.mail",
            "WARNING",
            "1 letters were not delivered: they are in their boxes, for the next life",
        ),
        ("onefold.host", "ERROR", "a ring of this process has 1 letters that nobody settled or forwarded"),
    ]


async def test_a_custody_that_nobody_lets_go_of_does_not_keep_the_process_from_ending() -> None:
    async with onefold.App(Room, store="memory:") as app:
        await app.open(Room, "lobby").__aenter__()
        await app.cell(Room, "lobby").post("greet('a')", key="k")
        behind = asyncio.ensure_future(app.cell(Room, "lobby").turn(Room.greet)("a"))
        for _ in range(20):
            await asyncio.sleep(0)
    with pytest.raises(onefold.errors.NotOpen):
        await behind


async def test_a_process_that_settled_its_letters_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "onefold")
    async with onefold.App(Room, store="memory:") as app:
        lobby = app.cell(Room, "lobby")
        await lobby.spawn()
        await lobby.post("greet('a')", key="k")
        while not app.host.quiet:  # noqa: ASYNC110 - quiet is a state of many parts, and nothing to wait on
            await asyncio.sleep(0)
    assert caplog.records == []
