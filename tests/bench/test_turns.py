"""A set is measured only where its counts are those that were answered; a figure without a sync is never a ratio."""

from __future__ import annotations

from typing import Any

import pytest

from bench.goals import Measured
from bench.goals_turns import takeover_lines, turn_lines
from bench.interleave import Case, Rounds, turn
from bench.measures import Sample
from bench.sharing import summed
from bench.turns import CALLERS, Set, counted, read_back


class Told:
    """A contender that answers what it is given."""

    def __init__(self, counts: list[int]) -> None:
        self._counts = counts
        self.standing = False

    def ask(self, workload: str, callers: int, seconds: float) -> dict[str, Any]:
        assert not self.standing
        if workload == "read":
            return {"counts": self._counts}
        return Sample(10.0, 1.0, 2.0, 5).plain()

    def stand(self) -> None:
        self.standing = True

    def go_on(self) -> None:
        self.standing = False


@pytest.mark.parametrize(
    "answered,there,beyond,holds",
    [(5, 5, 0, True), (5, 4, 0, False), (5, 6, 0, False), (5, 6, 1, True), (5, 7, 1, False), (0, 0, 0, False)],
)
def test_a_count_that_is_lost_doubled_or_never_ran_fails_its_set(
    answered: int, there: int, beyond: int, holds: bool
) -> None:
    assert counted("counts", answered, there, beyond).holds is holds


@pytest.mark.parametrize("there,holds", [([50, 5, 45], True), ([50, 5, 35], False)])
def test_the_warming_up_counts_and_each_answer_by_what_it_adds(there: list[int], holds: bool) -> None:
    contender: Any = Told(there)
    taken, cases = Rounds(), [Case("cell", "ten", 2), Case("cell", "one", 1)]
    turn(taken, contender, cases[0], warm=True)
    contender.go_on()
    assert taken.answered["cell", "ten"] == 10
    given = Set({}, cases, adds={"ten": 10})
    assert [each.holds for each in read_back("programs", given, {"cell": contender}, taken, {})] == [holds]


def test_what_was_not_measured_is_named() -> None:
    assert {line.reached for line in turn_lines(Measured(runs=1, spread_s=1))} == {"not measured"}


def test_each_part_of_the_table_can_be_had_alone() -> None:
    cells = turn_lines(Measured(runs=1, spread_s=1), "cells")
    assert len(cells) == 4 * len(CALLERS)
    assert all("cell's turn" in line.row for line in cells)


def test_a_turn_is_held_to_a_bound_of_elsewhere_and_divided_only_by_what_ran_here() -> None:
    programs = Rounds()
    for label, rate in {"cell one 64": 20_000.0, "cell one 1": 3_000.0, "one_core one 1": 30_000.0}.items():
        programs.samples[label] = [Sample(rate, 1, 2, 3)]
    found = turn_lines(Measured(runs=1, spread_s=1, turns={"programs": programs}), "programs")
    durable = {line.row: line for line in found if line.figure.startswith("durable on SQLite")}
    assert durable["a program of 1 call as a turn, 64 callers"].reached == "yes"
    assert durable["a program of 1 call as a turn, 1 caller"].reached == "no"
    ratios = [line.figure for line in found if line.unit == "x"]
    assert ratios
    assert not any("Koru" in figure for figure in ratios)


def test_processes_side_by_side_add_up_and_wait_as_the_slowest() -> None:
    assert summed([Sample(10, 1, 5, 20), Sample(30, 2, 4, 60)]) == Sample(40, 2, 5, 80)


def test_a_takeover_is_held_to_its_lease_and_a_bound_beyond_it() -> None:
    told = Measured(
        runs=1, spread_s=1, takeovers={2.0: {"first": 2.1, "last": 3.9}, 10.0: {"first": 10.5, "last": 13.0}}
    )
    held = {line.row: line.reached for line in takeover_lines(told) if line.must is not None}
    assert held == {"a node killed, lease 2 s": "yes", "a node killed, lease 10 s": "no"}
    assert {line.reached for line in takeover_lines(Measured(runs=1, spread_s=1))} == {"not measured"}
