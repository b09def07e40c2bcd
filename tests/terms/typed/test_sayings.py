"""Every refusal of a field is a plain sentence: where, what is wrong, what came, what was perhaps meant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, HttpUrl, field_validator, model_validator

from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments
from onefold.terms.limits import MAX_FAULTS
from onefold.terms.typed import codec_of
from tests.terms.typed import kinds
from tests.terms.typed.kinds import (
    Badge,
    Color,
    Declined,
    Deposit,
    Derived,
    Holder,
    Limited,
    Parcel,
    PayOut,
    Point,
    Refund,
    Refunded,
    Tree,
    Wrap,
)

GOOD = {"id": "1", "account": "a", "amount": "5"}


@dataclass
class Range:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("Low is above high.")


class Strict(BaseModel):
    count: int = Field(ge=1, lt=10, multiple_of=2, default=2)
    ratio: float = Field(gt=0, default=1.0)
    code: str = Field(min_length=2, max_length=3, pattern="^[a-z]+$", default="ab")
    few: list[int] = Field(min_length=1, max_length=2, default=[1])
    flag: bool = False
    day: date = date(2026, 1, 1)
    hour: time = time(1)
    wait: timedelta = timedelta(0)
    id: UUID = UUID(int=1)
    url: HttpUrl | None = None
    either: int | str = 1
    word: Literal["a", "b"] = "a"
    color: Color = Color.RED
    money: Decimal = Field(max_digits=4, decimal_places=2, default=Decimal(1))
    pair: tuple[int, str] = (1, "a")
    names: dict[str, int] = {}

    @field_validator("word")
    @classmethod
    def not_b(cls, value: str) -> str:
        if value == "b":
            raise ValueError("B is taken.")
        return value


class Both(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def in_order(self) -> Both:
        if self.low > self.high:
            raise ValueError("Low is above high.")
        return self


SAID: list[tuple[Any, Any, list[str]]] = [
    (int, "5", ["must be a whole number; sent 5"]),
    (int, 5.5, ["must be a whole number; sent 5.5"]),
    (int, None, ["must be a whole number"]),
    (float, "x", ["must be a number; sent x"]),
    (bool, 1, ["must be true or false; sent 1"]),
    (str, 5, ["must be text; sent 5"]),
    (None, 5, ["must be null; sent 5"]),
    (Decimal, "five", ["must be a decimal number; sent five"]),
    (Decimal, "NaN", ["must be a finite decimal number; sent NaN"]),
    (Decimal, "1E+999999999", ["must be a finite decimal number; sent 1E+999999999"]),
    (UUID, "x", ["must be a UUID; sent x"]),
    (bytes, "*", ["must be bytes in base64; sent *"]),
    (
        datetime,
        "tomorrow",
        ["must be an instant in RFC 3339 with its offset, like 2026-01-31T09:00:00Z; sent tomorrow"],
    ),
    (
        datetime,
        "2026-01-31T09:00:00",
        ["must be an instant in RFC 3339 with its offset, like 2026-01-31T09:00:00Z; sent 2026-01-31T09:00:00"],
    ),
    (datetime, 5, ["must be an instant in RFC 3339 with its offset, like 2026-01-31T09:00:00Z; sent 5"]),
    (date, "31.1.2026", ["must be a date, like 2026-01-31; sent 31.1.2026"]),
    (time, "9", ["must be a time of day, like 09:00:00; sent 9"]),
    (timedelta, "1h", ["must be a duration in ISO 8601, like PT30S; sent 1h"]),
    (Color, "x", ["must be one of 'r' or 'b'; sent x"]),
    (Literal["a"], "x", ["must be 'a'; sent x"]),
    (Literal["a", 1, None], 2, ["must be one of 'a' or 1 or null; sent 2"]),
    (int | None, "x", ["must be a whole number or null; sent x"]),
    (int | str | None, [], ["must be a whole number, text or null; sent []"]),
    (list[int], 5, ["must be a list; sent 5"]),
    (list[int], [1, "a", None], ["[1]: must be a whole number; sent a", "[2]: must be a whole number"]),
    (tuple[int, str], [1], ["must be a list of 2; sent [1]"]),
    (tuple[int, str], ["a", 1], ["[0]: must be a whole number; sent a", "[1]: must be text; sent 1"]),
    (set[int], ["a"], ["[0]: must be a whole number; sent a"]),
    (dict[str, int], [], ["must be an object; sent []"]),
    (dict[str, list[int]], {"a": [1], "b": ["c"]}, ["b[0]: must be a whole number; sent c"]),
    (Deposit, [], ["must be an object; sent []"]),
    (Deposit, {}, ["id: is missing", "account: is missing", "amount: is missing"]),
    (
        Deposit,
        {"id": 5, "acount": "a", "amount": "x"},
        [
            "acount: is not known; did you mean account?",
            "id: must be text; sent 5",
            "account: is missing",
            "amount: must be a decimal number; sent x",
        ],
    ),
    (Deposit, {**GOOD, "zzz": 1}, ["zzz: is not known"]),
    (Deposit | PayOut, GOOD, ["type: is missing; give Deposit or PayOut"]),
    (Deposit | PayOut, {**GOOD, "type": 5}, ["type: must be Deposit or PayOut; sent 5"]),
    (Deposit | PayOut, {**GOOD, "type": "Depost"}, ["type: is not known; did you mean Deposit?; sent Depost"]),
    (Deposit | PayOut, {**GOOD, "type": "Zzz"}, ["type: must be Deposit or PayOut; sent Zzz"]),
    (Deposit | PayOut, 5, ["must be a Deposit or a PayOut; sent 5"]),
    (Deposit | PayOut, {"type": "PayOut", **GOOD, "note": 1}, ["note: must be text or null; sent 1"]),
    (str | Deposit, GOOD, ["type: is missing; give Deposit"]),
    (str | Deposit, 5, ["must be text or a Deposit; sent 5"]),
    (Deposit | None, {**GOOD, "id": 1}, ["id: must be text; sent 1"]),
    (list[Deposit] | Declined, [{}], ["[0].id: is missing", "[0].account: is missing", "[0].amount: is missing"]),
    (Point, {"x": "a"}, ["x: must be a whole number; sent a"]),
    (Point, [1, 2], ["must be an object; sent [1, 2]"]),
    (Badge, {"nam": "a"}, ["nam: is not known; did you mean name?", "name: is missing"]),
    (Badge, {"name": "a", "level": 9}, ["level: must be one of 1 or 2; sent 9"]),
    (Range, {"low": 2, "high": 1}, ["low is above high"]),
    (list[Range], [{"low": 2, "high": 1}], ["[0]: low is above high"]),
    (Derived, {"width": -1}, ["a width is not negative"]),
    (Derived, {"width": 1, "area": 1}, ["area: is not known"]),
    (
        Limited,
        {"count": 0, "word": "ABCD", "price": 0, "few": [1, 2, 3], "step": 7},
        [
            "count: must be at least 1; sent 0",
            "word: must have at most 3 characters; sent ABCD",
            "price: must be more than 0; sent 0",
            "few: must have at most 2 items; sent [1, 2, 3]",
            "step: must be a multiple of 5; sent 7",
        ],
    ),
    (
        Limited,
        {"count": 11, "word": "A"},
        ["count: must be at most 10; sent 11", "word: must match the pattern ^[a-z]+$; sent A"],
    ),
    (Limited, {"count": 1, "word": ""}, ["word: must have at least 1 characters; sent "]),
    (
        Holder,
        {
            "one": {"type": "PayOut", **GOOD, "tags": [1]},
            "many": [None, {"type": "Deposit"}],
            "lone": {**GOOD, "amount": None},
            "maybe": 5,
            "mixed": 5,
            "by_name": {"x": {"type": "Deposit", **GOOD, "id": None}},
        },
        [
            "one.tags[0]: must be text; sent 1",
            "many[1].id: is missing",
            "many[1].account: is missing",
            "many[1].amount: is missing",
            "lone.amount: must be a decimal number",
            "maybe: must be a Deposit or null; sent 5",
            "mixed: must be text or a Deposit; sent 5",
            "by_name.x.id: must be text",
        ],
    ),
    (Tree, {"value": 1, "kids": [{"value": "x"}]}, ["kids[0].value: must be a whole number; sent x"]),
    (
        Tree,
        {"value": 1, "other": {"type": "Tree", "kids": 1}},
        ["other.value: is missing", "other.kids: must be a list; sent 1"],
    ),
    (
        Refund,
        {"order_id": 7, "amout": 1},
        ["order_id: must be text; sent 7", "amount: is missing", "amout: is not known; did you mean amount?"],
    ),
    (Refund, {"order_id": "7", "amount": 900}, ["amount: must be at most 500; sent 900"]),
    (Refund, {"order_id": "7", "amount": 0}, ["amount: must be more than 0; sent 0"]),
    (Refund, {"order_id": "7", "amount": "NaN"}, ["amount: must be a finite number; sent NaN"]),
    (Refund, [], ["must be an object; sent []"]),
    (Refunded | Declined, {}, ["type: is missing; give Refunded or Declined"]),
    (Refunded | Declined, {"type": "Refunded"}, ["refund_id: is missing"]),
    (Refunded | Declined, {"type": "Refundd"}, ["type: is not known; did you mean Refunded?; sent Refundd"]),
    (
        Wrap,
        {"model": {"amount": 5}, "either": "x"},
        ["model.order_id: is missing", "either: must be a Refunded, a Declined or a whole number; sent x"],
    ),
    (
        Parcel,
        {"content": {"type": "Refunded", "refund_id": 5}, "more": [{"type": "Decline"}], "label": "*", "size": "m"},
        [
            "content.refund_id: must be text; sent 5",
            "more[0].type: is not known; did you mean Declined?; sent Decline",
            "label: must be bytes in base64; sent *",
            "at: is missing",
            "size: must be one of 's' or 'l'; sent m",
        ],
    ),
    (
        Parcel,
        {"content": {"type": "Declined"}, "at": "2026-01-01T00:00:00"},
        ["at: has no time zone; give an instant with its offset; sent 2026-01-01 00:00:00"],
    ),
    (
        Strict,
        {
            "count": 0,
            "ratio": 0,
            "code": "a",
            "few": [],
            "flag": "maybe",
            "day": "x",
            "hour": "x",
            "wait": "x",
            "id": "x",
            "url": "x",
            "either": [],
            "word": "c",
            "color": "x",
            "money": "1.234",
            "pair": [1],
            "names": {"x": "y"},
        },
        [
            "count: must be at least 1; sent 0",
            "ratio: must be more than 0; sent 0",
            "code: must have at least 2 characters; sent a",
            "few: must have at least 1 items; sent []",
            "flag: must be true or false; sent maybe",
            "day: must be a date, like 2026-01-31; sent x",
            "hour: must be a time of day, like 09:00:00; sent x",
            "wait: must be a duration in ISO 8601, like PT30S; sent x",
            "id: must be a UUID; sent x",
            "url: must be a URL; sent x",
            "either: must be a whole number or text; sent []",
            "word: must be one of 'a' or 'b'; sent c",
            "color: must be one of 'r' or 'b'; sent x",
            "money: must have at most 2 decimal places; sent 1.234",
            "pair[1]: is missing",
            "names.x: must be a whole number; sent y",
        ],
    ),
    (
        Strict,
        {"count": 10, "code": "ABCD", "few": [1, 2, 3], "word": "b", "money": "123.45", "pair": 5},
        [
            "count: must be less than 10; sent 10",
            "code: must have at most 3 characters; sent ABCD",
            "few: must have at most 2 items; sent [1, 2, 3]",
            "word: b is taken; sent b",
            "money: must have at most 4 digits; sent 123.45",
            "pair: must be a list; sent 5",
        ],
    ),
    (
        Strict,
        {"count": 3, "code": "A1"},
        ["count: must be a multiple of 2; sent 3", "code: must match the pattern ^[a-z]+$; sent A1"],
    ),
    (Both, {"low": 2, "high": 1}, ["low is above high; sent {'low': 2, 'high': 1}"]),
]


@pytest.mark.parametrize("kind, json, told", SAID, ids=[f"{kind} {str(json)[:30]}" for kind, json, _ in SAID])
def test_a_field_is_refused_in_plain_words(kind: Any, json: Any, told: list[str]) -> None:
    with pytest.raises(BadArguments) as refused:
        codec_of(kind).from_json(json)
    assert [str(fault) for fault in refused.value.faults] == told
    assert str(refused.value).startswith("Nothing was started. ")


def test_the_path_stands_before_each_field() -> None:
    with pytest.raises(BadArguments) as refused:
        codec_of(Deposit).from_json({"id": 5, "account": "a", "amount": "1"}, "body.order")
    assert [fault.field for fault in refused.value.faults] == ["body.order.id"]
    with pytest.raises(BadArguments) as refused:
        codec_of(Refund).from_json({"order_id": 5, "amount": "1"}, "body")
    assert [fault.field for fault in refused.value.faults] == ["body.order_id"]


KINDS = [kind for kind, _ in [*kinds.LEAVES, *kinds.CLASSES, *kinds.UNIONS]]
SOME_JSON = kinds.json | st.dictionaries(
    st.sampled_from(["type", "id", "account", "amount", "value", "kids", "x", "one", "many", "content", "order_id"]),
    kinds.json | st.sampled_from(["Deposit", "PayOut", "Tree", "Refunded", "5"]),
    max_size=4,
)


@given(st.sampled_from(KINDS), SOME_JSON, st.booleans())
def test_any_json_is_a_value_or_a_list_of_faults(kind: Any, json: Any, seen_by_model: bool) -> None:
    codec = codec_of(kind)
    read: Callable[[Any], Any] = codec.from_json if seen_by_model else lambda j: codec.decode(canonical(j))
    try:
        value = read(json)
    except BadArguments as refused:
        faults = refused.faults
    else:
        assert codec.from_json(codec.to_json(value)) == value
        return
    assert faults
    assert len({fault.field for fault in faults}) == len(faults)
    assert all("Expected" not in f.problem and "Input should" not in f.problem for f in faults)
    canonical([[fault.field, fault.problem, fault.got] for fault in faults])


def test_what_came_may_be_shown_even_if_it_is_huge() -> None:
    with pytest.raises(BadArguments) as refused:
        codec_of(Annotated[str, Field(max_length=3)]).from_json("x" * 100_000)
    assert len(str(refused.value)) < 500
    with pytest.raises(BadArguments) as refused:
        codec_of(Deposit).from_json({**GOOD, "x" * 100_000: 1})
    assert len(str(refused.value)) < 500


def test_a_thousand_faults_are_not_all_told() -> None:
    with pytest.raises(BadArguments) as refused:
        codec_of(list[int]).from_json(["x"] * 1000)
    assert len(refused.value.faults) == MAX_FAULTS + 1
    assert str(refused.value.faults[-1]) == "has 950 more faults"


def test_very_many_wrong_items_are_counted_and_the_hints_are_for_those_that_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look for the nearest name takes longer than all else: a body of a megabyte held everybody for seconds."""
    asked: list[str] = []
    monkeypatch.setattr(
        "onefold.terms.typed.classes.nearest", lambda word, words: asked.append(word) if words else None
    )
    for codec, json in (
        (codec_of(Deposit), {**GOOD, **{f"amuont{n}": 1 for n in range(1_000)}}),
        (codec_of(list[Deposit]), [{**GOOD, "amuont": 1}] * 1_000),
        (codec_of(dict[str, Deposit]), {str(n): {**GOOD, "amuont": 1} for n in range(1_000)}),
    ):
        asked.clear()
        with pytest.raises(BadArguments) as refused:
            codec.from_json(json)
        assert str(refused.value.faults[-1]) == "has 950 more faults"
        assert len(asked) <= MAX_FAULTS + 1
