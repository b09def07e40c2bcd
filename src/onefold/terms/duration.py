"""terms.duration - how long, as people write it: "90 seconds", "1h 30m", or a timedelta.

For: reading a duration into whole milliseconds.
Never: guesses a unit. A bare number is refused, because half of its readers take it for seconds.
Was wrong once: `float(text)`. "nan" passed every comparison, and a timer never rang.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Final

from onefold.terms.errors import BadArguments, Fault
from onefold.terms.limits import MAX_DURATION_CHARS, MAX_DURATION_MS

SECOND, MINUTE, HOUR, DAY, WEEK = 1_000, 60_000, 3_600_000, 86_400_000, 604_800_000
WORDS: Final[tuple[tuple[int, str], ...]] = (
    (1, "ms millisecond milliseconds"),
    (SECOND, "s sec secs second seconds"),
    (MINUTE, "m min mins minute minutes"),
    (HOUR, "h hr hrs hour hours"),
    (DAY, "d day days"),
    (WEEK, "w week weeks"),
)
UNITS: Final[dict[str, int]] = {word: ms for ms, words in WORDS for word in words.split()}
PIECE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)(?:,? +and +|,? +)?", re.ASCII)
NUMBER: Final = re.compile(r"[+-]?([0-9_]+\.?[0-9_]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
HOW: Final = 'write "30 seconds", "1h 30m" or a timedelta'


def duration_ms(value: str | timedelta, *, what: str = "duration") -> int:
    """`value` in whole milliseconds, a part of one counted as one, so that nothing is ever early.

    Text is numbers with ms, s, m, h, d, w or the English words. Raises: BadArguments, with `what`
    as its field, for a bare number, a negative, NaN, infinity, an unknown unit, over ten years.
    """
    given: object = value
    if isinstance(given, timedelta):
        micros = (given.days * 86_400 + given.seconds) * 1_000_000 + given.microseconds
        ms = -(-micros // 1000) if micros >= 0 else -1
    elif isinstance(given, str):
        ms = _read(given, what)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        raise _bad(what, f"has no unit; {HOW}", given)
    else:
        raise _bad(what, f"is not a duration; {HOW}", given)
    if ms < 0:
        raise _bad(what, "must not be negative", str(value))
    if ms > MAX_DURATION_MS:
        raise _bad(what, "is longer than ten years", str(value))
    return ms


def _read(text: str, what: str) -> int:
    trimmed = text.strip()
    if not trimmed:
        raise _bad(what, f"is empty; {HOW}", None)
    if len(text) > MAX_DURATION_CHARS:
        raise _bad(what, f"has {len(text)} characters; {HOW}", None)
    if NUMBER.fullmatch(trimmed):
        raise _bad(what, f"has no unit; {HOW}", text)
    if trimmed[0] == "-":
        raise _bad(what, "must not be negative", text)
    total, seen, at = Decimal(0), set[int](), 0
    while at < len(trimmed):
        piece = PIECE.match(trimmed, at)
        if piece is None:
            raise _bad(what, f"is not a duration; {HOW}", text)
        number, word = piece.groups()
        unit = UNITS.get(word) or UNITS.get(word.lower() if len(word) > 2 else "")
        if unit is None:
            raise _bad(what, f"has the unit {word!r}, which is not one of ms, s, m, h, d, w or their words", text)
        if unit in seen:
            raise _bad(what, f"has the unit {word!r} twice", text)
        seen.add(unit)
        total += Decimal(number) * unit
        at = piece.end()
    return int(total.to_integral_value(ROUND_CEILING))


def _bad(what: str, problem: str, got: object) -> BadArguments:
    return BadArguments([Fault(what, problem, got)])
