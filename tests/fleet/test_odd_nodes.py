"""Nodes with odd names, other numbers of slots, and addresses at which nobody reaches them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold import App
from onefold.terms.errors import LoadRefused, OutcomeUnknown, OwnedElsewhere
from onefold.terms.ids import ActorId, run_id, slot_of
from tests.contracts.backends import store_of
from tests.fleet import nodes as fleets
from tests.fleet.matrix import STORES, having
from tests.fleet.nodes import SECRET, Fleet, a_key, until
from tests.fleet.served import node, nodes, shared_out, standing
from tests.fleet.shared import PARTS, Ask, Fed, Room, asks, hears, once, work
from tests.fleet.test_it_is_shown import told as said
from tests.guarantees.shop import Accepted, Deposit, bank

NOWHERE = "http://127.0.0.1:9"  # where nothing listens


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    return store_of(request.param, tmp_path)


@pytest.fixture
async def fleet(store: str) -> AsyncIterator[Fleet]:
    """`b` is where nobody finds it."""
    fleet = Fleet(store)
    try:
        await fleet.start("a", *PARTS)
        await fleet.start("b", *PARTS, advertise=NOWHERE)
        await fleet.settled()
        yield fleet
    finally:
        await fleet.close()


async def test_names_may_be_long_have_dots_and_differ_by_case_alone(store: str) -> None:
    names = ("a", "A", "a.b", "0", "x" * 63, "a-b_c.D")
    async with nodes(store, bank, names=names, lease="10 seconds") as apps:
        assert {row.name for row in await apps[0].fleet.nodes()} == set(names)
        held = [set(standing(app).held_slots()) for app in apps]
        assert sum(map(len, held)) == 1024 == len(set().union(*held))
        for n, app in enumerate(apps):
            assert await app.deliver(bank, Deposit(f"d{n}", "one", 1)) == Accepted(n + 1)


@pytest.mark.parametrize("name", ["x" * 64, "", ".a", "-a", "a/b", "a b", "ä", "a\n"])
async def test_what_is_no_name_is_refused_before_anything_is_opened(store: str, name: str) -> None:
    with pytest.raises(LoadRefused, match="node"):
        async with App(bank, store=store, node={"name": name}):
            pass


@pytest.mark.parametrize("slots", [1, 2, 3, 4096])
async def test_any_number_of_slots_is_spread_and_another_is_refused_by_name(store: str, slots: int) -> None:
    async with App(bank, store=store, node={"name": "a"}, config={"slots": slots}) as a:
        with pytest.raises(LoadRefused, match=rf"slots.*has {slots}, since it was made"):
            async with App(bank, store=store, node={"name": "b"}, config={"slots": slots + 1}):
                pass
        async with App(bank, store=store, node={"name": "c"}) as c:  # says nothing, and goes by what is there
            assert standing(c).slots == slots
            for n in range(8):
                assert await (a if n % 2 else c).deliver(bank, Deposit(f"d{n}", f"k{n % 4}", 1)) == Accepted(1 + n // 4)
        assert await a.deliver(bank, Deposit("last", "k0", 1)) == Accepted(3)


async def test_a_node_that_nobody_reaches_gets_everything_by_mail_and_is_named(fleet: Fleet) -> None:
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    key, room = a_key(b, "bank"), a_key(b, "Room")
    assert await a.app.deliver(bank, Deposit("d", key, 10)) == Accepted(10)
    assert await a.app.deliver(bank, Deposit("d", key, 10)) == Accepted(10)
    await a.app.cell(Room, room).spawn()
    assert await a.app.cell(Room, room).turn(Room.greet)("x") == "hello x 1"
    assert (await a.app.cell(Room, room).run('greet(name="y")\ngreet(name="z")')).value == "hello z 3"
    assert (await a.app.read(bank, key)).balance == 10
    assert await b.app.deliver(bank, Deposit("e", a_key(a, "bank"), 1)) == Accepted(1)
    shown = {row.name: row for row in await a.app.fleet.nodes()}
    assert shown["b"].reached is False
    assert shown["a"].reached is None
    assert {row.name: row.reached for row in await b.app.fleet.nodes()}["a"] is True
    async with AsyncClient() as http:
        told = {one["name"]: one for one in (await http.get(f"{a.url}/fleet")).json()["nodes"]}
    assert told["b"]["reached"] is False
    assert "is not met at http://127.0.0.1:9" in await said(a.url)


async def test_runs_that_nobody_can_be_asked_about_are_begun_and_say_whose_they_are(fleet: Fleet) -> None:
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    if not a.part.membership.standing.apart:  # one database: every node sees the rows by itself
        for n in range(4):
            assert await a.app.call(work, Ask(n=n), key=f"n{n}") == n * 2
        receipt = await a.app.start(hears, Ask(n=1))
        await (await a.app.receipt(receipt.run_id)).send(Fed(n=1))
        assert await receipt.result() == 2
        return
    every: tuple[Any, ...] = (work, hears, asks, once)
    theirs = next(part for part in every if having(fleet, part.name) == [b])
    slots = a.part.membership.standing.held_slots()  # whoever owns the slot of the run, its letter is b's
    key = next(k for k in map(str, range(10_000)) if slot_of(_run(theirs.name, k), fleets.SLOTS) in slots)
    with pytest.raises(OwnedElsewhere) as elsewhere:
        await a.app.runs.list(program=theirs.name)
    assert (elsewhere.value.name, elsewhere.value.node) == (f"space/{theirs.name}", "b")
    if theirs is not once:  # which is not begun before it was asked whether it goes on already
        with pytest.raises(OutcomeUnknown):
            await a.app.start(theirs, Ask(n=1), key=key)

    async def begun() -> bool:
        return len((await b.app.runs.list(program=theirs.name, key=key)).items) == 1

    await until(begun)


async def test_a_process_that_takes_the_place_of_another_waits_until_that_one_lets_go_of_its_files(store: str) -> None:
    fleet = Fleet(store)
    try:
        first = await fleet.start("a", *PARTS)
        await fleet.settled()
        await first.app.start(hears, Ask(n=1), key="first")  # has the file of this actuator from now on
        second = await fleet.start("a", *PARTS)
        assert (await second.app.start(hears, Ask(n=1), key="second")).status
        keys = {one.key for one in (await second.app.runs.list(program="hears")).items}
        assert keys == {"first", "second"}
        await first.stop()
    finally:
        await fleet.close()


def _run(actuator: str, key: str) -> ActorId:
    return ActorId(actuator, None, run_id(None, actuator, key))


async def test_a_file_goes_to_a_node_that_can_be_asked(store: str) -> None:
    async with App(*PARTS, store=store, node={"name": "a", "lease": "5 seconds"}) as script:
        assert standing(script).held
        if not standing(script).apart:
            return
        async with node(store, *PARTS, name="b") as served:
            await shared_out([script, served])
            spaces = {name for name in standing(served).spread if name.startswith("space/")}
            assert spaces <= set(standing(served).held)
            assert await script.call(work, Ask(n=2)) == 4
            assert standing(script).held_slots()
