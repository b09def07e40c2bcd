"""A chart becomes a Module: events by class name, one fact a move, effects as owed rows, the alarm by `wake`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from onefold.kernel.module import Module
from onefold.kernel.rebuild import rebuild, start_in
from onefold.kernel.words import Answer, Decision, Dropped, Owed
from onefold.machine import Moved, Snapshot, Stepped, from_machine
from onefold.machine.adapter import ChartModule
from onefold.terms.errors import LoadRefused

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Plan:
    next_due: datetime | None = None
    rung: int = 0
    heard_by: str | None = None


@dataclass(frozen=True)
class Start:
    id: str
    room: str
    hours: int = 1


@dataclass(frozen=True)
class Ack:
    id: str
    room: str


@dataclass(frozen=True)
class Heard:
    by: str


def which(event: Start | Ack) -> str:
    return event.room


def due(plan: Plan, event: object, now: datetime) -> bool:
    return plan.next_due is not None and now >= plan.next_due


def plan_next(plan: Plan, event: Start, now: datetime) -> Plan:
    return replace(plan, next_due=now + event.hours * HOUR)


def count(plan: Plan, event: object, now: datetime) -> Plan:
    return replace(plan, next_due=None, rung=plan.rung + 1)


def hear(plan: Plan, event: Answer[Heard | Dropped], now: datetime) -> Plan:
    return replace(plan, heard_by=event.body.by if isinstance(event.body, Heard) else "nobody")


def ring(plan: Plan, event: object, now: datetime) -> Owed:
    return Owed("bell", key=f"ring {plan.rung}", body={"loud": True})


def wake(plan: Plan) -> datetime | None:
    return plan.next_due


CHART: dict[str, Any] = {
    "initial": "idle",
    "states": {
        "idle": {"on": {"Start": {"target": "waiting", "actions": "plan"}}},
        "waiting": {"on": {"Alarm": {"guard": "due", "target": "ringing", "actions": ["ring", "count"]}}},
        "ringing": {"on": {"Answer": {"actions": "hear"}, "Ack": "over"}},
        "over": {"type": "final"},
    },
}
FUNCTIONS: dict[str, Any] = {
    "guards": {"due": due},
    "actions": {"plan": plan_next, "count": count, "hear": hear},
    "effects": {"ring": ring},
}
Bell = ChartModule[Plan, Any]


def bell(chart: Any = CHART, **more: Any) -> Bell:
    given: dict[str, Any] = {"context": Plan(), "key": which, "wake": wake, **FUNCTIONS, **more}
    return from_machine("bell", chart, **given)


def after(module: Bell, state: Any, decision: Decision[Moved, Any]) -> Any:
    """The state after a decision's facts, as the kernel keeps them."""
    raw = module.codecs.fact.seal_many(list(decision.facts))[0]
    for fact in module.codecs.fact.decode_many(raw):
        state = module.evolve(state, fact)
    return state


def started() -> tuple[Bell, Any]:
    module = bell()
    return module, after(module, module.initial, module.decide(module.initial, Start("s1", "hall"), NOON))


def rung() -> tuple[Bell, Any]:
    module, state = started()
    return module, after(module, state, module.on_alarm(state, NOON + HOUR))  # type: ignore[misc]


# --- the shape ------------------------------------------------------------------------------------


def test_it_is_a_module_and_knows_its_chart() -> None:
    module = bell()
    assert isinstance(module, Module)
    assert (module.name, module.chart.name) == ("bell", "bell")
    assert module.drawn().startswith("stateDiagram-v2\n  [*] --> bell_idle\n")
    assert module.drawn("dot").startswith('digraph "bell" {')


def test_a_move_is_one_fact_with_the_whole_snapshot() -> None:
    module = bell()
    decision = module.decide(module.initial, Start("s1", "hall"), NOON)
    context = {"next_due": "2026-03-01T13:00:00Z", "rung": 0, "heard_by": None}
    assert decision.facts == [Moved("Start", {"status": "active", "value": "waiting", "context": context})]
    assert decision.reply == Stepped(changed=True, value="waiting")


def test_an_event_that_changes_nothing_is_a_decline() -> None:
    module, state = started()
    decision = module.decide(state, Ack("a1", "hall"), NOON)
    assert decision == Decision(reply=Stepped(changed=False, value="waiting"))
    assert module.decide(module.initial, Ack("a1", "hall"), NOON) == Decision(
        reply=Stepped(changed=False, value="idle")
    )


