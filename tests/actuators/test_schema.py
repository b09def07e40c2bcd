"""The schema agents read: one flat object, no references, no null branches, no patterns they cannot read."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel

from onefold.actuators import Run, actuator
from onefold.actuators.schema import flat, input_schema
from onefold.terms.errors import LoadRefused


class Line(BaseModel):
    sku: str
    count: int = 1


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    """An order."""

    id: str = Field(description="The shop's own id")
    amount: Decimal = Field(gt=0, le=500, max_digits=6, decimal_places=2)
    note: str | None = None
    when: date | None = Field(default=None, description="The day")
    lines: list[Line] = Field(min_length=1, max_length=3)
    first: Line | None = None
    either: int | str | None = None
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"


SCHEMA = input_schema(Order, "actuator x")


def test_the_root_is_one_plain_object_without_extra_fields() -> None:
    assert SCHEMA["type"] == "object"
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["required"] == ["id", "amount", "lines"]
    assert "$defs" not in SCHEMA
    assert "$ref" not in str(SCHEMA)


def test_references_are_inlined_where_they_stand() -> None:
    line = {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "default": 1}}}
    assert SCHEMA["properties"]["lines"] == {
        "type": "array",
        "minItems": 1,
        "maxItems": 3,
        "items": {**line, "required": ["sku"]},
    }
    assert SCHEMA["properties"]["first"] == {**line, "required": ["sku"]}
    assert SCHEMA["properties"]["colour"] == {"type": "string", "enum": ["red", "blue"], "default": "red"}


def test_optionals_are_plain_without_a_null_branch() -> None:
    assert SCHEMA["properties"]["note"] == {"type": "string"}
    assert SCHEMA["properties"]["when"] == {"type": "string", "format": "date", "description": "The day"}
    assert SCHEMA["properties"]["either"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}


def test_a_decimal_is_a_number_or_text_without_a_pattern() -> None:
    amount = SCHEMA["properties"]["amount"]
    kinds = [branch["type"] for branch in amount["anyOf"]]
    assert kinds == ["number", "string"]
    assert "pattern" not in str(amount)
    assert amount["anyOf"][0]["maximum"] == 500
    assert "x-decimal" not in str(SCHEMA)
    assert amount["description"] == "an exact decimal, best sent as text"


def test_a_field_that_is_named_like_a_word_of_the_schema_stays_a_field() -> None:
    class Odd(BaseModel):
        title: str
        properties: dict[str, int] = {}
        discriminator: str = ""

    schema = input_schema(Odd, "x")
    assert list(schema["properties"]) == ["title", "properties", "discriminator"]
    assert schema["properties"]["title"] == {"type": "string"}
    assert schema["required"] == ["title"]


def test_a_model_that_refers_to_itself_keeps_only_its_own_definition() -> None:
    class Holder(BaseModel):
        line: Line
        tree: Tree | None = None

    schema = input_schema(Holder, "x")
    assert list(schema["$defs"]) == ["Tree"]
    assert schema["properties"]["tree"]["$ref"] == "#/$defs/Tree"
    assert schema["properties"]["line"]["type"] == "object"


class One(BaseModel):
    kind: Literal["one"]


class Two(BaseModel):
    kind: Literal["two"]


class Either(RootModel[Annotated[One | Two, Field(discriminator="kind")]]):
    pass


class Listed(RootModel[list[int]]):
    pass


@pytest.mark.parametrize("model", [Either, Listed])
def test_a_union_at_the_root_is_refused_at_load(model: Any) -> None:
    with pytest.raises(LoadRefused) as refused:
        input_schema(model, "actuator x")
    assert f"actuator x: {model.__name__} is not one plain object" in str(refused.value)
    assert "put the alternatives into a field of a model" in str(refused.value)


def test_a_model_that_holds_itself_is_one_object_too() -> None:
    schema = input_schema(Tree, "x")
    assert schema["type"] == "object"
    assert list(schema["properties"]) == ["name", "children"]
    assert list(schema["$defs"]) == ["Tree"]


def test_no_input_is_an_empty_object() -> None:
    assert input_schema(None, "x") == {"type": "object", "properties": {}, "additionalProperties": False}


class Refunded(BaseModel):
    refund_id: str
    at: datetime


class Declined(BaseModel):
    reason: str


def test_the_output_is_the_receipt_with_the_result_in_it() -> None:
    @actuator
    async def refund(run: Run) -> Refunded | Declined:
        return Declined(reason="x")

    schema = refund.output_schema
    assert schema["type"] == "object"
    assert schema["required"] == ["run_id", "program", "status", "started_at", "updated_at"]
    assert schema["properties"]["status"]["enum"] == ["running", "waiting", "done", "failed", "cancelled", "parked"]
    branches = schema["properties"]["result"]["anyOf"]
    assert [branch["properties"]["type"]["const"] for branch in branches] == ["Refunded", "Declined"]
    assert "$ref" not in str(schema)


class Found(BaseModel):
    name: str | None
    where: Line | None = None


def test_a_result_that_may_be_null_says_so() -> None:
    @actuator
    async def look(run: Run) -> str | None:
        return None

    @actuator
    async def find(run: Run) -> Found:
        return Found(name=None)

    assert look.output_schema["properties"]["result"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    found = find.output_schema["properties"]["result"]["properties"]
    assert {"type": "null"} in found["name"]["anyOf"]
    assert {"type": "null"} in found["where"]["anyOf"]


def test_flat_leaves_a_schema_without_references_alone() -> None:
    assert flat({"type": "string"}) == {"type": "string"}


Tree.model_rebuild()
