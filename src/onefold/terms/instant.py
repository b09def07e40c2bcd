"""terms.instant - points in time: whole milliseconds in rows, aware UTC datetimes at the edge.

For: the two roundings, the way back, and the text of an instant.
Never: reads a clock. `Clock` is what host hands in; there is exactly one.
Was wrong once: one rounding for everything. An alarm rounded down rang before its time, found
nothing due, and rang again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NewType, Protocol

from onefold.terms.errors import BadArguments, Fault

Instant = NewType("Instant", int)
"""Milliseconds since 1970-01-01T00:00:00Z. A day has 86,400,000; there are no leap seconds."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = Instant(-62_135_596_800_000)  # 0001-01-01T00:00:00Z
LAST = Instant(253_402_300_799_999)  # 9999-12-31T23:59:59.999Z


class Clock(Protocol):
    """The one source of time. It never goes back."""

    def now(self) -> Instant:
        """The instant it is, rounded down."""


def aware(dt: datetime, *, what: str = "instant") -> datetime:
    """`dt` in UTC. Raises: BadArguments for a naive datetime, which names no point in time."""
    zone = dt.tzinfo
    if zone is UTC:
        return dt
    if zone is None or dt.utcoffset() is None:
        raise BadArguments([Fault(what, "has no time zone; give an aware datetime, such as one in UTC", str(dt))])
    try:
        return dt.astimezone(UTC)
    except OverflowError:
        raise BadArguments([Fault(what, "lies outside the years 1 to 9999 in UTC", str(dt))]) from None


def _micros(dt: datetime, what: str) -> int:
    gone: timedelta = aware(dt, what=what) - EPOCH
    return (gone.days * 86_400 + gone.seconds) * 1_000_000 + gone.microseconds


def up(dt: datetime, *, what: str = "instant") -> Instant:
    """For instants to fire at: the first whole millisecond that is not before `dt`. Raises: BadArguments if naive."""
    return Instant(-(-_micros(dt, what) // 1000))


def down(dt: datetime, *, what: str = "instant") -> Instant:
    """For clocks: the last whole millisecond that is not after `dt`. Raises: BadArguments if naive."""
    return Instant(_micros(dt, what) // 1000)


def moment(ms: int) -> datetime:
    """The aware UTC datetime of an instant. Raises: BadArguments outside the years 1 to 9999."""
    if not FIRST <= ms <= LAST:
        raise BadArguments([Fault("instant", "lies outside the years 1 to 9999", ms)])
    return EPOCH + timedelta(0, ms // 1000, ms % 1000 * 1000)


def text(ms: int) -> str:
    """RFC 3339 in UTC with `Z`; milliseconds only where there are some."""
    whole = moment(ms).replace(tzinfo=None)
    return whole.isoformat(timespec="milliseconds" if ms % 1000 else "seconds") + "Z"
