"""A name is one node's at a time, under an epoch that no other ever had; a lease ends when it said, and then it is anybody's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from onefold.fleet import claims
from onefold.fleet.claims import claiming, inheriting, judged, lapsing, releasing, seizing
from onefold.fleet.ownership import (
    CLOSED,
    EPOCHS,
    FLEET,
    LEASE,
    LEAVING,
    LIVE,
    NOBODY,
    NODE,
    OWNER,
    Me,
    NodeRow,
    OwnerRow,
    closing,
    handing,
    joining,
    looked,
    renewing,
    seen,
    taking,
    telling,
)
from onefold.fleet.planning import plan
from onefold.fleet.words import Claimed, Contended, Fenced, Free, HeldBy, Owner, Seized
from onefold.kernel.tables import KERNEL
from onefold.store.contract import Body, Done, Query, Space
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms.instant import moment
from tests.postgres import fresh_database

T = TypeVar("T")
LEASE_MS = 60_000
ROOM, SLOT, OTHER = "Room/room-7", "slot/17", "slot/18"


class Fleet:
    """The fleet's rows on one store."""

    def __init__(self, space: Space) -> None:
        self.space = space

    async def do(self, body: Body[T]) -> T:
        outcome = await self.space.transact(body)
        assert isinstance(outcome, Done), outcome
        return outcome.value

    async def join(self, name: str, lease_ms: int = LEASE_MS) -> Me:
        return (await self.do(joining(name, f"http://{name}", lease_ms, 1024))).me

    async def lapse(self, me: Me) -> None:
        """The lease of this life was over a moment ago, by the store's clock."""
        assert await self.do(renewing(me, -1, LIVE)) is not None

    async def owner(self, name: str) -> OwnerRow:
        (rows,) = await self.space.look(Query(OWNER, on=("name",), keys=[(name,)]))
        return OwnerRow.of(rows[0]) if rows else OwnerRow(name, NOBODY, 0, 0)

    async def node(self, name: str) -> NodeRow:
        (rows,) = await self.space.look(Query(NODE, on=("name",), keys=[(name,)]))
        return NodeRow.of(rows[0])

    async def rows(self) -> Any:
        """All there is, but for when a lease was last asked for."""
        nodes, owners, leases = await self.space.look(*looked())
        return sorted(nodes), sorted(owners), sorted(row[:2] for row in leases)

    async def claim(self, me: Me, name: str, lease_ms: int | None = None, slot: str | None = None) -> Claimed | HeldBy:
        return await self.do(claiming(name, slot, me, lease_ms, 1))

    async def seize(self, me: Me, name: str, epoch: int, slot: str | None = None) -> Seized | Free | Contended:
        return await self.do(seizing(name, slot, me, None, epoch, 1))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Fleet]:
    world: Any
    if request.param == "postgres":
        from onefold.store.postgres import PostgresWorld

        world = PostgresWorld(fresh_database())
    else:
        world = MemoryWorld(clock=lambda: 5) if request.param == "memory" else SqliteWorld(tmp_path, clock=lambda: 5)
    yield Fleet(await world.open("main", (KERNEL, FLEET)))
    await world.close()


# --- KO15 -------------------------------------------------------------------------------------------


