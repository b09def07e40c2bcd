"""Instants as answers and pages write them; what a receipt says about waiting."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.serve.receipts import soonest_end_ms, worth_waiting
from onefold.serve.times import away, read, spoken, written
from onefold.terms.instant import moment

NOW = 1_780_000_000_000


@pytest.mark.parametrize(
    "gap,words",
    [
        (0, "now"),
        (999, "now"),
        (-999, "now"),
        (1_000, "in 1 second"),
        (-1_000, "1 second ago"),
        (90_000, "in 1 minute"),
        (7_200_000, "in 2 hours"),
        (86_390_000, "in 1 day"),
        (59_000, "in 1 minute"),
        (-86_400_000 * 3, "3 days ago"),
    ],
)
def test_how_far_away_an_instant_is(gap: int, words: str) -> None:
    assert away(moment(NOW + gap), NOW) == words


def test_a_person_reads_the_zone() -> None:
    assert spoken(datetime(2026, 11, 3, 9, 5, tzinfo=UTC)) == "3 Nov 2026, 09:05 UTC"
    assert (spoken(None), written(None), away(None, NOW)) == ("", None, "")


@given(st.integers(0, 4_000_000_000_000))
def test_what_is_written_is_read_back(ms: int) -> None:
    assert read(written(moment(ms))) == moment(ms)


@pytest.mark.parametrize("value", [None, "", "soon", "2026-11-03T09:05:00", 7])
def test_what_is_no_instant_is_none(value: object) -> None:
    assert read(value) is None


def waiting(*until: int | None) -> dict[str, object]:
    waits = [{"kind": "sleep", "name": "n", **({"until": written(moment(at))} if at else {})} for at in until]
    return {"status": "waiting", "waits": waits}


def test_the_first_wait_to_end_counts() -> None:
    assert soonest_end_ms(waiting(NOW + 9_000, NOW + 2_000, None), NOW) == 2_000
    assert soonest_end_ms(waiting(NOW - 5), NOW) == 0
    assert soonest_end_ms(waiting(None), NOW) is None
    assert soonest_end_ms({"status": "running"}, NOW) == 0


def test_a_request_is_held_only_for_what_may_happen_meanwhile() -> None:
    assert worth_waiting({"status": "running"}, 1, NOW)
    assert worth_waiting(waiting(NOW + 20_000), 20_000, NOW)
    assert not worth_waiting(waiting(NOW + 20_001), 20_000, NOW)
    assert not worth_waiting(waiting(None), 20_000, NOW)
    assert not worth_waiting({"status": "done"}, 20_000, NOW)
    assert not worth_waiting({"status": "running"}, 0, NOW)


def test_a_request_is_held_for_a_child() -> None:
    child = {"status": "waiting", "waits": [{"kind": "child", "name": "pack/run_1"}]}
    assert worth_waiting(child, 20_000, NOW)
    assert not worth_waiting(child, 0, NOW)
