"""almanac.calendar - rules in calendar words: each day, week, month or year, or once.

For: which key comes next, and where it falls. Days past a month's end are its last day.
Never: steps from instant to instant; it counts periods, and asks the zone only where one falls.
Was wrong once: a month rule on the 31st that left February out. It bills eleven months a year.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from onefold.almanac.occurrence import (
    BEFORE_ALL,
    MAX_WALL,
    MIN_WALL,
    START,
    Key,
    Occurrence,
    day_number,
    day_text,
    not_a_key,
    placed,
    read_wall,
    wall_text,
)
from onefold.almanac.tzif import DAY_S, EPOCH_DAY
from onefold.almanac.zones import Zone
from onefold.terms.instant import Instant

Period = Literal["day", "week", "month", "year"]
PERIODS: Final[tuple[Period, ...]] = ("day", "week", "month", "year")
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FORMS: Final[dict[Period, tuple[re.Pattern[str], str]]] = {
    "day": (re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII), "2026-03-07"),
    "week": (re.compile(r"(\d{4})-W(\d\d)", re.ASCII), "2026-W10"),
    "month": (re.compile(r"(\d{4})-(\d\d)", re.ASCII), "2026-03"),
    "year": (re.compile(r"(\d{4})", re.ASCII), "2026"),
}


@dataclass(frozen=True, slots=True)
class Calendar:
    """Once in each period, at `minute` of the local day (0 to 1439).

    on: day: 0. week: 0 (Monday) to 6. month: 1 to 31. year: month * 100 + day. Past the month's end: its last day.
    """

    every: Period
    on: int
    minute: int
    zone: Zone

    def next(self, after: Instant | Key) -> Occurrence | None:
        """As `Rule.next`."""
        if after == START:
            after = BEFORE_ALL
        if isinstance(after, str):
            return self._slot(self._number(after) + 1)
        reached = self.zone.reached(after // 1000)
        number = self._counted(reached)
        return self._slot(number if self._wall(number) > reached else number + 1)

    def latest(self, until: Instant) -> Occurrence | None:
        """As `Rule.latest`."""
        reached = self.zone.reached(until // 1000)
        number = self._counted(reached)
        return self._slot(number - 1 if self._wall(number) > reached else number)

    def plan(self, key: Key) -> Occurrence:
        """As `Rule.plan`."""
        slot = self._slot(self._number(key))
        if slot is None:
            raise not_a_key(key, f"{FORMS[self.every][1]}, in the years 1 to 9999")
        return slot

    def _slot(self, number: int) -> Occurrence | None:
        wall = self._wall(number)
        return placed(self._key(number), wall, self.zone) if MIN_WALL <= wall <= MAX_WALL else None

    def _counted(self, wall: int) -> int:
        """The number of the period that a wall lies in."""
        day = min(max(wall, MIN_WALL), MAX_WALL) // DAY_S
        if self.every == "day":
            return day
        if self.every == "week":
            return (day + 3) // 7  # 1970 began on a Thursday
        year, month, _ = date.fromordinal(day + EPOCH_DAY).timetuple()[:3]
        return year if self.every == "year" else year * 12 + month - 1

    def _wall(self, number: int) -> int:
        """The local time of a period's slot; outside the years 1 to 9999, any wall outside them."""
        day = number
        if self.every == "week":
            day = number * 7 - 3 + self.on
        elif self.every != "day":
            year, month, on = number, self.on // 100, self.on % 100
            if self.every == "month":
                year, month, on = number // 12, number % 12 + 1, self.on
            if not 1 <= year <= 9999:
                return MIN_WALL - 1 if year < 1 else MAX_WALL + 1
            day = day_number(year, month, min(on, monthrange(year, month)[1]))
        return day * DAY_S + self.minute * 60

    def _key(self, number: int) -> Key:
        if self.every == "day":
            return Key(day_text(number))
        if self.every == "week":
            year, week, _ = date.fromordinal(number * 7 - 3 + self.on + EPOCH_DAY).isocalendar()
            return Key(f"{year:04}-W{week:02}")
        return Key(f"{number:04}" if self.every == "year" else f"{number // 12:04}-{number % 12 + 1:02}")

    def _number(self, key: str) -> int:
        """The number of the period that a key names. Raises: BadArguments."""
        pattern, form = FORMS[self.every]
        match = pattern.fullmatch(key)
        if match is not None:
            fields = [int(part) for part in match.groups()]
            try:
                if self.every == "week":
                    return (date.fromisocalendar(fields[0], fields[1], 1).toordinal() - EPOCH_DAY + 3) // 7
                year, month, day = [*fields, 1, 1][:3]
                return self._counted(day_number(year, month, day) * DAY_S)
            except ValueError:
                pass
        raise not_a_key(key, form)


@dataclass(frozen=True, slots=True)
class Once:
    """One local time; `wall` in seconds, as `Zone` counts them. Its key is the time itself: "2026-09-14T09:00"."""

    wall: int
    zone: Zone

    def next(self, after: Instant | Key) -> Occurrence | None:
        """As `Rule.next`; equal to `after` is past."""
        slot = self._slot(self.wall)
        if after == START:
            after = BEFORE_ALL
        if isinstance(after, str):
            return slot if self.wall > self._read(after) else None
        return slot if slot is not None and slot.at > after else None

    def latest(self, until: Instant) -> Occurrence | None:
        """As `Rule.latest`."""
        slot = self._slot(self.wall)
        return slot if slot is not None and slot.at <= until else None

    def plan(self, key: Key) -> Occurrence:
        """As `Rule.plan`."""
        slot = self._slot(self._read(key))
        if slot is None:
            raise not_a_key(key, "2026-09-14T09:00, in the years 1 to 9999")
        return slot

    def _slot(self, wall: int) -> Occurrence | None:
        return placed(Key(wall_text(wall)), wall, self.zone)

    def _read(self, key: str) -> int:
        wall = read_wall(key)
        if wall is None:
            raise not_a_key(key, "2026-09-14T09:00")
        return wall
