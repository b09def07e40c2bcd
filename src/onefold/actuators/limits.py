"""actuators.limits - how many runs of an actuator may go at a time, and how many may begin in a while.

For: reading `at_once`, `rate`, `debounce` and `per` of `@actuator`.
Never: counts; waits.
Was wrong once: a rate kept as runs a second. "100 per minute" let one begin each 600 ms, and a burst of ten took six seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NoReturn

from onefold.terms.duration import UNITS, duration_ms
from onefold.terms.errors import BadArguments

MOST: Final = 10_000
"""Runs that a limit may count: their instants stand in one row."""
_RATE: Final = re.compile(r"([1-9][0-9]{0,8}) per (.{1,40})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Limits:
    """at_once: runs that have begun and not ended. rate: so many may begin within so many ms. debounce: ms of quiet before
    the last of them begins. per: fields of the input; runs that agree on them are counted together, alone.
    """

    at_once: int | None = None
    rate: tuple[int, int] | None = None
    debounce: int | None = None
    per: tuple[str, ...] = ()


def limits_of(
    at_once: object, rate: object, debounce: object, per: tuple[str, ...], refuse: Callable[[str], NoReturn]
) -> Limits | None:
    """What an actuator said; None when it said nothing. refuse: raises LoadRefused."""
    if at_once is None and rate is None and debounce is None:
        if per:
            refuse("says `per`, and no at_once, rate or debounce that it could be for")
        return None
    if at_once is not None and (not isinstance(at_once, int) or isinstance(at_once, bool) or not 1 <= at_once <= MOST):
        refuse(f"at_once={at_once!r} must be a whole number from 1 to {MOST}")
    quiet = None if debounce is None else _debounce(debounce, refuse)
    return Limits(at_once, None if rate is None else _rate(rate, refuse), quiet, per)


def _rate(said: object, refuse: Callable[[str], NoReturn]) -> tuple[int, int]:
    found = _RATE.fullmatch(said) if isinstance(said, str) else None
    if found is None:
        refuse(f'rate={said!r} must be text such as "100 per minute" or "5 per 10 seconds"')
    count, while_ = int(found[1]), found[2]
    if count > MOST:
        refuse(f"rate={said!r} lets more than {MOST} begin; say it of a shorter while")
    try:
        ms = duration_ms(f"1 {while_}" if while_ in UNITS else while_)
    except BadArguments as bad:
        refuse(f"rate={said!r} {bad.faults[0].problem}")
    if ms == 0:
        refuse(f"rate={said!r} must be of a while longer than nothing")
    return count, ms


def _debounce(said: object, refuse: Callable[[str], NoReturn]) -> int:
    if not isinstance(said, str | timedelta):
        refuse(f'debounce={said!r} must be a duration such as "10 seconds"')
    try:
        return duration_ms(said, what="debounce")
    except BadArguments as bad:
        refuse(f"debounce={said!r} {bad.faults[0].problem}")
