"""A pydantic model keeps its own rules and takes our JSON form."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, RootModel, computed_field, field_validator

from onefold.terms.errors import BadArguments, LoadRefused
from onefold.terms.typed import UnknownKind, codec_of
from tests.terms.typed.kinds import Declined, Parcel, Refund, Refunded, parcels

T = TypeVar("T")


class Size(StrEnum):
    SMALL = "s"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Owner(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")
    others: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = []


class Says(BaseModel):
    """Members that tell themselves apart by a field of their own are pydantic's business."""

    what: Typed | OtherTyped


class Typed(BaseModel):
    type: Literal["typed"] = "typed"


class OtherTyped(BaseModel):
    type: Literal["other"] = "other"


class Odd(BaseModel):
    url: HttpUrl
    path: PurePosixPath
    size: Size
    pair: tuple[int, str]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Holds(BaseModel):
    open: Open
    count: int = 0


class Box(BaseModel, Generic[T]):
    item: T


class Rows(RootModel[list[int]]):
    pass


class Sums(BaseModel):
    a: int
    b: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        return self.a + self.b


class Upper(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def upper(cls, value: str) -> str:
        return value.upper()


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=lambda name: name.title().replace("_", ""))
    order_id: str
    raw: bytes = b""


class Exact(BaseModel):
    model_config = ConfigDict(strict=True)
    id: Any
    amount: Decimal
    at: datetime


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
FORMS: list[tuple[Any, Any, bytes]] = [
    (Owner, Owner(pet=Dog(), others=[Cat()]), b'{"others":[{"kind":"cat","lives":9}],"pet":{"kind":"dog"}}'),
    (Says, Says(what=OtherTyped()), b'{"what":{"type":"other"}}'),
    (
        Odd,
        Odd(url="https://a.example/b", path="x/y", size="s", pair=(1, "a")),  # type: ignore[arg-type]
        b'{"pair":[1,"a"],"path":"x/y","size":"s","url":"https://a.example/b"}',
    ),
    (Open, Open(name="a", more={"x": [1]}), b'{"more":{"x":[1]},"name":"a"}'),  # type: ignore[call-arg]
    (Holds, Holds(open=Open(name="a", x=1)), b'{"count":0,"open":{"name":"a","x":1}}'),  # type: ignore[call-arg]
    (Box[Refunded], Box[Refunded](item=Refunded(refund_id="r")), b'{"item":{"refund_id":"r"}}'),
    (
        Box[Refunded | Declined] | Cat,
        Box[Refunded | Declined](item=Declined()),
        b'{"item":{"reason":"no","type":"Declined"},"type":"Box"}',
    ),
    (Rows, Rows([1, 2]), b"[1,2]"),
    (Rows | None, None, b"null"),
    (Camel, Camel(OrderId="7", Raw=b"\xff"), b'{"OrderId":"7","Raw":"/w=="}'),  # type: ignore[call-arg]
    (Exact, Exact(id=[1], amount=Decimal("1.50"), at=NOON), b'{"amount":"1.50","at":"2026-01-31T12:00:00Z","id":[1]}'),
]


@pytest.mark.parametrize("kind, value, raw", FORMS, ids=[str(kind) for kind, _, _ in FORMS])
def test_models_are_written_in_the_one_form(kind: Any, value: Any, raw: bytes) -> None:
    codec = codec_of(kind)
    assert codec.encode(value) == raw
    assert codec.decode(raw) == value
    assert codec.decode(codec.slim(value)) == value


class Purse(BaseModel):
    """Bytes and unions further in than the first level."""

    parcels: list[Parcel] = []
    best: Parcel | None = None


@given(st.builds(Purse, parcels=st.lists(parcels, max_size=2), best=st.none() | parcels))
def test_models_within_models_are_written_in_the_one_form(value: Purse) -> None:
    codec = codec_of(Purse)
    raw = codec.encode(value)
    assert codec.decode(raw) == value
    assert codec.encode(codec.decode(raw)) == raw
    assert codec.decode(codec.slim(value)) == value


