"""reflex.cel.values - what expressions compute with: numbers, text, instants, and how much of it.

For: arithmetic, comparison, conversion and the few methods, each one charged for what it makes.
Never: a clock, a time zone, chance, a pattern (a pattern from outside can run for ever).
Was wrong once: true that equalled 1, since it does in Python.

Values are JSON's, and instants and durations, which leave an expression as text. Whole numbers are 64 bits and
divide as such. One difference to CEL: a whole number and a fraction may be mixed, and give a fraction: JSON
from outside says 10 today and 10.5 tomorrow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from onefold.terms.limits import MAX_INT, MIN_INT

T = TypeVar("T")
FUEL: Final = 200_000
"""Steps of one template: nodes evaluated, items looked at, and each 16 characters made. About 0.1 s."""


class Unmet(Exception):
    """The expression cannot be computed with these values. `||` and `&&` may do without it."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class Spent(Exception):
    """It took more steps than one template may."""


class Meter:
    """What is left of the steps."""

    __slots__ = ("left",)

    def __init__(self, steps: int = FUEL) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Spent


def kind(value: Any) -> str:
    """The word for what a value is."""
    return _KINDS.get(type(value), type(value).__name__)


_KINDS: Final = {
    type(None): "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
    datetime: "an instant",
    timedelta: "a duration",
}
_NUMBERS: Final = (int, float)


def _whole(value: int) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise Unmet("the whole number leaves 64 bits")
    return value


def _numbers(left: Any, right: Any) -> bool:
    return type(left) in _NUMBERS and type(right) in _NUMBERS


def _cannot(op: str, left: Any, right: Any) -> Unmet:
    hint = "; write string(…) around the number" if op == "+" and {type(left), type(right)} & {str} else ""
    return Unmet(f"{op} does not take {kind(left)} and {kind(right)}{hint}")


def _timed(found: Callable[[], T]) -> T:
    try:
        return found()
    except OverflowError:
        raise Unmet("the instant or duration is out of range") from None


def add(left: Any, right: Any, meter: Meter) -> Any:
    if type(left) is int and type(right) is int:
        return _whole(left + right)
    if _numbers(left, right):
        return float(left) + float(right)
    if type(left) is str and type(right) is str:
        meter.spend((len(left) + len(right)) >> 4)
        return left + right
    if type(left) is list and type(right) is list:
        meter.spend(len(left) + len(right))
        return left + right
    if timedelta in (type(left), type(right)) and {type(left), type(right)} <= {timedelta, datetime}:
        return _timed(lambda: left + right)
    raise _cannot("+", left, right)


def subtract(left: Any, right: Any, meter: Meter) -> Any:
    if type(left) is int and type(right) is int:
        return _whole(left - right)
    if _numbers(left, right):
        return float(left) - float(right)
    if (type(left), type(right)) in ((datetime, datetime), (datetime, timedelta), (timedelta, timedelta)):
        return _timed(lambda: left - right)
    raise _cannot("-", left, right)


def multiply(left: Any, right: Any, meter: Meter) -> Any:
    if type(left) is int and type(right) is int:
        return _whole(left * right)
    if _numbers(left, right):
        return float(left) * float(right)
    raise _cannot("*", left, right)


def divide(left: Any, right: Any, meter: Meter) -> Any:
    if type(left) is int and type(right) is int:
        if right == 0:
            raise Unmet("a whole number is divided by zero")
        found = abs(left) // abs(right)
        return _whole(found if (left < 0) == (right < 0) else -found)
    if _numbers(left, right):
        if float(right) == 0:
            raise Unmet("a number is divided by zero")
        return float(left) / float(right)
    raise _cannot("/", left, right)


def remainder(left: Any, right: Any, meter: Meter) -> Any:
    if type(left) is int and type(right) is int:
        if right == 0:
            raise Unmet("a whole number is divided by zero")
        found = abs(left) % abs(right)
        return -found if left < 0 else found
    raise Unmet(f"% takes two whole numbers, not {kind(left)} and {kind(right)}")


def less(left: Any, right: Any, meter: Meter) -> int:
    """-1, 0 or 1. Raises: Unmet for values without an order between them."""
    if not (_numbers(left, right) or (type(left) is type(right) and type(left) in _ORDERED)):
        raise Unmet(f"{kind(left)} and {kind(right)} have no order")
    if type(left) is str:
        meter.spend(min(len(left), len(right)) >> 4)
    return int(left > right) - int(left < right)