async def test_ko15_a_name_of_nobody_is_claimed_and_of_somebody_is_held_by_him(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    assert await fleet.claim(a, SLOT) == Claimed(1)
    assert await fleet.claim(a, SLOT) == Claimed(1)
    until = (await fleet.node("a")).until
    assert await fleet.claim(b, SLOT) == HeldBy("a", moment(until))
    assert (await fleet.owner(SLOT)).belongs(a)


async def test_ko15_a_seizure_takes_the_next_epoch_whoever_had_the_name(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    assert await fleet.seize(b, SLOT, 0) == Free()
    await fleet.claim(a, SLOT)
    assert await fleet.seize(b, SLOT, 1) == Seized(2)
    assert await fleet.seize(a, SLOT, 1) == Contended()
    assert (await fleet.owner(SLOT)).belongs(b)
    assert await fleet.seize(b, SLOT, 2) == Seized(3)  # also its own: what it decided before is over


async def test_ko15_a_guard_tells_the_owner_from_who_is_fenced_and_from_nobody(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    assert judged(await fleet.owner(SLOT), a, 1) == Free()
    assert judged(None, a, 1) == Free()
    await fleet.claim(a, SLOT)
    assert judged(await fleet.owner(SLOT), a, 1) == Owner()
    await fleet.seize(b, SLOT, 1)
    assert judged(await fleet.owner(SLOT), a, 1) == Fenced(2)
    assert judged(await fleet.owner(SLOT), b, 1) == Fenced(2)
    assert judged(await fleet.owner(SLOT), Me("b", b.incarnation + 1), 2) == Fenced(2)
    assert await fleet.do(releasing(SLOT, None, b, 2, 1)) == Free()
    assert judged(await fleet.owner(SLOT), b, 2) == Free()


async def test_what_is_refused_writes_nothing(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    await fleet.claim(a, ROOM, LEASE_MS, SLOT)
    before = await fleet.rows()
    await fleet.claim(b, ROOM, 1, SLOT)
    await fleet.seize(b, ROOM, 7, SLOT)
    await fleet.do(claims.renewing(ROOM, b, 1, 1))
    await fleet.do(claims.renewing(ROOM, a, 2, 1))
    await fleet.do(releasing(ROOM, SLOT, b, 1, 1))
    await fleet.do(lapsing({ROOM: 1}, 1))
    await fleet.do(taking(b, {ROOM: 1, SLOT: 7}, 1))
    await fleet.do(handing(b, {ROOM: (1, a)}, 1))
    await fleet.do(closing(b, LEASE_MS, ["a"]))
    after = await fleet.rows()
    assert after[1:] == before[1:]
    assert [row[3] for row in after[0]] == [LIVE, LIVE]


async def test_an_epoch_is_given_once_however_a_name_goes_from_hand_to_hand(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    given = [(await fleet.claim(a, SLOT)).epoch]  # type: ignore[union-attr]
    given.append((await fleet.seize(b, SLOT, given[-1])).epoch)  # type: ignore[union-attr]
    assert await fleet.do(releasing(SLOT, None, b, given[-1], 1)) == Free()
    given.append((await fleet.claim(a, SLOT)).epoch)  # type: ignore[union-attr]
    (handed,) = await fleet.do(handing(a, {SLOT: (given[-1], b)}, 1))
    given.append(handed.epoch)
    await fleet.lapse(b)
    assert await fleet.do(closing(a, LEASE_MS, ["b"])) == ["b"]
    given += (await fleet.do(taking(a, {SLOT: given[-1]}, 1))).values()
    assert given == sorted(set(given))
    assert len(given) == 5


async def test_in_a_restored_store_epochs_go_on_above_all_that_were_given(fleet: Fleet) -> None:
    a = await fleet.join("a")
    assert await fleet.do(claiming(SLOT, None, a, None, 3)) == Claimed(2 * EPOCHS + 1)
    assert await fleet.do(taking(a, {OTHER: 0}, 2)) == {OTHER: EPOCHS + 1}


# --- KO16 -------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture(params=["memory", "sqlite"])
async def timed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Fleet, Clock]]:
    clock = Clock()
    world: Any = MemoryWorld(clock=clock) if request.param == "memory" else SqliteWorld(tmp_path, clock=clock)
    yield Fleet(await world.open("main", (KERNEL, FLEET))), clock
    await world.close()


async def test_ko16_a_lease_ends_on_schedule_and_not_before(timed: tuple[Fleet, Clock]) -> None:
    fleet, clock = timed
    a, b = await fleet.join("a"), await fleet.join("b")
    until = clock.now + 5_000
    assert await fleet.claim(a, SLOT, 5_000) == Claimed(1)
    clock.now = until - 1
    assert await fleet.claim(b, SLOT) == HeldBy("a", moment(until))
    clock.now = until
    assert await fleet.claim(b, SLOT) == Claimed(2)


async def test_ko16_who_renews_has_it_for_longer(timed: tuple[Fleet, Clock]) -> None:
    fleet, clock = timed
    a, b = await fleet.join("a"), await fleet.join("b")
    await fleet.claim(a, SLOT, 5_000)
    clock.now += 4_000
    until = clock.now + 5_000
    assert await fleet.do(claims.renewing(SLOT, a, 1, 5_000)) == Claimed(1)
    clock.now = until - 1
    assert await fleet.claim(b, SLOT) == HeldBy("a", moment(until))
    clock.now = until
    assert await fleet.claim(b, SLOT) == Claimed(2)
    assert await fleet.do(claims.renewing(SLOT, a, 1, 5_000)) == Fenced(2)


async def test_ko16_a_lease_is_no_longer_than_the_life_of_its_node(timed: tuple[Fleet, Clock]) -> None:
    fleet, clock = timed
    a = await fleet.join("a", 2_000)
    b = await fleet.join("b")
    await fleet.claim(a, SLOT, 50_000)
    assert await fleet.claim(b, SLOT) == HeldBy("a", moment(clock.now + 2_000))
    clock.now += 2_000
    assert await fleet.claim(b, SLOT) == Claimed(2)


async def test_a_node_lives_from_renewal_to_renewal_and_is_closed_once(timed: tuple[Fleet, Clock]) -> None:
    fleet, clock = timed
    a, b = await fleet.join("a", 2_000), await fleet.join("b")
    clock.now += 2_000
    assert await fleet.do(closing(b, LEASE_MS, ["a"])) == []  # at its end it may still renew
    assert await fleet.do(renewing(a, 2_000, LIVE)) == clock.now
    clock.now += 2_001
    assert await fleet.do(closing(b, LEASE_MS, ["a"])) == ["a"]
    assert await fleet.do(closing(b, LEASE_MS, ["a"])) == []
    assert await fleet.do(renewing(a, 2_000, LIVE)) is None
    assert await fleet.do(closing(a, LEASE_MS, ["b"])) == []  # whoever is closed closes nobody


async def test_ko16_released_it_is_nobodys_and_a_claim_says_who_has_it(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    await fleet.claim(a, SLOT, LEASE_MS)
    assert await fleet.do(releasing(SLOT, None, b, 1, 1)) == Fenced(1)
    assert await fleet.do(releasing(SLOT, None, a, 1, 1)) == Free()
    assert await fleet.do(releasing(SLOT, None, a, 1, 1)) == Free()
    assert await fleet.do(claims.renewing(SLOT, a, 1, LEASE_MS)) == Free()
    assert await fleet.claim(b, SLOT) == Claimed(3)  # the release took one: whoever had it is refused


# --- one actor apart from its slot -------------------------------------------------------------------


async def test_the_owner_of_a_slot_is_fenced_once_by_a_claim_of_one_of_its_actors(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    await fleet.claim(a, SLOT)
    assert await fleet.claim(b, ROOM, None, SLOT) == Claimed(1)
    slot = await fleet.owner(SLOT)
    assert slot.belongs(a)
    assert slot.epoch == 2
    assert await fleet.claim(b, ROOM, None, SLOT) == Claimed(1)  # held already: nobody is fenced by that
    assert (await fleet.owner(SLOT)).epoch == 2


async def test_an_actors_name_falls_back_when_its_lease_or_its_node_is_over(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    for lease_ms in (LEASE_MS, None):
        epoch = (await fleet.claim(b, ROOM, lease_ms, SLOT)).epoch  # type: ignore[union-attr]
        assert await fleet.do(lapsing({ROOM: epoch}, 1)) == []
        if lease_ms is None:
            await fleet.lapse(b)
            assert await fleet.do(lapsing({ROOM: epoch}, 1)) == []  # the clock alone ends nobody
            assert await fleet.do(closing(a, LEASE_MS, ["b"])) == ["b"]
        else:
            await fleet.do(claims.renewing(ROOM, b, epoch, -1))
        assert await fleet.do(lapsing({ROOM: epoch - 1}, 1)) == []  # another one than was seen
        assert await fleet.do(lapsing({ROOM: epoch}, 1)) == [ROOM]
        row = await fleet.owner(ROOM)
        assert row.node == NOBODY
        assert row.epoch == epoch + 1
        assert await fleet.do(lapsing({ROOM: row.epoch}, 1)) == []
    assert await fleet.claim(a, ROOM, None, SLOT) == Claimed(5)


# --- nodes ------------------------------------------------------------------------------------------


async def test_a_node_that_joins_again_begins_with_nothing(fleet: Fleet) -> None:
    a = await fleet.join("a")
    await fleet.claim(a, SLOT)
    again = await fleet.join("a")
    assert again == Me("a", a.incarnation + 1)
    assert await fleet.do(renewing(a, LEASE_MS, LIVE)) is None
    assert await fleet.do(taking(a, {OTHER: 0}, 1)) == {}
    assert await fleet.do(taking(again, {SLOT: 1}, 1)) == {SLOT: 2}


async def test_a_node_that_leaves_takes_nothing_more_and_hands_over_what_it_has(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    await fleet.claim(a, SLOT)
    assert await fleet.do(telling(a, LIVE, LEAVING))
    assert not await fleet.do(telling(a, LIVE, LEAVING))
    assert await fleet.claim(b, SLOT) == HeldBy("a", moment((await fleet.node("a")).until))
    assert await fleet.do(handing(a, {SLOT: (7, b)}, 1)) == []
    assert await fleet.do(handing(a, {SLOT: (1, b)}, 1)) == [OwnerRow(SLOT, "b", b.incarnation, 2)]
    assert await fleet.do(telling(a, LEAVING, CLOSED))
    assert await fleet.claim(b, OTHER) == Claimed(1)


async def test_only_names_that_nobody_alive_owns_are_taken(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    await fleet.claim(a, SLOT)
    assert await fleet.do(taking(b, {SLOT: 1, OTHER: 0}, 1)) == {OTHER: 1}
    await fleet.lapse(a)
    assert await fleet.do(taking(b, {SLOT: 1}, 1)) == {}  # its row goes first: it may live on by its own clock
    assert await fleet.do(closing(b, LEASE_MS, ["a"])) == ["a"]
    assert await fleet.do(taking(b, {SLOT: 0}, 1)) == {}  # seen too long ago
    assert await fleet.do(taking(b, {SLOT: 1}, 1)) == {SLOT: 2}


async def test_what_was_claimed_without_an_end_is_kept_until_its_node_is_over(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    names = (SLOT, OTHER)
    await fleet.claim(a, SLOT)
    await fleet.claim(b, OTHER)
    view = seen(await fleet.space.look(*looked()), (await fleet.node("a")).until - LEASE_MS)
    for me in (a, b):
        assert not plan(me, view, names).hand
    await fleet.lapse(b)
    assert await fleet.do(closing(a, LEASE_MS, ["b"])) == ["b"]
    taken = await fleet.do(taking(a, {OTHER: 1}, 1))
    await fleet.do(inheriting(a, {OTHER: 7}))
    assert (await fleet.rows())[2][1][1] > 0
    await fleet.do(inheriting(a, taken))
    assert [row for row in (await fleet.rows())[2] if row[0] == OTHER] == [(OTHER, 0)]


async def test_a_node_that_leaves_hands_over_also_what_was_claimed(fleet: Fleet) -> None:
    a, b = await fleet.join("a"), await fleet.join("b")
    await fleet.claim(a, SLOT)
    assert await fleet.do(telling(a, LIVE, LEAVING))
    view = seen(await fleet.space.look(*looked()), (await fleet.node("a")).until - LEASE_MS)
    assert plan(a, view, (SLOT,)).hand == {SLOT: (1, b)}


async def test_what_was_seen_is_what_the_rows_say(fleet: Fleet) -> None:
    a = await fleet.join("a")
    await fleet.claim(a, ROOM, LEASE_MS, SLOT)
    view = seen(await fleet.space.look(*looked()), 0)
    assert view.owners[ROOM] == OwnerRow(ROOM, "a", 1, 1)
    assert view.owners[SLOT].node == NOBODY
    (leases,) = await fleet.space.look(Query(LEASE, on=("name",), keys=[(ROOM,)]))
    assert view.leases[ROOM] == leases[0][1]
    assert view.alive("a", 1)
    assert not view.alive("a", 2)
