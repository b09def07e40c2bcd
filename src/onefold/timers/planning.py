"""timers.planning - which instant a schedule rings at next, and where new zone data moves it. Pure.

For: `coming`, the first instant after now; `anew`, the pending one under other zone data; `rings_at`, when the
alarm must ring for it.
Never: makes up for what was missed. Instants that passed while nobody was there, or while a tick was held, are no
ticks; the pending one is, however late.
Was wrong once: the pending instant reckoned anew from now. A zone that moved an hour forward rang one occurrence
twice, and one that moved back rang another never. An occurrence is what its local clock says; its instant follows.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from onefold.almanac import At, Every, Key, Occurrence, next_instant, rule_of, tz_version
from onefold.terms.instant import Instant, down, moment, up
from onefold.timers.facts import Planned, Schedule
from onefold.timers.words import TickId

SPREAD_MS: Final = 250
"""Ten thousand schedules at nine o'clock leave within a quarter of a second, not at once. Nobody hears the difference,
and it is the same for a tick however often it is reckoned: a hash, not chance, and no setting."""


def coming(schedule: Schedule, now: datetime) -> Planned | None:
    """The first instant strictly after now and not past the end, as a plan. None: there is none."""
    trigger, at = schedule.trigger, down(now)
    end = None if schedule.ends_at is None else up(schedule.ends_at)
    if isinstance(trigger, At):
        instant = next_instant(trigger, at, end)
        return None if instant is None else Planned(moment(instant), now)
    if trigger is None:
        return None
    found = _after(trigger, at, schedule.local)
    if found is None or (end is not None and found.at > end):
        return None
    return Planned(moment(found.at), now, found.key, tz_version())


def _after(trigger: Every, now: Instant, local: str | None) -> Occurrence | None:
    """The first occurrence that is after now and after `local`: instants and occurrences have one order."""
    rule = rule_of(trigger)
    by_time = rule.next(now)
    if local is None or by_time is None:
        return by_time
    by_key = rule.next(Key(local))
    if by_key is None:
        return None
    return max(by_time, by_key, key=lambda occurrence: (occurrence.at, occurrence.key))


def moved(schedule: Schedule) -> bool:
    """Whether the pending instant was planned with other zone data than this process has."""
    plan = schedule.plan
    return plan is not None and plan.tz is not None and plan.tz != tz_version()


def anew(schedule: Schedule, now: datetime) -> Planned:
    """The same pending occurrence, where it falls under the zone data of now.

    Never at an instant that this generation's ticks have reached: two ticks may not share an id, so an occurrence
    that moved onto the one before it is due a millisecond after that.
    """
    plan, trigger = schedule.plan, schedule.trigger
    assert plan is not None
    assert plan.local is not None
    assert isinstance(trigger, Every)
    due = rule_of(trigger).plan(Key(plan.local)).at
    if schedule.minted is not None:
        due = Instant(max(due, up(schedule.minted) + 1))
    past = schedule.ends_at is not None and due > up(schedule.ends_at)
    return Planned(None if past else moment(due), now, plan.local, tz_version())


def spread(tick: TickId) -> int:
    """By how many milliseconds the delivery of a tick is put off: a hash of its id."""
    told = hashlib.sha256(str(tick).encode()).digest()
    return int.from_bytes(told[:8]) % SPREAD_MS


def rings_at(schedule: Schedule) -> datetime | None:
    """When the alarm must ring: at the pending instant and its spread; at once where it must be planned anew."""
    plan = schedule.plan
    if plan is None or plan.due_at is None:
        return None
    if moved(schedule):
        return min(plan.at, plan.due_at)
    put_off = spread(TickId(schedule.id, schedule.generation, plan.due_at))
    return plan.due_at + timedelta(milliseconds=put_off)
