"""Which transitions an event takes: the innermost first, conflicts by one rule, everything in document order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.machine.small import chart, names, run, value

PARALLEL: dict[str, Any] = {
    "type": "parallel",
    "states": {
        "x": {"initial": "x1", "states": {"x1": {"on": {"GO": "x2"}}, "x2": {}}},
        "y": {"initial": "y1", "states": {"y1": {"on": {"GO": "y2"}}, "y2": {}}},
    },
}


def test_the_innermost_state_that_hears_answers() -> None:
    made = chart({"a": {"initial": "b", "on": {"GO": "z"}, "states": {"b": {"on": {"GO": "c"}}, "c": {}}}, "z": {}})
    assert value(made, "GO") == {"a": "c"}
    assert value(made, "GO", "GO") == "z"


def test_an_event_that_is_heard_and_changes_nothing_goes_no_further() -> None:
    made = chart({"a": {"initial": "b", "on": {"GO": "z"}, "states": {"b": {"on": {"GO": {}}}}}, "z": {}})
    assert value(made, "GO") == {"a": "b"}


def test_a_guard_that_fails_lets_the_next_one_try() -> None:
    made = chart({"a": {"on": {"GO": [{"guard": "never", "target": "b"}, "c"]}}, "b": {}, "c": {}})
    assert value(made, "GO") == "c"


def test_every_region_hears_an_event() -> None:
    assert value(chart({"p": PARALLEL}, "p"), "GO") == {"p": {"x": "x2", "y": "y2"}}


def test_a_region_that_hears_keeps_it_from_the_state_around_all_regions() -> None:
    parallel = {**PARALLEL, "on": {"GO": "z"}}
    assert value(chart({"p": parallel, "z": {}}, "p"), "GO") == {"p": {"x": "x2", "y": "y2"}}
    assert value(chart({"p": parallel, "z": {}}, "p"), "GO", "GO") == "z"


def test_of_two_that_leave_the_same_state_the_first_in_the_document_wins() -> None:
    regions = {"x": {"on": {"GO": "#c.first"}}, "y": {"on": {"GO": "#c.second"}}}
    made = chart({"p": {"type": "parallel", "states": regions}, "first": {}, "second": {}}, "p")
    assert value(made, "GO") == "first"


def test_of_two_always_that_leave_the_same_state_the_inner_one_wins() -> None:
    outer = {
        "type": "parallel",
        "always": {"guard": "few", "target": "outer"},
        "states": {"x": {"always": {"target": "#c.inner"}}, "y": {}},
    }
    assert value(chart({"p": outer, "inner": {}, "outer": {}}, "p")) == "inner"


def test_one_that_leaves_everything_yields_to_one_before_it() -> None:
    regions = {
        "x": {"initial": "x1", "states": {"x1": {"on": {"GO": "x2"}}, "x2": {}}},
        "y": {"on": {"GO": "#c.z"}},
    }
    made = chart({"p": {"type": "parallel", "states": regions}, "z": {}}, "p")
    assert value(made, "GO") == {"p": {"x": "x2", "y": {}}}


def test_the_longest_name_is_asked_first() -> None:
    on = {"*": "any", "mail.*": "mail", "mail.new.*": "new", "mail.new.big": "big"}
    made = chart({"a": {"on": on}, "any": {}, "mail": {}, "new": {}, "big": {}})
    found = [value(made, event) for event in ("mail.new.big", "mail.new.small", "mail.new", "mail.old", "mail", "post")]
    assert found == ["big", "new", "new", "mail", "mail", "any"]
    assert value(made, "mailing") == "any"


def test_any_event_is_no_error() -> None:
    """`*` is for what nobody thought of; an error that is caught was named."""
    made = chart({"a": {"on": {"GO": {"actions": "fail"}, "*": "any", "error.*": "wrong"}}, "any": {}, "wrong": {}})
    assert value(made, "GO") == "wrong"


def test_within_without_reenter_the_state_stays() -> None:
    inner: dict[str, Any] = {"x": {}, "y": {}}
    entry = {"entry": "in a", "exit": "out a", "initial": "x", "states": inner}
    made = chart({"a": {**entry, "on": {"GO": ".y", "ANEW": {"target": ".y", "reenter": True}}}})
    assert (value(made, "GO"), names(made, "GO")) == ({"a": "y"}, [])
    assert (value(made, "ANEW"), names(made, "ANEW")) == ({"a": "y"}, ["out a", "in a"])


def test_a_state_that_leads_to_itself_begins_anew_within() -> None:
    made = chart(
        {
            "a": {
                "entry": "in a",
                "initial": "x",
                "on": {"GO": "a"},
                "states": {"x": {"on": {"NEXT": "y"}}, "y": {"exit": "out b"}},
            }
        }
    )
    assert (value(made, "NEXT", "GO"), names(made, "NEXT", "GO")) == ({"a": "x"}, ["out b"])


def test_reenter_on_the_chart_enters_all_of_it_again() -> None:
    on = {"GO": {"target": ".b", "reenter": True}}
    made = chart({"a": {"exit": "out a"}, "b": {"entry": "in b"}}, entry="in p", exit="out p", on=on)
    assert names(made, "GO") == ["out a", "out p", "in p", "in b"]


def test_between_regions_the_regions_are_left_and_what_is_around_them_stays() -> None:
    regions = {
        "x": {"exit": "out a", "entry": "in a", "on": {"GO": "#c.p.y.y2"}},
        "y": {"exit": "out b", "entry": "in b", "initial": "y1", "states": {"y1": {}, "y2": {}}},
    }
    made = chart({"p": {"type": "parallel", "entry": "in p", "exit": "out p", "states": regions}}, "p")
    assert value(made, "GO") == {"p": {"x": {}, "y": "y2"}}
    assert names(made, "GO") == ["out b", "out a", "in a", "in b"]


def test_several_targets_lie_in_several_regions() -> None:
    made = chart({"a": {"on": {"GO": {"target": ["#c.p.x.x2", "#c.p.y.y2"]}}}, "p": PARALLEL})
    assert value(made, "GO") == {"p": {"x": "x2", "y": "y2"}}


# --- history --------------------------------------------------------------------------------------


def remembering(kind: str, **more: Any) -> Any:
    deep = {"initial": "one", "states": {"one": {"on": {"NEXT": "two"}}, "two": {}}}
    on: dict[str, Any] = {"initial": "s", "on": {"OUT": "away"}, "states": {"s": {"on": {"DEEP": "d"}}, "d": deep}}
    on["states"]["h"] = {"type": "history", "history": kind, **more}
    return chart({"a": on, "away": {"on": {"BACK": "#c.a.h"}}}, "away")


def test_shallow_history_remembers_one_level() -> None:
    made = remembering("shallow")
    assert value(made, "BACK", "DEEP", "NEXT", "OUT", "BACK") == {"a": {"d": "one"}}


def test_deep_history_remembers_all_of_it() -> None:
    made = remembering("deep")
    assert value(made, "BACK", "DEEP", "NEXT", "OUT", "BACK") == {"a": {"d": "two"}}


def test_history_that_remembers_nothing_leads_to_its_target_or_else_to_the_initial_state() -> None:
    assert value(remembering("deep"), "BACK") == {"a": "s"}
    assert value(remembering("deep", target="d"), "BACK") == {"a": {"d": "one"}}


def test_what_history_leads_back_to_is_left_before_it_is_entered() -> None:
    inner = {"x": {"entry": "in a", "exit": "out a", "on": {"GO": "h"}}, "h": {"type": "history"}}
    made = chart({"a": {"initial": "x", "states": inner}})
    assert names(made, "GO") == ["out a", "in a"]
    assert names(made, "GO", "GO") == ["out a", "in a"]


def test_history_of_a_parallel_state_brings_all_regions_back() -> None:
    parallel = {**PARALLEL, "on": {"OUT": "z"}}
    states = {"p": {**parallel, "states": {**PARALLEL["states"], "h": {"type": "history", "history": "deep"}}}}
    made = chart({**states, "z": {"on": {"BACK": "#c.p.h"}}}, "p")
    assert value(made, "GO", "OUT", "BACK") == {"p": {"x": "x2", "y": "y2"}}


# --- always ---------------------------------------------------------------------------------------


def test_always_goes_on_until_nothing_moves() -> None:
    made = chart({"a": {"always": "b"}, "b": {"always": {"guard": "few", "actions": "add"}, "on": {"GO": "a"}}})
    snapshot, _ = run(made)
    assert (snapshot["value"], snapshot["context"]) == ("b", {"n": 3})


def test_an_always_that_changes_nothing_is_taken_once() -> None:
    made = chart({"a": {"on": {"GO": "b"}}, "b": {"always": {"actions": "on the way"}}})
    assert names(made, "GO") == ["on the way"]


@given(st.permutations(["x", "y", "z", "w"]))
def test_effects_come_in_the_order_of_the_document(keys: list[str]) -> None:
    regions = {
        key: {"entry": {"type": name}} for key, name in zip(keys, ["in a", "out a", "in b", "out b"], strict=True)
    }
    made = chart({"p": {"type": "parallel", "states": regions}}, "p")
    assert names(made) == ["in a", "out a", "in b", "out b"]
