"""Two other ways from local time to instant, from the same pinned files: whenever's, and zoneinfo's with bisection.

For: holding `almanac.zones` to answers that share no line with it.
Never: reads the host's zone files; `whenever` is turned to the pinned ones by the fixture in conftest.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from pkgutil import get_data
from typing import Any
from zoneinfo import ZoneInfo

import whenever

from onefold.almanac import Edge

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall has no zone; that is what is resolved
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
Answer = tuple[int, Edge, int | None]
"""(second of the first pass or of the gap's end, edge, second of the second pass)."""


def raw(name: str) -> bytes:
    """The pinned file of a zone."""
    data = get_data("tzdata", f"zoneinfo/{name}")
    assert data is not None
    return data


@cache
def pinned(name: str) -> ZoneInfo:
    return ZoneInfo.from_file(BytesIO(raw(name)), key=name)


def wall_of(local: datetime) -> int:
    """Seconds from 1970 of a naive local time, as if the wall showed UTC."""
    return (local.replace(tzinfo=None) - EPOCH) // SECOND


def by_whenever(name: str, wall: int) -> Answer:
    local = whenever.PlainDateTime(EPOCH + wall * SECOND)
    try:
        return local.assume_tz(name, disambiguation="raise").timestamp(), "ok", None
    except whenever.RepeatedTime:
        first, second = (local.assume_tz(name, disambiguation=which).timestamp() for which in ("earlier", "later"))
        return first, "fold", second
    except whenever.SkippedTime:
        before: Any = local.assume_tz(name, disambiguation="earlier")
        return before.next_transition().timestamp(), "gap", None


def by_zoneinfo(name: str, wall: int) -> Answer:
    """PEP 495: in a fold the earlier pass has fold=0; in a gap fold=0 has the offset from before it."""
    zone, local = pinned(name), EPOCH + wall * SECOND
    first, second = (wall - _offset(zone, local.replace(fold=fold)) for fold in (0, 1))
    if first == second:
        return first, "ok", None
    if first < second:
        return first, "fold", second
    low, high = second - 1, first  # before and after the change: find its second
    offset = shown(zone, low) - low
    while high - low > 1:
        middle = (low + high) // 2
        if shown(zone, middle) - middle == offset:
            low = middle
        else:
            high = middle
    return high, "gap", None


def _offset(zone: ZoneInfo, local: datetime) -> int:
    offset = zone.utcoffset(local)
    assert offset is not None
    return offset // SECOND


def shown(zone: ZoneInfo, second: int) -> int:
    """The wall that the clocks of a zone show at an instant."""
    return wall_of((EPOCH_UTC + second * SECOND).astimezone(zone))


def changes(name: str, since: int, until: int) -> list[tuple[int, int, int]]:
    """Each change of offset that whenever knows of: second, offset before, offset after."""
    found: list[tuple[int, int, int]] = []
    at: Any = whenever.Instant.from_timestamp(since).to_tz(name)
    while True:
        before = at.offset.total("seconds")
        at = at.next_transition()
        if at is None or at.timestamp() > until:
            return found
        if before != at.offset.total("seconds"):
            found.append((at.timestamp(), int(before), int(at.offset.total("seconds"))))
