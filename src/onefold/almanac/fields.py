"""almanac.fields - the five fields of a cron text, as bits, and the local minutes they match.

For: reading `minute hour day-of-month month day-of-week` strictly, and the next or last match.
     Where both day fields are restricted either may match; a field that begins with * is not restricted.
Never: knows a zone. A minute here is a local one, counted from 1970 as if the wall showed UTC.
Was wrong once: `*/90` taken for every ninety minutes. It matched minute 0 of each hour, silently.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from typing import Final

from onefold.almanac.tzif import EPOCH_DAY
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import nearest

MAX_CHARS: Final = 500
"""A list of every minute has 169 characters; nothing longer than three of them is a person's."""
FIRST_DAY: Final = date.min.toordinal() - EPOCH_DAY
LAST_DAY: Final = date.max.toordinal() - EPOCH_DAY
DAY_MINUTES: Final = 1440

MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
PART: Final = re.compile(r"(?:(\*)|([0-9a-z]+)(?:-([0-9a-z]+))?)(?:/([0-9]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Field:
    """One place of the five: its name, what it takes, what `*` stands for and begins anew with, words for numbers."""

    name: str
    low: int
    high: int
    whole: range
    round: str
    words: tuple[str, ...] = ()

    def number(self, text: str) -> int | None:
        if text in self.words:
            return self.words.index(text) + self.low
        if text.isdigit() and len(text) <= 2 and self.low <= int(text) <= self.high:
            return int(text)
        return None


FIELDS: Final = (
    Field("minute", 0, 59, range(60), "hour"),
    Field("hour", 0, 23, range(24), "day"),
    Field("day of month", 1, 31, range(1, 32), "month"),
    Field("month", 1, 12, range(1, 13), "year", tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())),
    Field("day of week", 0, 7, range(7), "week", tuple("sun mon tue wed thu fri sat".split())),
)
ALL_HOURS: Final = (1 << 24) - 1
LENGTHS: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Fields:
    """Bit n of `minutes`, `hours`, `days` and `months` is set where n matches; `weekdays[k]` has the days of a month
    that begins on weekday k, Monday first. `both`: a day must match both day fields."""

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: tuple[int, ...]
    both: bool

    def following(self, minute: int) -> int | None:
        """The first local minute that matches, not before `minute`; None past the year 9999."""
        day, of_day = divmod(max(minute, FIRST_DAY * DAY_MINUTES), DAY_MINUTES)
        if self._matches(day) and (found := self._later(of_day)) is not None:
            return day * DAY_MINUTES + found
        next_day = self._day_from(day + 1)
        return None if next_day is None else next_day * DAY_MINUTES + _lowest(self.hours) * 60 + _lowest(self.minutes)

    def preceding(self, minute: int) -> int | None:
        """The last local minute that matches, not after `minute`; None before the year 1."""
        day, of_day = divmod(minute, DAY_MINUTES)
        if self._matches(day) and (found := self._earlier(of_day)) is not None:
            return day * DAY_MINUTES + found
        last_day = self._day_until(day - 1)
        return None if last_day is None else last_day * DAY_MINUTES + _highest(self.hours) * 60 + _highest(self.minutes)

    def _later(self, of_day: int) -> int | None:
        hour, minute = divmod(of_day, 60)
        hours = self.hours >> hour
        if hours & 1 and (rest := self.minutes >> minute):
            return of_day + _lowest(rest)
        hours >>= 1
        return (hour + 1 + _lowest(hours)) * 60 + _lowest(self.minutes) if hours else None

    def _earlier(self, of_day: int) -> int | None:
        hour, minute = divmod(of_day, 60)
        if self.hours >> hour & 1 and (rest := self.minutes & (2 << minute) - 1):
            return hour * 60 + _highest(rest)
        hours = self.hours & (1 << hour) - 1
        return _highest(hours) * 60 + _highest(self.minutes) if hours else None

    def _matches(self, day: int) -> bool:
        if not FIRST_DAY <= day <= LAST_DAY:
            return False
        on = date.fromordinal(day + EPOCH_DAY)
        return bool(self._days_of(on.year, on.month) >> on.day & 1)

    def _days_of(self, year: int, month: int) -> int:
        """The days of a month that match, as bits."""
        if not self.months >> month & 1:
            return 0
        first, length = monthrange(year, month)
        weekdays = self.weekdays[first]
        days = self.days & weekdays if self.both else self.days | weekdays
        return days & (2 << length) - 1

    def _day_from(self, day: int) -> int | None:
        if day > LAST_DAY:
            return None
        on = date.fromordinal(day + EPOCH_DAY)
        if left := self._days_of(on.year, on.month) >> on.day:
            return day + _lowest(left)
        for year in range(on.year, 10_000):
            for month in range(on.month + 1 if year == on.year else 1, 13):
                if days := self._days_of(year, month):
                    return date(year, month, _lowest(days)).toordinal() - EPOCH_DAY
        return None

    def _day_until(self, day: int) -> int | None:
        day = min(day, LAST_DAY)
        if day < FIRST_DAY:
            return None
        on = date.fromordinal(day + EPOCH_DAY)
        if left := self._days_of(on.year, on.month) & (2 << on.day) - 1:
            return day - on.day + _highest(left)
        for year in range(on.year, 0, -1):
            for month in range(on.month - 1 if year == on.year else 12, 0, -1):
                if days := self._days_of(year, month):
                    return date(year, month, _highest(days)).toordinal() - EPOCH_DAY
        return None


