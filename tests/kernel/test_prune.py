"""What a prune cuts, how a turn shows it, and where a rebuild begins then."""

from __future__ import annotations

import pytest

from onefold.kernel.prune import EMPTY, PRUNED, Behind, count, cut, emptied, first_kept, lost
from onefold.kernel.rebuild import start_in
from onefold.store.contract import Row
from onefold.terms.codec import parse
from tests.guarantees.shop import make

A, B, S = (
    b'{"amount":1,"type":"Deposited"}',
    b'{"amount":2,"type":"Deposited"}',
    b'{"state":{"balance":3,"held":null,"last":"","until":null},"type":"Balance"}',
)


def many(*facts: bytes) -> bytes:
    return b"[" + b",".join(facts) + b"]"


def turn(n: int, seq: int, facts: bytes, event: str = "") -> Row:
    return (n, 1, seq, n - 1 or None, event or f"d/{n}", b"", b"", facts, None, 0, 0)


def test_a_cut_turn_shows_it_and_stays_json() -> None:
    whole = many(A, S, B)
    assert not lost(whole)
    assert not lost(EMPTY)
    for facts in (cut(whole, 1), cut(whole, 0), PRUNED):
        assert lost(facts)
        assert isinstance(parse(facts, "facts"), list)
    assert (count(cut(whole, 1)), count(PRUNED)) == (2, 0)
    assert first_kept(turn(9, 12, whole), 1) == first_kept(turn(9, 12, cut(whole, 1)), 0) == 11


def test_only_the_facts_are_written() -> None:
    assert emptied([3, 4]).rows == [((3,), {}, {"facts": PRUNED}), ((4,), {}, {"facts": PRUNED})]


@pytest.mark.parametrize(
    "facts, index, inside",
    [
        ([many(A), many(B, S), many(A)], 1, 1),
        ([many(A), cut(many(B, S), 1), PRUNED], 1, 0),
        ([many(S), many(S)], 0, 0),
        ([many(A, S, B)], 0, 1),
    ],
)
def test_a_rebuild_begins_at_the_latest_snapshot(facts: list[bytes], index: int, inside: int) -> None:
    rows = [turn(10 - at, 30 - at, each) for at, each in enumerate(facts)]
    start = start_in(make(), rows)
    assert start is not None
    assert (start.index, start.inside) == (index, inside)
    assert start.seq == first_kept(rows[index], inside)


def test_a_mark_is_a_beginning_for_code_without_snapshots() -> None:
    module = make()
    module.snapshot = None
    rows = [turn(3, 5, many(A)), turn(2, 4, cut(many(B, S), 1)), turn(1, 2, PRUNED)]
    start = start_in(module, rows)
    assert start is not None
    assert (start.index, start.inside, start.seq) == (1, 0, 0)
    assert start_in(module, [turn(3, 5, many(A)), turn(2, 4, many(B, S))]) is None


def test_what_is_behind_ends_at_the_first_empty_turn() -> None:
    behind = Behind(cursor=9)
    behind.add(
        [
            turn(9, 9, many(A, B)),
            turn(8, 7, EMPTY),
            turn(7, 7, cut(many(S), 0)),
            turn(6, 6, PRUNED),
            turn(5, 5, many(A)),
        ]
    )
    assert (behind.held, behind.facts, behind.cursor, behind.whole) == ([9, 7], 3, None, False)
    assert behind.to_remove() == []
    assert behind.to_empty([]) == [7, 9]


def test_turns_whose_ids_were_freed_go_whole_from_the_oldest_on() -> None:
    behind = Behind(cursor=4)
    behind.add([turn(4, 4, many(A)), turn(3, 3, EMPTY, "a/3"), turn(2, 2, many(A), "f/2"), turn(1, 1, many(A), "f/1")])
    behind.add([])
    assert behind.to_remove() == [1, 2]
    assert behind.to_empty([1, 2]) == [4]
