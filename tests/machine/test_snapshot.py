"""A snapshot that the chart cannot be in stops the step by name; nothing is guessed, nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.machine.definition import load
from onefold.machine.snapshot import states_of, value_of
from onefold.machine.step import step
from onefold.machine.words import ChartChanged, Endless, Plain
from tests.machine.random_charts import ACTIONS, EFFECTS, GUARDS, random_chart
from tests.machine.small import NOW, chart, run

STATES: dict[str, Any] = {
    "a": {"initial": "x", "states": {"x": {}, "h": {"type": "history"}}, "on": {"GO": "p"}},
    "p": {"type": "parallel", "states": {"l": {}, "r": {"initial": "r1", "states": {"r1": {}, "r2": {}}}}},
}


@pytest.mark.parametrize(
    "value,said",
    [
        ("b", "the state c.b"),
        ({"a": "xx"}, "the state c.a.xx, which the chart no longer has (the nearest it has is 'x')"),
        ({"a": "h"}, "the state c.a.h"),
        ("a", "in state 'c.a'"),
        ({"a": {"x": {"deeper": {}}}}, "in state 'c.a.x'"),
        ({"p": {"l": {}}}, "in state 'c.p'"),
        ({"p": {"l": {}, "r": "r3"}}, "the state c.p.r.r3"),
        ({"a": "x", "p": {}}, "in state 'c'"),
        ({}, "in state 'c'"),
        (7, "in state 'c'"),
    ],
)
def test_a_value_the_chart_cannot_have_is_refused_by_name(value: Any, said: str) -> None:
    with pytest.raises(ChartChanged) as refused:
        step(chart(STATES), {"status": "active", "value": value, "context": {}}, Plain("GO"), NOW)
    assert said in str(refused.value)


def test_a_remembered_state_that_is_gone_is_refused_by_name() -> None:
    kept = {"status": "active", "value": {"a": "x"}, "context": {}, "history": {"c.a.h": ["c.a.y"]}}
    with pytest.raises(ChartChanged, match=r"the state 'c.a.y' in its history"):
        step(chart(STATES), kept, Plain("GO"), NOW)


def test_a_child_whose_chart_is_gone_is_refused_by_name() -> None:
    kid = {"src": "tock", "snapshot": {"status": "active", "value": "x", "context": {}}}
    states = {"a": {"invoke": {"id": "k", "src": "tick"}, "on": {"GO": {"actions": {"forwardTo": "k"}}}}}
    made = chart(states, actors={"tick": {"initial": "x", "states": {"x": {}}}})
    with pytest.raises(ChartChanged, match=r"the child chart 'tock'.*'tick'"):
        step(made, {"status": "active", "value": "a", "context": {}, "children": {"k": kid}}, Plain("GO"), NOW)


def test_regions_are_written_in_the_order_of_the_document() -> None:
    snapshot, _ = run(chart(STATES), "GO")
    assert list(snapshot["value"]["p"]) == ["l", "r"]


def test_only_what_there_is_stands_in_a_snapshot() -> None:
    assert run(chart(STATES))[0] == {"status": "active", "value": {"a": "x"}, "context": {}}


@given(st.integers(0, 1 << 30))
def test_a_value_is_read_as_it_was_written(seed: int) -> None:
    raw, events = random_chart(seed)
    made = load(raw, guards=GUARDS, actions=ACTIONS, effects=EFFECTS)
    try:
        snapshot, _ = run(made, *events[:3])
    except (Endless, LookupError, ValueError):
        return
    active = states_of(made, snapshot["value"])
    assert value_of(made.root, active) == snapshot["value"]
    for node in active:  # one state within each compound, all within each parallel one
        inside = [inner for inner in node.regions if inner in active]
        assert len(inside) == (1 if node.kind == "compound" else len(node.regions))
        assert node.parent is None or node.parent in active
