"""program.values - what crosses between a program and a method: JSON, both ways.

For: one check of every value that leaves the interpreter.
Never: a repr in the place of a value.
Was wrong once: whatever the interpreter gave. A function came out as text that looked like one.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from onefold.program.words import Json
from onefold.terms.codec import text_problem
from onefold.terms.limits import MAX_DEPTH, MAX_INT, MIN_INT


def as_json(value: Any, depth: int = 0) -> Json:
    """The value as JSON: tuples as lists, decimals and dates as text. Raises: ValueError, and says why."""
    if depth > MAX_DEPTH:
        raise ValueError(f"a value is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, list | tuple):
        return [as_json(item, depth + 1) for item in value]
    if isinstance(value, dict):
        if any(not isinstance(key, str) for key in value):
            raise ValueError("a key of an object is not text")
        return {_text(key): as_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return _plain(value)


def _plain(value: Any) -> Json:
    if isinstance(value, int) and not MIN_INT <= value <= MAX_INT:
        raise ValueError("a whole number is beyond 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number in JSON")
    if value is not None and not isinstance(value, bool | int | float):
        raise ValueError(f"a {type(value).__name__} has no JSON form")
    return value


def _text(text: str) -> str:
    if problem := text_problem(text):
        raise ValueError(f"a text {problem}")
    return text