def test_the_view_is_where_it_is_what_it_holds_and_whether_it_goes_on() -> None:
    module, state = started()
    assert module.view(state) == Snapshot("waiting", Plan(next_due=NOON + HOUR), "active")


def test_an_actor_without_history_is_where_its_chart_begins() -> None:
    module = bell()
    assert module.view(module.initial) == Snapshot("idle", Plan(), "active")
    assert module.wake is not None
    assert module.wake(module.initial) is None


def test_events_are_those_that_keys_annotation_names() -> None:
    module = bell()
    assert module.codecs.event.from_json({"type": "Ack", "id": "a1", "room": "hall"}) == Ack("a1", "hall")
    assert module.key(Ack("a1", "hall")) == "hall"
    assert module.event_id(Ack("a1", "hall")) == "a1"


def test_words_are_written_as_their_types_say() -> None:
    module, state = started()
    view = module.codecs.view.to_json(module.view(state))
    assert view == {
        "value": "waiting",
        "context": {"next_due": "2026-03-01T13:00:00Z", "rung": 0, "heard_by": None},
        "status": "active",
    }
    assert module.codecs.reply.to_json(Stepped(True, {"a": "b"})) == {"changed": True, "value": {"a": "b"}}


# --- the alarm, owed rows, answers ----------------------------------------------------------------


def test_the_alarm_is_an_event() -> None:
    module, state = started()
    assert module.wake is not None
    assert module.on_alarm is not None
    assert module.wake(state) == NOON + HOUR
    assert module.on_alarm(state, NOON) == Decision()  # early: nothing changes, and it is still due
    decision = module.on_alarm(state, NOON + HOUR)
    assert decision.owed == [Owed("bell", key="ring 0", body={"loud": True})]
    assert module.wake(after(module, state, decision)) is None


def test_an_answer_is_an_event_of_the_type_that_annotations_name() -> None:
    module, state = rung()
    assert module.answer_body is not None
    assert module.answer_body.from_json({"type": "Heard", "by": "ann"}) == Heard("ann")
    assert module.hears_drops
    assert module.on_answer is not None
    heard = after(module, state, module.on_answer(state, Answer("ring 0", "bell", Heard("ann")), NOON))
    assert module.view(heard).context.heard_by == "ann"


def test_a_chart_that_hears_no_answer_takes_none() -> None:
    states = {**CHART["states"], "ringing": {"on": {"Ack": "over"}}}
    assert bell({**CHART, "states": states}).on_answer is None


def test_without_an_annotation_an_answer_is_plain_json() -> None:
    def take(plan: Plan, event: Any, now: datetime) -> Plan:
        return replace(plan, heard_by=event.body["by"])

    module = bell(actions={**FUNCTIONS["actions"], "hear": take})
    assert module.answer_body is not None
    assert module.answer_body.from_json({"by": "ann"}) == {"by": "ann"}


def test_a_chart_that_is_done_is_not_woken_and_hears_nothing() -> None:
    module, state = rung()
    over = after(module, state, module.decide(state, Ack("a1", "hall"), NOON))
    assert module.view(over).status == "done"
    assert module.decide(over, Start("s2", "hall"), NOON) == Decision(reply=Stepped(changed=False, value="over"))
    assert module.wake is not None
    assert module.wake(over) is None


def test_what_the_first_state_owes_is_owed_by_the_first_event() -> None:
    states = {**CHART["states"], "idle": {**CHART["states"]["idle"], "entry": "ring"}}
    module = bell({**CHART, "states": states})
    decision = module.decide(module.initial, Ack("a1", "hall"), NOON)
    assert [owed.key for owed in decision.owed] == ["ring 0"]
    assert decision.facts[0].snapshot["value"] == "idle"


def test_an_error_that_no_state_hears_refuses_the_event() -> None:
    def fails(plan: Plan, event: object, now: datetime) -> Plan:
        raise ValueError("no plan")

    module = bell(actions={**FUNCTIONS["actions"], "plan": fails})
    with pytest.raises(ValueError, match="no plan"):
        module.decide(module.initial, Start("s1", "hall"), NOON)


