"""Every name is wanted by one node, little moves when nodes come and go, and no plan, however old, gives one epoch twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from onefold.fleet.ownership import (
    CLOSED,
    FLEET,
    LEAVING,
    LIVE,
    NOBODY,
    OWNER,
    Me,
    NodeRow,
    OwnerRow,
    Seen,
    closing,
    handing,
    joining,
    looked,
    renewing,
    seen,
    slot_name,
    taking,
    telling,
)
from onefold.fleet.planning import Plan, plan, score, staying, wishes
from onefold.kernel.tables import KERNEL
from onefold.store.contract import Body, Done, Query
from onefold.store.memory import MemoryWorld

NOW = 1_000_000
LEASE = 5_000
SLOTS = 6
NAMES = tuple(slot_name(slot) for slot in range(SLOTS))
NODES = tuple(f"node-{letter}" for letter in "abcde")
node_names = st.sampled_from(NODES)
few = st.sampled_from(NODES[:3])
fleets = st.frozensets(node_names, min_size=1)


# --- wishes -----------------------------------------------------------------------------------------


@given(fleets)
def test_every_name_is_wanted_by_one_node_that_is_there(nodes: frozenset[str]) -> None:
    wanted = wishes(nodes, NAMES)
    assert tuple(wanted) == NAMES
    assert set(wanted.values()) <= nodes


@given(fleets, node_names)
def test_a_node_that_leaves_moves_what_it_had_and_nothing_else(nodes: frozenset[str], gone: str) -> None:
    before, after = wishes(nodes | {gone}, NAMES), wishes(nodes - {gone}, NAMES)
    if after:
        assert {name for name in NAMES if before[name] != after[name]} == {n for n in NAMES if before[n] == gone}


@given(fleets, node_names)
def test_a_node_that_joins_takes_from_others_and_moves_nothing_between_them(nodes: frozenset[str], new: str) -> None:
    before, after = wishes(nodes - {new}, NAMES), wishes(nodes | {new}, NAMES)
    assert {after[name] for name in before if before[name] != after[name]} <= {new}


@given(fleets)
def test_who_is_wanted_has_the_highest_score(nodes: frozenset[str]) -> None:
    assert wishes(nodes, NAMES) == {name: max(nodes, key=lambda one: score(one, name)) for name in NAMES}


def test_nobody_is_wanted_where_nobody_is() -> None:
    assert wishes(frozenset(), NAMES) == {}


# --- plans of nodes that see the same -----------------------------------------------------------------


def node(name: str) -> st.SearchStrategy[NodeRow]:
    until = st.integers(NOW - 2, NOW + 2)
    return st.builds(
        NodeRow,
        st.just(name),
        st.integers(1, 3),
        until,
        st.sampled_from([LIVE, LEAVING, CLOSED]),
        st.none(),
        st.just(0),
    )


def owner(name: str) -> st.SearchStrategy[OwnerRow]:
    return st.builds(OwnerRow, st.just(name), st.sampled_from([NOBODY, *NODES]), st.integers(1, 3), st.integers(1, 9))


def rows(names: tuple[str, ...], of: Any) -> st.SearchStrategy[Mapping[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: of(name) for name in names})


views = st.builds(Seen, rows(NODES, node), rows(NAMES, owner), st.just({}), st.just(NOW))


def plans(view: Seen) -> dict[Me, Plan]:
    """Of every node that lives, as far as it can tell."""
    every = [Me(row.name, row.incarnation) for row in view.nodes.values() if view.alive(row.name, row.incarnation)]
    return {me: plan(me, view, NAMES) for me in every}


@given(views)
def test_no_name_is_taken_by_two_who_see_the_same(view: Seen) -> None:
    taken = [name for each in plans(view).values() for name in each.take]
    assert len(taken) == len(set(taken))


@given(views)
def test_every_name_that_nobody_alive_owns_is_taken_by_who_is_to_own_it(view: Seen) -> None:
    every = plans(view)
    stay = {me for me in every if me.name in staying(view, me)}
    free = {
        name for name in NAMES if (row := view.owners.get(name)) is None or not view.alive(row.node, row.incarnation)
    }
    assert {name for each in every.values() for name in each.take} == (free if stay else set())


@given(views)
def test_a_plan_leaves_what_a_living_node_owns_to_that_node(view: Seen) -> None:
    for me, each in plans(view).items():
        for name in each.take:
            row = view.owners.get(name)
            assert row is None or not view.alive(row.node, row.incarnation)
        for name, (epoch, to) in each.hand.items():
            assert view.owners[name].belongs(me)
            assert view.owners[name].epoch == epoch
            assert to != me
            assert view.alive(to.name, to.incarnation)


@given(views)
def test_a_node_that_leaves_hands_over_all_that_it_has(view: Seen) -> None:
    for me, each in plans(view).items():
        if view.nodes[me.name].state == LEAVING and staying(view, me):
            assert set(each.hand) == {name for name, row in view.owners.items() if row.belongs(me)}


@given(views)
def test_only_a_lapsed_lease_is_closed_and_never_ones_own(view: Seen) -> None:
    for me, each in plans(view).items():
        assert me.name not in each.close
        assert all(view.nodes[name].until <= NOW and view.nodes[name].state != CLOSED for name in each.close)


def test_an_actors_own_name_falls_back_once_its_lease_or_its_owner_is_over() -> None:
    living, gone = Me("node-a", 2), Me("node-b", 1)
    nodes = {
        "node-a": NodeRow("node-a", 2, NOW + 1, LIVE, None, 0),
        "node-b": NodeRow("node-b", 1, NOW, LIVE, None, 0),
    }

    def owned(name: str, by: Me, epoch: int) -> OwnerRow:
        return OwnerRow(name, by.name, by.incarnation, epoch)

    rows = [
        owned("Room/kept", living, 3),
        owned("Room/leased", living, 4),
        owned("Room/over", living, 5),
        owned("Room/earlier life", Me("node-a", 1), 6),
        owned("Room/dead", gone, 7),
        OwnerRow("Room/nobodys", NOBODY, 0, 8),
        owned(NAMES[0], gone, 9),
    ]
    leases = {"Room/leased": NOW + 1, "Room/over": NOW, "Room/dead": NOW + 1}
    view = Seen(nodes, {row.name: row for row in rows}, leases, NOW)
    assert plan(living, view, NAMES).lapsed == {"Room/over": 5, "Room/earlier life": 6, "Room/dead": 7}


# --- plans of nodes that see what was ---------------------------------------------------------------


class OldViews(RuleBasedStateMachine):
    """Nodes look when they like and act on it when they like: late, twice, dead in between, with clocks that went on."""

    seen_by = Bundle("seen_by")

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.loop = asyncio.new_event_loop()
        world = MemoryWorld(clock=lambda: self.now)
        self.space = self.loop.run_until_complete(world.open("main", (KERNEL, FLEET)))
        self.lives: dict[str, Me] = {}
        self.ever: set[Me] = set()
        self.given: dict[tuple[str, int], Me] = {}

    def teardown(self) -> None:
        self.loop.close()

    def transact(self, body: Body[Any]) -> Any:
        outcome = self.loop.run_until_complete(self.space.transact(body))
        assert isinstance(outcome, Done), outcome
        return outcome.value

    def view(self) -> Seen:
        return seen(self.loop.run_until_complete(self.space.look(*looked())), self.now)

    # what happens

    @initialize()
    def all_come_up(self) -> None:
        for name in NODES[:3]:
            self.join(name)
        self.all_is_quiet()

    @rule(name=few)
    def join(self, name: str) -> None:
        me = self.transact(joining(name, None, LEASE, SLOTS)).me
        assert me not in self.ever, "a second life like the first"
        self.ever.add(me)
        self.lives[name] = me

    @rule(ms=st.sampled_from([1, LEASE // 4, LEASE, LEASE + 1]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(name=few)
    def renew(self, name: str) -> None:
        if name in self.lives and self.transact(renewing(self.lives[name], LEASE, LIVE)) is None:
            del self.lives[name]

    @rule(name=few, state=st.sampled_from([LEAVING, CLOSED]))
    def tell(self, name: str, state: str) -> None:
        if name in self.lives:
            self.transact(telling(self.lives[name], LIVE, state))

    @rule(target=seen_by, name=few)
    def look(self, name: str) -> Any:
        return (self.lives[name], self.view()) if name in self.lives else multiple()

    @rule(looked_at=seen_by)
    def close(self, looked_at: tuple[Me, Seen]) -> None:
        me, view = looked_at
        lapsed = {row.name for row in self.view().nodes.values() if row.until < self.now}
        assert set(self.transact(closing(me, LEASE, plan(me, view, NAMES).close))) <= lapsed

    @rule(looked_at=seen_by)
    def take(self, looked_at: tuple[Me, Seen]) -> None:
        me, view = looked_at
        before = self.rows()
        living = {(row.name, row.incarnation) for row in self.view().nodes.values() if row.state != CLOSED}
        for name, epoch in self.transact(taking(me, plan(me, view, NAMES).take, 1)).items():
            row = before.get(name)
            assert row is None or (row.node, row.incarnation) not in living, "taken from a node that lives"
            assert view.owners.get(name) == row, "taken on the strength of another row"
            self.told(name, epoch, me)

    @rule(looked_at=seen_by)
    def hand(self, looked_at: tuple[Me, Seen]) -> None:
        me, view = looked_at
        before = self.rows()
        to = plan(me, view, NAMES).hand
        for row in self.transact(handing(me, to, 1)):
            assert before[row.name] == view.owners[row.name], "handed over what it had no more"
            assert Me(row.node, row.incarnation) == to[row.name][1]
            self.told(row.name, row.epoch, to[row.name][1])

    @rule(name=few, away=few)
    def beat(self, name: str, away: str) -> None:
        """One does all that it does on a beat."""
        self.renew(name)
        if name in self.lives and name != away:
            for act in (self.close, self.take, self.hand):
                act((self.lives[name], self.view()))

    @rule()
    def all_is_quiet(self) -> None:
        """Everybody lives on for a few beats, and looks before it acts: each name is with whom it is to be."""
        for _ in range(6):
            self.now += LEASE // 4
            for name in sorted(self.lives):
                self.renew(name)
            for name in sorted(self.lives):
                self.beat(name, "")
        view = self.view()
        stay = frozenset(row.name for row in view.nodes.values() if row.state == LIVE and row.until > self.now)
        if stay:
            assert {name: self.rows()[name].node for name in NAMES} == wishes(stay, NAMES)

    # what holds

    def rows(self) -> dict[str, OwnerRow]:
        (found,) = self.loop.run_until_complete(self.space.look(Query(OWNER)))
        return {row[0]: OwnerRow.of(row) for row in found}

    def told(self, name: str, epoch: int, to: Me) -> None:
        """A node is told that a name is its own under an epoch: nobody was told the same before."""
        assert (name, epoch) not in self.given
        self.given[name, epoch] = to

    @invariant()
    def whoever_a_row_names_was_told_so_under_its_epoch_and_nobody_else(self) -> None:
        for name, row in self.rows().items():
            assert self.given[name, row.epoch] == Me(row.node, row.incarnation)
            assert row.epoch == max(epoch for known, epoch in self.given if known == name)

    @invariant()
    def an_earlier_life_is_over(self) -> None:
        assert all(
            row.incarnation >= self.lives[name].incarnation
            for name, row in self.view().nodes.items()
            if name in self.lives
        )


def test_what_was_taken_and_lost_since_is_not_taken_on_the_strength_of_an_old_look() -> None:
    """The taker saw a dead owner; another took the name and died as well. Its turns count: the epoch has moved on."""
    fleet = OldViews()
    fleet.all_come_up()
    name = next(name for name, to in wishes(frozenset(NODES[:2]), NAMES).items() if to == "node-a")
    fleet.transact(telling(fleet.lives["node-c"], LIVE, CLOSED))
    fleet.transact(
        handing(fleet.lives[fleet.rows()[name].node], {name: (fleet.rows()[name].epoch, fleet.lives["node-c"])}, 1)
    )
    old = fleet.view()
    plan_of_a = plan(fleet.lives["node-a"], old, NAMES)
    assert name in plan_of_a.take
    assert name in fleet.transact(taking(fleet.lives["node-b"], {name: plan_of_a.take[name]}, 1))
    fleet.transact(telling(fleet.lives["node-b"], LIVE, CLOSED))
    assert name not in fleet.transact(taking(fleet.lives["node-a"], plan_of_a.take, 1))
    fleet.take((fleet.lives["node-a"], fleet.view()))
    assert fleet.rows()[name].belongs(fleet.lives["node-a"])
    fleet.teardown()


def test_what_was_handed_over_is_not_handed_over_again_by_who_had_it() -> None:
    fleet = OldViews()
    fleet.all_come_up()
    name, row = next(iter(fleet.rows().items()))
    me = fleet.lives[row.node]
    one, two = (life for life in fleet.lives.values() if life != me)
    assert [given.name for given in fleet.transact(handing(me, {name: (row.epoch, one)}, 1))] == [name]
    assert fleet.transact(handing(me, {name: (row.epoch, two)}, 1)) == []
    assert fleet.rows()[name].belongs(one)
    fleet.teardown()


TestOldViews = OldViews.TestCase
TestOldViews.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
