"""almanac.triggers - when a timer rings: once at an instant, or by a cron text in a zone.

For: the two values a person writes, and `next_instant`, all that a timer asks.
Never: makes up for instants that were missed; only the next one after now counts.
Was wrong once: the next instant counted from the one before. A day of downtime then rang a day's ticks at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from onefold.almanac.cron import Cron
from onefold.almanac.fields import parse
from onefold.almanac.zones import zone
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.instant import Instant, up

RULES_KEPT = 4_096
"""Parsed texts kept at hand. Parsing takes some 60 times as long as asking; each is about 1 KB."""


@dataclass(frozen=True, slots=True)
class At:
    """One instant. Raises: BadArguments for a naive datetime."""

    instant: datetime

    def __post_init__(self) -> None:
        up(self.instant)

    def next(self, after: Instant) -> Instant | None:
        """The instant in ms, rounded up, if it is later than `after`."""
        at = up(self.instant)
        return at if at > after else None


@dataclass(frozen=True, slots=True)
class Every:
    """A five-field cron text, read on the clocks of an IANA zone: `Every("0 9 * * mon-fri", tz="Europe/Vienna")`.

    Raises: BadArguments, with the fields `cron` and `tz`, for a text or a zone that is none, or that never comes.
    """

    cron: str
    tz: str

    def __post_init__(self) -> None:
        given: dict[str, object] = {"cron": self.cron, "tz": self.tz}
        if faults := [Fault(what, "is not text", value) for what, value in given.items() if not isinstance(value, str)]:
            raise BadArguments(faults)
        rule_of(self)

    def next(self, after: Instant) -> Instant | None:
        """The first instant in ms that is later than `after`; None past the year 9999."""
        occurrence = rule_of(self).next(after)
        return None if occurrence is None else occurrence.at


def rule_of(every: Every) -> Cron:
    """The rule behind it, which also knows keys and edges."""
    return _rule(every.cron, every.tz)


def next_instant(trigger: At | Every, now: Instant, ends_at: Instant | None = None) -> Instant | None:
    """When a timer rings next: strictly after `now` and not past `ends_at`, in ms. None: it is over."""
    coming = trigger.next(now)
    return coming if coming is not None and (ends_at is None or coming <= ends_at) else None


@lru_cache(RULES_KEPT)
def _rule(text: str, tz: str) -> Cron:
    faults: list[Fault] = []
    fields, in_zone = None, None
    try:
        fields = parse(text)
    except BadArguments as bad:
        faults += bad.faults
    try:
        in_zone = zone(tz)
    except BadArguments as bad:
        faults += bad.faults
    if fields is None or in_zone is None:
        raise BadArguments(faults)
    return Cron(fields, in_zone)
