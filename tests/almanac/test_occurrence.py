"""What holds for every rule, in every zone, at every instant."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onefold.almanac import (
    START,
    Calendar,
    Cron,
    Key,
    Occurrence,
    Once,
    Rule,
    clock_rule,
    cron_rule,
    occurrences,
    zone,
)
from onefold.almanac.occurrence import wall_text
from onefold.terms.errors import BadArguments
from onefold.terms.instant import FIRST, LAST, Instant, up
from tests.almanac.resolvers import EPOCH, SECOND, by_zoneinfo
from tests.almanac.strategies import (
    ANY_INSTANT,
    NAMES,
    RULES,
    Text,
    calendars,
    cron_texts,
    crons,
    near_a_change,
)

DAY_MS = 86_400_000
DAILY = {"every": "day", "at": "00:00", "tz": "Pacific/Apia"}


def of(text: str) -> Instant:
    return up(datetime.fromisoformat(text))


@given(rule=RULES, data=st.data())
def test_the_next_one_is_later_whatever_was_asked(rule: Rule, data: st.DataObject) -> None:
    after = data.draw(ANY_INSTANT | near_a_change(rule.zone.name))
    coming = rule.next(after)
    assert coming is None or coming.at > after
    latest = rule.latest(after)
    assert latest is None or latest.at <= after


@given(rule=RULES, data=st.data())
def test_nothing_lies_between_the_latest_and_the_next(rule: Rule, data: st.DataObject) -> None:
    """So the key of the latest is a watermark as good as the instant itself."""
    after = data.draw(ANY_INSTANT | near_a_change(rule.zone.name))
    latest = rule.latest(after)
    assert rule.next(latest.key if latest else START) == rule.next(after)


@given(rule=RULES, data=st.data())
def test_a_list_is_one_next_after_another(rule: Rule, data: st.DataObject) -> None:
    since = data.draw(near_a_change(rule.zone.name))
    until = Instant(min(since + data.draw(st.sampled_from([DAY_MS, 40 * DAY_MS, 900 * DAY_MS])), LAST))
    limit = data.draw(st.integers(1, 20))
    found = occurrences(rule, since, until, limit)
    walked: list[Occurrence] = []
    coming = rule.next(since)
    while coming is not None and coming.at <= until and len(walked) < limit:
        walked.append(coming)
        coming = rule.next(coming.key)
    assert found == walked
    assert len({one.key for one in found}) == len(found)
    assert [one.at for one in found] == sorted(one.at for one in found)
    if not (isinstance(rule, Cron) and rule.elapsed):
        assert [one.key for one in found] == sorted(one.key for one in found)
    assert [rule.plan(one.key) for one in found] == found


@given(rule=RULES, data=st.data())
def test_a_list_in_two_parts_is_the_whole_list(rule: Rule, data: st.DataObject) -> None:
    """A cap stops at the last one it gave, and its key is enough to go on from, also where two share an instant."""
    since = data.draw(near_a_change(rule.zone.name))
    until = Instant(since + 3 * DAY_MS)
    whole = occurrences(rule, since, until, 12)
    parted: list[Occurrence] = []
    while more := occurrences(rule, parted[-1].key if parted else since, until, min(5, 12 - len(parted))):
        parted += more
    assert parted == whole


def test_a_list_of_none_asks_nothing() -> None:
    assert occurrences(clock_rule(DAILY), of("2026-01-01T00:00Z"), of("2027-01-01T00:00Z"), 0) == []


def test_two_days_that_begin_together_are_two() -> None:
    """Apia left out 30 December 2011."""
    rule = clock_rule(DAILY)
    both = occurrences(rule, of("2011-12-29T12:00Z"), of("2011-12-30T10:00Z"), 10)
    assert [(one.key, one.edge) for one in both] == [("2011-12-30", "gap"), ("2011-12-31", "ok")]
    assert both[0].at == both[1].at
    first = occurrences(rule, of("2011-12-29T12:00Z"), of("2012-01-05T00:00Z"), 1)
    assert rule.next(first[-1].key) == both[1]


@given(rule=calendars() | crons().filter(lambda rule: not rule.elapsed), data=st.data())
def test_new_zone_data_moves_no_key(rule: Calendar | Cron, data: st.DataObject) -> None:
    """As if the clocks of one zone were from one moment on those of another: whatever had passed has passed, what
    follows it follows it still, and each key has one place."""
    moved = zone(data.draw(NAMES))
    now = data.draw(near_a_change(rule.zone.name))
    passed = rule.latest(now)
    assert passed is not None
    after: Rule = (
        Calendar(rule.every, rule.on, rule.minute, moved) if isinstance(rule, Calendar) else Cron(rule.fields, moved)
    )
    before, then = passed.key, passed.key
    for _ in range(5):
        planned, again = rule.next(before), after.next(then)
        assert planned is not None
        assert again is not None
        assert planned.key == again.key
        assert after.plan(planned.key) == again
        before, then = planned.key, again.key


def days(since: Instant, until: Instant) -> list[datetime]:
    first = (EPOCH + (since // 1000) * SECOND).replace(hour=0, minute=0, second=0) - timedelta(days=2)
    return [first + timedelta(days=n) for n in range((until - since) // DAY_MS + 5)]


def expected(text: Text, name: str, since: Instant, until: Instant) -> list[Occurrence]:
    """Every local minute of the days around, one by one, as zoneinfo places it."""
    found = []
    for day in days(since, until):
        if not text.takes_day(day.day, day.month, (day.weekday() + 1) % 7):
            continue
        for hour in text.hour.numbers:
            for minute in text.minute.numbers:
                wall = (day.replace(hour=hour, minute=minute) - EPOCH) // SECOND
                first, edge, second = by_zoneinfo(name, wall)
                if not (text.elapsed and edge == "gap"):
                    found.append((first, wall, edge, wall_text(wall)))
                if text.elapsed and second is not None:
                    hours, minutes = divmod(abs(wall - second) // 60, 60)
                    tail = f"{'-' if wall < second else '+'}{hours:02}:{minutes:02}"
                    found.append((second, wall, "fold2", wall_text(wall) + tail))
    placed: list[Any] = [Occurrence(Key(key), Instant(at * 1000), edge) for at, _, edge, key in sorted(found)]
    return [one for one in placed if since < one.at <= until]


@given(text=cron_texts(), name=NAMES, data=st.data())
def test_a_cron_text_gives_the_minutes_found_one_by_one(text: Text, name: str, data: st.DataObject) -> None:
    # Days beyond doubt: the hour and the minute are what the clocks play with.
    since = data.draw(near_a_change(name))
    until = Instant(since + 2 * DAY_MS)
    rule = cron_rule(str(text), zone(name))
    assert rule.elapsed == text.elapsed
    told = expected(text, name, since, until)
    assert occurrences(rule, since, until, 10_000) == told
    if told:
        assert rule.latest(until) == told[-1]


@given(text=cron_texts(), name=NAMES, data=st.data())
def test_a_cron_text_rings_each_of_its_instants_once(text: Text, name: str, data: st.DataObject) -> None:
    since = data.draw(near_a_change(name))
    until = Instant(since + 2 * DAY_MS)
    rule, rung, after = cron_rule(str(text), zone(name)), [], since
    while (coming := rule.next(after)) is not None and coming.at <= until:
        rung.append(coming.at)
        after = coming.at
    assert rung == sorted({one.at for one in expected(text, name, since, until)})


@given(rule=calendars(), data=st.data())
def test_a_calendar_rule_gives_the_periods_found_one_by_one(rule: Calendar, data: st.DataObject) -> None:
    since = data.draw(near_a_change(rule.zone.name))
    until = Instant(since + 420 * DAY_MS)
    slots: dict[str, datetime] = {}
    for day in days(Instant(since - 40 * DAY_MS), Instant(until + 40 * DAY_MS)):
        period, due = one_day(rule, day)
        if due:
            slots[period] = day  # the last day that could be meant stands
    found = []
    for key, day in slots.items():
        first, edge, _ = by_zoneinfo(rule.zone.name, (day - EPOCH) // SECOND + rule.minute * 60)
        found.append(Occurrence(Key(key), Instant(first * 1000), edge))
    told = [one for one in sorted(found, key=lambda one: one.key) if since < one.at <= until]
    assert occurrences(rule, since, until, 1_000) == told
    if told:
        assert rule.latest(until) == told[-1]


def one_day(rule: Calendar, day: datetime) -> tuple[str, bool]:
    """The key of a day's period, and whether the rule's day is this one: the wanted one, or the month's last before it."""
    last = (day + timedelta(days=1)).day == 1
    if rule.every == "day":
        return f"{day:%Y-%m-%d}", True
    if rule.every == "week":
        return f"{day:%G-W%V}", day.weekday() == rule.on
    if rule.every == "month":
        return f"{day:%Y-%m}", day.day == rule.on or (last and day.day < rule.on)
    in_month = day.month == rule.on // 100
    return f"{day:%Y}", in_month and (day.day == rule.on % 100 or (last and day.day < rule.on % 100))


