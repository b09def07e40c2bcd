"""A function that is run twice tells what differs; one that is pure tells nothing, whatever its values are made of."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cached_property
from pathlib import PurePath
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from onefold import Decision, Module
from onefold.kernel.twice import Impure, differing, picture, twice

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Note:
    id: str
    text: str = ""


@dataclass(frozen=True)
class Noted:
    text: str
    at: float = 0.0


@dataclass
class Book:
    notes: list[str] = field(default_factory=list)


def decide(book: Book, event: Note, now: datetime) -> Decision[Noted, int]:
    return Decision(facts=[Noted(event.text)], reply=len(book.notes))


def evolve(book: Book, fact: Noted) -> Book:
    return replace(book, notes=[*book.notes, fact.text])


def made(**parts: Any) -> Module[Any, Any, Any, Any, Any]:
    whole: dict[str, Any] = {"key": lambda event: "one", "decide": decide, "evolve": evolve, "view": len_of, **parts}
    return twice(Module("book", initial=Book(), **whole))


def len_of(book: Book) -> int:
    return len(book.notes)


def test_a_pure_module_answers_as_before() -> None:
    module = made()
    decision = module.decide(Book(), Note("1", "a"), NOW)
    assert decision == Decision(facts=[Noted("a")], reply=0)
    assert module.evolve(Book(), decision.facts[0]) == Book(["a"])
    assert module.codecs.event.decode(b'{"type":"Note","id":"1"}') == Note("1")


def test_two_answers_are_told_by_function_and_place() -> None:
    ticks = itertools.count()

    def clocked(book: Book, event: Note, now: datetime) -> Decision[Noted, int]:
        return Decision(facts=[Noted("a", at=float(next(ticks)))], reply=0)

    with pytest.raises(Impure) as told:
        made(decide=clocked).decide(Book(), Note("1"), NOW)
    assert (told.value.module, told.value.function) == ("book", "decide")
    assert "facts[0].at was 0.0, then 1.0" in str(told.value)


@pytest.mark.parametrize("role", ["evolve", "decide"])
def test_a_changed_state_is_told_although_the_answers_are_the_same(role: str) -> None:
    def spoiling(book: Book, other: Any, now: Any = None) -> Any:
        if "x" not in book.notes:
            book.notes.append("x")
        return Decision(reply=0) if role == "decide" else Book()

    with pytest.raises(Impure, match=r"changed its state: \.?notes\[0\] was absent, then 'x'"):
        getattr(made(**{role: spoiling}), role)(Book(), Note("1"), NOW)


def test_an_object_without_equality_is_compared_by_its_parts() -> None:
    class Plain:
        def __init__(self, value: int) -> None:
            self.value = value

        @cached_property
        def doubled(self) -> int:
            return self.value * 2

    looked_at = Plain(1)
    before = picture(looked_at)
    assert looked_at.doubled == 2
    assert differing(before, picture(looked_at)) is None
    assert differing(picture(Plain(1)), picture(Plain(1))) is None
    assert differing(picture(Plain(1)), picture(Plain(2))) == "value was 1, then 2"


class Colour(Enum):
    RED = 1


class Model(BaseModel):
    a: int = 1


class Row(msgspec.Struct):
    a: int = 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Decimal("1.0"), lambda: NOW, lambda: Colour.RED, Model, Row, lambda: {"a": {1, 2}}, lambda: (1, [2]),
        lambda: PurePath("a/b"), lambda: frozenset({"a", "b"}), lambda: Book(["a"]), lambda: None, object, lambda: float("nan"),
    ],
)  # fmt: skip
def test_the_same_value_made_twice_does_not_differ(make: Any) -> None:
    first, then = make(), make()
    str(first)
    assert differing(picture(first), picture(then)) is None


@pytest.mark.parametrize(
    "first, then",
    [
        (Decimal("1.0"), Decimal("1.00")),
        (1, 1.0),
        (1, True),
        ([1], (1,)),
        ({"a": 1}, {"a": 1, "b": 2}),
        (Row(1), Row(2)),
    ],
)
def test_what_is_written_otherwise_differs(first: Any, then: Any) -> None:
    assert differing(picture(first), picture(then)) is not None


def test_a_value_that_holds_itself_has_an_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert differing(picture(loop), picture(loop)) is None


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_a_picture_stays_as_it_was(value: Any) -> None:
    assert differing(picture(value), picture(value)) is None
