"""The clock clause of an automation: three shapes, nothing filled in, everything wrong said at once."""

from __future__ import annotations

from datetime import datetime

import pytest

from onefold.almanac import Calendar, Cron, Once, Rule, clock_rule, cron_rule, zone
from onefold.terms.errors import BadArguments
from onefold.terms.instant import text, up

VIENNA = {"tz": "Europe/Vienna"}


def following(rule: Rule, after: str) -> tuple[str, str] | None:
    coming = rule.next(up(datetime.fromisoformat(after)))
    return (coming.key, text(coming.at)) if coming else None


@pytest.mark.parametrize(
    "clause,after,key,at",
    [
        ({"every": "day", "at": "09:00"}, "2026-07-01T07:00Z", "2026-07-02", "2026-07-02T07:00:00Z"),
        ({"every": "week", "on": "fri", "at": "09:00"}, "2026-07-01T00:00Z", "2026-W27", "2026-07-03T07:00:00Z"),
        ({"every": "week", "on": "sun", "at": "23:59"}, "2026-12-31T00:00Z", "2026-W53", "2027-01-03T22:59:00Z"),
        ({"every": "week", "at": "09:00"}, "2026-07-01T00:00Z", "2026-W28", "2026-07-06T07:00:00Z"),
        ({"every": "month", "on": 31, "at": "03:00"}, "2026-02-01T00:00Z", "2026-02", "2026-02-28T02:00:00Z"),
        ({"every": "month", "at": "03:00"}, "2026-02-02T00:00Z", "2026-03", "2026-03-01T02:00:00Z"),
        ({"every": "year", "on": "02-29", "at": "00:00"}, "2026-03-01T00:00Z", "2027", "2027-02-27T23:00:00Z"),
        ({"every": "year", "at": "00:00"}, "2026-03-01T00:00Z", "2027", "2026-12-31T23:00:00Z"),
        ({"at": "2026-09-14T09:00"}, "2026-01-01T00:00Z", "2026-09-14T09:00", "2026-09-14T07:00:00Z"),
        ({"at": "2026-09-14T09:00:30"}, "2026-01-01T00:00Z", "2026-09-14T09:00:30", "2026-09-14T07:00:30Z"),
        ({"cron": "0 9 * * mon-fri"}, "2026-07-03T12:00Z", "2026-07-06T09:00", "2026-07-06T07:00:00Z"),
    ],
)
def test_what_a_clause_means(clause: dict[str, object], after: str, key: str, at: str) -> None:
    assert following(clock_rule({**clause, **VIENNA}), after) == (key, at)


def test_each_shape_is_a_rule_of_its_own() -> None:
    vienna = zone("Europe/Vienna")
    assert clock_rule({"every": "year", "on": "12-31", "at": "23:59", **VIENNA}) == Calendar("year", 1231, 1439, vienna)
    assert clock_rule({"at": "1970-01-02T00:00", **VIENNA}) == Once(86_400, vienna)
    assert clock_rule({"cron": "* * * * *", **VIENNA}) == cron_rule("* * * * *", vienna)
    assert isinstance(clock_rule({"cron": "* * * * *", **VIENNA}), Cron)


