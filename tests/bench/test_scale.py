"""docs/scale.md is what its script says, and the script's model and simulation hold to the fleet's rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from bench.scale.beats import BEAT_S, DRAIN_S, LEASE_S, Fleet
from bench.scale.constants import COSTS, LOAD, SERVER, listed
from bench.scale.happenings import Shape, died, rolled
from bench.scale.rendezvous import Ranking, spread
from bench.scale.tables import BLOCKS, MARK, every, figure, written
from bench.scale.worlds import Limit, World, limits, slots_for
from tests.house.tree import ROOT

DOCUMENT = ROOT / "docs" / "scale.md"
SHOWN = [name for name in BLOCKS if name != "costs"]
NODES, SLOTS = 12, 512


@cache
def blocks() -> dict[str, str]:
    return every()


def document() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


# --- the document -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHOWN)
def test_a_table_of_the_document_is_what_the_script_prints(name: str) -> None:
    (shown,) = [found[0] for found in MARK.finditer(document()) if found[2] == name]
    assert shown == f"<!-- scale: {name} -->\n{blocks()[name]}\n<!-- end -->", "run `python -m bench.scale --write`"


def test_the_document_shows_every_table_once_and_is_read_in_one_sitting() -> None:
    assert sorted(re.findall(r"<!-- scale: (\w+) -->", document())) == sorted(SHOWN)
    assert 80 <= len(document().splitlines()) <= 150


def test_writing_it_again_changes_nothing() -> None:
    assert written(document(), blocks()) == document()


def test_every_constant_has_a_meaning_and_a_unit() -> None:
    assert [what for what, value, unit in listed(COSTS) if not (what and unit and value > 0)] == []


@pytest.mark.parametrize(
    "value,said", [(0, "0"), (0.000096, "0.000096"), (1.2345, "1.23"), (49.99, "50"), (163_194.4, "163\u00a0000")]
)
def test_a_figure_has_three_digits_that_count(value: float, said: str) -> None:
    assert figure(value) == said


# --- the model --------------------------------------------------------------------------------------


def test_the_worlds_of_a_load_carry_it_together() -> None:
    one, part = World(1_000), World(25)
    assert part.actors * 40 == pytest.approx(one.actors) == pytest.approx(LOAD.actors)
    assert part.turns * 40 == pytest.approx(one.turns)
    assert part.wal * 40 == pytest.approx(one.wal)


def test_the_rates_of_a_world_are_those_that_a_hand_reckons() -> None:
    one = World(1_000)
    assert one.beats == pytest.approx(1_000 / BEAT_S)
    assert one.renewal_cores == pytest.approx(one.beats * COSTS.renewal_us / 1e6)
    assert one.look_rows == pytest.approx(one.beats * (1_000 + 16_384))
    assert one.alarms == pytest.approx(1e9 * 0.3 / 86_400)
    assert one.turns == pytest.approx((1e9 * 4 / 86_400 * 1.1 + 1e9 * 0.3 / 86_400) * 3)


def test_turns_that_share_a_commit_cost_a_server_less() -> None:
    few = World(10, load=replace(LOAD, nodes=10))
    assert few.together > World(1_000).together == 1
    assert few.turn_cores < World(1_000).turn_cores


@pytest.mark.parametrize("nodes,slots", [(1, 1_024), (64, 1_024), (65, 2_048), (1_000, 16_384)])
def test_a_store_is_made_with_slots_enough(nodes: int, slots: int) -> None:
    assert slots_for(nodes) == slots


HELD: dict[str, Callable[[World], bool]] = {
    "WAL": lambda w: w.wal <= SERVER.wal,
    "connections": lambda w: w.connections <= SERVER.connections,
    "a node's plan": lambda w: w.plan_ms <= SERVER.pause_ms,
    "the server's cores": lambda w: w.cores <= SERVER.cores,
    "rows": lambda w: w.disk <= SERVER.disk,
    "looks": lambda w: w.look_cores <= SERVER.looks * SERVER.cores,
    "alarms": lambda w: w.backlog_s <= SERVER.drain_s * SERVER.cores,
    "renewals": lambda w: w.renewal_cores <= SERVER.looks * SERVER.cores,
}


@pytest.mark.parametrize("limit", limits(), ids=[limit.what for limit in limits()])
def test_a_limit_holds_up_to_its_number_and_no_further(limit: Limit) -> None:
    (holds,) = [held for start, held in HELD.items() if limit.what.startswith(start)]
    assert holds(World(limit.nodes))
    assert not holds(World(limit.nodes + 1))


def test_what_gives_way_first_stands_first() -> None:
    numbers = [limit.nodes for limit in limits()]
    assert numbers == sorted(numbers)
    assert all(limit.moved is None or limit.moved > limit.nodes for limit in limits())


# --- the simulation ---------------------------------------------------------------------------------


class Modulo(Ranking):
    """The broken twin: whose a slot is goes by how many stay."""

    def wanted(self, slot: int, staying: object) -> int:
        order = sorted(staying)  # type: ignore[call-overload]
        return int(order[slot % len(order)])


def fleet(kind: type[Ranking] = Ranking, *, telling: bool = True) -> Fleet:
    ranking = kind([f"n{place}" for place in range(NODES + 1)], SLOTS)
    return Fleet(ranking, NODES, seed=7, spare=1, telling=telling)


def test_a_node_that_joins_takes_its_share_and_nothing_else_moves() -> None:
    one = fleet()
    before = one.owners
    one.join(NODES)
    told = one.run()
    moved = {slot for slot, owner in enumerate(one.owners) if owner != before[slot]}
    assert {one.owners[slot] for slot in moved} == {NODES}
    assert len(moved) == told.moved == Counter(one.owners)[NODES]
    assert told.commits == len({before[slot] for slot in moved})
    assert told.longest == pytest.approx(DRAIN_S)


def test_a_node_that_leaves_gives_its_slots_away_in_one_commit() -> None:
    one = fleet()
    before = one.owners
    one.leave(5)
    told = one.run()
    assert {before[slot] for slot, owner in enumerate(one.owners) if owner != before[slot]} == {5}
    assert 5 not in one.owners
    assert (told.moved, told.commits) == (Counter(before)[5], 1)


def test_by_a_modulo_nearly_all_would_move() -> None:
    one, sound = fleet(Modulo), fleet()
    for each in (one, sound):
        each.join(NODES)
    moved, share = one.run().moved, sound.run().moved
    assert moved > SLOTS * 0.8 > share * 4


def test_who_is_not_told_learns_of_a_slot_on_the_next_beat() -> None:
    one = fleet(telling=False)
    one.leave(5)
    told = one.run()
    assert DRAIN_S < told.waited / told.moved < DRAIN_S + BEAT_S
    assert told.longest <= DRAIN_S + BEAT_S


@pytest.mark.parametrize("place", range(NODES))
def test_a_crash_is_over_within_a_lease_and_a_beat_and_not_before_the_lease_is(place: int) -> None:
    one = fleet()
    before = one.owners
    one.die(place)
    told = one.run()
    assert {before[slot] for slot, owner in enumerate(one.owners) if owner != before[slot]} == {place}
    assert place not in one.owners
    assert LEASE_S - BEAT_S <= told.waited / told.moved <= LEASE_S + BEAT_S
    assert told.longest <= LEASE_S + BEAT_S
    assert told.commits <= NODES - 1


def test_several_that_die_at_once_take_no_longer_than_one() -> None:
    one = fleet()
    for place in (1, 4, 9):
        one.die(place)
    told = one.run()
    assert not {1, 4, 9} & set(one.owners)
    assert told.longest <= LEASE_S + BEAT_S


def test_a_node_that_is_back_within_its_lease_finds_its_slots_waiting() -> None:
    one = fleet()
    before = one.owners
    one.again(5)
    told = one.run()
    assert one.owners == before
    assert (told.moved, told.commits) == (0, 1)


@pytest.mark.parametrize("handing", [True, False])
def test_after_a_restart_of_all_each_has_what_it_had(handing: bool) -> None:
    shape = Shape(2, 25)
    done = rolled(shape, handing=handing, at_once=shape.worlds)
    assert done.moved == (2 * shape.slots * shape.worlds if handing else 0)
    assert done.fullest == rolled(shape, handing=False, at_once=shape.worlds).fullest


def test_the_same_seed_tells_the_same() -> None:
    assert died(Shape(2, 25), 5) == died(Shape(2, 25), 5)


def test_the_fullest_is_told_over_the_mean() -> None:
    assert spread([1, 2, 3]) == 1.5
    assert spread([]) == 0
