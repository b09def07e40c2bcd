"""One event is one pure step: the same snapshot, event and instant give the same snapshot and the same effects."""

from __future__ import annotations

import copy
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.machine.definition import load
from onefold.machine.step import start, step
from onefold.machine.words import MICROSTEPS, Endless, Plain
from onefold.terms.codec import canonical, parse
from tests.machine.random_charts import ACTIONS, EFFECTS, GUARDS, OUTSIDE, random_chart
from tests.machine.small import NOW, chart, names, run, value


def test_exit_then_the_transition_then_entry() -> None:
    inner = {
        "initial": "a",
        "states": {
            "a": {"entry": "in a", "exit": "out a", "on": {"GO": {"target": "#c.q.b", "actions": "on the way"}}}
        },
    }
    other = {"initial": "b", "entry": "in p", "states": {"b": {"entry": "in b"}}}
    made = chart({"p": {**inner, "exit": "out p"}, "q": other}, "p")
    assert names(made, "GO") == ["out a", "out p", "on the way", "in p", "in b"]


def test_the_actions_of_an_initial_transition_run_whenever_it_is_followed() -> None:
    region = {
        "initial": {"target": "x", "actions": "first"},
        "entry": "in a",
        "states": {"x": {"entry": "in b"}, "y": {}},
    }
    made = chart(
        {
            "z": {"on": {"GO": "#c.p.one.o"}},
            "p": {"type": "parallel", "states": {"one": {"initial": "o", "states": {"o": {}}}, "two": region}},
        },
        "z",
    )
    assert names(made, "GO") == ["in a", "first", "in b"]


def test_an_initial_target_may_lie_deeper() -> None:
    inner = {"initial": "x", "states": {"x": {}, "y": {}}}
    assert value(chart({"a": inner}, initial={"target": "#c.a.y"})) == {"a": "y"}  # type: ignore[arg-type]


def test_what_is_raised_is_heard_before_the_next_event_and_in_order() -> None:
    on = {
        "GO": {"actions": [{"raise": "ONE"}, {"raise": {"type": "TWO", "n": 7}}]},
        "ONE": {"actions": "note"},
        "TWO": {"actions": "note"},
    }
    snapshot, _ = run(chart({"a": {"on": on}}), "GO")
    assert snapshot["context"]["seen"] == [["ONE", {}], ["TWO", {"n": 7}]]


def test_what_is_sent_to_the_chart_itself_comes_after_what_is_raised() -> None:
    send = {"actions": [{"sendTo": "#self", "event": "LATE"}, {"raise": "NOW"}]}
    on = {"GO": send, "LATE": {"actions": "note"}, "NOW": {"actions": "note"}}
    snapshot, _ = run(chart({"a": {"on": on}}), "GO")
    assert [name for name, _ in snapshot["context"]["seen"]] == ["NOW", "LATE"]


def test_choose_takes_the_first_branch_that_holds() -> None:
    choose = {
        "choose": [
            {"guard": "never", "actions": "in a"},
            {"guard": {"in": "#c.a"}, "actions": ["add", "in b"]},
            {"actions": "out b"},
        ]
    }
    made = chart({"a": {"on": {"GO": {"actions": [choose, "out a"]}}}})
    assert names(made, "GO") == ["in b", "out a"]
    assert run(made, "GO")[0]["context"] == {"n": 1}


@pytest.mark.parametrize(
    "guard,goes",
    [
        ({"not": "never"}, True),
        ({"and": ["few", {"not": "never"}]}, True),
        ({"and": ["few", "never"]}, False),
        ({"or": ["never", "few"]}, True),
        ({"or": ["never", {"not": "few"}]}, False),
        ({"in": "#c.a"}, True),
        ({"in": "#c.b"}, False),
        ({"type": "few"}, True),
    ],
)
def test_guards_combine(guard: Any, goes: bool) -> None:
    assert value(chart({"a": {"on": {"GO": {"guard": guard, "target": "b"}}}, "b": {}}), "GO") == ("b" if goes else "a")


# --- done -----------------------------------------------------------------------------------------


