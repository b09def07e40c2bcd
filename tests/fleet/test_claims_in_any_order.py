"""Names taken by hand, in any order and by anybody: one holder at a time, an epoch for each, and the slot always knows."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from onefold.fleet.claims import claiming, judged, lapsing, releasing, renewing, seizing
from onefold.fleet.ownership import (
    CLOSED,
    FLEET,
    LEASE,
    LIVE,
    NOBODY,
    OWNER,
    Me,
    OwnerRow,
    Seen,
    joining,
    looked,
    seen,
    slot_name,
    telling,
)
from onefold.fleet.ownership import renewing as living
from onefold.fleet.planning import plan
from onefold.fleet.words import Claimed, Contended, Fenced, Free, HeldBy, Owner, Seized
from onefold.kernel.tables import KERNEL
from onefold.store.contract import Body, Done, Query
from onefold.store.memory import MemoryWorld

NODE_MS = 10_000
SLOT = slot_name(0)
ROOMS = ("Room/a", "Room/b")
nodes = st.sampled_from(["ann", "bob"])
rooms = st.sampled_from(ROOMS)
leases = st.sampled_from([None, 1_000, 3_000])


class Names(RuleBasedStateMachine):
    """Two nodes and two rooms of one slot. What each node was last told of a name is what it goes on with."""

    looks = Bundle("looks")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.loop = asyncio.new_event_loop()
        world = MemoryWorld(clock=lambda: self.now)
        self.space = self.loop.run_until_complete(world.open("main", (KERNEL, FLEET)))
        self.lives: dict[str, Me] = {}
        self.told: dict[tuple[Me, str], int] = {}
        self.given: set[tuple[str, int]] = set()
        self.before: dict[str, OwnerRow] = {}

    def teardown(self) -> None:
        self.loop.close()

    def transact(self, body: Body[Any]) -> Any:
        self.before = self.rows()
        outcome = self.loop.run_until_complete(self.space.transact(body))
        assert isinstance(outcome, Done), outcome
        return outcome.value

    def rows(self) -> dict[str, OwnerRow]:
        (found,) = self.loop.run_until_complete(self.space.look(Query(OWNER)))
        return {row[0]: OwnerRow.of(row) for row in found}

    def held(self, name: str) -> OwnerRow | None:
        """The row of a name whose owner lives and whose own lease is not over."""
        view = seen(self.loop.run_until_complete(self.space.look(*looked())), self.now)
        row = view.owners.get(name)
        if row is None or row.node == NOBODY or not view.alive(row.node, row.incarnation):
            return None
        return row if view.leases.get(name, 0) == 0 or view.leases[name] > self.now else None

    def gained(self, name: str, me: Me, epoch: int, *, again: bool = False) -> None:
        """A new epoch is given once, and the slot's owner is refused from now on."""
        if not again:
            assert (name, epoch) not in self.given
            before, after = self.before.get(SLOT), self.rows()[SLOT]
            assert after.epoch > (0 if before is None else before.epoch)
            assert (after.node, after.incarnation) == (
                (NOBODY, 0) if before is None else (before.node, before.incarnation)
            )
        self.given.add((name, epoch))
        self.told[me, name] = epoch

    # what happens

    def kept(self, room: str) -> bool:
        """Whether it stays somebody's until that one is closed: the clock alone ends no node."""
        row = self.rows().get(room)
        view = seen(self.loop.run_until_complete(self.space.look(*looked())), self.now)
        node = None if row is None else view.nodes.get(row.node)
        if row is None or node is None or node.incarnation != row.incarnation or node.state == CLOSED:
            return False
        return not 0 < view.leases.get(room, 0) <= self.now

    @initialize()
    def both_join(self) -> None:
        for name in ("ann", "bob"):
            self.join(name)

    @rule(name=nodes)
    def join(self, name: str) -> None:
        self.lives[name] = self.transact(joining(name, None, NODE_MS, 1)).me

    @rule(name=nodes)
    def live_on(self, name: str) -> None:
        self.transact(living(self.lives[name], NODE_MS, LIVE))

    @rule(name=nodes)
    def close(self, name: str) -> None:
        self.transact(telling(self.lives[name], LIVE, CLOSED))

    @rule(ms=st.sampled_from([1, 999, 1_000, 3_000]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(name=nodes, room=rooms, lease=leases)
    def claim(self, name: str, room: str, lease: int | None) -> None:
        me, held = self.lives[name], self.held(room)
        answer = self.transact(claiming(room, SLOT, me, lease, 1))
        if held is None:
            assert isinstance(answer, Claimed)
            self.gained(room, me, answer.epoch)
        elif held.belongs(me):
            assert answer == Claimed(held.epoch)
            self.gained(room, me, answer.epoch, again=True)
        else:
            assert isinstance(answer, HeldBy)
            assert answer.node == held.node
            assert self.rows() == self.before

    @rule(name=nodes, room=rooms, lease=leases, late=st.booleans())
    def seize(self, name: str, room: str, lease: int | None, late: bool) -> None:
        me, row = self.lives[name], self.rows().get(room)
        epoch = (0 if row is None else row.epoch) - late
        answer = self.transact(seizing(room, SLOT, me, lease, epoch, 1))
        if row is None or row.node == NOBODY:
            assert answer == Free()
        elif late:
            assert answer == Contended()
        else:
            assert isinstance(answer, Seized)
            self.gained(room, me, answer.epoch)

    @rule(name=nodes, room=rooms, lease=leases)
    def renew(self, name: str, room: str, lease: int | None) -> None:
        me = self.lives[name]
        row, epoch = self.rows().get(room), self.told.get((me, room), 0)
        answer = self.transact(renewing(room, me, epoch, lease))
        assert isinstance(answer, Claimed) == isinstance(judged(row, me, epoch), Owner)
        assert {each: row for each, row in self.rows().items() if row.epoch} == {
            each: row for each, row in self.before.items() if row.epoch
        }

    @rule(name=nodes, room=rooms)
    def release(self, name: str, room: str) -> None:
        me = self.lives[name]
        epoch = self.told.get((me, room), 0)
        owned = isinstance(judged(self.rows().get(room), me, epoch), Owner)
        answer = self.transact(releasing(room, SLOT, me, epoch, 1))
        row = self.rows().get(room)
        assert isinstance(answer, Free) == (row is None or row.node == NOBODY)
        assert isinstance(answer, Fenced) or owned or row is None or row == self.before.get(room, row)

    @rule(target=looks, name=nodes)
    def look(self, name: str) -> tuple[Me, Seen]:
        return self.lives[name], seen(self.loop.run_until_complete(self.space.look(*looked())), self.now)

    @rule(looked_at=looks)
    def let_fall(self, looked_at: tuple[Me, Seen]) -> None:
        """By a look that may be old: names that are somebody's by now stay, also under an owner that was seen dead."""
        me, view = looked_at
        held = {room for room in ROOMS if self.held(room) is not None}
        assert not held & set(self.transact(lapsing(dict(plan(me, view, (SLOT,)).lapsed), 1)))

    @rule(name=nodes)
    def look_and_let_fall(self, name: str) -> None:
        kept = {room for room in ROOMS if self.kept(room)}
        self.let_fall(self.look(name))
        assert {room for room, row in self.rows().items() if room in ROOMS and row.node != NOBODY} == kept

    # what holds

    @invariant()
    def an_epoch_only_grows_and_no_owner_comes_without_a_new_one(self) -> None:
        for name, row in self.rows().items():
            was = self.before.get(name)
            assert was is None or row == was or row.epoch > was.epoch
        self.before = self.rows()

    @invariant()
    def a_lease_has_a_name_that_has_an_owners_row(self) -> None:
        (found,) = self.loop.run_until_complete(self.space.look(Query(LEASE)))
        assert {row[0] for row in found} <= set(self.rows())

    @invariant()
    def a_name_is_one_holders(self) -> None:
        for room in ROOMS:
            owners = [me for (me, name), epoch in self.told.items() if name == room and self._guards(me, room, epoch)]
            assert len(owners) <= 1

    def _guards(self, me: Me, room: str, epoch: int) -> bool:
        return isinstance(judged(self.rows().get(room), me, epoch), Owner)


def test_a_name_that_was_renewed_since_somebody_looked_does_not_fall_back() -> None:
    names = Names()
    names.both_join()
    names.claim("ann", "Room/a", 1_000)
    names.time_passes(1_000)
    old = names.look("bob")
    names.renew("ann", "Room/a", 1_000)
    names.let_fall(old)
    assert names.rows()["Room/a"].belongs(names.lives["ann"])
    names.teardown()


TestNames = Names.TestCase
TestNames.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
