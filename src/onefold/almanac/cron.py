"""almanac.cron - a cron text in a zone: which minute comes next, and where it falls.

For: two clocks in one grammar. Where the hour is fixed, each local minute comes once, as in `calendar`.
     Where every hour matches, the rule follows elapsed time: a repeated hour comes twice, the second pass
     with its offset in the key, and an erased one adds nothing.
Never: clamps a day. `0 0 31 * *` leaves out the months that have none.
Was wrong once: one policy for both. Hourly work was silent for an hour each autumn, or a daily
report was sent twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from onefold.almanac.fields import ALL_HOURS, Fields, parse
from onefold.almanac.occurrence import (
    BEFORE_ALL,
    START,
    Key,
    Occurrence,
    not_a_key,
    offset_text,
    placed,
    read_offset,
    read_wall,
    wall_text,
    within,
)
from onefold.almanac.zones import Zone
from onefold.terms.instant import Instant

FORM = "2026-10-25T02:30 or, in a second pass, 2026-10-25T02:30+01:00"
CLOCK_CHARS = len("2026-10-25T02:30")


@dataclass(frozen=True, slots=True)
class Cron:
    """`fields` read on the clocks of `zone`. Made by `cron_rule`."""

    fields: Fields
    zone: Zone

    @property
    def elapsed(self) -> bool:
        """Whether every hour matches, and the rule follows elapsed time."""
        return self.fields.hours == ALL_HOURS

    def next(self, after: Instant | Key) -> Occurrence | None:
        """As `Rule.next`. By key, minutes that share an instant come one by one; by instant, the first of them."""
        if after == START:
            after = BEFORE_ALL
        if isinstance(after, str):
            if self.elapsed:
                return self._pass_after(self._second_of(after))
            return self._slot(self.fields.following(_read(after)[0] // 60 + 1))
        if self.elapsed:
            return self._pass_after(after // 1000)
        return self._slot(self.fields.following(self.zone.reached(after // 1000) // 60 + 1))

    def latest(self, until: Instant) -> Occurrence | None:
        """As `Rule.latest`."""
        if self.elapsed:
            return self._pass_until(until // 1000)
        return self._slot(self.fields.preceding(self.zone.reached(until // 1000) // 60))

    def plan(self, key: Key) -> Occurrence:
        """As `Rule.plan`. A second pass names its offset, so new zone data does not move it."""
        wall, offset = _read(key)
        found = placed(key, wall, self.zone) if offset is None else self._passing(wall, offset)
        if found is None:
            raise not_a_key(key, f"{FORM}, in the years 1 to 9999")
        return found

    def _slot(self, minute: int | None) -> Occurrence | None:
        """A local minute at its first pass."""
        return None if minute is None else placed(Key(wall_text(minute * 60)), minute * 60, self.zone)

    def _pass_after(self, second: int) -> Occurrence | None:
        """The first pass, of any minute, after an instant: stretch by stretch of constant offset."""
        _, end, offset = self.zone.segment(second)
        minute = self.fields.following((second + offset) // 60 + 1)
        while minute is not None:
            if minute * 60 - offset < end:
                return self._passing(minute * 60, offset)
            start, end, offset = self.zone.segment(end)
            minute = self.fields.following(-(-(start + offset) // 60))
        return None

    def _pass_until(self, second: int) -> Occurrence | None:
        start, _, offset = self.zone.segment(second)
        minute = self.fields.preceding((second + offset) // 60)
        while minute is not None:
            if minute * 60 - offset >= start:
                return self._passing(minute * 60, offset)
            start, end, offset = self.zone.segment(start - 1)
            minute = self.fields.preceding((end - 1 + offset) // 60)
        return None

    def _passing(self, wall: int, offset: int) -> Occurrence | None:
        """The pass of a wall under one offset."""
        at = Instant((wall - offset) * 1000)
        first, edge = self.zone.first(wall)
        if first * 1000 == at:
            return within(Occurrence(Key(wall_text(wall)), at, edge))
        return within(Occurrence(Key(wall_text(wall) + offset_text(offset)), at, "fold2"))

    def _second_of(self, key: str) -> int:
        """The instant to go on from after a key. A key that is erased by now begins no pass, so what falls on the
        gap's end still comes."""
        wall, offset = _read(key)
        if offset is not None:
            return wall - offset
        second, edge = self.zone.first(wall)
        return second - 1 if edge == "gap" else second


def cron_rule(text: str, zone: Zone, *, what: str = "cron") -> Cron:
    """The rule of a cron text in a zone. Raises: BadArguments, saying which field, where, and what it takes."""
    return Cron(parse(text, what=what), zone)


def _read(key: str) -> tuple[int, int | None]:
    """The wall of a key and, in a second pass, its offset. Raises: BadArguments."""
    wall, tail = read_wall(key[:CLOCK_CHARS]), key[CLOCK_CHARS:]
    offset = read_offset(tail) if tail else None
    if wall is None or (tail and offset is None):
        raise not_a_key(key, FORM)
    return wall, offset
