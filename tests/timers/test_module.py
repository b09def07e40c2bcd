"""Decisions about one schedule, without a host: what a Create, Supersede, End and Ack change, and what they answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from onefold.kernel.words import NOTHING, Answer, Decision, Dropped
from onefold.testing.laws import module_laws
from onefold.timers import (
    Ack,
    Acked,
    At,
    Conflict,
    End,
    Ended,
    Every,
    Scheduled,
    Supersede,
    Tick,
    Timer,
    Unknown,
    schedule_id,
    timers,
)
from onefold.timers.facts import Kept, Schedule, TickSent, TickVoid
from tests.timers.home import HOURLY, SCHEDULE, SPREAD, START, Owner, at, create, tick_id

MODULE = timers("reminders", to=Owner().port)
FIRST = tick_id(at(hours=1))


class Alone:
    """One schedule without a host."""

    def __init__(self) -> None:
        self.state = Schedule()
        self.decision: Decision[Any, Any] = NOTHING

    def take(self, decision: Decision[Any, Any]) -> Any:
        self.decision = decision
        for fact in decision.facts:
            self.state = MODULE.evolve(self.state, fact)
        return decision.reply

    def hear(self, event: Any, now: datetime = START) -> Any:
        return self.take(MODULE.decide(self.state, event, now))

    def ring(self, now: datetime) -> Alone:
        assert MODULE.on_alarm is not None
        self.take(MODULE.on_alarm(self.state, now))
        return self

    def answer(self, tick: Any, body: Any = None, now: datetime = START) -> list[Any]:
        assert MODULE.on_answer is not None
        self.take(MODULE.on_answer(self.state, Answer(str(tick), "remind", body), now))
        return list(self.decision.facts)

    @property
    def told(self) -> list[str]:
        return [type(fact).__name__ for fact in self.decision.facts]


@pytest.fixture
def alone() -> Alone:
    made = Alone()
    made.hear(create())
    return made


# --- AW30: creating twice, and changing on purpose -------------------------------------------------


def test_the_same_again_changes_nothing(alone: Alone) -> None:
    before = alone.state
    assert alone.hear(create(id="c2"), at(minutes=5)) == Scheduled(SCHEDULE, 0, at(hours=1))
    assert (alone.decision.facts, alone.state) == ([], before)


@pytest.mark.parametrize(
    "other,field",
    [
        (create(Every("30 * * * *", tz="UTC"), "c2"), "trigger"),
        (create(Every("0 * * * *", tz="Europe/Vienna"), "c2"), "trigger"),
        (create(At(at(hours=1)), "c2"), "trigger"),
        (create(id="c2", payload={"say": "ho"}), "payload"),
        (create(id="c2", payload=None), "payload"),
        (create(id="c2", ends_at=at(days=1)), "ends_at"),
    ],
)
def test_any_difference_is_a_conflict_that_names_it(alone: Alone, other: Any, field: str) -> None:
    before = alone.state
    assert alone.hear(other) == Conflict(SCHEDULE, field)
    assert (alone.decision.facts, alone.state) == ([], before)


def test_true_and_one_are_two_payloads() -> None:
    made = Alone()
    made.hear(create(payload=1))
    assert made.hear(create(id="c2", payload=True)) == Conflict(SCHEDULE, "payload")


def test_the_order_of_a_payloads_keys_is_no_difference() -> None:
    made = Alone()
    made.hear(create(payload={"a": 1, "b": 2}))
    assert isinstance(made.hear(create(id="c2", payload={"b": 2, "a": 1})), Scheduled)


def test_superseding_raises_the_generation_and_goes_back_to_waiting(alone: Alone) -> None:
    reply = alone.hear(Supersede("s1", SCHEDULE, Every("30 * * * *", tz="UTC"), "new"), at(minutes=5))
    assert reply == Scheduled(SCHEDULE, 1, at(minutes=30))
    assert alone.told == ["Superseded", "Scheduled", "Planned"]
    shown = MODULE.view(alone.state)
    assert isinstance(shown, Timer)
    assert (shown.owner, shown.key, shown.payload, shown.generation) == ("agent-7", "standup", "new", 1)


def test_what_was_created_conflicts_once_it_is_superseded(alone: Alone) -> None:
    alone.hear(Supersede("s1", SCHEDULE, HOURLY, "new"))
    assert alone.hear(create(id="c2")) == Conflict(SCHEDULE, "payload")


def test_what_names_no_schedule_is_unknown_and_never_fails() -> None:
    nobody = schedule_id("nobody", "nothing")
    for event in (
        Supersede("s1", nobody, HOURLY),
        End("e1", nobody),
        Ack("a1", tick_id(START, schedule=nobody)),
    ):
        made = Alone()
        assert made.hear(event) == Unknown()
        assert made.decision.facts == []


# --- AW31: spent and ended -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spent",
    [
        create(At(START)),
        create(At(START - timedelta(days=1))),
        create(ends_at=at(minutes=59)),
        create(At(at(hours=2)), ends_at=at(hours=1)),
    ],
)
def test_what_has_no_next_instant_falls_straight_to_its_end(spent: Any) -> None:
    made = Alone()
    assert made.hear(spent) == Ended()
    assert made.told == ["Scheduled", "Ended"]


def test_a_spent_instant_ends_once_its_tick_is_acknowledged() -> None:
    made = Alone()
    made.hear(create(At(at(hours=1))))
    made.ring(at(hours=1) + SPREAD)
    made.answer(FIRST, now=at(hours=1))
    assert not made.state.ended
    assert made.hear(Ack("a1", FIRST), at(hours=2)) == Acked()
    assert made.told == ["TickAcked", "Ended"]


def test_what_is_ended_stays_so(alone: Alone) -> None:
    assert alone.hear(End("e1", SCHEDULE)) == Ended()
    before = alone.state
    for event in (End("e2", SCHEDULE), create(id="c2"), Supersede("s1", SCHEDULE, HOURLY)):
        assert alone.hear(event) == Ended()
        assert (alone.decision.facts, alone.state) == ([], before)
    assert alone.hear(create(id="c3", payload=0)) == Conflict(SCHEDULE, "payload")


# --- AW33, AW35: ticks -----------------------------------------------------------------------------


def test_a_tick_is_sealed_once_and_its_bytes_stand_in_the_owed_row_alone(alone: Alone) -> None:
    alone.ring(at(hours=1) + SPREAD)
    assert alone.told == ["TickSealed"]
    (owed,) = alone.decision.owed
    assert (owed.port, owed.key) == ("remind", str(FIRST))
    assert owed.body == Tick(FIRST, "agent-7", "standup", at(hours=1), {"say": "hi"})
    assert b"say" not in MODULE.codecs.fact.encode(alone.decision.facts[0])


def test_no_tick_is_early(alone: Alone) -> None:
    alone.ring(at(hours=1) - timedelta(milliseconds=1))
    assert alone.decision.facts == []


def test_ringing_again_while_one_is_in_hand_mints_no_other(alone: Alone) -> None:
    alone.ring(at(hours=1) + SPREAD)
    for hours in range(1, 30):
        alone.ring(at(hours=hours) + SPREAD)
        assert (alone.decision.facts, alone.decision.owed) == ([], [])


def test_instants_that_passed_while_a_tick_was_held_are_no_ticks(alone: Alone) -> None:
    alone.ring(at(hours=1) + SPREAD)
    alone.answer(FIRST, now=at(hours=1))
    alone.hear(Ack("a1", FIRST), at(hours=7, minutes=10))
    assert alone.state.plan is not None
    assert alone.state.plan.due_at == at(hours=8)


def test_the_owner_may_acknowledge_before_the_port_has_confirmed(alone: Alone) -> None:
    """A receiver answers from within the call. The schedule goes on, and the confirmation is news to nobody."""
    alone.ring(at(hours=1) + SPREAD)
    assert alone.hear(Ack("a1", FIRST), at(hours=1, minutes=1)) == Acked()
    assert alone.told == ["TickAcked", "Planned"]
    assert alone.answer(FIRST, now=at(hours=1, minutes=1)) == []
    assert MODULE.voids(alone.state, str(FIRST))


def test_a_repeated_acknowledgement_changes_nothing(alone: Alone) -> None:
    alone.ring(at(hours=1) + SPREAD)
    alone.answer(FIRST)
    alone.hear(Ack("a1", FIRST), at(hours=2))
    before = alone.state
    assert alone.hear(Ack("a2", FIRST), at(hours=3)) == Acked()
    assert (alone.decision.facts, alone.state) == ([], before)


@pytest.mark.parametrize("tick", [tick_id(at(hours=2)), tick_id(at(hours=1), 3), tick_id(START - timedelta(days=9))])
def test_an_unknown_tick_is_acknowledged_without_a_word(alone: Alone, tick: Any) -> None:
    alone.ring(at(hours=1) + SPREAD)
    before = alone.state
    assert alone.hear(Ack("a1", tick), at(hours=2)) == Unknown()
    assert (alone.decision.facts, alone.state) == ([], before)


def test_a_tick_that_a_person_gave_up_makes_room_for_the_next(alone: Alone) -> None:
    alone.ring(at(hours=1) + SPREAD)
    facts = alone.answer(FIRST, Dropped("the inbox is gone"), at(hours=4, minutes=1))
    assert facts[0] == TickVoid(FIRST, "the inbox is gone")
    assert alone.state.plan is not None
    assert alone.state.plan.due_at == at(hours=5)


# --- AW34: the fence -------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [Supersede("s1", SCHEDULE, HOURLY, "new"), End("e1", SCHEDULE)])
def test_a_tick_of_an_older_generation_is_void_unless_it_had_left(alone: Alone, end: Any) -> None:
    alone.ring(at(hours=1) + SPREAD)
    assert not MODULE.voids(alone.state, str(FIRST))
    alone.hear(end, at(hours=1, minutes=1))
    assert MODULE.voids(alone.state, str(FIRST))


def test_what_becomes_of_an_older_tick_is_told_and_moves_nothing(alone: Alone) -> None:
    alone.ring(at(hours=1) + SPREAD)
    alone.hear(Supersede("s1", SCHEDULE, HOURLY, "new"), at(hours=1, minutes=1))
    before = alone.state
    assert alone.answer(FIRST, None) == [TickSent(FIRST)]
    assert alone.answer(FIRST, Dropped("void")) == [TickVoid(FIRST, "void")]
    assert alone.state == before


def test_a_snapshot_is_the_whole_state(alone: Alone) -> None:
    alone.ring(at(hours=1) + SPREAD)
    assert MODULE.snapshot is not None
    kept = MODULE.snapshot(alone.state)
    assert isinstance(kept, Kept)
    codec = MODULE.codecs.fact
    assert MODULE.evolve(Schedule(), codec.decode(codec.encode(kept))) == alone.state


def test_where_there_never_was_a_schedule_nothing_is_shown() -> None:
    assert MODULE.view(Schedule()) is None


def test_it_keeps_the_laws_that_every_module_must() -> None:
    events = [
        create(),
        create(At(at(hours=1)), "c2"),
        Ack("a1", FIRST),
        Supersede("s1", SCHEDULE, Every("*/5 * * * *", tz="Europe/Vienna"), {"n": [1, None]}, at(days=400)),
        Ack("a2", tick_id(at(minutes=5), 1)),
        End("e1", SCHEDULE),
    ]
    seen = module_laws(MODULE, events=events, answers={"remind": [None, Dropped("a person gave it up")]})
    assert {"Scheduled", "Planned", "Superseded", "Ended", "TickSealed"} <= set(seen.facts)
    assert seen.faults == 0
