"""serve.times - instants as answers and pages write them.

For: RFC 3339 in UTC with Z, and the same for a person: a date, a time, how far away it is.
Never: reads a clock; guesses a reader's zone.
Was wrong once: local time on approval pages. A manager in Vienna and one in Lisbon took one deadline
for two.
"""

from __future__ import annotations

from datetime import datetime

from onefold.terms.instant import down, moment, text

_STEPS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def written(at: datetime | None) -> str | None:
    """As JSON has it, to the millisecond, or None."""
    return None if at is None else text(down(at))


def spoken(at: datetime | None) -> str:
    """For a person: `30 Nov 2026, 14:05 UTC`."""
    return "" if at is None else f"{moment(down(at)):%-d %b %Y, %H:%M} UTC"


def away(at: datetime | None, now_ms: int) -> str:
    """How far: `in 3 hours`, `2 days ago`, `now` within a second."""
    if at is None:
        return ""
    gap = down(at) - now_ms
    for size, word in _STEPS:
        count = (
            abs(gap) + (size // 20 if size > 1_000 else 0)
        ) // size  # a day less ten seconds is a day, not 23 hours
        if count:
            named = f"{count} {word}{'s' if count != 1 else ''}"
            return f"in {named}" if gap > 0 else f"{named} ago"
    return "now"


def read(value: object) -> datetime | None:
    """An instant out of a receipt's JSON; None for what is none. Receipts are ours, so nothing is refused."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
