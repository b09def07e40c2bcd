"""The two clocks of cron, at the places where they differ: the autumn hour shown twice, the spring hour left out."""

from __future__ import annotations

from datetime import datetime

import pytest

from onefold.almanac import Key, Occurrence, cron_rule, occurrences, zone
from onefold.terms.errors import BadArguments
from onefold.terms.instant import Instant, text, up

VIENNA = zone("Europe/Vienna")


def of(moment: str) -> Instant:
    return up(datetime.fromisoformat(moment))


def shown(found: list[Occurrence]) -> list[tuple[str, str, str]]:
    return [(one.key, text(one.at)[11:16], one.edge) for one in found]


def test_an_hourly_text_has_a_key_for_each_pass() -> None:
    hourly = cron_rule("0 * * * *", VIENNA)
    assert shown(occurrences(hourly, of("2026-10-24T23:30Z"), of("2026-10-25T02:00Z"), 10)) == [
        ("2026-10-25T02:00", "00:00", "fold"),
        ("2026-10-25T02:00+01:00", "01:00", "fold2"),
        ("2026-10-25T03:00", "02:00", "ok"),
    ]


def test_an_hourly_text_has_no_key_for_an_erased_minute() -> None:
    half_hourly = cron_rule("*/30 * * * *", VIENNA)
    assert shown(occurrences(half_hourly, of("2026-03-29T00:00Z"), of("2026-03-29T01:30Z"), 10)) == [
        ("2026-03-29T01:30", "00:30", "ok"),
        ("2026-03-29T03:00", "01:00", "ok"),
        ("2026-03-29T03:30", "01:30", "ok"),
    ]


def test_a_fixed_hour_keeps_every_key_of_an_erased_hour_and_rings_once() -> None:
    fixed = cron_rule("*/30 2,3 * * *", VIENNA)
    since, until = of("2026-03-29T00:00Z"), of("2026-03-29T01:30Z")
    assert shown(occurrences(fixed, since, until, 10)) == [
        ("2026-03-29T02:00", "01:00", "gap"),
        ("2026-03-29T02:30", "01:00", "gap"),
        ("2026-03-29T03:00", "01:00", "ok"),
        ("2026-03-29T03:30", "01:30", "ok"),
    ]
    first = fixed.next(since)
    assert first is not None
    second = fixed.next(first.at)
    assert second is not None
    assert (first.at, second.at) == (of("2026-03-29T01:00Z"), until)


def test_a_day_left_out_whole_adds_nothing_to_an_hourly_text() -> None:
    daily_hours = cron_rule("0 * 30 12 *", zone("Pacific/Apia"))
    found = occurrences(daily_hours, of("2011-12-01T00:00Z"), of("2012-12-30T00:00Z"), 5)
    assert found[0].key == "2012-12-30T00:00"


def test_a_second_pass_is_found_again_by_its_key() -> None:
    hourly = cron_rule("0 * * * *", VIENNA)
    second = Key("2026-10-25T02:00+01:00")
    assert hourly.plan(second) == Occurrence(second, of("2026-10-25T01:00Z"), "fold2")
    assert hourly.next(second) == Occurrence(Key("2026-10-25T03:00"), of("2026-10-25T02:00Z"), "ok")


def test_what_falls_on_a_gaps_end_still_follows_a_key_that_is_erased_by_now() -> None:
    """The key was given under other zone data; the gap came with the new."""
    hourly = cron_rule("*/15 * * * *", VIENNA)
    assert hourly.next(Key("2026-03-29T02:15")) == Occurrence(Key("2026-03-29T03:00"), of("2026-03-29T01:00Z"), "ok")


def test_a_text_made_fixed_goes_on_from_the_key_of_a_second_pass() -> None:
    coming = cron_rule("30 2,3 * * *", VIENNA).next(Key("2026-10-25T02:30+01:00"))
    assert coming is not None
    assert coming.key == "2026-10-25T03:30"


def test_a_clock_set_back_by_half_an_hour_repeats_half_an_hour() -> None:
    lord_howe = zone("Australia/Lord_Howe")
    found = occurrences(cron_rule("15,45 * * * *", lord_howe), of("2026-04-04T14:00Z"), of("2026-04-04T16:00Z"), 10)
    assert [one.key for one in found] == [
        "2026-04-05T01:15",
        "2026-04-05T01:45",
        "2026-04-05T01:45+10:30",
        "2026-04-05T02:15",
    ]


@pytest.mark.parametrize("key", ["2026-10-25", "2026-10-25T02:30+1", "2026-10-25T02:30Z", "2026-10-25T02:30+01:00x"])
def test_a_key_of_another_form_is_refused(key: str) -> None:
    for rule in (cron_rule("* * * * *", VIENNA), cron_rule("0 2 * * *", VIENNA)):
        with pytest.raises(BadArguments, match="is not a key of this rule"):
            rule.next(Key(key))
