"""reflex.backlog - how many facts may wait to be matched, before the door turns more away.

For: a bound on the intake that costs nothing until it is near: a count of what came, and rows counted only then.
Never: turns away what a module publishes or an effect emits: those are committed with what they are of.
Was wrong once: no bound. A producer in a loop filled the disk overnight, and what it wrote took a week to match.

Facts that are kept for a later day wait for their day and for nobody here: they are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from onefold.reflex.tables import INTAKE
from onefold.store.contract import Query, Row, Space
from onefold.terms.errors import Busy
from onefold.terms.instant import Instant

PAGE = 2_000
LOOK_AGAIN_MS = 1_000  # while it is full: counting costs as much as the rows are many
_DUE, _N = INTAKE.at["due_at"], INTAKE.at["n"]


class Backlog:
    """Of one engine over one space. `limit`: how many may be due and unmatched."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._known = 0  # at least what this engine let in since somebody found the queue short
        self._full_at: Instant | None = None

    async def admit(self, space: Space, now: Instant) -> None:
        """One more wants in. Raises: Busy."""
        if self._full_at is not None and self._full_at <= now < self._full_at + LOOK_AGAIN_MS:
            raise Busy("The intake", self.limit)
        self._full_at = None
        if self._known >= self.limit:
            self._known = await self._count(space, now)
            if self._known >= self.limit:
                self._full_at = now
                raise Busy("The intake", self.limit)
        self._known += 1

    def matched(self, count: int, more: bool) -> None:
        """An advance matched this many; `more`: whether others may still be due."""
        self._known = max(0, self._known - count) if more else 0
        self._full_at = None if count else self._full_at

    async def _count(self, space: Space, now: Instant) -> int:
        """How many are due, up to the limit."""
        count, last = 0, (-(2**62), -1)
        while count < self.limit:
            rows = await _after(space, now, last)
            if not rows:
                break
            count, last = count + len(rows), (int(rows[-1][_DUE] or 0), int(rows[-1][_N] or 0))
        return count


async def _after(space: Space, now: Instant, last: tuple[int, int]) -> Sequence[Row]:
    at, n = last
    same, later = await space.look(
        Query(INTAKE, where=(("due_at", "=", at), ("n", ">", n)), order=("n",), limit=PAGE),
        Query(INTAKE, where=(("due_at", ">", at), ("due_at", "<=", now)), order=("due_at", "n"), limit=PAGE),
    )
    return list(same) or list(later)
