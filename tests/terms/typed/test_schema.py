"""The schema of a type says what is taken, and nothing that is written breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel

from onefold.terms.errors import BadArguments
from onefold.terms.typed import codec_of
from tests.terms.typed.kinds import (
    CLASSES,
    LEAVES,
    UNIONS,
    Declined,
    Deposit,
    Parcel,
    PayOut,
    Refund,
    Refunded,
    Tree,
    json,
)

ALL = [pytest.param(kind, values, id=str(kind)) for kind, values in [*LEAVES, *CLASSES, *UNIONS]]


@pytest.mark.parametrize("kind, values", ALL)
@settings(max_examples=10)
@given(data=st.data())
def test_what_is_written_follows_the_schema(kind: Any, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    codec = codec_of(kind)
    for mode in ("validation", "serialization"):
        schema = codec.schema(mode)
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(codec.to_json(data.draw(values)))


@pytest.mark.parametrize("kind", [Deposit, PayOut, Deposit | PayOut, Tree, Refund, Refunded | Declined, Parcel])
@settings(max_examples=20)
@given(some=st.dictionaries(st.sampled_from(["type", "id", "account", "amount", "value", "refund_id", "reason"]), json))
def test_what_the_schema_refuses_is_refused(kind: Any, some: dict[str, Any]) -> None:
    codec = codec_of(kind)
    if not Draft202012Validator(codec.schema()).is_valid(some):
        with pytest.raises(BadArguments):
            codec.from_json(some)


def test_the_schema_of_a_union_names_its_classes() -> None:
    schema = codec_of(Deposit | PayOut).schema()
    assert schema["anyOf"] == [{"$ref": "#/$defs/Deposit"}, {"$ref": "#/$defs/PayOut"}]
    deposit = schema["$defs"]["Deposit"]
    assert deposit["properties"]["type"] == {"const": "Deposit"}
    assert deposit["required"] == ["type", "id", "account", "amount"]
    assert deposit["additionalProperties"] is False
    payout = schema["$defs"]["PayOut"]
    assert payout["required"] == ["type", "id", "account", "amount"]
    assert payout["properties"]["note"]["default"] is None
    written = codec_of(Deposit | PayOut).schema("serialization")["$defs"]["PayOut"]
    assert written["required"] == ["type", "id", "account", "amount", "note", "tags"]


def test_a_docstring_is_a_description() -> None:
    @dataclass
    class Told:
        """What it is."""

        value: int

    @dataclass
    class Untold:
        value: int

    assert codec_of(Told).schema()["$defs"]["Told"]["description"] == "What it is."
    assert "description" not in codec_of(Untold).schema()["$defs"]["Untold"]


def test_limits_stand_in_the_schema() -> None:
    @dataclass
    class Limits:
        count: Annotated[int, msgspec.Meta(ge=1)]
        free: int
        few: Annotated[list[int], msgspec.Meta(max_length=2)]

    told = codec_of(Limits).schema()["$defs"]["Limits"]["properties"]
    assert told["count"] == {"type": "integer", "minimum": 1}
    assert told["free"] == {"type": "integer"}
    assert told["few"] == {"type": "array", "items": {"type": "integer"}, "maxItems": 2}


def test_two_classes_of_one_name_have_two_definitions() -> None:
    def another() -> Any:
        class Refund(BaseModel):
            other: int

        return Refund

    schema = codec_of(tuple[Refund, another()]).schema()  # type: ignore[misc]
    assert set(schema["$defs"]) == {"Refund", "Refund_2"}
    assert schema["prefixItems"] == [{"$ref": "#/$defs/Refund"}, {"$ref": "#/$defs/Refund_2"}]


def test_the_schema_of_a_model_is_its_own() -> None:
    told = codec_of(Refund).schema()["$defs"]["Refund"]
    own = Refund.model_json_schema()
    assert told == {**own, "additionalProperties": False}


def test_what_is_ours_in_a_model_is_described_as_ours() -> None:
    schema = codec_of(Parcel).schema()
    parcel = schema["$defs"]["Parcel"]["properties"]
    assert parcel["label"]["contentEncoding"] == "base64"
    assert parcel["content"]["anyOf"] == [{"$ref": "#/$defs/Refunded"}, {"$ref": "#/$defs/Declined"}]
    assert schema["$defs"]["Declined"]["properties"]["type"] == {"const": "Declined"}
