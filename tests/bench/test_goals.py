"""A row is reached when its median says so, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from bench.goals import Line, Measured, Told, lines
from bench.interleave import Rounds
from bench.measures import Sample


@pytest.mark.parametrize(
    "value,less,reached",
    [
        (None, False, "not measured"),
        (0.29, False, "no"),
        (0.3, False, "yes"),
        (0.5, False, "aim"),
        (0.51, True, "no"),
        (0.5, True, "yes"),
        (0.3, True, "aim"),
    ],
)
def test_a_goal_is_a_bound_and_not_a_feeling(value: float | None, less: bool, reached: str) -> None:
    must, aim = (0.5, 0.3) if less else (0.3, 0.5)
    assert Line("row", "figure", value, must, aim, less=less).reached == reached


def test_a_row_without_a_goal_is_never_reached_and_never_missed() -> None:
    assert Line("row", "figure", 9.0, None, 0.5, less=True).reached == "-"


def test_ratios_are_of_medians() -> None:
    rounds = Rounds()
    rounds.samples["fold fold 64"] = [Sample(rate, 1, 2, 3) for rate in (1.0, 30.0, 1000.0)]
    rounds.samples["workerd post 64"] = [Sample(1.0, 1, 2, 3)]
    found = lines(Measured(runs=10_000, spread_s=60, rounds=rounds))
    (line,) = [each for each in found if each.figure.startswith("Onefold / workerd: 30")]
    assert line.value == 30
    assert line.reached == "yes"


def test_what_was_not_measured_is_named() -> None:
    assert {line.reached for line in lines(Measured(runs=10_000, spread_s=60))} == {"not measured"}


def test_growth_is_the_largest_size_over_the_smallest() -> None:
    told = {"100": {"late_ms": 2.0}, "10000": {"late_ms": 3.2}, "1000": {"late_ms": 9.0}}
    found = lines(Measured(runs=1, spread_s=1, wakes=told))
    (line,) = [each for each in found if "a wake, with sleeping actors" in each.row]
    assert line.value == pytest.approx(1.6)
    assert line.reached == "no"


def test_our_timers_are_held_to_a_goal_and_the_peers_are_told_beside() -> None:
    told = {"p50": 1.0, "p99": 30.0, "early": 0, "twice": 0, "count": 10_000, "missing": 3}
    found = lines(Measured(runs=10_000, spread_s=60, timers={"onefold": told, "huey": told}))
    held = {each.figure.partition(" (")[0]: each.reached for each in found if "timers due" in each.row}
    assert (held["onefold: lateness p50"], held["onefold: lateness p99"]) == ("yes", "no")
    assert (held["onefold: early"], held["huey: early"]) == ("yes", "-")
    assert (held["huey: lateness p50"], held["huey: lateness p99"]) == ("-", "-")
    assert any("3 never" in each.figure for each in found)


def test_timers_at_rest_are_told_of_the_largest_size() -> None:
    rest: dict[int, Any] = {
        1_000: {"first_s": 0.1, "late_ms": 1.0},
        1_000_000: {"first_s": 0.12, "late_ms": 2.0, "kib": 61_440},
    }
    found = lines(Measured(runs=1, spread_s=1, at_rest=rest))
    assert next(each.row for each in found if "at rest" in each.row) == "1 000 000 sleeping timers at rest"
    grown = {each.row: each.reached for each in found if "sleeping timers" in each.row and "grow" in each.row}
    assert grown["must not grow: a wake, with sleeping timers"] == "no"
    assert grown["must not grow: a start, with sleeping timers"] == "yes"


def test_tasks_are_held_against_the_peer_that_the_goal_names_and_told_beside_the_others() -> None:
    fans = Rounds()
    rates = {"reflexes": 9000.0, "reflexes_pg": 4000.0, "absurd": 300.0, "dbos": 20.0, "dbos_pg": 30.0}
    for name, rate in rates.items():
        fans.samples[f"{name} fan 500"] = [Sample(rate, 1, 2, 500)]
    fans.samples["reflexes_pg pair 500"] = [Sample(6000.0, 1, 2, 500)]
    found = {line.figure.partition(":")[0]: line for line in lines(Measured(runs=1, spread_s=1, fans=fans))}
    assert (found["Onefold on SQLite / absurd"].value, found["Onefold on SQLite / absurd"].reached) == (30, "yes")
    assert (found["Onefold on SQLite / dbos"].value, found["Onefold on SQLite / dbos"].reached) == (300, "-")
    assert found["Onefold on SQLite / procrastinate"].reached == "not measured"
    assert found["two engines / one, on Postgres, in two processes"].value == 1.5


def test_an_advance_must_not_grow_with_what_is_loaded_or_settled() -> None:
    told: dict[int, Told] = {
        1_000: {"idle_us": 200.0, "fact_us": 9_000.0},
        1_000_000: {"idle_us": 220.0, "fact_us": 18_000.0},
    }
    found = lines(Measured(runs=1, spread_s=1, settled=told))
    held = {line.row.partition(": ")[2]: line.reached for line in found if "settled" in line.row}
    assert held["an advance, with settled runs in the ledger"] == "yes"
    assert held["a fact's way to its effect and settle, with settled runs"] == "no"
