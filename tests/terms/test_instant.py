"""An instant is one point in time, rounded to the side where nothing is early."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.terms.errors import BadArguments
from onefold.terms.instant import FIRST, LAST, aware, down, moment, text, up

instants = st.integers(FIRST, LAST)
zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), ZoneInfo("America/New_York")])
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - what is refused
FIRST_YEARS, LAST_YEARS = NAIVE.replace(year=2), NAIVE.replace(year=9998)
datetimes = st.datetimes(FIRST_YEARS, LAST_YEARS, timezones=zones)


@given(instants)
def test_a_whole_millisecond_is_not_rounded(ms: int) -> None:
    assert up(moment(ms)) == down(moment(ms)) == ms
    assert moment(ms).tzinfo is UTC


@given(datetimes)
def test_what_fires_is_never_early_and_a_clock_never_ahead(dt: datetime) -> None:
    assert moment(down(dt)) <= dt <= moment(up(dt))
    assert up(dt) - down(dt) in (0, 1)


@given(datetimes)
def test_one_point_in_time_has_one_instant(dt: datetime) -> None:
    assert up(dt) == up(dt.astimezone(UTC))


@given(instants)
def test_the_text_of_an_instant_is_the_instant(ms: int) -> None:
    told = text(ms)
    assert told.endswith("Z")
    assert ("." in told) == bool(ms % 1000)
    assert up(datetime.fromisoformat(told)) == ms


@pytest.mark.parametrize(
    "ms, told",
    [
        (0, "1970-01-01T00:00:00Z"),
        (1500, "1970-01-01T00:00:01.500Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (FIRST, "0001-01-01T00:00:00Z"),
        (LAST, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_instants_as_text(ms: int, told: str) -> None:
    assert text(ms) == told


class Nowhere(tzinfo):
    """A zone that does not know its offset, so its datetimes are naive in all but name."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None

    dst = utcoffset

    def tzname(self, dt: datetime | None) -> str:
        return "nowhere"


@pytest.mark.parametrize("dt", [NAIVE, datetime(2026, 1, 1, tzinfo=Nowhere())])
@pytest.mark.parametrize("read", [aware, up, down])
def test_a_naive_datetime_names_no_instant(read, dt: datetime) -> None:
    with pytest.raises(BadArguments, match="time zone"):
        read(dt)


def test_a_datetime_that_utc_cannot_hold_is_refused() -> None:
    with pytest.raises(BadArguments, match="outside the years"):
        aware(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))))


@pytest.mark.parametrize("ms", [FIRST - 1, LAST + 1, 2**63])
def test_an_instant_out_of_range_is_refused(ms: int) -> None:
    with pytest.raises(BadArguments, match="outside the years"):
        moment(ms)


def test_the_field_is_named() -> None:
    with pytest.raises(BadArguments, match="until: "):
        up(NAIVE, what="until")