def parse(text: str, *, what: str = "cron") -> Fields:
    """The fields of a cron text. Raises: BadArguments with `what` as its field, saying which part and where."""
    if not isinstance(text, str):
        raise _bad(what, "is not text; write five fields, such as 0 9 * * mon-fri", text)
    if len(text) > MAX_CHARS:
        raise _bad(what, f"has {len(text)} characters; the limit is {MAX_CHARS}", text)
    words = [(match.start(), match[0].lower()) for match in re.finditer(r"[^ \t]+", text)]
    if len(words) != len(FIELDS):
        raise _bad(what, _miscounted(words), text)
    try:
        bits = [_bits(FIELDS[n], word, at, n + 1) for n, (at, word) in enumerate(words)]
    except ValueError as why:
        raise _bad(what, str(why), text) from None
    minutes, hours, days, months, weekday_bits = bits
    both = any(words[n][1].startswith("*") for n in (2, 4))
    if never := _never(days, months, both):
        raise _bad(what, never, text)
    return Fields(minutes, hours, days, months, _weekdays(weekday_bits), both)


def _weekdays(bits: int) -> tuple[int, ...]:
    """For months that begin on Monday, Tuesday ...: the days that fall on one of the weekdays, 0 and 7 for Sunday."""
    sunday_first = bits | bits >> 7
    return tuple(sum((sunday_first >> (first + day) % 7 & 1) << day for day in range(1, 32)) for first in range(7))


def _bits(field: Field, word: str, at: int, place: int) -> int:
    """The numbers one field takes, as bits. `at` is where it begins in the text, from 0. Raises: ValueError, in words."""
    bits = 0
    for part in word.split(","):
        try:
            numbers = _numbers(field, part)
        except ValueError as why:
            raise ValueError(f"{field.name} (field {place}, character {at + 1}): {why}") from None
        for number in numbers:
            bits |= 1 << number
        at += len(part) + 1
    return bits


def _numbers(field: Field, part: str) -> range:
    match = PART.fullmatch(part)
    if match is None:
        raise ValueError(_unreadable(part))
    star, low_text, high_text, step_text = match.groups()
    last = field.whole[-1]
    step = int(step_text) if step_text else 1
    if not 1 <= step <= last:
        raise ValueError(f"a step of {step_text} does not fit; it is 1 to {last} and counts anew each {field.round}")
    if star:
        return field.whole[::step]
    low, high = field.number(low_text), field.number(high_text or low_text)
    if low is None or high is None:
        raise ValueError(_not_taken(field, low_text if low is None else high_text))
    if step_text and not high_text:
        raise ValueError(f"{part} has no end; write {low_text}-{last}/{step_text}")
    if high_text == "sun" and low > 0:
        high = 7
    if high < low:
        raise ValueError(f"{part} runs backwards; write {low_text}-{last},{field.low}-{high_text}")
    return range(low, high + 1, step)


def _unreadable(part: str) -> str:
    if not part:
        return "a part is empty; there is a comma too many"
    if "?" in part:
        return "there is no ? in five-field cron; write *"
    if "#" in part:
        return f"{part} is not five-field cron, which has no # for the nth weekday"
    return f"{part} is not a number, a range, a list, or one of them with a step"


def _not_taken(field: Field, word: str) -> str:
    if re.fullmatch(r"l|lw|[0-9]*[lw]", word):
        return f"{word.upper()} is not five-field cron, which has no last day and no nearest weekday"
    takes = f"{field.low} to {field.high}" + (f" or {field.words[0]} to {field.words[-1]}" if field.words else "")
    near = nearest(word, field.words) if field.words and not word.isdigit() else None
    return f"{word} is not {takes}" + (f"; did you mean {near}?" if near else "")


def _miscounted(words: list[tuple[int, str]]) -> str:
    if not words:
        return "is empty; write five fields, such as 0 9 * * mon-fri"
    first = words[0][1]
    if first in MACROS:
        return f"{first} is not five fields; write {MACROS[first]}"
    hint = "; there is no field for seconds or years" if len(words) > len(FIELDS) else ""
    fields = ", ".join(field.name for field in FIELDS)
    return f"has {len(words)} field{'s' * (len(words) != 1)}, not five: {fields}{hint}"


def _never(days: int, months: int, both: bool) -> str | None:
    """Why no date can match, or None. Each date of the calendar meets each weekday within 400 years, 29 February
    too, so only a day that its months do not have is never met."""
    longest = [month for month in range(1, 13) if months >> month & 1]
    if not both or any(days & (2 << LENGTHS[month]) - 1 for month in longest):
        return None
    names = ", ".join(FIELDS[3].words[month - 1] for month in longest)
    return f"never comes: there is no day {_lowest(days)} in {names}"


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _highest(bits: int) -> int:
    return bits.bit_length() - 1


def _bad(what: str, problem: str, text: object) -> BadArguments:
    return BadArguments([Fault(what, problem, text)])
