"""almanac.occurrence - one slot of a rule: its key in local fields, and the instant that falls on today.

For: what every rule gives, the few questions every rule answers, and lists of occurrences.
Never: takes the instant for the identity. Two keys may share one, and new zone data may move one.
Was wrong once: occurrences walked by instant. Apia left out 30 December 2011, so the days 30 and 31
began at the same moment, and one of the two never ran.

A watermark is a key: the one that `latest` gave. Where a zone's rules change, the key stands and only
its instant moves, so nothing is minted twice and nothing is passed over. A watermark that is an
instant loses what moves from after it to before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final, NewType, Protocol

from onefold.almanac.tzif import DAY_S, EPOCH_DAY
from onefold.almanac.zones import Edge, Zone
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.instant import FIRST, LAST, Instant

Key = NewType("Key", str)
"""Local calendar fields: "2026", "2026-03", "2026-W10", "2026-03-07", "2026-03-07T02:30", and for the second
pass of an hourly rule "2026-10-25T02:30+01:00". A key is unique within its rule; it need not sort as text."""

START: Final = Key("")
"""Before every key: what to go on from when nothing has passed yet."""

BEFORE_ALL: Final = Instant(FIRST - 1)
"""START as an instant."""

MIN_WALL: Final = FIRST // 1000
MAX_WALL: Final = LAST // 1000
CLOCK: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """`key` is what it is; `at` where it falls, in ms, under the zone data of now; `edge` what the clocks did there."""

    key: Key
    at: Instant
    edge: Edge


class Rule(Protocol):
    """What recurs, or happens once, in one zone. Pure; every answer holds for the years 1 to 9999."""

    @property
    def zone(self) -> Zone:
        """Where its local fields are read."""

    def next(self, after: Instant | Key) -> Occurrence | None:
        """The first key whose instant is later than `after`; or the key that follows `after`, whose instant may be
        the same. None past the last. Raises: BadArguments for a key that is none of this rule's form."""

    def latest(self, until: Instant) -> Occurrence | None:
        """The last key whose instant is not later than `until`; None before the first."""

    def plan(self, key: Key) -> Occurrence:
        """Where a key falls under the zone data of now. Raises: BadArguments for a key of another form."""


def occurrences(rule: Rule, since: Instant | Key, until: Instant, limit: int) -> list[Occurrence]:
    """At most `limit` occurrences in key order, after `since` as in `Rule.next` and at or before `until`, in ms.

    Where it stopped at the limit, the last one's key is what to go on from.
    """
    found: list[Occurrence] = []
    coming = rule.next(since) if limit > 0 else None
    while coming is not None and coming.at <= until:
        found.append(coming)
        coming = rule.next(coming.key) if len(found) < limit else None
    return found


def placed(key: Key, wall: int, zone: Zone) -> Occurrence | None:
    """An occurrence at a wall's first pass, or None outside the years 1 to 9999."""
    second, edge = zone.first(wall)
    return within(Occurrence(key, Instant(second * 1000), edge))


def within(occurrence: Occurrence) -> Occurrence | None:
    return occurrence if FIRST <= occurrence.at <= LAST else None


def day_number(year: int, month: int, day: int) -> int:
    """The day since 1970. Raises: ValueError when there is no such day."""
    return date(year, month, day).toordinal() - EPOCH_DAY


def day_text(number: int) -> str:
    return date.fromordinal(number + EPOCH_DAY).isoformat()


def read_wall(text: str) -> int | None:
    """The wall of "2026-03-29T02:30" or "...:30"; None when it is none."""
    day, _, clock = text.partition("T")
    on, at = DATE.fullmatch(day), CLOCK.fullmatch(clock)
    if on is None or at is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in at.groups())
    try:
        return day_number(*map(int, on.groups())) * DAY_S + hours * 3600 + minutes * 60 + seconds
    except ValueError:
        return None


def wall_text(wall: int) -> str:
    """The local fields of a wall; seconds only where there are some."""
    day, rest = divmod(wall, DAY_S)
    hours, rest = divmod(rest, 3600)
    clock = f"{hours:02}:{rest // 60:02}" + (f":{rest % 60:02}" if rest % 60 else "")
    return f"{day_text(day)}T{clock}"


def read_offset(text: str) -> int | None:
    """The seconds of "+01:00"; None when it is none."""
    match = OFFSET.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if match[1] == "-" else 1)


def offset_text(seconds: int) -> str:
    size = abs(seconds)
    tail = f":{size % 60:02}" if size % 60 else ""
    return f"{'-' if seconds < 0 else '+'}{size // 3600:02}:{size // 60 % 60:02}{tail}"


def not_a_key(key: str, form: str) -> BadArguments:
    return BadArguments([Fault("key", f"is not a key of this rule, which look like {form}", key)])
