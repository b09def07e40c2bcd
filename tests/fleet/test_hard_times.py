"""Nodes that die, sleep, are seized from or stand in for each other: nothing is lost, nothing counts twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from onefold.fleet.mailbox import MAIL, letter
from onefold.fleet.posting import Post, posting
from onefold.fleet.words import Claimed, Contended, Fenced, Free, HeldBy, Owner, Seized
from onefold.fleet.words import Done as Delivered
from onefold.host.core import Core
from onefold.store.contract import Done, Query
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments, OwnedElsewhere
from onefold.terms.ids import ActorId
from tests.fleet import shared
from tests.fleet.nodes import SECRET, SLOTS, Fleet, Node, a_key, fleet_of, until
from tests.fleet.shared import PARTS, Ask, Room, provider, work
from tests.guarantees.shop import Accepted, Deposit, bank


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    provider.failing = []
    shared.steps.clear()
    shared.held.clear()


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    async with fleet_of(*PARTS) as fleet:
        yield fleet


def pair(fleet: Fleet) -> tuple[Node, Node]:
    return fleet.nodes["a"], fleet.nodes["b"]


async def visits(node: Node, key: str, count: int) -> bool:
    return (await node.app.cell(Room, key).read()).visits == count


# --- names ------------------------------------------------------------------------------------------


async def test_ko15_names_are_claimed_seized_and_guarded_by_nodes(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "Room")
    name = f"Room/{key}"
    await a.app.cell(Room, key).spawn()
    assert await a.app.fleet.guard(name, epoch=1) == Free()
    claimed = await b.app.fleet.claim(name)
    assert isinstance(claimed, Claimed)
    held = await a.app.fleet.claim(name)
    assert isinstance(held, HeldBy)
    assert held.node == "b"
    assert await b.app.fleet.guard(name, epoch=claimed.epoch) == Owner()
    assert await a.app.cell(Room, key).turn(Room.greet)("x") == "hello x 1"
    assert b.owns("Room", key)
    seized = await a.app.fleet.seize(name)
    assert isinstance(seized, Seized)
    assert await b.app.fleet.guard(name, epoch=claimed.epoch) == Fenced(seized.epoch)
    assert await b.app.fleet.renew(name, epoch=claimed.epoch) == Fenced(seized.epoch)
    assert await b.app.cell(Room, key).turn(Room.greet)("y") == "hello y 2"
    assert await a.app.fleet.release(name, epoch=seized.epoch) == Free()
    assert await a.app.fleet.seize(name) == Free()
    assert await b.app.cell(Room, key).turn(Room.greet)("z") == "hello z 3"


async def test_ko16_a_claimed_actor_falls_back_to_its_slot_when_its_lease_is_over(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "Room")
    await a.app.cell(Room, key).spawn()
    claimed = await b.app.fleet.claim(f"Room/{key}", lease="1 hour")
    assert isinstance(claimed, Claimed)
    assert await a.app.cell(Room, key).turn(Room.greet)("x") == "hello x 1"
    assert b.owns("Room", key)
    assert isinstance(await b.app.fleet.renew(f"Room/{key}", epoch=claimed.epoch, lease="1 ms"), Claimed)
    await until(lambda: a.owns("Room", key) and not b.owns("Room", key))
    assert await b.app.cell(Room, key).turn(Room.greet)("y") == "hello y 2"


async def test_the_owner_of_a_slot_is_fenced_once_and_goes_on_with_its_other_actors(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "bank")
    slot = a.part.membership.standing.name_of(ActorId("bank", None, key))
    beside = next(
        k for n in range(9_999) if a.part.membership.standing.name_of(ActorId("bank", None, k := f"b{n}")) == slot
    )
    await a.app.deliver(bank, Deposit("d", beside, 1))
    assert isinstance(await b.app.fleet.claim(f"bank/{key}"), Claimed)
    for n in range(5):
        assert await a.app.deliver(bank, Deposit(f"e{n}", beside, 1)) == Accepted(n + 2)
        assert await a.app.deliver(bank, Deposit(f"e{n}", key, 1)) == Accepted(n + 1)
    assert a.owns("bank", beside)
    assert b.owns("bank", key)


@pytest.mark.parametrize("name", ["slot/99", "slot/-1", "Room", "Room/", "/x", "slot/1/2", "nonesuch/x", ""])
async def test_what_is_no_name_is_refused(fleet: Fleet, name: str) -> None:
    for verb in (fleet.nodes["a"].app.fleet.claim(name), fleet.nodes["a"].app.fleet.seize(name)):
        with pytest.raises(Exception, match=r"slot|name|module|Nothing"):
            await verb


async def test_ko19_a_drain_delivers_in_order_and_a_stale_one_consumes_nothing(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "Room")
    name = f"Room/{key}"
    cell = a.app.cell(Room, key)
    await cell.spawn()
    for node in (a, b):
        for task in node.host._core.postman._tasks:
            task.cancel()  # nobody delivers but who drains
    for n in range(5):
        await b.app.cell(Room, key).post(f'greet(name="{n}")', key=f"p{n}")
    told = await b.app.fleet.drain(name)
    assert isinstance(told, HeldBy)
    assert told.node == "a"
    assert isinstance(await b.app.fleet.seize(a.part.membership.standing.name_of(ActorId("Room", None, key))), Seized)
    stale = await a.app.fleet.drain(name)
    assert isinstance(stale, HeldBy | Contended)
    assert (await b.app.cell(Room, key).read()).visits == 0
    assert await b.app.fleet.drain(name) == Delivered(5)
    assert (await a.app.cell(Room, key).read()).names == [str(n) for n in range(5)]
    assert await b.app.fleet.drain(name) == Delivered(0)
    with pytest.raises(BadArguments):
        await a.app.fleet.drain("slot/1")


# --- death ------------------------------------------------------------------------------------------


async def test_what_a_killed_node_had_is_the_others_with_every_letter_and_every_run(fleet: Fleet) -> None:
    a, b = pair(fleet)
    keys = [a_key(b, "Room", of=f"r{n}k") for n in range(20)]
    for key in keys:
        await a.app.cell(Room, key).spawn()
    runs = [await a.app.start(work, Ask(n=n, after="1 second"), key=f"r{n}") for n in range(10)]
    await b.kill()
    for first in range(0, 500, 50):  # 10,000 in all
        told = [(n, key) for n in range(first, first + 50) for key in keys]
        await asyncio.gather(*(a.app.cell(Room, key).post(f'greet(name="{n}")', key=f"p{n}") for n, key in told))
    await asyncio.gather(*(a.app.cell(Room, key).post('greet(name="0")', key="p0") for key in keys))
    for key in keys:
        await until(partial(visits, a, key, 500))
        assert (await a.app.cell(Room, key).read()).names == [str(n) for n in range(500)]
    assert [await run.result() for run in runs] == [n * 2 for n in range(10)]
    assert len(a.part.membership.standing.held_slots()) == SLOTS
    assert (await a.part.mail()) == {"waiting": 0, "parked": 0}


async def test_a_turn_for_a_node_that_died_waits_for_its_next_owner(fleet: Fleet) -> None:
    a, b = pair(fleet)
    keys = [a_key(b, "bank", of=f"r{n}k") for n in range(8)]
    await b.kill()
    told = await asyncio.gather(*(a.app.deliver(bank, Deposit("d", key, 7)) for key in keys))
    assert told == [Accepted(7)] * 8
    assert await asyncio.gather(*(a.app.deliver(bank, Deposit("d", key, 7)) for key in keys)) == told


async def test_a_node_that_leaves_hands_all_over_and_comes_back(fleet: Fleet) -> None:
    a, b = pair(fleet)
    keys = [a_key(b, "bank", of=f"r{n}k") for n in range(8)]
    stop = asyncio.ensure_future(b.stop())
    n = 0
    while not stop.done():
        n += 1
        for key in keys:
            assert await a.app.deliver(bank, Deposit(f"d{n}", key, 1)) == Accepted(n)
    await stop
    del fleet.nodes["b"]
    c = await fleet.start("b", *PARTS)
    await fleet.settled()
    for key in keys:
        assert c.owns("bank", key)
        assert await a.app.deliver(bank, Deposit("last", key, 1)) == Accepted(n + 1)
    assert c.part.membership.standing.me.incarnation == 2


async def test_a_process_of_the_same_name_takes_the_place_of_the_first() -> None:
    fleet = Fleet()
    try:
        first = await fleet.start("a", *PARTS)
        await fleet.settled()
        assert await first.app.deliver(bank, Deposit("d", "k", 1)) == Accepted(1)
        second = await fleet.start("a", *PARTS)
        await until(lambda: len(second.part.membership.standing.held_slots()) == SLOTS)
        assert await second.app.deliver(bank, Deposit("e", "k", 1)) == Accepted(2)
        with pytest.raises(OwnedElsewhere):
            await first.app.deliver(bank, Deposit("f", "k", 1))
        assert not first.part.membership.standing.held
        assert (await first.app.read(bank, "k")).balance == 2
        assert await second.app.deliver(bank, Deposit("f", "k", 1)) == Accepted(3)
        await first.stop()
    finally:
        await fleet.close()


# --- sleep ------------------------------------------------------------------------------------------


async def test_a_loop_that_was_blocked_for_longer_than_its_lease_goes_on_as_it_was(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key, other = a_key(a, "bank"), a_key(b, "bank")
    await a.app.deliver(bank, Deposit("d", key, 1))
    before = {name: row.epoch for name, row in a.part.membership.standing.seen.owners.items()}
    threading.Event().wait(3)  # the loop of both nodes is blocked by somebody's function, for more than a lease
    assert await b.app.deliver(bank, Deposit("e", key, 1)) == Accepted(2)
    assert await a.app.deliver(bank, Deposit("e", other, 1)) == Accepted(1)
    for node in (a, b):
        await node.part.membership.look()
    assert {name: row.epoch for name, row in a.part.membership.standing.seen.owners.items()} == before


async def test_a_run_whose_node_lost_it_within_a_step_ends_once_with_its_next_owner(fleet: Fleet) -> None:
    a, b = pair(fleet)
    shared.held[77] = asyncio.Event()
    key = next(key for n in range(999) if a.owns("work", _run(key := f"s{n}")))
    receipt = await b.app.start(work, Ask(n=77), key=key)
    assert a.owns("work", receipt.run_id)
    await until(lambda: shared.steps == [77])
    name = a.part.membership.standing.name_of(ActorId("work", None, receipt.run_id))
    assert isinstance(await b.app.fleet.seize(name), Seized)
    await until(lambda: shared.steps == [77, 77])
    shared.held.pop(77).set()
    assert await receipt.result() == 154
    assert [row.step for row in await a.app.runs.journal(receipt.run_id)] == ["counted"]


def _run(key: str) -> str:
    from onefold.terms.ids import run_id

    return run_id(None, "work", key)


async def test_the_writes_of_who_was_seized_from_are_refused_at_once(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "bank")
    at = ActorId("bank", None, key)
    await a.app.deliver(bank, Deposit("d", key, 1))
    core: Core = a.host._core
    assert isinstance(await b.app.fleet.seize(a.part.membership.standing.name_of(at)), Seized)
    word = Deposit("stale", key, 100)

    def decide(state: Any, now: Any) -> Any:
        return bank.decide(state, word, now)

    with pytest.raises(OwnedElsewhere):
        await core.node.fold(at, "d/stale", b"x", decide)
    assert (await b.app.read(bank, key)).balance == 1
    assert await a.app.deliver(bank, Deposit("e", key, 1)) == Accepted(2)


# --- letters of strangers -----------------------------------------------------------------------------


async def test_letters_for_a_kind_that_nobody_has_hold_up_nobody(fleet: Fleet) -> None:
    a, b = pair(fleet)
    space = await a.host.space("main")
    core = a.host._core
    for n in range(20):
        at = ActorId("Gone", None, f"k{n}")
        body = canonical({"program": "greet()"})
        row = letter(space.mint(MAIL), at, f"d/{n}", "x", body, core.clock.now(), core.slots)
        assert isinstance(await space.transact(posting([Post(row)])), Done)
    for node in (a, b):
        node.host._core.postman.look()
    key = a_key(b, "Room")
    await a.app.cell(Room, key).spawn()
    await a.app.cell(Room, key).post('greet(name="x")', key="k")
    await until(partial(visits, a, key, 1))

    (rows,) = await space.look(Query(MAIL, where=(("kind", "=", "Gone"),)))
    assert len(rows) == 20  # they are there for whoever has the kind next
