"""kernel.alarm - when must this actor next be woken? Pure.

For: the one row that says it: whether a fold must write it, and what becomes of it after a wake that failed.
Never: asks the clock; writes; looks at what an actor means by its wake.

The row may be early once, is never late, and never spins:
  due    = min(wake, soonest outstanding owed row); a wake that was tried and failed counts from its retry
  a fold writes the row only to tighten it
  it rings: due in the future -> write due exactly; due now -> fold; a fold that raised, or changed
  nothing and is still due, has failed: count, back off on the row, park after the limit.
Was wrong once: the row rewritten by each fold. It cost up to 40 % of the folds a second, and an
idle timeout pushed back a thousand times wrote a thousand rows instead of four.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_MS = 1_000  # as the first retry of an owed row: one number to remember
AT_MOST_MS = 15 * 60_000  # a wake that failed for hours is tried four times an hour until parked
LIMIT = 12  # doubling from 1 s to 15 min: parked after about an hour and three quarters


@dataclass(slots=True)
class Alarm:
    """The actor's alarm row, as committed. `at` None with an error: parked."""

    at: int | None = None
    tries: int = 0
    error: str | None = None
    written: bool = False  # the row exists

    @property
    def given_up(self) -> bool:
        """Whether its wake is parked, also while the row rings for something that is owed."""
        return self.written and self.tries >= LIMIT


def soonest(wake: int | None, owed: int | None) -> int | None:
    """The earlier of two instants, None being never."""
    if wake is None:
        return owed
    if owed is None:
        return wake
    return min(owed, wake)


def tightened(row: Alarm, due: int | None) -> bool:
    """Whether a fold must write the row: it would otherwise ring later than what is due.

    A parked row too: the wake that parked it is not in `due`, and what is owed beside it must ring.
    """
    return due is not None and (row.at is None or due < row.at)


def after_failure(row: Alarm, now: int, error: str) -> Alarm:
    """The row after a wake that failed at `now` (ms): backed off, or parked with its last error."""
    tries = row.tries + 1
    if tries >= LIMIT:
        return Alarm(None, tries, error, True)
    return Alarm(now + min(FIRST_MS << (tries - 1), AT_MOST_MS), tries, error, True)
