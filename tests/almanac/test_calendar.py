"""Each period once: asked at any hour, the slot of this period if it is still to come, else that of the next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from onefold.almanac import START, Calendar, Key, Once, zone
from onefold.almanac.calendar import WEEKDAYS, Period
from onefold.terms.errors import BadArguments
from onefold.terms.instant import Instant, up

UTC_ZONE = zone("UTC")
HOURS = [datetime(2027, 12, 20, tzinfo=UTC) + timedelta(hours=n) for n in range(24 * 75)]
NOON = 720


def slots(every: Period, on: int) -> dict[str, datetime]:
    """Key and noon of each slot around the hours asked, by the calendar of the standard library."""
    found: dict[str, datetime] = {}
    for n in range(-800, 800):
        day = datetime(2028, 1, 1, 12, tzinfo=UTC) + timedelta(days=n)
        last = (day + timedelta(days=1)).day == 1
        if every == "day":
            found[f"{day:%Y-%m-%d}"] = day
        elif every == "week" and day.weekday() == on:
            found[f"{day:%G-W%V}"] = day
        elif every == "month" and (day.day == on or (last and day.day < on)):
            found[f"{day:%Y-%m}"] = day
        elif every == "year" and day.month == on // 100 and (day.day == on % 100 or (last and day.day < on % 100)):
            found[f"{day:%Y}"] = day
    return found


CASES: list[tuple[Period, int]] = [
    ("day", 0),
    *(("week", on) for on in range(7)),
    *(("month", on) for on in (1, 28, 29, 30, 31)),
    *(("year", on) for on in (101, 229, 228, 1231)),
]


@pytest.mark.parametrize("every,on", CASES, ids=lambda value: str(value))
def test_asked_at_each_hour_of_weeks_around_a_leap_day(every: Period, on: int) -> None:
    rule, known = Calendar(every, on, NOON, UTC_ZONE), slots(every, on)
    order = sorted(known)
    for now in HOURS:
        coming, latest = rule.next(up(now)), rule.latest(up(now))
        assert coming is not None
        assert latest is not None
        assert coming.key == next(key for key in order if known[key] > now)
        assert latest.key == next(key for key in reversed(order) if known[key] <= now)
        assert (coming.at, latest.at) == (up(known[coming.key]), up(known[latest.key]))


def test_a_week_is_named_as_the_standard_names_it() -> None:
    """The days from 29 December to 3 January may belong to a week of the other year."""
    for n, _ in enumerate(WEEKDAYS):
        coming = Calendar("week", n, NOON, UTC_ZONE).next(up(datetime(2026, 12, 27, 23, tzinfo=UTC)))
        assert coming is not None
        assert coming.key == "2026-W53"


def test_going_on_from_the_start_is_the_first_there_is() -> None:
    first = Calendar("month", 31, 0, UTC_ZONE).next(START)
    assert first is not None
    assert first.key == "0001-01"


def test_once_goes_on_from_a_key_of_an_earlier_plan() -> None:
    """A one-shot that was moved to a later time comes; to an earlier one, it has passed."""
    at_nine = Once(9 * 3600, UTC_ZONE)
    assert at_nine.next(Key("1970-01-01T08:00")) == at_nine.next(START) == at_nine.next(Instant(0))
    assert at_nine.next(Key("1970-01-01T09:00")) is None
    assert at_nine.next(Key("1970-01-01T10:00")) is None


def test_once_outside_the_calendar_never_comes() -> None:
    """The last minute of 9999 in Honolulu is in the year 10000 elsewhere."""
    late = Once(253_402_300_740, zone("Pacific/Honolulu"))
    assert late.next(Instant(0)) is late.latest(Instant(0)) is None
    with pytest.raises(BadArguments, match="in the years 1 to 9999"):
        late.plan(Key("9999-12-31T23:59"))