_ORDERED: Final = (str, bool, datetime, timedelta)


def same(left: Any, right: Any, meter: Meter) -> bool:
    """Whether two values are equal, all the way down. A number is never equal to a truth or to text."""
    meter.spend(1)
    if _numbers(left, right):
        return bool(left == right)
    if type(left) is not type(right):
        return False
    if type(left) is list:
        return len(left) == len(right) and all(same(a, b, meter) for a, b in zip(left, right, strict=True))
    if type(left) is dict:
        return left.keys() == right.keys() and all(same(value, right[key], meter) for key, value in left.items())
    if type(left) is str:
        meter.spend(min(len(left), len(right)) >> 4)
    return bool(left == right)


def within(item: Any, of: Any, meter: Meter) -> bool:
    if type(of) is list:
        return any(same(item, each, meter) for each in of)
    if type(of) is dict:
        return type(item) is str and item in of
    raise Unmet(f"in looks into a list or an object, not into {kind(of)}")


# --- conversions ------------------------------------------------------------------------------------

_INT: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_FLOAT: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_PART: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(h|ms|m|us|s)", re.ASCII)
_UNITS: Final = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_int(value: Any, meter: Meter) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value == value and abs(value) < 2**63:
        return int(value)
    if type(value) is str and _INT.fullmatch(value):
        return _whole(int(value))
    if type(value) is datetime:
        return (value - _EPOCH) // timedelta(seconds=1)
    raise Unmet(f"int does not take {_said(value)}")


def to_double(value: Any, meter: Meter) -> float:
    if type(value) in _NUMBERS:
        return float(value)
    if type(value) is str and len(value) <= 400 and _FLOAT.fullmatch(value):
        return float(value)
    raise Unmet(f"double does not take {_said(value)}")


def to_bool(value: Any, meter: Meter) -> bool:
    if type(value) is bool:
        return value
    if value in ("true", "True", "TRUE", "t", "1") or value in ("false", "False", "FALSE", "f", "0"):
        return value in ("true", "True", "TRUE", "t", "1")
    raise Unmet(f"bool does not take {_said(value)}")


def to_text(value: Any, meter: Meter) -> str:
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return str(int(value)) if value == value and abs(value) < 1e15 and value == int(value) else repr(value)
    if type(value) in (datetime, timedelta):
        return str(as_json(value))
    raise Unmet(f"string does not take {kind(value)}")


def to_instant(value: Any, meter: Meter) -> datetime:
    if type(value) is datetime:
        return value
    if type(value) is int:
        return _timed(lambda: _EPOCH + timedelta(seconds=value))
    if type(value) is str and _INSTANT.fullmatch(value):
        whole, _, rest = value.partition(".")
        digits = re.match(r"\d*", rest)
        fraction = digits.group()[:6] if rest and digits else ""
        zone = rest[digits.end() :] if rest and digits else ""
        try:
            return datetime.fromisoformat(f"{whole}.{fraction:0<6}{zone}" if rest else whole).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise Unmet(f"timestamp takes text such as 2026-01-31T09:00:00Z, not {_said(value)}")


def to_duration(value: Any, meter: Meter) -> timedelta:
    if type(value) is timedelta:
        return value
    if type(value) is str and len(value) <= 60:
        body = value.removeprefix("-")
        parts = _PART.findall(body)
        if body and parts and "".join(number + unit for number, unit in parts) == body:
            micros = sum(_micros(number, _UNITS[unit]) for number, unit in parts)
            return _timed(lambda: timedelta(microseconds=-micros if value.startswith("-") else micros))
    raise Unmet(f"duration takes text such as 72h or 1h30m, not {_said(value)}")


def _micros(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)


def as_json(value: Any) -> Any:
    """An instant or a duration as it leaves an expression; anything else is itself."""
    if type(value) is datetime:
        form = value.isoformat(timespec="seconds" if not value.microsecond else "microseconds")
        return form.replace("+00:00", "Z")
    if type(value) is timedelta:
        micros = value // timedelta(microseconds=1)
        sign, micros = ("-", -micros) if micros < 0 else ("", micros)
        whole, fraction = divmod(micros, 1_000_000)
        return f"{sign}{whole}s" if not fraction else f"{sign}{whole}.{fraction:06d}".rstrip("0") + "s"
    return value


