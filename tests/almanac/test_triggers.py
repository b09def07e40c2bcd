"""The two triggers of a timer: the next instant is strictly later, and none is past the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.almanac import At, Every, next_instant, rule_of
from onefold.terms.errors import BadArguments
from onefold.terms.instant import FIRST, LAST, Instant, up
from onefold.terms.typed import codec_of
from tests.almanac.strategies import ANY_INSTANT, NAMES, cron_texts, near_a_change


def of(text: str) -> Instant:
    return up(datetime.fromisoformat(text))


NINE = Every("0 9 * * mon-fri", tz="Europe/Vienna")


@given(text=cron_texts(), name=NAMES, data=st.data())
def test_the_next_instant_is_strictly_later(text: object, name: str, data: st.DataObject) -> None:
    after = data.draw(near_a_change(name) | ANY_INSTANT)
    coming = Every(str(text), tz=name).next(after)
    assert coming is None or coming > after


def test_a_weekday_rule_rings_by_the_clocks_of_its_zone() -> None:
    assert NINE.next(of("2026-03-27T08:00Z")) == of(
        "2026-03-30T07:00Z"
    )  # Friday 09:00 exactly, then Monday in summer time
    assert NINE.next(of("2026-03-27T07:59:59.999Z")) == of("2026-03-27T08:00Z")


def test_missed_instants_are_not_made_up_for() -> None:
    assert next_instant(NINE, of("2026-09-12T00:00Z")) == of("2026-09-14T07:00Z")


def test_one_instant_is_over_once_it_came() -> None:
    at = At(datetime(2026, 9, 14, 9, 0, 0, 500, tzinfo=UTC))
    rings = of("2026-09-14T09:00:00.001Z")  # rounded up: never early
    assert next_instant(at, Instant(rings - 1)) == rings
    assert next_instant(at, rings) is None
    assert At(datetime(2026, 9, 14, 9, tzinfo=timezone(timedelta(hours=2)))).next(FIRST) == of("2026-09-14T07:00Z")


def test_the_end_is_the_last_that_may_ring() -> None:
    now, first = of("2026-09-12T00:00Z"), of("2026-09-14T07:00Z")
    assert next_instant(NINE, now, ends_at=first) == first
    assert next_instant(NINE, now, ends_at=Instant(first - 1)) is None
    assert next_instant(At(datetime(2026, 9, 14, 7, tzinfo=UTC)), now, ends_at=Instant(first - 1)) is None
    assert next_instant(NINE, first, ends_at=first) is None


def test_past_the_calendar_it_is_over() -> None:
    assert next_instant(NINE, LAST) is None
    assert At(datetime(1969, 1, 1, tzinfo=UTC)).next(Instant(0)) is None


def test_both_things_wrong_are_said_at_once() -> None:
    with pytest.raises(BadArguments) as refused:
        Every("0 25 * * *", tz="Europe/Viena")
    assert [fault.field for fault in refused.value.faults] == ["cron", "tz"]
    assert "did you mean 'Europe/Vienna'?" in str(refused.value)


@pytest.mark.parametrize(
    "cron,tz,field", [(["0"], "UTC", "cron"), ("0 9 * * *", None, "tz"), (b"0 9 * * *", "UTC", "cron")]
)
def test_what_is_no_text_is_refused(cron: str, tz: str, field: str) -> None:
    with pytest.raises(BadArguments) as refused:
        Every(cron, tz)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(BadArguments, match="has no time zone"):
        At(datetime(2026, 9, 14, 9))  # noqa: DTZ001 - what is refused here


@pytest.mark.parametrize("trigger", [NINE, At(datetime(2026, 9, 14, 7, tzinfo=UTC))])
def test_a_trigger_is_stored_and_read_back(trigger: At | Every) -> None:
    codec = codec_of(At | Every)
    assert codec.decode(codec.encode(trigger)) == trigger


def test_a_stored_trigger_is_checked_like_a_written_one() -> None:
    with pytest.raises(BadArguments, match="99 is not 0 to 59"):
        codec_of(At | Every).decode(b'{"type":"Every","cron":"99 * * * *","tz":"UTC"}')


def test_a_trigger_is_a_value() -> None:
    assert Every("0 9 * * mon-fri", "Europe/Vienna") == NINE
    assert rule_of(NINE) is rule_of(Every("0 9 * * mon-fri", "Europe/Vienna"))
    assert not rule_of(NINE).elapsed
