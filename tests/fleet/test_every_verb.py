"""Whichever node is asked, a verb does what it does on the node that owns the actor, or says so with nothing written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from onefold import errors
from onefold.terms.errors import BadArguments, Contended, DecideFailed, KeyConflict, NotFound, OwnedElsewhere
from onefold.terms.turns import TurnFailed
from tests.fleet import shared
from tests.fleet.nodes import SECRET, Fleet, Node, a_key, fleet_of, until
from tests.fleet.shared import PARTS, Ask, Fed, Room, Sale, asks, hears, once, provider, till, work
from tests.guarantees.shop import Accepted, Break, Deposit, PayOut, bank

BOTH = ("a", "b")


@pytest.fixture
async def fleet(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    async with fleet_of(*PARTS) as fleet:
        yield fleet


def pair(fleet: Fleet) -> tuple[Node, Node]:
    return fleet.nodes["a"], fleet.nodes["b"]


async def test_a_cell_is_one_cell_from_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    for owner, other in ((a, b), (b, a)):
        key = a_key(owner, "Room")
        here, there = owner.app.cell(Room, key), other.app.cell(Room, key)
        with pytest.raises(NotFound):
            await there.turn(Room.greet)("nobody")
        assert type(await there.spawn()).__name__ == "Spawned"
        assert type(await here.spawn()).__name__ == "Resident"
        assert await there.turn(Room.greet)("x") == "hello x 1"
        assert await here.turn(Room.greet)("y") == "hello y 2"
        assert (await there.read()).visits == (await here.read()).visits == 2
        assert await there.get("names") == ["x", "y"]
        turn = await there.run('greet(name="p")\nz = greet(name="q")\nz')
        assert (turn.value, turn.ran) == ("hello q 4", 3)
        async with there.capture() as draft:
            draft.visits += 10
        assert (await here.read()).visits == 14
        assert type(await there.evict()).__name__ == "Evicted"
        assert type(await here.evict()).__name__ == "Absent"
        assert type(await there.evict()).__name__ == "Absent"
        assert key in [row["key"] for row in (await other.host.cells.list("Room", caller=other.app.caller)).items]
        await there.retire()
        with pytest.raises(NotFound):
            await here.read()


async def test_a_turn_that_fails_fails_alike_from_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "Room")
    await a.app.cell(Room, key).spawn()
    for source in ("greet(", "nonesuch(n=1)", "fail()", 'greet(name="x")\nfail()', "greet(name=3)", "1 +"):
        told = []
        for node in (a, b):
            with pytest.raises((TurnFailed, BadArguments)) as caught:
                await node.app.cell(Room, key).run(source)
            told.append((type(caught.value), str(caught.value), caught.value.fields))
        assert told[0] == told[1]
    verdicts = []
    for node in (a, b):
        with pytest.raises(TurnFailed) as failed:
            await node.app.cell(Room, key).turn(Room.fail)()
        verdicts.append((type(failed.value), str(failed.value)))
    assert verdicts[0] == verdicts[1]
    assert (await b.app.cell(Room, key).read()).visits == 0


async def test_a_capture_on_a_borrow_of_another_node_is_contended_by_a_turn_between(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "Room")
    await b.app.cell(Room, key).spawn()
    capture = b.app.cell(Room, key).capture()
    draft = await capture.__aenter__()
    draft.visits += 1
    await a.app.cell(Room, key).turn(Room.greet)("x")
    with pytest.raises(Contended):
        await capture.__aexit__(None, None, None)
    assert (await a.app.cell(Room, key).read()).visits == 1


async def test_custody_is_the_owners(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "Room")
    with pytest.raises(OwnedElsewhere) as caught:
        async with b.app.open(Room, key):
            pass
    assert caught.value.node == "a"
    with pytest.raises(NotFound):
        await a.app.cell(Room, key).read()
    async with a.app.open(Room, key) as room:
        turn = asyncio.ensure_future(b.app.cell(Room, key).turn(Room.greet)("waits"))
        assert await room.turn(Room.greet)("first") == "hello first 1"
    assert await turn == "hello waits 2"


async def test_an_event_of_a_module_counts_once_through_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "bank")
    first = await b.app.deliver(bank, Deposit("d1", key, 10))
    assert first == Accepted(10)
    assert await a.app.deliver(bank, Deposit("d1", key, 10)) == first
    assert await b.app.deliver(bank, Deposit("d1", key, 10)) == first
    for node in (a, b):
        with pytest.raises(KeyConflict) as caught:
            await node.app.deliver(bank, Deposit("d1", key, 11))
        assert "d1" in str(caught.value)
    assert (await b.app.read(bank, key)).balance == 10
    assert [row.seq for row in await b.app.history(bank, key)] == [1]
    assert await b.app.history(bank, key) == await a.app.history(bank, key)
    assert key in [row["key"] for row in await b.app.actors(bank)]
    raw = b'{"type":"Deposit","id":"d2","account":"%b","amount":5}' % key.encode()
    told = [await node.host.deliver_raw("bank", raw, caller=node.app.caller) for node in (b, a, b)]
    assert [one.replayed for one in told] == [False, True, True]
    assert len({one.reply for one in told}) == 1


async def test_a_module_that_raises_is_told_alike_from_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "bank")
    told = []
    for node in (a, b):
        with pytest.raises(DecideFailed) as caught:
            await node.app.deliver(bank, Break("x", key))
        told.append((str(caught.value), caught.value.fields))
    assert told[0] == told[1]


async def test_what_is_owed_leaves_once_and_comes_back_and_an_alarm_rings(fleet: Fleet) -> None:
    a, b = pair(fleet)
    provider.paid.clear()
    provider.failing = []
    key = a_key(a, "bank")
    await b.app.deliver(bank, Deposit("d", key, 10))
    await b.app.deliver(bank, PayOut(f"p {key}", key, 4))
    await until(lambda: _held(b, key))
    assert (await b.app.read(bank, key)).balance == 6
    assert len(provider.paid) == 1
    assert await b.app.alarm(bank, key) is None
    provider.failing = [OSError("away")] * 100
    await b.app.deliver(bank, PayOut(f"q {key}", key, 1, minutes=60))
    assert await b.app.alarm(bank, key) is not None
    assert await b.app.alarm(bank, key) == await a.app.alarm(bank, key)
    provider.failing = []
    await b.app.deliver(bank, PayOut(f"r {key}", key, 1, key="rings", minutes=0))
    await until(lambda: _done(a, key))


async def _held(node: Node, key: str) -> bool:
    return not (await node.app.read(bank, key)).held


async def _done(node: Node, key: str) -> bool:
    return "rings" not in ((await node.app.read(bank, key)).held or {})


async def test_actors_of_different_nodes_deliver_to_each_other(fleet: Fleet) -> None:
    a, b = pair(fleet)
    for one, other in ((a, b), (b, a)):
        till_key, account = a_key(one, "till"), a_key(other, "bank", of="account")
        for n in range(5):
            assert await other.app.deliver(till, Sale(f"s{n}", till_key, account, 10)) == 10 * (n + 1)

        async def banked(node: Node = other, key: str = till_key) -> bool:
            return len((await node.app.read(till, key)).banked) == 5

        await until(banked)
        assert (await one.app.read(bank, account)).balance == 50
        assert max((await one.app.read(till, till_key)).banked) == 50


async def test_runs_are_started_awaited_told_and_ended_from_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    assert await asyncio.gather(*(node.app.call(work, Ask(n=n)) for n in range(6) for node in (a, b))) == [
        n * 2 for n in range(6) for _ in BOTH
    ]
    for n in range(6):
        started = await a.app.start(work, Ask(n=n, after="50ms"), key=f"k{n}")
        again = await b.app.start(work, Ask(n=n, after="50ms"), key=f"k{n}")
        assert again.run_id == started.run_id
        with pytest.raises(KeyConflict):
            await b.app.start(work, Ask(n=n + 1), key=f"k{n}")
        assert await (await b.app.receipt(started.run_id)).result() == n * 2
        assert await started.result() == n * 2
        assert [row.step for row in await a.app.runs.journal(started.run_id)] == [
            row.step for row in await b.app.runs.journal(started.run_id)
        ]
    for n in range(4):
        waits = await a.app.start(hears, Ask(n=n))
        seen = await b.app.receipt(waits.run_id)
        await seen.send(Fed(n=100))
        assert await waits.result() == n + 100
        other = await a.app.start(hears, Ask(n=n))
        assert (await (await b.app.receipt(other.run_id)).cancel("enough")).status == "cancelled"
        with pytest.raises(errors.RunCancelled):
            await other.result()
    assert {r.run_id for r in (await a.app.runs.list()).items} == {r.run_id for r in (await b.app.runs.list()).items}


async def test_agreeing_starts_meet_from_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    started = await asyncio.gather(*(node.app.start(once, Ask(n=7)) for node in (a, b) for _ in range(4)))
    assert len({receipt.run_id for receipt in started}) == 1
    await started[0].send(Fed(n=1))
    assert await started[-1].result() == 7


async def test_approvals_are_listed_and_decided_from_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    for n, (way, node) in enumerate((way, node) for way in ("approve", "reject") for node in (a, b, a, b)):
        receipt = await a.app.start(asks, Ask(n=n))

        async def open_for(run: str = receipt.run_id) -> bool:
            return all([run in [one.run_id for one in await each.app.approvals.list()] for each in (a, b)])

        await until(open_for)
        if way == "approve":
            assert (await node.app.approvals.approve(receipt.run_id, "go", "ann")).outcome == "decided"
        else:
            assert (await node.app.approvals.reject(receipt.run_id, "go", "ann", "no")).outcome == "decided"
        again = await (b if node is a else a).app.approvals.approve(receipt.run_id, "go", "bob")
        assert (again.outcome, again.by) == ("already_decided", "ann")
        assert await receipt.result() == {"approve": "Approved", "reject": "Rejected"}[way]


@pytest.fixture
async def unsafe(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    """Where a payment that fails waits for a person."""
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    async with fleet_of(bank, provider.neither()) as fleet:
        yield fleet


async def test_what_is_parked_is_seen_retried_and_dropped_from_both(unsafe: Fleet) -> None:
    a, b = pair(unsafe)
    provider.paid.clear()
    for owner, other in ((a, b), (b, a)):
        key = a_key(owner, "bank", of="parks")
        await other.app.deliver(bank, Deposit("d", key, 10))
        provider.failing = [TimeoutError("no answer") for _ in range(2)]
        for name in ("p", "q"):
            await other.app.deliver(bank, PayOut(name, key, 4))

        async def parked(node: Node = other) -> list[str]:
            items = await node.app.parked.list()
            return [one.id for one in items] if len(items) == 2 else []

        first, second = await until(parked)
        assert [one.id for one in await owner.app.parked.list()] == [first, second]
        assert (await other.app.parked.show(first)).key == key
        await other.app.parked.retry(first)

        async def holds(amount: int, node: Node = owner, key: str = key) -> bool:
            return sum(((await node.app.read(bank, key)).held or {}).values()) == amount

        await until(partial(holds, 4))  # else the retry is answered before the drop or after it
        await other.app.parked.drop(second, "enough")
        await until(partial(holds, 0))
        assert (await other.app.read(bank, key)).balance == 6
        assert (await other.app.read(bank, key)).last == "enough"
        for node in (a, b):
            for verb in (node.app.parked.retry(first), node.app.parked.drop(second, "again")):
                with pytest.raises(NotFound):
                    await verb


async def test_a_run_that_failed_goes_on_from_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    for n in range(20, 24):
        for node, other in ((a, b), (b, a)):
            shared.failing.add(n)
            receipt = await node.app.start(work, Ask(n=n), key=f"{node.name}{n}")
            with pytest.raises(errors.RunFailed):
                await receipt.result()
            shared.failing.discard(n)
            await other.app.runs.retry(receipt.run_id)
            assert await receipt.result() == n * 2
            again = await other.app.runs.fork(receipt.run_id, "counted", key=f"f{node.name}{n}")
            assert await (await node.app.receipt(again.run_id)).result() == n * 2


async def test_an_actor_begins_with_anothers_facts_wherever_both_are(fleet: Fleet) -> None:
    a, b = pair(fleet)
    for owner, other in ((a, b), (b, a)):
        key, target = a_key(other, "bank", of="from"), a_key(owner, "bank", of="to")
        await other.app.deliver(bank, Deposit("d1", key, 10))
        await other.app.deliver(bank, Deposit("d2", key, 5))
        digest = await other.app.fork(bank, key, target, id="f", upto=1)
        assert await owner.app.fork(bank, key, target, id="f", upto=1) == digest
        assert (await other.app.read(bank, target)).balance == 10
        with pytest.raises(KeyConflict):
            await other.app.fork(bank, key, target, id="f")
        for node in (a, b):
            with pytest.raises(NotFound):
                await node.app.fork(bank, "nowhere", a_key(owner, "bank", of="new"), id="f")
            assert (await node.app.prune(bank, target)).facts == 0


async def test_letters_are_turns_wherever_they_were_posted(fleet: Fleet) -> None:
    a, b = pair(fleet)
    for owner, other in ((a, b), (b, a)):
        key = a_key(owner, "Room", of="post")
        await owner.app.cell(Room, key).spawn()
        posted = await other.app.cell(Room, key).post('greet(name="m")', key="k")
        assert (posted.id, posted.owner) == ("k", owner.name)
        assert (await owner.app.cell(Room, key).post('greet(name="m")', key="k")).id == "k"
        with pytest.raises(KeyConflict):
            await other.app.cell(Room, key).post('greet(name="n")', key="k")
        for n in range(20):
            await (a if n % 2 else b).app.cell(Room, key).post(f'greet(name="{n}")', key=f"n{n}")

        async def all_came(node: Node = other, key: str = key) -> bool:
            return (await node.app.cell(Room, key).read()).visits == 21

        await until(all_came)


async def test_letters_of_one_sender_keep_their_order_through_whichever_node_they_are_posted(fleet: Fleet) -> None:
    a, b = pair(fleet)
    for owner in (a, b):
        key = a_key(owner, "Room", of="order")
        await owner.app.cell(Room, key).spawn()
        for n in range(40):
            await (b if n % 3 else a).app.cell(Room, key).post(f'greet(name="{n}")', key=f"n{n}")

        async def all_came(node: Node = owner, key: str = key) -> bool:
            return (await node.app.cell(Room, key).read()).visits == 40

        await until(all_came)
        assert (await owner.app.cell(Room, key).read()).names == [str(n) for n in range(40)]


async def test_an_owner_is_told_of_many_letters_by_few_words(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair(fleet)
    key, nudges = a_key(a, "Room", of="many"), 0
    await a.app.cell(Room, key).spawn()
    nudge, goes_on = b.part.peers.nudge, asyncio.Event()

    async def counted(url: str) -> None:
        nonlocal nudges
        nudges += 1
        await goes_on.wait()  # the owner is told of the first, and of all that came meanwhile
        await nudge(url)

    monkeypatch.setattr(b.part.peers, "nudge", counted)
    for first in range(0, 200, 50):
        told = range(first, first + 50)
        goes_on.clear()
        await asyncio.gather(*(b.app.cell(Room, key).post(f'greet(name="{n}")', key=f"n{n}") for n in told))
        goes_on.set()

    async def all_came() -> bool:
        return (await b.app.cell(Room, key).read()).visits == 200

    await until(all_came)
    assert 0 < nudges <= 8


async def test_one_letter_that_is_posted_through_both_at_once_is_one(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = a_key(a, "Room", of="twice")
    await a.app.cell(Room, key).spawn()
    for n in range(20):
        posts = [node.app.cell(Room, key).post(f'greet(name="{n}")', key=f"t{n}") for node in (a, b)]
        assert {posted.id for posted in await asyncio.gather(*posts)} == {f"t{n}"}

    async def all_came() -> bool:
        return (await b.app.cell(Room, key).read()).visits == 20

    await until(all_came)


async def test_blobs_are_there_from_both(fleet: Fleet) -> None:
    a, b = pair(fleet)
    digest = await a.app.blobs.put(b"x" * 100_000)
    assert await b.app.blobs.get(digest) == b"x" * 100_000
    with pytest.raises(NotFound):
        await b.app.acting_as("studio").blobs.get(digest)


async def test_principals_never_meet_through_another_node(fleet: Fleet) -> None:
    a, b = pair(fleet)
    key = next(key for n in range(10_000) if a.owns("bank", key := f"own{n}", "studio") and a.owns("bank", key))
    await b.app.acting_as("studio").deliver(bank, Deposit("d", key, 10))
    assert (await b.app.read(bank, key)).balance == 0
    assert await b.app.deliver(bank, Deposit("d", key, 3)) == Accepted(3)
    assert (await a.app.acting_as("studio").read(bank, key)).balance == 10
