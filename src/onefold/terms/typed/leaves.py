"""terms.typed.leaves - values without parts: numbers, text, instants, enumerations; and JSON as it is.

For: what each of them looks like in JSON, and what of it is refused.
Never: rounds. A Decimal keeps its digits, an instant its microseconds; only its zone becomes UTC.
Was wrong once: NaN. It is greater than no limit, so it passed every limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from onefold.terms import codec
from onefold.terms.codec import Json
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.limits import MAX_DECIMAL_EXPONENT, MAX_INT, MIN_INT
from onefold.terms.typed.node import Mode, Node, Schema, Unfit

LEAST, MOST = float("-inf"), float("inf")
INSTANT: Final = "an instant in RFC 3339 with its offset, like 2026-01-31T09:00:00Z"


def float_out(value: Any) -> Any:
    if value.__class__ is float:
        if LEAST < value < MOST:
            return value
        raise Unfit("must be a finite number", value)
    if value.__class__ is int:
        return float(value)
    raise Unfit("must be a number", value)


def decimal_out(value: Any) -> Any:
    if value.__class__ is not Decimal:
        if value.__class__ is not int:
            raise Unfit("must be a decimal number", value)
        value = Decimal(value)
    if value.is_finite() and -MAX_DECIMAL_EXPONENT <= value.adjusted() <= MAX_DECIMAL_EXPONENT:
        return value
    return decimal_into(value)


def decimal_into(value: Any) -> Any:
    if value.is_finite() and -MAX_DECIMAL_EXPONENT <= value.adjusted() <= MAX_DECIMAL_EXPONENT:
        return value
    raise Unfit("must be a finite decimal number", str(value))


def datetime_out(value: Any) -> Any:
    if not isinstance(value, datetime):
        raise Unfit(f"must be {INSTANT}", value)
    return datetime_into(value)


def datetime_into(value: Any) -> Any:
    zone = value.tzinfo
    if zone is UTC:
        return value
    if zone is None or value.utcoffset() is None:
        raise Unfit("has no time zone; give an aware datetime, such as one in UTC", str(value))
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise Unfit("lies outside the years 1 to 9999 in UTC", str(value)) from None


class Exactly:
    """Gives a value back if it is of the class, so that text is not taken for bytes in base64."""

    def __init__(self, kind: type, must: str) -> None:
        self.kind = kind
        self.must = must

    def __call__(self, value: Any) -> Any:
        if isinstance(value, self.kind):
            return value
        raise Unfit(f"must be {self.must}", value)


LEAVES: Final[dict[type, tuple[str, Any]]] = {
    type(None): ("null", None),
    bool: ("true or false", bool),
    int: ("a whole number", int),
    float: ("a number", float),
    str: ("text", str),
    Decimal: ("a decimal number", Decimal),
    UUID: ("a UUID", UUID),
    bytes: ("bytes in base64", bytes),
    datetime: (INSTANT, Annotated[datetime, msgspec.Meta(tz=True)]),
    date: ("a date, like 2026-01-31", date),
    time: ("a time of day, like 09:00:00", time),
    timedelta: ("a duration in ISO 8601, like PT30S", timedelta),
    msgspec.Raw: ("JSON", msgspec.Raw),  # JSON inside JSON, as the bytes it already is
}
OUT: Final[dict[type, Callable[[Any], Any]]] = {
    float: float_out,
    Decimal: decimal_out,
    datetime: datetime_out,
    **{kind: Exactly(kind, LEAVES[kind][0]) for kind in (UUID, bytes, date, time, timedelta)},
}
INTO: Final[dict[type, Callable[[Any], Any]]] = {Decimal: decimal_into, datetime: datetime_into}


def leaf(kind: type, limits: dict[str, Any]) -> Node:
    """The node of one class of LEAVES, with limits as `msgspec.Meta` names them."""
    must, wire = LEAVES[kind]
    if kind is int:
        if "gt" not in limits:
            limits = {"ge": MIN_INT, **limits}
        if "lt" not in limits:
            limits = {"le": MAX_INT, **limits}
    if limits:
        wire = Annotated[wire, msgspec.Meta(**limits)]
    node = Node(wire, must, gives=(kind,))
    node.out = OUT.get(kind)
    node.into = INTO.get(kind)
    return node


class ChoiceNode(Node):
    """An enumeration or a Literal: a few values, each written as itself."""

    def __init__(self, wire: Any, values: Sequence[Any], gives: tuple[type, ...]) -> None:
        told = " or ".join(repr(v) if isinstance(v, str) else codec.canonical(v).decode() for v in values)
        super().__init__(wire, told if len(values) < 2 else f"one of {told}", gives=gives)
        if issubclass(gives[0], Enum):
            self.out = Exactly(gives[0], self.must)

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        found = msgspec.json.schema(self.wire)
        inner = found.get("$defs", {}).get(str(found.get("$ref", "")).rpartition("/")[2])
        return inner or found


class JsonNode(Node):
    """Any JSON, as it is. A tuple, a date, a Decimal is refused: it would come back as something else."""

    def __init__(self) -> None:
        super().__init__(Any, "JSON", gives=(object,))
        self.out = json_out

    def explain(self, json: Json, path: str) -> list[Fault]:
        try:
            codec.canonical(json)
        except BadArguments as bad:
            return [Fault(".".join(filter(None, (path, f.field))), f.problem, f.got) for f in bad.faults]
        return []

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        return {}


def json_out(value: Any) -> Any:
    try:
        codec.canonical(value)
    except BadArguments as bad:
        fault = bad.faults[0]
        unfit = Unfit(fault.problem, fault.got)
        raise unfit.inside(fault.field) if fault.field else unfit from None
    return value