@pytest.mark.parametrize(
    "key", ["", "2026-13", "2026-3", "2026-03-01T00:00", "2026-W54", "0000", "x", "2026-02-30", "١٢٣٤"]
)
def test_a_key_of_another_form_is_refused(key: str) -> None:
    rules = [clock_rule({"every": every, "at": "00:00", "tz": "UTC"}) for every in ("day", "week", "month", "year")]
    for rule in rules:
        with pytest.raises(BadArguments, match="is not a key of this rule"):
            rule.plan(Key(key))
    for rule in (Once(0, zone("UTC")), cron_rule("* * * * *", zone("UTC"))):
        if key != "2026-03-01T00:00":
            with pytest.raises(BadArguments, match="is not a key of this rule"):
                rule.plan(Key(key))


MINUTELY = "* * * * *"


@given(name=NAMES, rule=st.sampled_from([MINUTELY, "59 23 * * *", "day", "week", "month", "year"]))
@example(name="Pacific/Kiritimati", rule="day")
@example(name="Etc/GMT+12", rule="59 23 * * *")
def test_the_calendar_ends_quietly(name: str, rule: str) -> None:
    """Nothing past the year 9999, nothing before the year 1, and no error on the way."""
    made: Rule
    if "*" in rule:
        made = cron_rule(rule, zone(name))
    else:
        made = clock_rule({"every": rule, "at": "23:59", "tz": name})
    span = DAY_MS * 2 // 3 if rule == MINUTELY else 800 * DAY_MS
    newest = occurrences(made, Instant(LAST - span), LAST, 10_000)
    assert newest
    assert made.latest(LAST) == newest[-1]
    assert made.next(newest[-1].key) is None
    assert made.next(LAST) is None
    oldest = made.next(START)
    assert oldest is not None
    assert oldest.at >= FIRST
    assert made.latest(Instant(oldest.at - 1)) is None
    assert made.latest(oldest.at) == oldest