def test_a_state_is_done_when_a_final_state_within_is_entered() -> None:
    inner = {
        "initial": "x",
        "states": {"x": {"on": {"GO": "end"}}, "end": {"type": "final", "output": {"n": {"$": "context.n"}}}},
    }
    made = chart({"a": {**inner, "onDone": {"target": "b", "actions": "note"}}, "b": {}}, context={"n": 4})
    snapshot, _ = run(made, "GO")
    assert (snapshot["value"], snapshot["context"]["seen"]) == ("b", [["done.state.c.a", {"output": {"n": 4}}]])


def test_a_parallel_state_is_done_when_all_its_regions_are() -> None:
    def region(event: str) -> Any:
        return {"initial": "x", "states": {"x": {"on": {event: "end"}}, "end": {"type": "final"}}}

    made = chart(
        {"p": {"type": "parallel", "onDone": "z", "states": {"one": region("ONE"), "two": region("TWO")}}, "z": {}}, "p"
    )
    assert value(made, "TWO") == {"p": {"one": "x", "two": "end"}}
    assert value(made, "TWO", "ONE") == "z"


def test_a_chart_is_done_with_the_output_of_its_final_state_and_hears_nothing_more() -> None:
    made = chart({"a": {"on": {"GO": "end"}}, "end": {"type": "final", "output": 7, "exit": "out b"}}, exit="out p")
    snapshot, effects = run(made, "GO")
    assert (snapshot["status"], snapshot["output"], [e.name for e in effects]) == ("done", 7, ["out b", "out p"])
    assert step(made, snapshot, Plain("GO"), NOW) == (snapshot, ())


def test_a_chart_may_say_its_output_itself() -> None:
    end = {"type": "final", "output": {"paid": 3}}
    made = chart(
        {"end": end}, "end", output={"was": {"$": "event.output.paid"}, "n": {"$": "context.n"}}, context={"n": 1}
    )
    assert run(made)[0]["output"] == {"was": 3, "n": 1}


# --- errors are events ----------------------------------------------------------------------------


def test_an_action_that_raises_changes_nothing_and_ends_its_block() -> None:
    on = {"GO": {"target": "b", "actions": ["add", "fail", "add"]}}
    made = chart(
        {"a": {"on": on, "exit": "out a"}, "b": {"entry": "in b", "on": {"error.execution": {"actions": "note"}}}}
    )
    snapshot, effects = run(made, "GO")
    assert [effect.name for effect in effects] == ["out a", "in b"]
    assert snapshot["context"] == {
        "n": 1,
        "seen": [["error.execution", {"error": {"kind": "ValueError", "message": "it went wrong"}}]],
    }


def test_a_guard_that_raises_does_not_hold() -> None:
    on = {"GO": [{"guard": "unsure", "target": "b"}, "d"], "error.execution": "e"}
    made = chart({"a": {"on": on}, "b": {}, "d": {"on": {"error.execution": "e"}}, "e": {}})
    assert value(made, "GO") == "e"


def test_an_error_that_no_state_hears_leaves_the_step() -> None:
    made = chart({"a": {"on": {"GO": {"actions": "fail"}, "*": {}}}})
    with pytest.raises(ValueError, match="it went wrong"):
        run(made, "GO")


def test_an_error_in_the_last_acts_of_a_chart_is_not_lost() -> None:
    made = chart({"a": {"on": {"GO": "end"}}, "end": {"type": "final", "entry": "fail"}})
    with pytest.raises(ValueError, match="it went wrong"):
        run(made, "GO")


def test_what_the_world_did_is_no_event() -> None:
    def read(context: Any, event: Any, now: Any) -> Any:
        raise OSError("no such file")

    made = load(
        {"initial": "a", "states": {"a": {"on": {"GO": {"actions": "read"}, "error.*": {}}}}}, actions={"read": read}
    )
    with pytest.raises(OSError, match="no such file"):
        run(made, "GO")


@pytest.mark.parametrize("name,problem", [("nothing", "gave None"), ("half", "gave 7")])
def test_an_action_gives_the_whole_context(name: str, problem: str) -> None:
    gives = {"nothing": lambda context, event, now: None, "half": lambda context, event, now: 7}
    made = load({"initial": "a", "states": {"a": {"on": {"GO": {"actions": name}}}}}, actions=gives)
    with pytest.raises(TypeError, match=problem):
        run(made, "GO")


