"""The schedule and its tick: one unacknowledged tick at a time, by the shape of the chart; every arrow is taken."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.machine.definition import load
from onefold.machine.step import Trace, start, step, trace, trace_start
from onefold.machine.words import NoSuchChild, Plain
from tests.machine.arrows import Taken
from tests.machine.seed_charts import ACTIONS, EFFECTS, FORWARDED, GUARDS, NOON, SCHEDULE, schedule_chart

TOMORROW = (NOON + timedelta(days=1)).isoformat()


def told(*events: str, **context: Any) -> dict[str, Any]:
    """The snapshot after these events, all at noon."""
    made = schedule_chart(**context)
    snapshot, _ = start(made, NOON)
    for at, event in enumerate(events):
        snapshot, _ = step(made, snapshot, Plain(event, {}, f"e{at}"), NOON)
    return snapshot


def tick(snapshot: dict[str, Any]) -> Any:
    return snapshot["children"]["tick"]["snapshot"]["value"]


def test_an_alarm_that_is_due_starts_a_tick() -> None:
    assert told("ALARM")["value"] == {"active": "ticking"}
    assert tick(told("ALARM")) == {"live": "due"}


def test_an_alarm_that_is_not_due_changes_nothing() -> None:
    assert told("ALARM", due=TOMORROW) == told(due=TOMORROW)


@pytest.mark.parametrize(
    "events,where",
    [
        (["SEALED"], {"live": "sealed"}),
        (["SEALED", "SEND_FAILED"], {"live": "owed"}),
        (["SEALED", "SEND_FAILED", "ALARM"], {"live": "sealed"}),
        (["SEALED", "SENT"], "sent"),
    ],
)
def test_what_happens_to_the_tick_reaches_it(events: list[str], where: Any) -> None:
    """SEALED, SENT and SEND_FAILED too, which the schedule must forward."""
    assert tick(told("ALARM", *events)) == where


def test_a_schedule_that_forgets_to_forward_leaves_its_tick_where_it_was() -> None:
    forgetful = copy.deepcopy(SCHEDULE)
    for event in ("SEALED", "SENT", "SEND_FAILED"):
        del forgetful["states"]["active"]["states"]["ticking"]["on"][event]
    context = {"generation": 0, "due": NOON.isoformat(), "instants": [], "tick": {"generation": 0}}
    made = load({**forgetful, "context": context}, guards=GUARDS, actions=ACTIONS, effects=EFFECTS)
    snapshot, _ = start(made, NOON)
    for event in ("ALARM", "SEALED", "SENT", "ACKED"):
        snapshot, _ = step(made, snapshot, Plain(event), NOON)
    assert tick(snapshot) == {"live": "due"}


def test_an_acknowledged_tick_makes_room_for_the_next() -> None:
    snapshot = told("ALARM", "SEALED", "SENT", "ACKED", instants=[TOMORROW])
    assert (snapshot["value"], snapshot["context"]["due"], "children" in snapshot) == (
        {"active": "waiting"},
        TOMORROW,
        False,
    )


def test_a_schedule_without_another_instant_falls_straight_through_to_its_end() -> None:
    snapshot = told("ALARM", "SEALED", "SENT", "ACKED")
    assert (snapshot["value"], snapshot["status"]) == ("ended", "done")


def test_a_held_tick_is_never_doubled() -> None:
    held = told("ALARM", "SEALED", "SENT")
    assert told("ALARM", "SEALED", "SENT", "ALARM", "ALARM") == held


def test_superseding_fences_the_old_tick_and_begins_anew() -> None:
    snapshot = told("ALARM", "SEALED", "SUPERSEDE")
    assert (snapshot["value"], snapshot["context"]["generation"], "children" in snapshot) == (
        {"active": "waiting"},
        1,
        False,
    )
    stale = told("ALARM", "SEALED", tick={"schedule": "s1", "generation": 7})
    assert tick(stale) == {"live": "due"}


def test_an_end_is_an_end_whatever_is_under_way() -> None:
    assert told("ALARM", "SEALED", "END")["status"] == "done"


def test_an_acknowledgement_of_nothing_is_no_event() -> None:
    assert told("ACKED") == told()


@given(st.lists(st.sampled_from([*FORWARDED, "SUPERSEDE", "END"]), max_size=25))
def test_whatever_comes_there_is_at_most_one_tick_and_it_is_fenced(events: list[str]) -> None:
    made = schedule_chart(instants=[TOMORROW] * 3)
    snapshot, _ = start(made, NOON)
    for at, event in enumerate(events):
        snapshot, effects = step(made, snapshot, Plain(event, {}, f"e{at}"), NOON + timedelta(days=1))
        children = snapshot.get("children", {})
        assert set(children) <= {"tick"}
        assert bool(children) == (snapshot["value"] == {"active": "ticking"})
        assert len(effects) <= 1
        for effect in effects:
            assert effect.value["tick"]["generation"] == snapshot["context"]["generation"]


# --- every arrow ----------------------------------------------------------------------------------

PATHS = (
    ("ALARM", "SEALED", "SEND_FAILED", "ALARM", "SENT", "ACKED"),
    ("ALARM", "SUPERSEDE", "END"),
    ("ALARM", "SEALED", "SENT", "ACKED", "ALARM", "SEALED", "SENT", "ACKED"),
)


def test_every_arrow_of_the_schedule_and_its_tick_is_taken() -> None:
    """FENCED is for a host that fences a tick itself, so the tick is also played alone."""
    made = schedule_chart(instants=[NOON.isoformat()])
    taken = Taken(made)
    for path in PATHS:
        done = taken.note(trace_start(made, NOON))
        for event in path:
            done = taken.note(trace(made, done.snapshot, Plain(event), NOON))
    alone = made.actors["tick"]
    begun: Trace = trace_start(alone, NOON, input={"tick": {"generation": 0}, "current": 0})
    taken.note(trace(alone, begun.snapshot, Plain("FENCED"), NOON))
    assert taken.untaken == [], taken.report
    assert taken.report == "16 of 16 arrows taken"


def test_an_arrow_that_is_not_taken_is_named() -> None:
    made = schedule_chart()
    taken = Taken(made)
    taken.note(trace_start(made, NOON))
    assert "#schedule.active.waiting --ALARM [dueReached]--> #schedule.active.ticking" in taken.untaken
    assert taken.report.startswith("0 of 16 arrows taken\n  never: ")


def test_a_tick_is_only_spoken_to_while_it_runs() -> None:
    wrong = copy.deepcopy(SCHEDULE)
    wrong["states"]["active"]["states"]["waiting"]["on"]["ACKED"] = {"actions": {"forwardTo": "tick"}}
    context = {"generation": 0, "due": NOON.isoformat(), "instants": [], "tick": {"generation": 0}}
    made = load({**wrong, "context": context}, guards=GUARDS, actions=ACTIONS, effects=EFFECTS)
    snapshot, _ = start(made, NOON)
    with pytest.raises(NoSuchChild):
        step(made, snapshot, Plain("ACKED"), NOON)
