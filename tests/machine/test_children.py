"""A child chart lives within its parent's step: it starts, hears, answers and ends before the step is over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from onefold.machine.definition import load
from onefold.machine.step import start, step
from onefold.machine.words import Endless, NoSuchChild, Plain
from tests.machine.small import ACTIONS, EFFECTS, GUARDS, NOW, chart, run, value

KID: dict[str, Any] = {
    "context": {"n": {"$": "input.n"}},
    "initial": "idle",
    "states": {
        "idle": {
            "on": {
                "ADD": {"actions": "add"},
                "END": "end",
                "ASK": {"actions": {"sendParent": {"type": "SAID", "n": {"$": "context.n"}}}},
            }
        },
        "end": {"type": "final", "output": {"n": {"$": "context.n"}}},
    },
}


def family(parent: dict[str, Any], kid: Any = KID, **more: Any) -> Any:
    """A parent that runs `kid` under the id `k` in its state `a`, with n = 5."""
    invoke = {"id": "k", "src": "kid", "input": {"n": {"$": "context.n"}}, **parent.pop("invoke", {})}
    others = parent.pop("others", {})
    return chart({"a": {"invoke": invoke, **parent}, **others}, actors={"kid": kid}, context={"n": 5}, **more)


def child(snapshot: dict[str, Any], id: str = "k") -> Any:
    return snapshot["children"][id]["snapshot"]


def test_a_child_begins_with_its_input_and_stands_in_its_parents_snapshot() -> None:
    snapshot, _ = run(family({}))
    assert snapshot["children"] == {
        "k": {"src": "kid", "snapshot": {"status": "active", "value": "idle", "context": {"n": 5}}}
    }


def test_input_sees_what_the_entry_of_its_state_left() -> None:
    snapshot, _ = run(family({"entry": "add"}))
    assert child(snapshot)["context"] == {"n": 6}


def test_an_event_reaches_a_child_only_if_its_parent_sends_or_forwards_it() -> None:
    made = family(
        {"on": {"ADD": {"actions": {"forwardTo": "k"}}, "MORE": {"actions": {"sendTo": "k", "event": "ADD"}}}}
    )
    assert child(run(made, "ADD", "MORE")[0])["context"] == {"n": 7}
    assert child(run(family({}), "ADD")[0])["context"] == {"n": 5}


def test_a_childs_output_is_heard_in_the_same_step() -> None:
    done = {"onDone": {"target": "b", "actions": "note"}}
    made = family({"on": {"END": {"actions": {"forwardTo": "k"}}}, "invoke": done, "others": {"b": {}}})
    snapshot, _ = run(made, "END")
    assert snapshot["value"] == "b"
    assert snapshot["context"]["seen"] == [["done.actor.k", {"actor": "k", "output": {"n": 5}}]]
    assert "children" not in snapshot


def test_a_child_that_is_done_at_once_is_heard_at_once() -> None:
    assert value(family({"invoke": {"onDone": "b"}, "others": {"b": {}}}, {**KID, "initial": "end"})) == "b"


def test_a_child_that_is_done_stays_until_its_state_is_left_and_hears_nothing() -> None:
    made = family({"on": {"END": {"actions": {"forwardTo": "k"}}, "ADD": {"actions": {"forwardTo": "k"}}}})
    snapshot, _ = run(made, "END", "ADD")
    assert (child(snapshot)["status"], child(snapshot)["context"]) == ("done", {"n": 5})


def test_a_child_speaks_to_its_parent_after_what_the_parent_is_doing() -> None:
    asks = {"actions": [{"forwardTo": "k"}, {"raise": "OWN"}]}
    made = family({"on": {"ASK": asks, "SAID": {"actions": "note"}, "OWN": {"actions": "note"}}})
    assert run(made, "ASK")[0]["context"]["seen"] == [["OWN", {}], ["SAID", {"n": 5}]]


def test_a_child_ends_with_its_state() -> None:
    snapshot, _ = run(family({"on": {"GO": "b"}, "others": {"b": {}}}), "GO")
    assert "children" not in snapshot


def test_what_was_sent_to_a_child_before_it_ends_is_heard() -> None:
    kid = {**KID, "states": {**KID["states"], "idle": {"on": {"LAST": {"actions": "in a"}}}}}
    made = family({"exit": {"sendTo": "k", "event": "LAST"}, "on": {"GO": "b"}, "others": {"b": {}}}, kid)
    _, effects = run(made, "GO")
    assert [(effect.actor, effect.name) for effect in effects] == [(("k",), "in a")]


def test_a_child_that_ends_before_it_starts_does_nothing() -> None:
    kid = {"initial": "x", "states": {"x": {"entry": "in a"}}}
    snapshot, effects = run(family({"always": "b", "others": {"b": {}}}, kid))
    assert (effects, "children" in snapshot) == ((), False)


def test_an_entry_may_speak_to_the_child_it_is_about_to_have() -> None:
    snapshot, _ = run(family({"entry": {"sendTo": "k", "event": "ADD"}}))
    assert child(snapshot)["context"] == {"n": 6}


def test_entering_again_stops_the_old_child_and_starts_a_new_one() -> None:
    on = {"ADD": {"actions": {"forwardTo": "k"}}, "GO": {"target": "a", "reenter": True}}
    snapshot, _ = run(family({"on": on}), "ADD", "GO")
    assert child(snapshot)["context"] == {"n": 5}


def test_a_child_may_have_children() -> None:
    raw = {
        "id": "c",
        "initial": "a",
        "context": {"n": 1},
        "actors": {
            "kid": KID,
            "middle": {
                "context": {"n": 2},
                "initial": "m",
                "states": {
                    "m": {
                        "invoke": {"id": "k", "src": "kid", "input": {"n": {"$": "context.n"}}},
                        "on": {"ADD": {"actions": {"forwardTo": "k"}}},
                    }
                },
            },
        },
        "states": {"a": {"invoke": {"id": "m", "src": "middle"}, "on": {"ADD": {"actions": {"forwardTo": "m"}}}}},
    }
    made = load(raw, guards=GUARDS, actions=ACTIONS, effects=EFFECTS)
    assert child(child(run(made, "ADD")[0], "m"))["context"] == {"n": 3}


def test_effects_say_which_child_they_come_from_and_count_through_the_family() -> None:
    kid = {"initial": "x", "states": {"x": {"on": {"GO": {"actions": "in a"}}}}}
    made = family({"on": {"GO": {"actions": ["out a", {"forwardTo": "k"}]}}}, kid)
    begun, _ = start(made, NOW)
    _, effects = step(made, begun, Plain("GO", {}, "e"), NOW)
    assert [(effect.id, effect.actor, effect.name) for effect in effects] == [
        ("e/0", (), "out a"),
        ("e/1", ("k",), "in a"),
    ]


def test_a_child_that_does_not_run_is_no_silent_loss() -> None:
    on = {"GO": "b", "other": {}}
    made = family({"on": on, "others": {"b": {"on": {"ADD": {"actions": {"sendTo": "k", "event": "ADD"}}}}}})
    with pytest.raises(NoSuchChild, match="no child 'k' runs now"):
        run(made, "GO", "ADD")


# --- errors ---------------------------------------------------------------------------------------

FAILS: dict[str, Any] = {"initial": "x", "states": {"x": {"on": {"GO": {"actions": ["in a", "fail"]}}}}}
FORWARD: dict[str, Any] = {"GO": {"actions": {"forwardTo": "k"}}}


def test_an_error_in_a_child_is_an_event_of_its_parent() -> None:
    made = family(
        {"on": FORWARD, "invoke": {"onError": {"target": "b", "actions": "note"}}, "others": {"b": {}}}, FAILS
    )
    snapshot, _ = run(made, "GO")
    error = {"kind": "ValueError", "message": "it went wrong"}
    assert (snapshot["value"], snapshot["context"]["seen"]) == (
        "b",
        [["error.actor.k", {"actor": "k", "error": error}]],
    )


def test_a_child_that_fails_takes_back_what_it_owed_for_that_event() -> None:
    _, effects = run(family({"on": FORWARD, "invoke": {"onError": {}}}, FAILS), "GO")
    assert effects == ()


def test_a_child_that_failed_says_so_in_the_snapshot() -> None:
    snapshot, _ = run(family({"on": FORWARD, "invoke": {"onError": {}}}, FAILS), "GO")
    assert child(snapshot) == {
        "status": "error",
        "value": "x",
        "context": {},
        "error": {"kind": "ValueError", "message": "it went wrong"},
    }


def test_an_error_that_nobody_in_the_family_hears_leaves_the_step() -> None:
    with pytest.raises(ValueError, match="it went wrong"):
        run(family({"on": {**FORWARD, "*": {}}}, FAILS), "GO")


def test_a_child_may_hear_its_own_error() -> None:
    kid = {"initial": "x", "states": {"x": {"on": {**FAILS["states"]["x"]["on"], "error.execution": "y"}}, "y": {}}}
    assert child(run(family({"on": FORWARD}, kid), "GO")[0])["value"] == "y"


def test_a_child_whose_input_lacks_something_fails_by_name() -> None:
    raw = {"id": "c", "initial": "a", "actors": {"kid": KID}, "states": {"a": {"invoke": {"id": "k", "src": "kid"}}}}
    with pytest.raises(LookupError, match=r"nothing stands at 'input\.n'"):
        run(load(raw, guards=GUARDS, actions=ACTIONS, effects=EFFECTS))


def test_a_family_that_never_rests_is_stopped_by_name() -> None:
    kid = {"initial": "x", "states": {"x": {"on": {"PING": {"actions": {"sendParent": "PONG"}}}}}}
    made = family({"on": {"PONG": {"actions": {"sendTo": "k", "event": "PING"}}}}, kid)
    with pytest.raises(Endless):
        run(made, "PONG")


def test_a_function_of_a_child_sees_the_childs_context() -> None:
    seen: list[Mapping[str, Any]] = []

    def look(context: Mapping[str, Any], event: object, now: datetime) -> bool:
        seen.append(dict(context))
        return True

    kid = {
        "context": {"of": "the child"},
        "initial": "x",
        "states": {"x": {"always": {"guard": "look", "target": "y"}}, "y": {}},
    }
    load_kid = {
        "initial": "a",
        "context": {"of": "the parent"},
        "actors": {"kid": kid},
        "states": {"a": {"invoke": {"src": "kid"}}},
    }
    run(load(load_kid, guards={"look": look}))
    assert seen == [{"of": "the child"}]
