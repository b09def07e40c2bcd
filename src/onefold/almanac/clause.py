"""almanac.clause - the `clock` clause of an automation: JSON in, rule out.

For: {"every": "month", "on": 1, "at": "03:00", "tz": "Europe/Vienna"}
     {"at": "2026-09-14T09:00", "tz": "Europe/Vienna"}
     {"cron": "0 9 * * mon-fri", "tz": "Europe/Vienna"}
Never: fills in a time or a zone that was not said. Only `on` has a default, the first day of the period.
Was wrong once: "24:00" taken for the midnight that ends the day. Half of its writers mean the one that begins it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onefold.almanac.calendar import PERIODS, WEEKDAYS, Calendar, Once, Period
from onefold.almanac.cron import Cron, cron_rule
from onefold.almanac.fields import LENGTHS
from onefold.almanac.occurrence import CLOCK, read_wall
from onefold.almanac.zones import Zone, zone
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import nearest

FIRST_OF: Final[Mapping[Period, int]] = {"day": 0, "week": 0, "month": 1, "year": 101}
WORDS: Final = ("every", "on", "at", "cron", "tz")
SHAPES: Final = {
    "every": {"every", "on", "at", "tz"},
    "cron": {"cron", "tz"},
    "at": {"at", "tz"},
}


class _Faults:
    """What is wrong with a clause, gathered so that a person hears it all at once."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: list[Fault] = []

    def add(self, word: str, problem: str, got: object = None) -> None:
        self.found.append(Fault(f"{self.where}.{word}" if word else self.where, problem, got))

    def taken(self, fault: BadArguments) -> None:
        self.found.extend(fault.faults)


def clock_rule(clause: object, *, where: str = "clock") -> Calendar | Once | Cron:
    """The rule a clause states. Raises: BadArguments with one fault for each thing wrong, its path under `where`."""
    faults = _Faults(where)
    if not isinstance(clause, Mapping):
        faults.add("", 'is not an object; write {"every": "day", "at": "09:00", "tz": "Europe/Vienna"}', clause)
        raise BadArguments(faults.found)
    shape = next((word for word in ("every", "cron", "at") if word in clause), None)
    if shape is None:
        faults.add("", 'says no time; give "every" and "at", or "at" with a date, or "cron"')
    _check_words(clause, shape, faults)
    in_zone = _zone(clause, faults)
    rule: Calendar | Once | Cron | None = None
    # A broken zone does not hide what else is wrong: the rest is read on UTC, and refused with it.
    if shape == "every":
        rule = _calendar(clause, in_zone, faults)
    elif shape == "cron":
        rule = _cron(clause["cron"], in_zone, faults)
    elif shape == "at":
        rule = _once(clause["at"], in_zone, faults)
    if faults.found or rule is None:
        raise BadArguments(faults.found)
    return rule


def _check_words(clause: Mapping[str, object], shape: str | None, faults: _Faults) -> None:
    for word in clause:
        if word not in WORDS:
            near = nearest(str(word), WORDS)
            faults.add(str(word), "is no word of a clock" + (f"; did you mean {near!r}?" if near else ""))
        elif shape and word not in SHAPES[shape]:
            faults.add(word, f"does not go with {shape!r}")


def _zone(clause: Mapping[str, object], faults: _Faults) -> Zone:
    if "tz" not in clause:
        faults.add("tz", 'is missing; give an IANA name, such as "Europe/Vienna"')
        return zone("UTC")
    try:
        return zone(clause["tz"], what=f"{faults.where}.tz")  # type: ignore[arg-type]  # refused there when it is no text
    except BadArguments as bad:
        faults.taken(bad)
        return zone("UTC")


def _calendar(clause: Mapping[str, object], in_zone: Zone, faults: _Faults) -> Calendar | None:
    minute = _minute(clause, faults)
    every = next((period for period in PERIODS if period == clause["every"]), None)
    if every is None:
        faults.add("every", "is not day, week, month or year", clause["every"])
        return None
    on = _on(every, clause["on"], faults) if "on" in clause else FIRST_OF[every]
    return None if on is None or minute is None else Calendar(every, on, minute, in_zone)


def _minute(clause: Mapping[str, object], faults: _Faults) -> int | None:
    if "at" not in clause:
        faults.add("at", 'is missing; give the local time, such as "09:00"')
        return None
    given = clause["at"]
    match = CLOCK.fullmatch(given) if isinstance(given, str) else None
    if match is not None and match[3] is None:
        return int(match[1]) * 60 + int(match[2])
    hint = '; write "00:00", which begins the next day' if given == "24:00" else ""
    faults.add("at", f"is not a time of day from 00:00 to 23:59{hint}", given)
    return None


def _on(every: Period, given: object, faults: _Faults) -> int | None:
    """`on` as `Calendar` counts it."""
    if every == "day":
        faults.add("on", "does not go with a rule for each day", given)
    elif every == "week":
        if isinstance(given, str) and given in WEEKDAYS:
            return WEEKDAYS.index(given)
        faults.add("on", f"is not one of {', '.join(WEEKDAYS)}", given)
    elif every == "month":
        if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= 31:
            return given
        faults.add("on", "is not a day from 1 to 31, which is the last day of any month", given)
    else:
        month, dash, day = given.partition("-") if isinstance(given, str) else ("", "", "")
        if dash and len(month) == len(day) == 2 and (month + day).isascii() and (month + day).isdigit():
            number = int(month)
            if 1 <= number <= 12 and 1 <= int(day) <= LENGTHS[number]:
                return number * 100 + int(day)
        faults.add("on", 'is not a day of the year, written "MM-DD"', given)
    return None


def _cron(text: object, in_zone: Zone, faults: _Faults) -> Cron | None:
    try:
        return cron_rule(text, in_zone, what=f"{faults.where}.cron")  # type: ignore[arg-type]  # refused there when it is no text
    except BadArguments as bad:
        faults.taken(bad)
        return None


def _once(given: object, in_zone: Zone, faults: _Faults) -> Once | None:
    wall = read_wall(given) if isinstance(given, str) else None
    if wall is not None:
        return Once(wall, in_zone)
    hint = '; with a time of day, say "every" too' if isinstance(given, str) and CLOCK.fullmatch(given) else ""
    faults.add("at", f'is not a local date and time, such as "2026-09-14T09:00"{hint}', given)
    return None
