"""A journal grows in place, and a branch that was taken back is its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onefold.actuators.module import module_of
from onefold.actuators.state import INITIAL, Journal
from onefold.actuators.words import StepDone
from tests.actuators.home import T0

MODULE = module_of("program")


def entry(n: int) -> StepDone:
    return StepDone(f"0#{n}", "pay", "d", T0, 1)


def test_a_journal_grows_in_place_and_an_older_length_still_sees_its_own() -> None:
    first = Journal().add(entry(0))
    second = first.add(entry(1))
    assert [e.call for e in first] == ["0#0"]
    assert [e.call for e in second] == ["0#0", "0#1"]
    assert second._entries is first._entries
    assert [e.call for e in second.since(1)] == ["0#1"]


def test_a_branch_that_was_taken_back_and_decided_again_is_its_own() -> None:
    durable = Journal().add(entry(0))
    head = durable.add(entry(1)).add(entry(2))
    again = durable.add(entry(7))
    assert [e.call for e in head] == ["0#0", "0#1", "0#2"]
    assert [e.call for e in again] == ["0#0", "0#7"]
    assert [e.call for e in durable] == ["0#0"]
    assert again != head
    assert again == durable.add(entry(7))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 99)), max_size=60))
def test_journals_that_branch_anywhere_are_like_lists(adds: list[tuple[int, int]]) -> None:
    made: list[tuple[Journal, list[str]]] = [(Journal(), [])]
    for at, n in adds:
        journal, model = made[at % len(made)]
        made.append((journal.add(entry(n)), [*model, f"0#{n}"]))
    for journal, model in made:
        assert [e.call for e in journal] == model
        assert len(journal) == len(model)


def test_a_step_costs_the_same_after_ten_thousand() -> None:
    state = INITIAL
    for n in range(10_000):
        state = MODULE.evolve(state, entry(n))
    assert len(state.journal) == 10_000
    assert MODULE.evolve(state, entry(1)).journal._entries is state.journal._entries
