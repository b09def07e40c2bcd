"""A duration means what its writer meant, or it is refused."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.terms.duration import UNITS, duration_ms
from onefold.terms.errors import BadArguments
from onefold.terms.limits import MAX_DURATION_MS

HOUR = 3_600_000


@pytest.mark.parametrize(
    "text, ms",
    [
        ("24 hours", 24 * HOUR),
        ("1h 30m", 90 * 60_000),
        ("1h30m", 90 * 60_000),
        ("90 seconds", 90_000),
        ("90s", 90_000),
        ("1 day 2 hours", 26 * HOUR),
        ("1 day, 2 hours and 3 minutes", 26 * HOUR + 180_000),
        ("2 weeks", 14 * 24 * HOUR),
        ("1.5h", HOUR * 3 // 2),
        ("0.5 days", 12 * HOUR),
        ("250ms", 250),
        ("1 Hour", HOUR),
        ("  5 min ", 300_000),
        ("0s", 0),
        ("3653 days", MAX_DURATION_MS),
    ],
)
def test_durations_as_people_write_them(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    "delta, ms", [(timedelta(hours=24), 24 * HOUR), (timedelta(0), 0), (timedelta(days=3653), MAX_DURATION_MS)]
)
def test_a_timedelta_is_a_duration(delta: timedelta, ms: int) -> None:
    assert duration_ms(delta) == ms


@pytest.mark.parametrize("value", ["0.0001 ms", timedelta(microseconds=1), "0.4ms"])
def test_a_part_of_a_millisecond_is_a_whole_one(value) -> None:
    assert duration_ms(value) == 1


@pytest.mark.parametrize(
    "value, why",
    [
        (5, "no unit"),
        (5.0, "no unit"),
        (float("nan"), "no unit"),
        (float("inf"), "no unit"),
        ("5", "no unit"),
        ("5.5", "no unit"),
        ("-5", "no unit"),
        ("1e3", "no unit"),
        ("nan", "not a duration"),
        ("inf", "not a duration"),
        ("nan seconds", "not a duration"),
        ("-5s", "negative"),
        ("- 5 s", "negative"),
        (timedelta(microseconds=-1), "negative"),
        (timedelta.min, "negative"),
        ("", "empty"),
        ("  ", "empty"),
        ("5 fortnights", "fortnights"),
        ("1 year", "year"),
        ("5 M", "'M'"),
        ("1h 1h", "twice"),
        ("1h 60 min 5 minutes", "twice"),
        ("3654 days", "ten years"),
        ("999999999999999999999 weeks", "ten years"),
        (timedelta(days=3654), "ten years"),
        (timedelta.max, "ten years"),
        ("1h" + " " * 200, "characters"),
        ("hours", "not a duration"),
        ("1h and", "not a duration"),
        ("\uff15 s", "not a duration"),
        ("1_000 s", "not a duration"),
        ("1,5 h", "not a duration"),
        ("1..5 h", "not a duration"),
        ("1h\x00", "not a duration"),
        ("5\ns", "not a duration"),
        (True, "not a duration"),
        (None, "not a duration"),
        (b"5s", "not a duration"),
        ([], "not a duration"),
    ],
)
def test_what_is_no_duration_is_refused_in_plain_words(value, why: str) -> None:
    with pytest.raises(BadArguments) as refused:
        duration_ms(value, what="timeout")
    (fault,) = refused.value.faults
    assert fault.field == "timeout"
    assert why in fault.problem


@given(st.integers(0, 10_000), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " "]))
def test_every_unit_counts(number: int, unit: str, between: str) -> None:
    expected = number * UNITS[unit]
    if expected <= MAX_DURATION_MS:
        assert duration_ms(f"{number}{between}{unit}") == expected


@given(st.text())
def test_any_text_is_a_duration_or_a_refusal(text: str) -> None:
    with contextlib.suppress(BadArguments):
        assert 0 <= duration_ms(text) <= MAX_DURATION_MS
