"""The schedule and its tick as a chart: one tick at a time by its shape, and every arrow is taken."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.kernel.words import Answer, Dropped
from onefold.machine.definition import load
from onefold.machine.step import Trace, trace, trace_start
from onefold.machine.table import Chart
from onefold.machine.words import Plain
from onefold.timers import Ack, At, End, Supersede, timers
from onefold.timers.chart import (
    CHART,
    MOVES,
    TELLS,
    _moving,
    fresh,
    given_up,
    in_hand,
    no_next_instant,
    resumed,
    was_moved,
)
from onefold.timers.chart import SCHEDULE as DEFINITION
from onefold.timers.chart import due as is_due
from onefold.timers.facts import Planned, Schedule, evolve
from tests.machine.arrows import Taken
from tests.timers.home import HOURLY, SCHEDULE, SPREAD, START, Owner, at, create, tick_id
from tests.timers.test_planning import VIENNA, zone_data

ALARM = Plain("Alarm")
FIRST = tick_id(at(hours=1))
MODULE = timers("reminders", to=Owner().port)


def bound(definition: dict[str, Any]) -> Chart:
    """A chart over the same functions."""
    return load(
        definition,
        name="schedule",
        context=Schedule(),
        guards={
            "due": is_due,
            "no next instant": no_next_instant,
            "moved": was_moved,
            "in hand": in_hand,
            "fresh": fresh,
            "given up": given_up,
        },
        actions={name: _moving(tell) for name, tell in MOVES.items()},
        effects={f"tell {name}": tell for name, tell in TELLS.items()},
    )


class Play:
    """A schedule that is played: the state by its facts, and the trace of the last event."""

    def __init__(self, chart: Chart = CHART) -> None:
        self.chart = chart
        self.state = Schedule()
        self.now = START
        self.last: Trace = trace_start(chart, START)

    def hear(self, event: Any, now: datetime) -> Play:
        self.now = now
        before = self.state
        self.last = trace(self.chart, resumed(before), event, now, context=before)
        for effect in self.last.effects:
            if effect.value is not None:
                self.state = evolve(self.state, effect.value)
        return self

    @property
    def told(self) -> list[str]:
        return [type(effect.value).__name__ for effect in self.last.effects if effect.value is not None]


def ringing(play: Play, due_at: datetime) -> Play:
    return play.hear(ALARM, due_at + SPREAD)


def begun(chart: Chart = CHART, **values: Any) -> Play:
    return Play(chart).hear(create(**values), START)


def sent(tick: Any = FIRST) -> Answer[Dropped | None]:
    return Answer(str(tick), "remind", None)


def test_what_is_told_is_in_the_order_in_which_it_happened() -> None:
    play = begun()
    assert play.told == ["Scheduled", "Planned"]
    assert ringing(play, at(hours=1)).told == ["TickSealed"]
    assert play.hear(sent(), at(hours=1)).told == ["TickSent"]
    assert play.hear(Ack("a1", FIRST), at(hours=5)).told == ["TickAcked", "Planned"]
    assert play.hear(Supersede("s1", SCHEDULE, HOURLY), at(hours=5)).told == ["Superseded", "Scheduled", "Planned"]
    assert play.hear(End("e1", SCHEDULE), at(hours=5)).told == ["Ended"]


def test_a_schedule_that_forgets_to_forward_what_happened_rings_once_and_never_again() -> None:
    forgetful = copy.deepcopy(DEFINITION)
    del forgetful["states"]["active"]["states"]["ticking"]["on"]["Ack"]
    play = ringing(begun(bound(forgetful)), at(hours=1)).hear(sent(), at(hours=1)).hear(Ack("a1", FIRST), at(hours=2))
    assert play.state.tick == FIRST
    whole = ringing(begun(), at(hours=1)).hear(sent(), at(hours=1)).hear(Ack("a1", FIRST), at(hours=2))
    assert whole.state.tick is None


def test_while_a_tick_is_held_the_alarm_starts_no_other() -> None:
    play = ringing(begun(), at(hours=1)).hear(sent(), at(hours=1))
    before = play.state
    assert ringing(play, at(hours=9)).state == before


def test_a_tick_of_another_generation_never_leaves_due() -> None:
    """The fence stands in the tick too, were it ever begun with another generation than the schedule's."""
    alone = CHART.actors["tick"]
    tick = {"schedule": SCHEDULE, "generation": 7, "due_at": "2026-01-01T01:00:00+00:00"}
    stale = trace_start(alone, START, input={"tick": tick, "current": 8})
    assert (stale.snapshot["value"], stale.snapshot["status"], stale.effects) == ("void", "done", ())