def test_members_that_differ_only_in_their_default_name_stay_apart_when_slim() -> None:
    codec = codec_of(Owner)
    assert codec.slim(Owner(pet=Cat())) != codec.slim(Owner(pet=Dog()))
    assert codec_of(Says).slim(Says(what=Typed())) != codec_of(Says).slim(Says(what=OtherTyped()))


def test_bytes_behind_a_discriminator_are_refused_at_load() -> None:
    class Raw(BaseModel):
        kind: Literal["raw"] = "raw"
        data: bytes

    class Mixed(BaseModel):
        what: Raw | Cat = Field(discriminator="kind")

    with pytest.raises(LoadRefused, match=r"Mixed\.what: its author tells its members apart"):
        codec_of(Mixed)


def test_what_is_computed_is_not_stored() -> None:
    codec = codec_of(Sums)
    assert codec.encode(Sums(a=1, b=2)) == b'{"a":1,"b":2}'
    assert codec.round_trip(Sums(a=1, b=2)).total == 3


def test_the_value_given_back_is_the_one_its_rules_made() -> None:
    assert codec_of(Upper).from_json({"name": "ada"}).name == "ADA"


def test_unknown_fields_are_refused_though_pydantic_would_drop_them() -> None:
    with pytest.raises(BadArguments, match="refund_idd: is not known"):
        codec_of(Refunded).from_json({"refund_id": "1", "refund_idd": "2"})
    with pytest.raises(BadArguments, match="is not known"):
        codec_of(Parcel).from_json(
            {"content": {"type": "Declined"}, "at": "2026-01-01T00:00:00Z", "inner": {"refund_id": "1", "x": 1}}
        )


def test_a_model_that_was_spoiled_is_not_written() -> None:
    spoiled = Refund(order_id="7", amount=Decimal(5))
    spoiled.amount = Decimal(900)
    with pytest.raises(BadArguments, match="amount: must be at most 500"):
        codec_of(Refund).encode(spoiled)
    with pytest.raises(BadArguments, match="order_id: must be text"):
        codec_of(list[Refund]).encode([Refund.model_construct(order_id=5, amount=Decimal(5))])


def test_a_model_of_another_class_is_not_written() -> None:
    class Special(Refund):
        extra: str = "lost"

    with pytest.raises(BadArguments, match="must be a Refund"):
        codec_of(Refund).encode(Special(order_id="7", amount=Decimal(5)))
    with pytest.raises(BadArguments, match="must be a Refunded or a Declined"):
        codec_of(Refunded | Declined).encode(Refund(order_id="7", amount=Decimal(5)))


def test_what_json_cannot_hold_is_not_written() -> None:
    class Anything(BaseModel):
        what: Any

    for what in (float("nan"), 2**63, "\ud800", "a\0", {"x": [object()]}):
        with pytest.raises(BadArguments):
            codec_of(Anything).encode(Anything(what=what))


def test_an_instant_without_a_zone_is_not_written() -> None:
    naive = NOON.replace(tzinfo=None)
    with pytest.raises(BadArguments, match="no time zone"):
        codec_of(Parcel).encode(Parcel(content=Declined(), at=naive, givenName=1))


def test_an_unknown_member_of_a_model_is_an_unknown_kind() -> None:
    codec = codec_of(Parcel)
    with pytest.raises(UnknownKind) as unknown:
        codec.from_json({"content": {"type": "Lost"}, "at": "2026-01-01T00:00:00Z"})
    assert unknown.value.kind == "Lost"
    assert [fault.field for fault in unknown.value.faults] == ["content.type"]


def test_a_set_in_a_model_has_one_form_in_every_process() -> None:
    program = (
        "from pydantic import BaseModel\nfrom onefold.terms.typed import codec_of\n"
        "class M(BaseModel):\n    tags: set[str]\n"
        "print(codec_of(M).encode(M(tags=set('abcdefgh'))))"
    )
    for seed in ("1", "2"):
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": "src"}
        ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True, text=True)
        assert ran.stdout == """b'{"tags":["a","b","c","d","e","f","g","h"]}'\n"""


def test_pydantic_is_not_loaded_before_a_model_is_met() -> None:
    program = "import sys, onefold.terms.typed\nprint(any(name.startswith('pydantic') for name in sys.modules))"
    env = {"PYTHONPATH": "src"}
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True, text=True)
    assert ran.stdout == "False\n"