def test_an_effect_gives_owed() -> None:
    module = bell(effects={"ring": lambda plan, event, now: {"loud": True}})
    state = after(module, module.initial, module.decide(module.initial, Start("s1", "hall"), NOON))
    assert module.on_alarm is not None
    with pytest.raises(TypeError, match=r"effect 'ring' gave .*; an effect gives Owed"):
        module.on_alarm(state, NOON + HOUR)


def test_a_context_of_the_wrong_type_is_the_charts_fault_and_not_the_callers() -> None:
    def wrong(plan: Plan, event: object, now: datetime) -> Plan:
        return replace(plan, rung="twice")  # type: ignore[arg-type]

    module = bell(actions={**FUNCTIONS["actions"], "plan": wrong})
    with pytest.raises(TypeError, match="the context of bell does not fit its type: rung"):
        module.decide(module.initial, Start("s1", "hall"), NOON)


# --- nothing lives in memory ----------------------------------------------------------------------


def test_an_actor_wakes_from_its_last_fact_alone() -> None:
    module, state = rung()
    assert module.snapshot_kind == "Moved"
    assert module.snapshot is not None
    facts = module.codecs.fact.seal_many([module.snapshot(state)])[0]
    row = (9, 1, 2, 8, "d/x", b"", b"", facts, None, 0, 0)
    turns = [row, (8, 1, 1, 7, "d/w", b"", b"", b"not read", None, 0, 0)]
    found = rebuild(module, turns, start_in(module, turns))
    assert found == state
    assert module.view(found) == module.view(state)


def test_the_same_state_event_and_instant_decide_the_same() -> None:
    module, state = started()
    again = module.evolve(module.initial, Moved("", json.loads(json.dumps(state.snapshot))))
    assert module.on_alarm is not None
    assert module.on_alarm(again, NOON + HOUR) == module.on_alarm(state, NOON + HOUR)


def test_a_struct_serves_as_context_too() -> None:
    class Count(msgspec.Struct, frozen=True):
        n: int = 0

    def up(context: Count, event: object, now: datetime) -> Count:
        return Count(context.n + 1)

    states = {"a": {"on": {"Start": {"actions": "up"}, "Ack": {}}}}
    module = from_machine("count", {"initial": "a", "states": states}, context=Count(), key=which, actions={"up": up})
    state = module.evolve(module.initial, module.decide(module.initial, Start("s", "r"), NOON).facts[0])
    assert module.view(state).context == Count(1)


# --- refused at load ------------------------------------------------------------------------------


def said(**more: Any) -> str:
    with pytest.raises(LoadRefused) as refused:
        bell(**more)
    return str(refused.value)


def nameless(event):
    return event.room


def taken(event: Ack | Alarm) -> str:
    return event.id


@dataclass(frozen=True)
class Alarm:
    id: str


@pytest.mark.parametrize(
    "more,problem",
    [
        ({"key": nameless}, "chart bell, key: annotate its parameter with the events it takes"),
        ({"key": lambda event: event.room}, "chart bell, key: annotate"),
        ({"key": taken}, "'Alarm' is the kernel's event; call the class something else"),
        ({"wake": None}, "chart bell: hears 'Alarm', but nothing wakes it; hand in `wake`"),
        (
            {"chart": {**CHART, "states": {**CHART["states"], "waiting": {"on": {"Ack": "ringing"}}}}},
            "chart bell: has `wake`, but no state hears 'Alarm'",
        ),
        (
            {"chart": {**CHART, "states": {**CHART["states"], "idle": {"on": {"Strat": "waiting"}}}}},
            "states.idle.on.Strat: there is no event 'Strat'; the nearest is 'Start'",
        ),
        ({"chart": {**CHART, "context": {}}}, "chart bell, context: the context was handed in; leave it out here"),
    ],
)
def test_is_refused_with_what_to_do(more: dict[str, Any], problem: str) -> None:
    assert problem in said(**more)


@pytest.mark.parametrize("written", [json.dumps(CHART), json.dumps(CHART).encode()], ids=["text", "bytes"])
def test_json_serves_as_definition(written: Any) -> None:
    module = bell(written)
    assert module.decide(module.initial, Start("s1", "hall"), NOON).reply == Stepped(True, "waiting")