@pytest.mark.parametrize(
    "clause,faults",
    [
        ({"every": "day", "at": "24:00"}, {"at": 'is not a time of day from 00:00 to 23:59; write "00:00"'}),
        ({"every": "day", "at": "9:00"}, {"at": "is not a time of day"}),
        ({"every": "day", "at": "09:00:00"}, {"at": "is not a time of day"}),
        ({"every": "day", "at": 900}, {"at": "is not a time of day"}),
        ({"every": "day"}, {"at": "is missing"}),
        ({"every": "hour", "at": "09:00"}, {"every": "is not day, week, month or year"}),
        ({"every": ["day"], "at": "09:00"}, {"every": "is not day, week, month or year"}),
        ({"every": "day", "on": 1, "at": "09:00"}, {"on": "does not go with a rule for each day"}),
        ({"every": "week", "on": "friday", "at": "09:00"}, {"on": "is not one of mon, tue, wed, thu, fri, sat, sun"}),
        ({"every": "week", "on": 5, "at": "09:00"}, {"on": "is not one of mon"}),
        ({"every": "month", "on": 0, "at": "09:00"}, {"on": "is not a day from 1 to 31"}),
        ({"every": "month", "on": 32, "at": "09:00"}, {"on": "is not a day from 1 to 31"}),
        ({"every": "month", "on": True, "at": "09:00"}, {"on": "is not a day from 1 to 31"}),
        ({"every": "month", "on": "1", "at": "09:00"}, {"on": "is not a day from 1 to 31"}),
        ({"every": "year", "on": "02-30", "at": "09:00"}, {"on": 'is not a day of the year, written "MM-DD"'}),
        ({"every": "year", "on": "2-3", "at": "09:00"}, {"on": "is not a day of the year"}),
        ({"every": "year", "on": "13-01", "at": "09:00"}, {"on": "is not a day of the year"}),
        ({"every": "year", "on": 101, "at": "09:00"}, {"on": "is not a day of the year"}),
        ({"every": "day", "at": "09:00", "cron": "* * * * *"}, {"cron": "does not go with 'every'"}),
        ({"at": "2026-09-14T09:00", "on": 3}, {"on": "does not go with 'at'"}),
        ({"at": "09:00"}, {"at": 'is not a local date and time, such as "2026-09-14T09:00"; with a time of day, say'}),
        ({"at": "2026-09-14T24:00"}, {"at": "is not a local date and time"}),
        ({"at": "2026-02-30T09:00"}, {"at": "is not a local date and time"}),
        ({"at": "2026-09-14T09:00Z"}, {"at": "is not a local date and time"}),
        ({"at": "2026-09-14 09:00"}, {"at": "is not a local date and time"}),
        ({"at": None}, {"at": "is not a local date and time"}),
        ({"cron": "0 25 * * *"}, {"cron": "hour (field 2, character 3): 25 is not 0 to 23"}),
        ({"cron": 5}, {"cron": "is not text"}),
        ({}, {"": "says no time"}),
        ({"evry": "day", "at": "2026-09-14T09:00"}, {"evry": "is no word of a clock; did you mean 'every'?"}),
        (
            {"every": "month", "on": 40, "at": "25:00", "color": "red"},
            {"color": "is no word of a clock", "at": "is not a time of day", "on": "is not a day from 1 to 31"},
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_path(clause: dict[str, object], faults: dict[str, str]) -> None:
    with pytest.raises(BadArguments) as refused:
        clock_rule({**clause, **VIENNA}, where="on.clock")
    found = {fault.field.removeprefix("on.clock").removeprefix("."): fault.problem for fault in refused.value.faults}
    assert found.keys() == faults.keys()
    assert all(found[word].startswith(problem) for word, problem in faults.items()), found


@pytest.mark.parametrize(
    "tz,problem",
    [(None, "is not a time zone"), ("Europe/Viena", "did you mean 'Europe/Vienna'?"), (["UTC"], "is not a time zone")],
)
def test_a_zone_that_is_none_hides_nothing_else(tz: object, problem: str) -> None:
    with pytest.raises(BadArguments) as refused:
        clock_rule({"every": "day", "at": "24:00", "tz": tz})
    assert [fault.field for fault in refused.value.faults] == ["clock.tz", "clock.at"]
    assert problem in refused.value.faults[0].problem


def test_a_zone_is_always_said() -> None:
    with pytest.raises(BadArguments, match=r"clock\.tz: is missing; give an IANA name"):
        clock_rule({"every": "day", "at": "09:00"})


@pytest.mark.parametrize("clause", [None, "0 9 * * *", 5, ["day"]])
def test_what_is_no_object_is_refused(clause: object) -> None:
    with pytest.raises(BadArguments, match="clock: is not an object"):
        clock_rule(clause)