def _said(value: Any) -> str:
    return ascii(value[:40]) if type(value) is str else kind(value)


def size(value: Any, meter: Meter) -> int:
    if type(value) in (str, list, dict):
        return len(value)
    raise Unmet(f"size does not take {kind(value)}")


# --- methods ----------------------------------------------------------------------------------------


def _texts(name: str, act: Callable[..., Any], *, makes: int = 0) -> Callable[..., Any]:
    """A method of text that takes text. makes: how many times its size it may make."""

    def call(*given: Any) -> Any:
        *texts, meter = given
        for text in texts:
            if type(text) is not str:
                raise Unmet(f"{name} is of text and takes text, not {kind(text)}")
        meter.spend(sum(map(len, texts)) * (1 + makes) >> 4)
        return act(*texts)

    return call


def _joined(items: Any, *rest: Any) -> str:
    *given, meter = rest
    if type(items) is not list or any(type(each) is not str for each in (*items, *given)):
        raise Unmet("join is of a list of text and takes text")
    between = given[0] if given else ""
    meter.spend(sum(map(len, items)) + len(items) * (1 + len(between)) >> 4)
    return str(between.join(items))


def _replaced(text: Any, old: Any, new: Any, meter: Meter) -> str:
    if not (type(text) is str and type(old) is str and type(new) is str):
        raise Unmet("replace is of text and takes text")
    meter.spend(len(text) + (len(text) + 1) * len(new) >> 4)
    return str(text.replace(old, new))


def _split(text: Any, by: Any, meter: Meter) -> list[str]:
    if not (type(text) is str and type(by) is str):
        raise Unmet("split is of text and takes text")
    meter.spend(len(text))
    return text.split(by) if by else list(text)


def _of_instant(name: str, get: Callable[[datetime], int]) -> Callable[..., int]:
    def call(value: Any, meter: Meter) -> int:
        if type(value) is not datetime:
            raise Unmet(f"{name} is of an instant: timestamp(now).{name}()")
        return get(value)

    return call


def _ascii(text: str, first: str, by: int) -> str:
    last = chr(ord(first) + 25)
    return "".join(chr(ord(c) + by) if first <= c <= last else c for c in text)


FUNCTIONS: Final[Mapping[str, tuple[int, int, Callable[..., Any]]]] = {
    "bool": (1, 1, to_bool),
    "double": (1, 1, to_double),
    "duration": (1, 1, to_duration),
    "dyn": (1, 1, lambda value, meter: value),
    "int": (1, 1, to_int),
    "size": (1, 1, size),
    "string": (1, 1, to_text),
    "timestamp": (1, 1, to_instant),
}
"""By name: the least and most arguments, and what to call with them and the meter."""

METHODS: Final[Mapping[str, tuple[int, int, Callable[..., Any]]]] = {
    "contains": (1, 1, _texts("contains", lambda text, part: part in text)),
    "endsWith": (1, 1, _texts("endsWith", str.endswith)),
    "getDate": (0, 0, _of_instant("getDate", lambda at: at.day)),
    "getDayOfMonth": (0, 0, _of_instant("getDayOfMonth", lambda at: at.day - 1)),
    "getDayOfWeek": (0, 0, _of_instant("getDayOfWeek", lambda at: at.isoweekday() % 7)),
    "getFullYear": (0, 0, _of_instant("getFullYear", lambda at: at.year)),
    "getHours": (0, 0, _of_instant("getHours", lambda at: at.hour)),
    "getMinutes": (0, 0, _of_instant("getMinutes", lambda at: at.minute)),
    "getMonth": (0, 0, _of_instant("getMonth", lambda at: at.month - 1)),
    "getSeconds": (0, 0, _of_instant("getSeconds", lambda at: at.second)),
    "join": (0, 1, _joined),
    "lowerAscii": (0, 0, _texts("lowerAscii", lambda text: _ascii(text, "A", 32), makes=15)),
    "replace": (2, 2, _replaced),
    "size": (0, 0, size),
    "split": (1, 1, _split),
    "startsWith": (1, 1, _texts("startsWith", str.startswith)),
    "trim": (0, 0, _texts("trim", str.strip, makes=1)),
    "upperAscii": (0, 0, _texts("upperAscii", lambda text: _ascii(text, "a", -32), makes=15)),
}
"""By name: the least and most arguments beside the value, and what to call with all of them and the meter."""