def test_a_guard_gives_true_or_false() -> None:
    made = load(
        {"initial": "a", "states": {"a": {"on": {"GO": {"guard": "some"}}}}},
        guards={"some": lambda context, event, now: [1]},
    )
    with pytest.raises(TypeError, match=r"guard 'some' gave \[1\]"):
        run(made, "GO")


def test_a_context_cannot_be_changed_in_place() -> None:
    def spoil(context: Any, event: Any, now: Any) -> Any:
        context["n"] = 7
        return context

    made = load({"initial": "a", "states": {"a": {"on": {"GO": {"actions": "spoil"}}}}}, actions={"spoil": spoil})
    with pytest.raises(TypeError, match="does not support item assignment"):
        run(made, "GO")


# --- loops are bounded ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "states",
    [
        {"a": {"on": {"GO": "b"}}, "b": {"always": "d"}, "d": {"always": "b"}},
        {"a": {"on": {"GO": {"actions": {"raise": "GO"}}}}},
        {"a": {"on": {"GO": {"actions": {"sendTo": "#self", "event": "GO"}}}}},
    ],
    ids=["always", "raise", "sent to itself"],
)
def test_a_chart_that_never_rests_is_stopped_by_name(states: Any) -> None:
    made = chart(states)
    with pytest.raises(Endless, match=f"took {MICROSTEPS} transitions"):
        run(made, "GO")


# --- pure -----------------------------------------------------------------------------------------


def test_an_event_that_changes_nothing_gives_the_very_same_snapshot() -> None:
    made = chart({"a": {"on": {"KNOWN": {"guard": "never", "target": "b"}}}, "b": {}})
    snapshot, _ = run(made)
    assert step(made, snapshot, Plain("UNKNOWN"), NOW)[0] is snapshot
    assert step(made, snapshot, Plain("KNOWN"), NOW)[0] is snapshot


def test_effects_have_ids_of_the_event_and_their_place() -> None:
    made = chart(
        {"a": {"entry": "in a", "on": {"GO": {"target": "b", "actions": "on the way"}}}, "b": {"entry": "in b"}}
    )
    begun, effects = start(made, NOW, id="made/1")
    assert [effect.id for effect in effects] == ["made~11/0"]
    first = step(made, begun, Plain("GO", {}, "e7"), NOW)
    assert [(effect.id, effect.name) for effect in first[1]] == [("e7/0", "on the way"), ("e7/1", "in b")]
    assert step(made, begun, Plain("GO", {}, "e7"), NOW) == first


def test_time_is_an_argument() -> None:
    def later(context: Any, event: Any, now: Any) -> bool:
        return bool(now > NOW)

    made = load(
        {"initial": "a", "states": {"a": {"on": {"GO": {"guard": "later", "target": "b"}}}, "b": {}}},
        guards={"later": later},
    )
    begun, _ = start(made, NOW)
    assert step(made, begun, Plain("GO"), NOW)[0]["value"] == "a"
    assert step(made, begun, Plain("GO"), NOW + timedelta(seconds=1))[0]["value"] == "b"


@given(st.integers(0, 1 << 30))
def test_a_rebuilt_chart_goes_on_as_if_it_had_never_been_away(seed: int) -> None:
    """For any chart: the same step twice is the same; nothing it was given is changed; JSON in between changes nothing."""
    raw, events = random_chart(seed)
    made = load(raw, guards=GUARDS, actions=ACTIONS, effects=EFFECTS)
    again = load(copy.deepcopy(raw), guards=GUARDS, actions=ACTIONS, effects=EFFECTS)
    try:
        snapshot, effects = start(made, NOW)
        assert (snapshot, effects) == start(again, NOW)
        for event in [*events, Random(seed).choice(OUTSIDE)]:
            kept = canonical(snapshot)
            after = step(made, snapshot, Plain(event, {}, "e"), NOW)
            assert canonical(snapshot) == kept
            assert step(again, parse(kept), Plain(event, {}, "e"), NOW) == after
            snapshot = after[0]
    except (Endless, LookupError, ValueError):
        return
