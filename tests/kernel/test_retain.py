"""Edges of windows, what a look of a sweep takes, and which rows may go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.kernel.prune import EMPTY, PRUNED
from onefold.kernel.retain import aged, freed, holds_id, lapsed, removable, unreplied
from onefold.store.contract import Row

FACTS = b'[{"type":"A"}]'


def turn(n: int, prev: int | None = None, event: str = "", facts: bytes = EMPTY, at: int = 0, actor: int = 1) -> Row:
    return (n, actor, 0, prev, event or f"d/{n}", b"digest", b"reply", facts, None, at, 0)


@pytest.mark.parametrize("now, over", [(0, False), (99, False), (100, True), (101, True)])
def test_a_window_ends_at_its_last_millisecond(now: int, over: bool) -> None:
    assert lapsed(turn(1, at=0), 100, now) is over


@pytest.mark.parametrize("event", ["m/x/1", "m/x/owed", "o/k/x", "s/1", "a/1", "f/1"])
def test_only_ids_that_others_chose_lapse(event: str) -> None:
    assert not lapsed(turn(1, event=event), 1, 10**15)


def test_ids_from_outside_and_answers_are_freed_and_nothing_else() -> None:
    assert [holds_id(turn(1, event=event)) for event in ("d/x", "m/x", "o/x", "s/x", "a/x", "f/1")] == [True] * 3 + [
        False
    ] * 3


def test_a_freed_turn_keeps_its_facts_and_its_place() -> None:
    (change,) = freed([turn(7)]).rows
    assert change == ((7,), {}, {"event": "f/7", "digest": b"", "reply": None})
    (change,) = unreplied([turn(7)]).rows
    assert change == ((7,), {}, {"reply": None})


def test_a_look_ends_at_the_first_young_turn_and_passes_over_one_from_the_future() -> None:
    rows = [turn(1, at=5), turn(2, at=999), turn(3, at=10), turn(4, at=11), turn(5, at=3)]
    look = aged(rows, 0, 10, 50, limit=5)
    assert ([row[0] for row in look.turns], look.upto, look.more) == ([1, 3], 3, False)
    assert aged(rows[:3], 0, 10, 50, limit=3).more
    assert aged([], 8, 10, 50).upto == 8


def test_rows_go_from_the_oldest_while_nothing_is_left_of_them_and_the_newest_stays() -> None:
    bare = [turn(1), turn(2, 1, facts=PRUNED), turn(3, 2), turn(4, 3)]
    assert [row[0] for row in removable(bare, set(), {4})] == [1, 2, 3]
    assert [row[0] for row in removable(bare, set(), {1})] == []
    assert removable([turn(5, 4)], {4}, {9}) == []
    assert removable([turn(5, 4)], set(), {9})[0][0] == 5
    held = [turn(1), turn(2, 1, facts=FACTS), turn(3, 2)]
    assert [row[0] for row in removable(held, set(), {9})] == [1]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([EMPTY, PRUNED, FACTS])), max_size=20),
    st.integers(0, 20),
)
def test_a_history_is_only_ever_cut_at_its_oldest_end(made: list[tuple[int, bytes]], seen: int) -> None:
    heads: dict[int, int] = {}
    rows: list[Row] = []
    for n, (actor, facts) in enumerate(made, 1):
        rows.append(turn(n, heads.get(actor), facts=facts, actor=actor))
        heads[actor] = n
    before = {row[0] for row in rows[:seen]}
    going = removable(rows[seen:], {n for n in before if isinstance(n, int)}, set(heads.values()))
    gone = {row[0] for row in going}
    there = {row[0] for row in rows} - gone
    for row in going:
        assert row[3] is None or row[3] not in there
        assert row[0] not in heads.values()
        assert row[7] != FACTS
