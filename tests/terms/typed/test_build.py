"""A type without one JSON form is refused when the app is loaded, naming the field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, Field, RootModel, SecretStr

from onefold.terms.errors import LoadRefused
from onefold.terms.typed import codec_of
from tests.terms.typed.kinds import Badge, Declined, Deposit, Page, PayOut, Refunded, T, Tree


class Ratio(Enum):
    HALF = 0.5


class Void(Enum):
    pass


@dataclass
class Typed:
    type: str


class TypedModel(BaseModel):
    type: str


@dataclass
class Temporary:
    seed: InitVar[int]


@dataclass
class Astray:
    what: Nowhere  # type: ignore[name-defined]  # noqa: F821 - what is refused


@dataclass
class BadDefault:
    count: int = None  # type: ignore[assignment]
    when: datetime = datetime(2026, 1, 1)  # noqa: DTZ001 - what is refused


@dataclass
class Deeper:
    inside: list[dict[str, tuple[complex, ...]]]


class Plain:
    pass


class Hidden(BaseModel):
    password: SecretStr


class Keeps(BaseModel):
    hidden: Hidden | None = None


class TwoNames(BaseModel):
    count: int = Field(1, serialization_alias="n")


class Unfinished(BaseModel):
    what: Elsewhere  # type: ignore[name-defined]  # noqa: F821 - what is refused


class Row(RootModel[list[int]]):
    pass


class Loose(NamedTuple):
    a: Any
    b: int


class Other(TypedDict):
    a: int


def another() -> type:
    @dataclass
    class Deposit:
        id: str

    return Deposit


REFUSED: list[tuple[Any, str]] = [
    (complex, "no JSON form"),
    (Plain, "Plain has no JSON form; write a dataclass"),
    (Callable[[], int], "no JSON form"),
    (type, "no JSON form"),
    (Ratio, "values of Ratio must be text or whole numbers"),
    (Void, "values of Void"),
    (Literal[b"a"], "a Literal holds"),
    (dict[int, str], "write dict[str, …] instead of int"),
    (Mapping[UUID, str], "instead of UUID"),
    (str | Decimal, "text or a decimal number cannot be told apart"),
    (date | datetime, "cannot be told apart"),
    (bytes | str | None, "cannot be told apart"),
    (list[int] | set[int], "two lists"),
    (list[int] | tuple[int, int], "two lists"),
    (dict[str, int] | Deposit, "a dict cannot be told"),
    (Badge | Deposit, "a dict cannot be told"),
    (Badge | Other, "cannot be told apart"),
    (dict[str, int] | Refunded, "a dict cannot be told"),
    (Any | int, "any JSON beside another type"),
    (object | Deposit, "any JSON beside another type"),
    (Deposit | another(), "two classes of one name"),
    (Typed | Deposit, 'a field "type"'),
    (TypedModel | Refunded, 'a field "type"'),
    (Row | Refunded, "no fields"),
    (Temporary, "Temporary.seed: an InitVar"),
    (Astray, "'Nowhere' is not defined"),
    (Unfinished, "Unfinished cannot be used yet: name 'Elsewhere'"),
    (BadDefault, "BadDefault.count: its default does not fit"),
    (Deeper, "Deeper.inside[]{}[]: complex has no JSON form"),
    (Hidden, "Hidden.password: is a secret"),
    (Keeps, "Hidden.password: is a secret"),
    (TwoNames, "TwoNames.count: is written as 'n' but read as 'count'"),
    (Page, "stands for nothing"),
    (T, "stands for nothing"),
    (TypeVar("U", bound=int), "stands for nothing"),
    ("Deposit", "is text that cannot be read here"),
    (list["Deposit"], "is text that cannot be read here"),
    (Annotated[Deposit, msgspec.Meta(min_length=1)], "takes no limits"),
    (Annotated[Decimal, Field(gt=0)], "takes no limits of this kind"),
    (Annotated[int, msgspec.Meta(pattern="a")], "takes no limits of this kind"),
]


@pytest.mark.parametrize("kind, why", REFUSED, ids=[str(kind) for kind, _ in REFUSED])
def test_a_type_without_one_form_is_refused_at_load(kind: Any, why: str) -> None:
    with pytest.raises(LoadRefused) as refused:
        codec_of(kind)
    assert why in str(refused.value)


@pytest.mark.parametrize("kind", [Typed, TypedModel])
def test_a_field_called_type_is_refused_only_beside_the_tag(kind: Any) -> None:
    value = kind(type="x")
    assert codec_of(kind).decode(codec_of(kind).encode(value)) == value
    with pytest.raises(LoadRefused, match='a field "type"'):
        codec_of(kind, tagged=True)


def test_the_second_default_is_checked_too() -> None:
    @dataclass
    class Second:
        when: datetime = datetime(2026, 1, 1)  # noqa: DTZ001 - what is refused

    with pytest.raises(LoadRefused, match=r"Second\.when.*no time zone"):
        codec_of(Second)


def test_a_local_class_may_hold_itself() -> None:
    @dataclass
    class Node:
        value: int
        next: Node | None = None

    value = Node(1, Node(2))
    assert codec_of(Node).decode(codec_of(Node).encode(value)) == value


@pytest.mark.parametrize(
    "kind, value, raw",
    [
        (Sequence[int], [1], b"[1]"),
        (Mapping[str, int], {"a": 1}, b'{"a":1}'),
        (list, [1, "a"], b'[1,"a"]'),
        (dict, {"a": [1]}, b'{"a":[1]}'),
        (tuple, (1, "a"), b'[1,"a"]'),
        (tuple[()], (), b"[]"),
        (tuple[int], (1,), b"[1]"),
        (Literal[True, "no"], True, b"true"),
        (type(None), None, b"null"),
        (Annotated[int, "just a note"], 1, b"1"),
        (Loose, Loose({"x": 1}, 2), b'{"a":{"x":1},"b":2}'),
        ((int | None) | (None | str), "a", b'"a"'),
        (Tree | None, Tree(1), b'{"kids":[],"other":null,"value":1}'),
        (list[Deposit | PayOut] | Declined, [], b"[]"),
    ],
)
def test_types_that_are_only_written_differently(kind: Any, value: Any, raw: bytes) -> None:
    assert codec_of(kind).encode(value) == raw
    assert codec_of(kind).decode(raw) == value


def test_metadata_that_cannot_be_hashed_is_no_obstacle() -> None:
    assert codec_of(Annotated[int, ["a list"]]).encode(1) == b"1"