def test_every_arrow_of_the_schedule_and_its_tick_is_taken() -> None:
    taken = Taken(CHART)
    paths: list[list[tuple[Any, datetime]]] = [
        [(create(), at()), (ALARM, at(hours=1) + SPREAD), (sent(), at(hours=1)), (Ack("a", FIRST), at(hours=2))],
        [(create(), at()), (ALARM, at(hours=1) + SPREAD), (Ack("a", FIRST), at(hours=2)), (End("e", SCHEDULE), at())],
        [(create(), at()), (ALARM, at(hours=1) + SPREAD), (Answer(str(FIRST), "remind", Dropped("no")), at(hours=1))],
        [(create(At(at(hours=-1))), at())],
        [(create(), at()), (Supersede("s", SCHEDULE, HOURLY), at())],
    ]
    for path in paths:
        play = Play()
        for event, now in path:
            taken.note(play.hear(event, now).last)
    stale = begun(trigger=VIENNA)
    with zone_data("2099a"):
        taken.note(stale.hear(ALARM, at(hours=1)).last)
    tick = {"schedule": SCHEDULE, "generation": 7, "due_at": "2026-01-01T01:00:00+00:00"}
    taken.note(trace_start(CHART.actors["tick"], START, input={"tick": tick, "current": 8}))
    assert taken.untaken == [], taken.report


# --- the snapshot and the state are one -----------------------------------------------------------

MINUTES = st.integers(0, 240)
SAID = st.sampled_from(["alarm", "sent", "dropped", "ack", "old ack", "supersede", "once", "end", "create"])


def event_of(said: str, state: Schedule, now: datetime) -> Any:
    tick = state.tick or state.last or FIRST
    match said:
        case "alarm":
            return ALARM
        case "sent":
            return sent(tick)
        case "dropped":
            return Answer(str(tick), "remind", Dropped("a person gave it up"))
        case "ack":
            return Ack("a", tick)
        case "old ack":
            return Ack("a", tick_id(START - timedelta(days=1)))
        case "supersede":
            return Supersede("s", SCHEDULE, HOURLY, {"n": 1})
        case "once":
            return Supersede("s", SCHEDULE, At(now + timedelta(minutes=90)), None, now + timedelta(hours=3))
        case "end":
            return End("e", SCHEDULE)
        case _:
            return create()


@given(st.lists(st.tuples(SAID, MINUTES), max_size=25))
def test_the_facts_add_up_to_where_the_chart_is(path: list[tuple[str, int]]) -> None:
    """What the facts say and where the chart went are the same after every event; nothing is kept but the facts."""
    play = begun()
    now = START
    for said, minutes in path:
        now += timedelta(minutes=minutes)
        play.hear(event_of(said, play.state, now), now)
        snapshot, again = play.last.snapshot, resumed(play.state)
        assert (snapshot["value"], snapshot["status"]) == (again["value"], again["status"])
        assert snapshot.get("children") == again.get("children")
        if snapshot["context"] is not None:
            assert CHART.codec is not None
            context = CHART.codec.from_json(snapshot["context"])
            assert (context.plan, context.tick, context.generation) == (
                play.state.plan,
                play.state.tick,
                play.state.generation,
            )


def test_nothing_is_planned_while_a_tick_is_in_hand() -> None:
    play = ringing(begun(), at(hours=1))
    assert (play.state.plan, play.state.tick) == (None, FIRST)
    assert MODULE.wake is not None
    assert MODULE.wake(play.state) is None


@pytest.mark.parametrize("due_at", [at(hours=1), None])
def test_a_plan_is_replaced_by_the_next(due_at: datetime | None) -> None:
    state = evolve(begun().state, Planned(due_at, START))
    assert (state.plan is None) == (due_at is None)
