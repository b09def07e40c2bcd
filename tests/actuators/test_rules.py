"""An edit fits the schema of what was offered, or is told where it does not."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from onefold.actuators.rules import faults_in
from onefold.actuators.schema import marked


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    sku: str = Field(min_length=1, max_length=4, pattern="^[a-z]+$")
    count: int = Field(default=1, ge=1, lt=10, multiple_of=1)


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Offer(BaseModel):
    amount: Decimal = Field(gt=0, le=50)
    rate: float = 0.5
    urgent: bool = False
    lines: list[Line] = Field(default=[], max_length=2)
    notes: dict[str, str] = {}
    colour: Colour = Colour.RED
    kind: Literal["a"] = "a"
    note: str | None = None
    tree: Tree | None = None


RULES = marked(Offer)
GOOD: dict[str, Any] = {"amount": "40.5", "lines": [{"sku": "ab"}], "colour": "blue", "note": None}


def test_an_edit_that_fits_has_no_faults() -> None:
    assert faults_in(RULES, GOOD, "value") == []
    assert faults_in(RULES, {"amount": 40}, "value") == []
    tree = {"name": "a", "children": [{"name": "b", "children": []}]}
    assert faults_in(RULES, {"amount": 1, "tree": tree, "notes": {"a": "b"}}, "value") == []


@pytest.mark.parametrize(
    "edit, told",
    [
        ({"amount": "900"}, "value.amount: must be at most 50; sent 900"),
        ({"amount": "50.0001"}, "value.amount: must be at most 50; sent 50.0001"),
        ({"amount": 0}, "value.amount: must be more than 0; sent 0"),
        ({"amount": "much"}, "value.amount: must be a decimal number; sent much"),
        ({"amount": "NaN"}, "value.amount: must be a finite number; sent NaN"),
        ({"amount": True}, "value.amount: must be a decimal number; sent True"),
        ({"amount": None}, "value.amount: must be a decimal number"),
        ({"rate": "x"}, "value.rate: must be a number; sent x"),
        ({"urgent": 1}, "value.urgent: must be true or false; sent 1"),
        ({"lines": [{}, {"sku": "A"}]}, "value.lines[0].sku: is missing"),
        ({"lines": [{"sku": "A"}]}, "value.lines[0].sku: must match the pattern ^[a-z]+$; sent A"),
        ({"lines": [{"sku": ""}]}, "value.lines[0].sku: must have at least 1 characters"),
        ({"lines": [{"sku": "abcde"}]}, "value.lines[0].sku: must have at most 4 characters; sent abcde"),
        ({"lines": [{"sku": "a", "count": 0}]}, "value.lines[0].count: must be at least 1; sent 0"),
        ({"lines": [{"sku": "a", "count": 10}]}, "value.lines[0].count: must be less than 10; sent 10"),
        ({"lines": [{"sku": "a", "count": 1.5}]}, "value.lines[0].count: must be a whole number; sent 1.5"),
        ({"lines": [{"sku": "a"}] * 3}, "value.lines: must have at most 2 items"),
        ({"lines": {}}, "value.lines: must be a list"),
        ({"notes": {"a": 1}}, "value.notes.a: must be text; sent 1"),
        ({"colour": "green"}, "value.colour: must be 'red' or 'blue'; sent green"),
        ({"kind": "b"}, "value.kind: must be 'a'; sent b"),
        ({"note": 5}, "value.note: must be text; sent 5"),
        ({"tree": {"name": "a", "children": [{}]}}, "value.tree.children[0].name: is missing"),
        ({"other": 5}, "value.other: is not known; sent 5"),
    ],
)
def test_an_edit_that_breaks_a_rule_is_told_where(edit: dict[str, Any], told: str) -> None:
    first = faults_in(RULES, {**GOOD, **edit}, "value")[0]
    assert str(first).startswith(told)


def test_an_edit_is_an_object_with_all_that_must_be_there() -> None:
    assert [str(f) for f in faults_in(RULES, {}, "value")] == ["value.amount: is missing"]
    assert [str(f) for f in faults_in(RULES, 5, "value")] == ["value: must be an object; sent 5"]


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 60), st.floats(allow_nan=False), st.sampled_from(["a", "red", "5"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["sku", "name"]), inner)),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(list(Offer.model_fields)), values))
def test_what_fits_is_taken_by_the_model(edit: dict[str, Any]) -> None:
    if not faults_in(RULES, edit, "value"):
        try:
            Offer.model_validate_json(__import__("json").dumps(edit))
        except ValidationError as wrong:
            pytest.fail(str(wrong))


Tree.model_rebuild()
