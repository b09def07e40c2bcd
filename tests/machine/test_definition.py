"""A chart that could go wrong is refused when it is loaded: everything at once, each with its place and the right word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from onefold.machine.definition import load
from onefold.terms.errors import LoadRefused
from tests.machine.small import ACTIONS, EFFECTS, GUARDS, value


def findings(raw: Any, **more: Any) -> list[str]:
    with pytest.raises(LoadRefused) as refused:
        load(raw, guards=GUARDS, actions=ACTIONS, effects=EFFECTS, **more)
    return [str(finding) for finding in refused.value.findings]


def states(**given: Any) -> dict[str, Any]:
    return {"id": "c", "initial": next(iter(given)), "states": given}


REFUSED: list[tuple[str, Callable[[], dict[str, Any]], str]] = [
    ("after", lambda: states(a={"after": {"100": "a"}}), "states.a.after: a timer does not survive a restart"),
    (
        "a delay of an action",
        lambda: states(a={"entry": {"raise": "X", "delay": 5}}),
        "states.a.entry.delay: a timer does not",
    ),
    (
        "code as text",
        lambda: states(a={"on": {"X": {"guard": "({context}) => true"}}}),
        "guard: '({context}) => true' is code",
    ),
    ("an unknown target", lambda: states(a={"on": {"X": "bb"}}, b={}), "states.a.on.X.target: there is no state"),
    (
        "an unknown id",
        lambda: states(a={"on": {"X": "#c.bb"}}, b={}),
        "target: there is no state 'bb' within 'c'; the nearest is 'b'",
    ),
    (
        "an unknown guard",
        lambda: states(a={"on": {"X": {"guard": "few_"}}}),
        "there is no guard 'few_'; the nearest is 'few'",
    ),
    (
        "an unknown action",
        lambda: states(a={"entry": "ad"}),
        "states.a.entry: there is no action or effect 'ad'; the nearest is 'add'",
    ),
    (
        "an unknown effect",
        lambda: states(a={"exit": ["add", "in  b"]}),
        "states.a.exit[1]: there is no action or effect 'in  b'; the nearest is 'in b'",
    ),
    (
        "an unknown actor",
        lambda: {**states(a={"invoke": {"src": "tock"}}), "actors": {"tick": states(x={})}},
        "states.a.invoke.src: there is no chart in `actors`",
    ),
    (
        "an unknown child",
        lambda: {
            **states(a={"invoke": {"id": "t", "src": "tick"}, "on": {"X": {"actions": {"forwardTo": "tt"}}}}),
            "actors": {"tick": states(x={})},
        },
        "forwardTo: there is no child 'tt'; the nearest is 't'",
    ),
    (
        "an unknown key",
        lambda: states(a={"states": {"x": {}}, "initial": "x", "onDOne": "b"}, b={}),
        "states.a.onDOne: there is no key of a state 'onDOne'; the nearest is 'onDone'",
    ),
    (
        "cond",
        lambda: states(a={"on": {"X": {"cond": "few", "target": "a"}}}),
        "on.X.cond: it is called `guard`",
    ),
    (
        "parameters",
        lambda: states(a={"entry": {"type": "add", "params": {"by": 2}}}),
        "entry.params: a named function takes",
    ),
    ("no initial", lambda: {"id": "c", "states": {"a": {}}}, "initial: a state with states within says which"),
    ("an unknown initial", lambda: {**states(a={}), "initial": "A1"}, "initial: there is no state 'A1' within 'c'"),
    (
        "an initial elsewhere",
        lambda: states(a={"initial": "#c.b", "states": {"x": {}}}, b={}),
        "states.a.initial: 'b' does not stand within 'a'",
    ),
    (
        "initial of a parallel state",
        lambda: states(a={"type": "parallel", "initial": "x", "states": {"x": {}}}),
        "states.a.initial: all regions",
    ),
    (
        "an empty compound state",
        lambda: states(a={"type": "compound", "initial": "x"}),
        "states.a: a compound state has",
    ),
    ("a final state that hears", lambda: states(a={"type": "final", "on": {"X": "a"}}), "states.a.on: a state of type"),
    ("output of a state that is not final", lambda: states(a={"output": 1}), "states.a.output: only a final state"),
    ("two states of one id", lambda: states(a={"id": "x"}, b={"id": "x"}), "states.b.id: a second state is called 'x'"),
    ("a key with a dot", lambda: states(**{"a.b": {}}), "states.a.b: the key of a state has no dot"),
    (
        "history of the chart",
        lambda: states(a={}, h={"type": "history"}),
        "states.h: the chart itself is never left",
    ),
    ("the chart as target", lambda: states(a={"on": {"X": "#c"}}), "the chart itself is no target"),
    (
        "beside the chart",
        lambda: {**states(a={}), "on": {"X": "a"}},
        "on.X.target: nothing stands beside the chart itself; write '.a'",
    ),
    (
        "targets that exclude each other",
        lambda: states(a={"on": {"X": {"target": ["b", "d"]}}}, b={}, d={}),
        "'b' and 'd' cannot be active together",
    ),
    ("an endless always", lambda: states(a={"always": {}}), "states.a.always[0]: without guard, target and actions"),
    ("null for an event", lambda: states(a={"on": {"X": None}}), "states.a.on.X: write {} for an event"),
    ("a star in the middle", lambda: states(a={"on": {"a.*.b": "a"}}), 'is a name, "*" for any, or "name.*"'),
    (
        "XState's name of a done event",
        lambda: states(a={"initial": "x", "states": {"x": {}}, "on": {"xstate.done.state.c.a": "a"}}),
        "there is no event 'xstate.done.state.c.a'; the nearest is 'done.state.c.a'",
    ),
    ("a parent where there is none", lambda: states(a={"entry": {"sendParent": "X"}}), "this chart has no parent"),
    (
        "a place that is no path",
        lambda: states(a={"entry": {"raise": {"type": "X", "n": {"$": "context.n + 1"}}}}),
        "a place to fill is",
    ),
    (
        "a place in nothing known",
        lambda: states(a={"entry": {"raise": {"type": "X", "n": {"$": "contxt.n"}}}}),
        "there is no root of a path 'contxt'; the nearest is 'context'",
    ),
    ("an action that is none", lambda: states(a={"entry": 7}), "states.a.entry: an action is a name, or one of"),
    (
        "a verb that is none",
        lambda: states(a={"entry": {"raze": "X"}}),
        "there is no key of an action 'raze'; the nearest is 'raise'",
    ),
    ("an event without a name", lambda: states(a={"entry": {"raise": {}}}), 'an event is "NAME" or'),
    (
        "two guards in one",
        lambda: states(a={"on": {"X": {"guard": {"not": "few", "in": "#c"}}}}),
        "a guard is a name, or one of",
    ),
]


@pytest.mark.parametrize("made,said", [(made, said) for _, made, said in REFUSED], ids=[name for name, _, _ in REFUSED])
def test_is_refused_with_its_place(made: Callable[[], dict[str, Any]], said: str) -> None:
    found = findings(made())
    assert any(said in line for line in found), found


def test_a_chart_is_an_object() -> None:
    assert findings([]) == findings("[]") == ["chart without a name: a chart is an object"]


def test_every_fault_is_told_at_once() -> None:
    found = findings(states(a={"on": {"X": "bb"}, "entry": "ad"}, b={"after": {}}))
    assert len(found) == 3


def test_inline_code_is_refused_wherever_it_stands() -> None:
    found = findings(states(a={"entry": [lambda: 1], "on": {"X": {"guard": lambda: True}}}))
    assert [line.split(": ")[0] for line in found] == [
        "chart without a name, states.a.entry[0]",
        "chart without a name, states.a.on.X.guard",
    ]


def test_a_name_is_an_action_or_an_effect() -> None:
    with pytest.raises(LoadRefused, match="'add' stands in actions and in effects"):
        load(states(a={}), actions=ACTIONS, effects={"add": ACTIONS["add"]})


def test_charts_that_invoke_each_other_are_refused() -> None:
    """A chart may invoke those that stand before it, so no circle can be written."""
    circle = {"one": states(x={"invoke": {"src": "two"}}), "two": states(x={"invoke": {"src": "one"}})}
    found = findings({**states(a={"invoke": {"src": "one"}}), "actors": circle})
    assert "actors.one.states.x.invoke.src: there is no chart in `actors` 'two'" in found[0]


def test_an_event_that_nobody_says_is_refused() -> None:
    found = findings(
        states(a={"on": {"Strat": "a"}, "entry": {"raise": "Own"}}, b={"on": {"Own": "a"}}), events={"Start"}
    )
    assert found == ["chart c, states.a.on.Strat: there is no event 'Strat'; the nearest is 'Start'"]


def test_two_children_of_one_id_that_may_run_at_once_are_refused() -> None:
    actors = {"kid": states(x={})}
    both = {
        "type": "parallel",
        "states": {"x": {"invoke": {"id": "k", "src": "kid"}}, "y": {"invoke": {"id": "k", "src": "kid"}}},
    }
    assert (
        "two states that may be active together both call their child 'k'"
        in findings({**states(a=both), "actors": actors})[0]
    )
    apart = states(a={"invoke": {"id": "k", "src": "kid"}}, b={"invoke": {"id": "k", "src": "kid"}})
    assert value(load({**apart, "actors": actors})) == "a"


def test_json_and_a_dict_are_the_same_chart() -> None:
    text = '{"initial": "z", "states": {"z": {"on": {"X": "a"}}, "a": {}}}'
    assert value(load(text), "X") == value(load(text.encode()), "X") == "a"


def test_json_that_two_readers_take_differently_is_refused() -> None:
    assert "stands twice in one object" in findings('{"initial": "a", "states": {"a": {}, "a": {}}}')[0]


def test_what_is_no_json_is_refused() -> None:
    assert "has the type set" in findings(states(a={"meta": {1, 2}}))[0]


def test_the_definition_may_change_afterwards() -> None:
    raw = states(a={"on": {"X": "b"}}, b={})
    loaded = load(raw)
    raw["states"]["a"]["on"].clear()
    assert value(loaded, "X") == "b"


def test_states_keep_the_order_in_which_they_are_written() -> None:
    loaded = load(states(z={"states": {"y": {}, "b": {}}, "initial": "y"}, a={}))
    assert [node.id for node in loaded.nodes] == ["c", "c.z", "c.z.y", "c.z.b", "c.a"]


@dataclass(frozen=True)
class Plan:
    tick_id: str = "t"


def test_a_field_that_the_context_lacks_is_refused() -> None:
    raw = {**states(a={"invoke": {"src": "kid", "input": {"$": "context.tickid"}}}), "actors": {"kid": states(x={})}}
    assert "there is no field of the context 'tickid'; the nearest is 'tick_id'" in findings(raw, context=Plan())[0]


def test_a_context_is_said_once() -> None:
    assert "the context was handed in" in findings({**states(a={}), "context": {}}, context=Plan())[0]


def test_a_context_that_cannot_be_written_is_refused() -> None:
    assert "context: has the type object" in findings(states(a={}), context=object())[0]
