"""A place to fill is a path: it takes what stands there, as JSON, or fails by name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from onefold.machine.fill import filled, plain
from onefold.machine.findings import Findings
from onefold.machine.words import Plain


def fill(raw: Any, context: Any, event: Any = None) -> Any:
    found = Findings("c")
    made = filled(raw, (), ("context", "event"), None, found)
    found.end()
    return made(context, event)


@dataclass(frozen=True)
class Line:
    amount: Decimal
    at: datetime


@dataclass(frozen=True)
class Order:
    id: str
    lines: tuple[Line, ...]


ORDER = Order("o1", (Line(Decimal("1.50"), datetime(2026, 3, 1, tzinfo=UTC)),))


@pytest.mark.parametrize(
    "raw,gives",
    [
        ({"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
        ({"$": "context"}, {"n": {"deep": [10, 20]}}),
        ({"$": "context.n.deep.1"}, 20),
        ({"a": {"$": "context.n.deep"}, "b": [{"$": "event.id"}]}, {"a": [10, 20], "b": ["e1"]}),
        ({"$": "event.type"}, "GO"),
    ],
)
def test_a_path_takes_what_stands_there(raw: Any, gives: Any) -> None:
    assert fill(raw, {"n": {"deep": [10, 20]}}, Plain("GO", {"id": "e1"})) == gives


def test_a_typed_value_becomes_its_json() -> None:
    line = {"amount": "1.50", "at": "2026-03-01T00:00:00Z"}
    assert fill({"$": "event.lines"}, {}, ORDER) == [line]
    assert fill({"$": "event"}, {}, ORDER) == {"id": "o1", "lines": [line]}
    assert plain({"x": (Decimal(2),)}) == {"x": ["2"]}


@pytest.mark.parametrize("path", ["context.m", "context.n.5", "event.nothing"])
def test_a_path_to_nothing_fails_by_name(path: str) -> None:
    with pytest.raises(LookupError, match=f"nothing stands at {path!r}"):
        fill({"$": path}, {"n": [1]}, ORDER)
