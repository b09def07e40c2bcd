"""timers.module - what an event, the alarm or an answer changes about one schedule. Pure.

For: decide, on_alarm, on_answer, view, wake and the rest of a module, over the chart; and which owed tick is void.
Never: sends; reads a clock; times a tick out. A tick that nobody acknowledges is held, for as long as it takes.
Was wrong once: the port asked for the generation before it sent. Between its look and its send the schedule was
superseded; now whoever sends asks on the actor's newest state, and the answer is an event like any other.
"""

from __future__ import annotations

from datetime import datetime

from onefold.kernel.words import NOTHING, Answer, Decision, Dropped, Owed
from onefold.machine.step import trace
from onefold.machine.words import Plain
from onefold.terms.instant import down
from onefold.timers.chart import CHART, payload_digest, resumed
from onefold.timers.facts import Fact, Kept, Schedule, TickSealed, TickSent, TickVoid, evolve
from onefold.timers.planning import rings_at
from onefold.timers.words import (
    Ack,
    Acked,
    Conflict,
    Create,
    End,
    Ended,
    Event,
    Reply,
    Scheduled,
    Supersede,
    Tick,
    TickId,
    Timer,
    Unknown,
)


def schedule_of(event: Event) -> str:
    """Which actor: the schedule's id."""
    return event.schedule


def decide(schedule: Schedule, event: Event, now: datetime, *, port: str) -> Decision[Fact, Reply]:
    """One event. `port`: where ticks are owed to."""
    facts = _told(schedule, event, now)
    after = _after(schedule, facts)
    return Decision(facts=facts, owed=_owed(after, facts, port), reply=_reply(schedule, after, event))


def on_alarm(schedule: Schedule, now: datetime, *, port: str) -> Decision[Fact, None]:
    """The pending instant has come, or must be planned anew."""
    facts = _told(schedule, Plain("Alarm", {}, f"alarm/{down(now)}"), now)
    return Decision(facts=facts, owed=_owed(_after(schedule, facts), facts, port))


def on_answer(schedule: Schedule, answer: Answer[Dropped | None], now: datetime) -> Decision[Fact, None]:
    """A tick was sent, or given up. One that is not in hand any more is told of, and moves nothing."""
    if answer.key == str(schedule.tick):
        return Decision(facts=_told(schedule, answer, now))
    tick = _named(answer.key)
    if tick is None or tick.generation == schedule.generation:
        return NOTHING  # acknowledged before the port had confirmed it
    if isinstance(answer.body, Dropped):
        return Decision(facts=[TickVoid(tick, answer.body.reason)])
    return Decision(facts=[TickSent(tick)])


def wake(schedule: Schedule) -> datetime | None:
    return rings_at(schedule)


def voids(schedule: Schedule, key: str) -> bool:
    """Whether a tick that is owed must not be sent any more: it is not the one in hand."""
    return key != str(schedule.tick)


def snapshot(schedule: Schedule) -> Kept:
    return Kept(schedule)


def view(schedule: Schedule) -> Timer | None:
    """What a read shows; None where there never was such a schedule."""
    if schedule.trigger is None:
        return None
    return Timer(
        schedule.id,
        schedule.owner,
        schedule.key,
        schedule.generation,
        schedule.trigger,
        schedule.payload,
        schedule.ends_at,
        _next_due(schedule),
        schedule.tick,
        schedule.ended,
    )


# --- through the chart ----------------------------------------------------------------------------


def _told(schedule: Schedule, event: object, now: datetime) -> list[Fact]:
    """The facts that the chart tells of one event."""
    effects = trace(CHART, resumed(schedule), event, now, context=schedule).effects
    return [effect.value for effect in effects if effect.value is not None]


def _after(schedule: Schedule, facts: list[Fact]) -> Schedule:
    for fact in facts:
        schedule = evolve(schedule, fact)
    return schedule


def _owed(after: Schedule, facts: list[Fact], port: str) -> list[Owed]:
    """The tick that was sealed: its bytes leave from this row, however often."""
    return [_owing(after, fact.tick, port) for fact in facts if isinstance(fact, TickSealed)]


def _owing(schedule: Schedule, tick: TickId, port: str) -> Owed:
    body = Tick(tick, schedule.owner, schedule.key, tick.due_at, schedule.payload)
    return Owed(port, key=str(tick), body=body)


# --- replies --------------------------------------------------------------------------------------


def _reply(before: Schedule, after: Schedule, event: Event) -> Reply:
    match event:
        case Create() if before.id and (field := _differs(before, event)) is not None:
            return Conflict(before.id, field)
        case Create() | Supersede():
            return _stands(after)
        case End():
            return Ended() if before.id else Unknown()
        case Ack(tick=tick):
            return Acked() if before.id and tick in (before.tick, before.last) else Unknown()


def _stands(after: Schedule) -> Reply:
    if not after.id:
        return Unknown()
    return Ended() if after.ended else Scheduled(after.id, after.generation, _next_due(after))


def _differs(schedule: Schedule, event: Create) -> str | None:
    """The first field in which a Create differs from the schedule that is there."""
    if event.trigger != schedule.trigger:
        return "trigger"
    if payload_digest(event.payload) != schedule.digest:
        return "payload"
    return "ends_at" if event.ends_at != schedule.ends_at else None


def _next_due(schedule: Schedule) -> datetime | None:
    return None if schedule.plan is None else schedule.plan.due_at


def _named(key: str) -> TickId | None:
    """The tick that an owed key names; None for a key that names none."""
    schedule, _, rest = key.partition("/")
    generation, _, due_at = rest.partition("/")
    if not (generation.isascii() and generation.isdigit() and due_at):
        return None
    return TickId(schedule, int(generation), datetime.fromisoformat(due_at))
