"""The classes that the tests of typed write and read, and values of every type."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID

import msgspec
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from onefold.terms.limits import MAX_INT, MIN_INT

T = TypeVar("T")
Sku = NewType("Sku", str)


class Color(Enum):
    RED = "r"
    BLUE = "b"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Deposit:
    id: str
    account: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class PayOut:
    id: str
    account: str
    amount: Decimal
    note: str | None = None
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Named:
    """Fields by name only, one of them required after one that is not."""

    early: int = 1
    late: str


@dataclass
class Derived:
    """One field is made from the other and is no part of the JSON."""

    width: int
    area: int = field(init=False)

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError("A width is not negative.")
        self.area = self.width**2


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Cut(msgspec.Struct, frozen=True, rename={"long_name": "n"}, array_like=True, tag=5):
    long_name: str
    at: datetime | None = None


class Badge(TypedDict):
    name: str
    level: NotRequired[Level]


@dataclass(frozen=True)
class Page(Generic[T]):
    items: tuple[T, ...]
    next: T | None = None


@dataclass(frozen=True)
class Pages(Page[Deposit]):
    total: int = 0


@dataclass(frozen=True)
class Tree:
    value: int
    kids: tuple[Tree, ...] = ()
    other: Tree | Deposit | None = None


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Limited:
    count: Annotated[int, msgspec.Meta(ge=1, le=10)]
    word: Annotated[str, msgspec.Meta(min_length=1, max_length=3, pattern="^[a-z]+$")] = "a"
    price: Annotated[float, Field(gt=0)] = 1.0
    few: Annotated[list[int], msgspec.Meta(max_length=2)] = field(default_factory=list)
    step: Annotated[int, msgspec.Meta(multiple_of=5)] = 5


@dataclass(frozen=True)
class Holder:
    one: Deposit | PayOut
    many: tuple[Deposit | PayOut | None, ...]
    lone: Deposit
    maybe: Deposit | None
    mixed: str | Deposit
    by_name: dict[str, Deposit | int] = field(default_factory=dict)


class Refund(BaseModel):
    order_id: str
    amount: Decimal = Field(gt=0, le=500)
    reason: str = ""


class Refunded(BaseModel):
    refund_id: str


class Declined(BaseModel):
    reason: str = "no"


class Parcel(BaseModel):
    """All that pydantic would write in a form of its own."""

    content: Refunded | Declined
    more: list[Refunded | Declined | None] = []
    label: bytes = b"\xff\x00"
    at: datetime
    tags: set[str] = set()
    weights: dict[int, float] = {}
    size: Literal["s", "l"] = "s"
    color: Color = Color.RED
    wait: timedelta = timedelta(seconds=1)
    inner: Refunded | None = None
    given: int = Field(1, alias="givenName")


@dataclass(frozen=True)
class Wrap:
    model: Refund
    either: Refunded | Declined | int
    maybe: Refund | None = None


# --- values ----------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20)
offsets = st.sampled_from([UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-9, minutes=-30))])
LOW, HIGH = datetime(2, 1, 1), datetime(9998, 1, 1)  # noqa: DTZ001 - bounds, given a zone below
json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(MIN_INT, MAX_INT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (None, st.none()),
    (bool, st.booleans()),
    (int, st.integers(MIN_INT, MAX_INT)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, texts),
    (Sku, texts),
    (Decimal, decimals),
    (UUID, st.uuids()),
    (bytes, st.binary(max_size=9)),
    (datetime, st.datetimes(LOW, HIGH, timezones=offsets)),
    (date, st.dates()),
    (time, st.times()),
    (timedelta, st.timedeltas()),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
]
deposits = st.builds(Deposit, texts, texts, decimals)
payouts = st.builds(PayOut, texts, texts, decimals, st.none() | texts, st.lists(texts, max_size=3))
points = st.builds(Point, st.integers(MIN_INT, MAX_INT), st.floats(allow_nan=False, allow_infinity=False))
trees = st.recursive(
    st.builds(Tree, st.integers(0, 9)),
    lambda inner: st.builds(
        Tree, st.integers(0, 9), st.lists(inner, max_size=2).map(tuple), st.none() | inner | deposits
    ),
    max_leaves=5,
)
refunds = st.builds(Refund, order_id=texts, amount=st.decimals("0.01", "500", places=2), reason=texts)
refundeds = st.builds(Refunded, refund_id=texts)
declineds = st.builds(Declined, reason=texts)
parcels = st.builds(
    Parcel,
    content=refundeds | declineds,
    more=st.lists(refundeds | declineds | st.none(), max_size=3),
    label=st.binary(max_size=5),
    at=st.datetimes(LOW, HIGH, timezones=offsets),
    tags=st.sets(texts, max_size=3),
    weights=st.dictionaries(st.integers(0, 5), st.floats(allow_nan=False, allow_infinity=False), max_size=2),
    size=st.sampled_from(["s", "l"]),
    color=st.sampled_from(Color),
    wait=st.timedeltas(timedelta(0), timedelta(days=99)),
    inner=st.none() | refundeds,
    givenName=st.integers(0, 9),
)
CLASSES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Deposit, deposits),
    (PayOut, payouts),
    (Named, st.builds(Named, early=st.integers(0, 9), late=texts)),
    (Derived, st.builds(Derived, st.integers(0, 9))),
    (Point, points),
    (Cut, st.builds(Cut, texts, st.none() | st.datetimes(LOW, HIGH, timezones=offsets))),
    (Badge, st.fixed_dictionaries({"name": texts}, optional={"level": st.sampled_from(Level)})),
    (
        Page[Color],
        st.builds(Page, st.lists(st.sampled_from(Color), max_size=2).map(tuple), st.sampled_from([None, *Color])),
    ),
    (Page[Deposit | PayOut], st.builds(Page, st.lists(deposits | payouts, max_size=2).map(tuple), payouts)),
    (Pages, st.builds(Pages, st.lists(deposits, max_size=2).map(tuple), st.none(), st.integers(0, 9))),
    (Tree, trees),
    (Empty, st.builds(Empty)),
    (
        Limited,
        st.builds(
            Limited,
            st.integers(1, 10),
            st.text("abc", min_size=1, max_size=3),
            st.floats(0.1, 9),
            st.lists(st.integers(0, 9), max_size=2),
        ),
    ),
    (
        Holder,
        st.builds(
            Holder,
            deposits | payouts,
            st.lists(deposits | payouts | st.none(), max_size=3).map(tuple),
            deposits,
            st.none() | deposits,
            texts | deposits,
            st.dictionaries(texts, deposits | st.integers(0, 9), max_size=2),
        ),
    ),
    (Refund, refunds),
    (Parcel, parcels),
    (Wrap, st.builds(Wrap, refunds, refundeds | declineds | st.integers(0, 9), st.none() | refunds)),
]
UNIONS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Deposit | PayOut, deposits | payouts),
    (Deposit | PayOut | None, deposits | payouts | st.none()),
    (Deposit | None, deposits | st.none()),
    (Point | Deposit | Empty, points | deposits | st.builds(Empty)),
    (str | Deposit, texts | deposits),
    (list[Deposit] | PayOut, st.lists(deposits, max_size=3) | payouts),
    (int | float | str | bool | None, st.integers(0, 9) | st.floats(0, 9) | texts | st.booleans() | st.none()),
    (datetime | int, st.datetimes(LOW, HIGH, timezones=offsets) | st.integers(0, 9)),
    (Decimal | None, decimals | st.none()),
    (Refunded | Declined, refundeds | declineds),
    (Refunded | Deposit | str | None, refundeds | deposits | texts | st.none()),
    (list[Refund] | Declined, st.lists(refunds, max_size=2) | declineds),
    (Refund | None, refunds | st.none()),
    (Tree | Deposit, trees | deposits),
    (dict[str, Deposit | None], st.dictionaries(texts, deposits | st.none(), max_size=3)),
    (Any, json),
    (object, json),
    (Any | None, json),
]


def boxed(draw: st.DrawFn, depth: int) -> Any:
    """Some type made of the leaves, and the strategy of its values."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(LEAVES))
    kind, values = boxed(draw, depth - 1)
    hashable = not any(word in str(kind) for word in ("list", "dict", "set[", "Badge"))
    boxes: list[tuple[Any, Any]] = [
        (list[kind], st.lists(values, max_size=3)),  # type: ignore[valid-type]
        (tuple[kind, ...], st.lists(values, max_size=3).map(tuple)),  # type: ignore[valid-type]
        (tuple[kind, int], st.tuples(values, st.integers(0, 9))),  # type: ignore[valid-type]
        (dict[str, kind], st.dictionaries(texts, values, max_size=3)),  # type: ignore[valid-type]
    ]
    if kind is not None:
        boxes.append((kind | None, values | st.none()))
    if hashable:
        boxes += [
            (set[kind], st.sets(values, max_size=3)),  # type: ignore[valid-type]
            (frozenset[kind], st.frozensets(values, max_size=3)),  # type: ignore[valid-type]
        ]
    return draw(st.sampled_from(boxes))


@st.composite
def any_type(draw: st.DrawFn) -> tuple[Any, Any]:
    """A type, and a value of it."""
    kind, values = boxed(draw, 3)
    return kind, draw(values)
