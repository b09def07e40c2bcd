"""testing.laws.play - a module's histories, played as the kernel would, without a store.

For: turning a plan of moves into turns: what each actor was, what it was told, what it decided, what it became.
Never: raises what the module raised: that is a turn's fault, for a law to judge; knows a law.
Was wrong once: laws over single calls. A snapshot that forgot a field passed, since no history stood behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from onefold.kernel.module import Module
from onefold.kernel.words import Answer, Decision, Owed
from onefold.terms.errors import BadArguments
from onefold.terms.instant import moment
from onefold.terms.typed import Codec
from onefold.testing.clock import START
from onefold.testing.laws.trying import Tried, tried

AnyModule = Module[Any, Any, Any, Any, Any]
Told = Literal["event", "answer", "alarm"]


@dataclass(frozen=True, slots=True)
class Event:
    """Deliver an event."""

    event: Any


@dataclass(frozen=True, slots=True)
class Again:
    """Deliver the event that came so many before, once more."""

    back: int


@dataclass(frozen=True, slots=True)
class Answered:
    """A port answers what has been owed longest but so many; its body by port."""

    later: int
    bodies: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ring:
    """The soonest alarm rings, at its instant or now if that is past."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""

    ms: int


Move = Event | Again | Answered | Ring | Wait


@dataclass(frozen=True, slots=True)
class Fault:
    """A function of the module that raised, or a value that could not be written."""

    function: str
    told: Any
    raised: BaseException
    codec: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of one actor. facts: as they come back from their bytes."""

    told: Told
    what: Any
    before: Any
    now: datetime
    decide: Callable[[Any, datetime], Decision[Any, Any]]
    decision: Decision[Any, Any]
    facts: Sequence[Any]
    after: Any


@dataclass(slots=True)
class Actor:
    """One actor's history. It ends at its first fault."""

    key: str
    state: Any
    turns: list[Turn] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)
    owed: list[Owed] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    fault: Fault | None = None


@dataclass(slots=True)
class History:
    """What a plan came to."""

    actors: dict[str, Actor] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    fault: Fault | None = None  # of `key` or `event_id`, before there was an actor

    @property
    def turns(self) -> list[Turn]:
        return [turn for actor in self.actors.values() for turn in actor.turns]

    @property
    def faults(self) -> list[Fault]:
        found = [self.fault, *(actor.fault for actor in self.actors.values())]
        return [fault for fault in found if fault is not None]


def play(module: AnyModule, plan: Sequence[Move]) -> History:
    """The history of a plan. What a move finds nothing for does nothing."""
    return _Player(module).whole(plan)


class NoCase(Exception):
    """Evolve fell through all of its cases."""


class _Player:
    def __init__(self, module: AnyModule) -> None:
        self.module = module
        self.history = History()
        self.now = moment(START)

    def whole(self, plan: Sequence[Move]) -> History:
        for move in plan:
            self.now += timedelta(milliseconds=move.ms if isinstance(move, Wait) else 1)
            match move:
                case Event(event) if _fits(self.module.codecs.event, event):
                    self.history.events.append(event)
                    self.deliver(event)
                case Again(back) if self.history.events:
                    events = self.history.events
                    self.deliver(events[-1 - back % len(events)])
                case Answered(later, bodies):
                    self.answer(later, bodies)
                case Ring():
                    self.ring()
                case _:
                    pass
        return self.history

    def deliver(self, event: Any) -> None:
        key, id = tried(self.module.key, event), tried(self.module.event_id, event)
        if key.raised is not None or id.raised is not None:
            name = "key" if key.raised is not None else "event_id"
            self.history.fault = self.history.fault or Fault(name, event, key.raised or id.raised or NoCase())
            return
        self.known(key.value, id.value, event)

    def known(self, key: str, id: str, event: Any) -> None:
        """A repeat decides nothing: the kernel answers it from its rows."""
        actor = self.history.actors.setdefault(key, Actor(key, self.module.initial))
        if id not in actor.seen:
            actor.seen[id] = event
            self.turn(actor, "event", event, partial(_decided, self.module.decide, event), "decide")

    def answer(self, later: int, bodies: Mapping[str, Any]) -> None:
        waiting = [
            (actor, owed)
            for actor in self.history.actors.values()
            for owed in actor.owed
            if owed.port in bodies and owed.key not in actor.answered
        ]
        on_answer, codec = self.module.on_answer, self.module.answer_body
        if waiting and on_answer is not None and codec is not None:
            actor, owed = waiting[later % len(waiting)]
            actor.answered.add(owed.key)
            if not _fits(codec, bodies[owed.port]):
                return
            answer = Answer(owed.key, owed.port, bodies[owed.port])
            self.turn(actor, "answer", answer, partial(_decided, on_answer, answer), "on_answer")

    def ring(self) -> None:
        wake, on_alarm = self.module.wake, self.module.on_alarm
        if wake is None or on_alarm is None:
            return
        due: list[tuple[datetime, Actor]] = []
        for actor in self.history.actors.values():
            if actor.fault is None:
                at = tried(wake, actor.state)
                if at.raised is not None:
                    actor.fault = Fault("wake", actor.state, at.raised)
                elif at.value is not None:
                    due.append((at.value, actor))
        if due:
            instant, actor = min(due, key=lambda each: each[0])
            self.now = max(self.now, instant)
            self.turn(actor, "alarm", None, on_alarm, "on_alarm")

    def turn(
        self, actor: Actor, told: Told, what: Any, decide: Callable[[Any, datetime], Decision[Any, Any]], name: str
    ) -> None:
        """Decide, write, evolve, as one fold does."""
        if actor.fault is not None:
            return
        decided = tried(decide, actor.state, self.now)
        if decided.raised is not None:
            actor.fault = Fault(name, what, decided.raised)
            return
        sealed = tried(lambda: self.module.codecs.fact.seal_many(list(decided.value.facts))[1])
        if sealed.raised is not None:
            actor.fault = Fault(name, what, sealed.raised, codec=True)
            return
        state = actor.state
        for fact in sealed.value:
            evolved = tried(self.module.evolve, state, fact)
            state = evolved.value
            if evolved.raised is None and state is None and self.module.initial is not None:
                evolved = Tried(None, NoCase("it gave None: a case is missing"))
            if evolved.raised is not None:
                actor.fault = Fault("evolve", fact, evolved.raised)
                return
        actor.turns.append(Turn(told, what, actor.state, self.now, decide, decided.value, sealed.value, state))
        actor.owed += decided.value.owed
        actor.state = state


def _fits(codec: Codec[Any], value: Any) -> bool:
    """Whether a door would take it; what none takes is no event of this module."""
    try:
        codec.encode(value)
    except BadArguments:
        return False
    return True


def _decided(
    decide: Callable[[Any, Any, datetime], Decision[Any, Any]], what: Any, state: Any, now: datetime
) -> Decision[Any, Any]:
    return decide(state, what, now)
