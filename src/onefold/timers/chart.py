"""timers.chart - the schedule and the tick it invokes, as a state chart. Pure.

For: `CHART`, the two charts bound to their functions; `resumed`, the snapshot that a state stands for. One tick at a
time is the shape of the chart, not a check: while a tick runs, the schedule waits in `ticking`.
Never: keeps a snapshot. It is made from the facts' state for each event, and only what the chart told is kept.
Was wrong once: a schedule that forwarded the alarm and the acknowledgement to its tick, and nothing else. The tick
never heard that it had been sent, and the schedule rang once and never again.

What is told is told in order, as facts: `tell x` says what happened, and `x` moves the context by that same fact.
An acknowledgement may come before the port's confirmation (a receiver that answers from within the call), so a sealed
tick hears it too. A failed send changes nothing here: the row is the kernel's, and stays owed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from onefold.kernel.words import Answer, Dropped
from onefold.machine.definition import load
from onefold.terms.codec import Json, canonical, digest
from onefold.terms.instant import text, up
from onefold.timers.facts import (
    Ended,
    Fact,
    Planned,
    Schedule,
    Scheduled,
    Superseded,
    TickAcked,
    TickSealed,
    TickSent,
    TickVoid,
    evolve,
)
from onefold.timers.planning import anew, coming, moved, rings_at
from onefold.timers.words import Ack, Create, Supersede, TickId

Told: TypeAlias = Fact | None


def _both(*names: str) -> list[str]:
    """Say what happens, and let it."""
    return [each for name in names for each in (f"tell {name}", name)]


TICK: Final[dict[str, Any]] = {
    "id": "tick",
    "context": {"tick": {"$": "input.tick"}, "current": {"$": "input.current"}},
    "initial": "live",
    "states": {
        "live": {
            "initial": "due",
            "states": {
                "due": {"always": [{"guard": "fresh", "target": "sealed", "actions": "tell sealed"}, "#tick.void"]},
                "sealed": {
                    "on": {
                        "Answer": [
                            {"guard": "given up", "target": "#tick.void", "actions": "tell void"},
                            {"target": "#tick.sent", "actions": "tell sent"},
                        ],
                        "Ack": {"target": "#tick.acked", "actions": "tell acked"},
                    }
                },
            },
        },
        "sent": {"on": {"Ack": {"target": "acked", "actions": "tell acked"}}},
        "acked": {"type": "final", "output": {"acked": True}},
        "void": {"type": "final", "output": {"acked": False}},
    },
}

SCHEDULE: Final[dict[str, Any]] = {
    "id": "schedule",
    "initial": "unknown",
    "actors": {"tick": TICK},
    "states": {
        "unknown": {"on": {"Create": {"target": "active", "actions": _both("scheduled", "planned")}}},
        "active": {
            "initial": "waiting",
            "on": {
                "Supersede": {
                    "target": "active",
                    "reenter": True,
                    "actions": ["tell superseded", *_both("scheduled", "planned")],
                },
                "End": "ended",
            },
            "states": {
                "waiting": {
                    "always": {"guard": "no next instant", "target": "#schedule.ended"},
                    "on": {
                        "Alarm": [
                            {"guard": "moved", "actions": [*_both("replanned"), {"raise": "Alarm"}]},
                            {"guard": "due", "target": "ticking", "actions": "taken"},
                        ]
                    },
                },
                "ticking": {
                    "invoke": {
                        "id": "tick",
                        "src": "tick",
                        "input": {"tick": {"$": "context.tick"}, "current": {"$": "context.generation"}},
                        "onDone": {"target": "waiting", "actions": ["done with", *_both("planned")]},
                    },
                    "on": {
                        event: {"guard": "in hand", "actions": {"forwardTo": "tick"}} for event in ("Answer", "Ack")
                    },
                },
            },
        },
        "ended": {"type": "final", "entry": _both("ended")},
    },
}


# --- what is told ---------------------------------------------------------------------------------


def payload_digest(payload: Json) -> str:
    """By which two payloads are told apart: SHA-256, in hex, of the canonical JSON."""
    return digest(canonical(payload)).hex()


def scheduled(schedule: Schedule, event: Create | Supersede, now: datetime) -> Scheduled:
    created = isinstance(event, Create)
    return Scheduled(
        event.schedule,
        event.owner if isinstance(event, Create) else schedule.owner,
        event.key if isinstance(event, Create) else schedule.key,
        0 if created else schedule.generation + 1,
        event.trigger,
        event.payload,
        payload_digest(event.payload),
        event.ends_at,
    )


def superseded(schedule: Schedule, event: Supersede, now: datetime) -> Superseded:
    return Superseded(schedule.id, schedule.generation, schedule.generation + 1)


def planned(schedule: Schedule, event: object, now: datetime) -> Planned | None:
    return coming(schedule, now)


def replanned(schedule: Schedule, event: object, now: datetime) -> Planned:
    return anew(schedule, now)


def ended(schedule: Schedule, event: object, now: datetime) -> Ended:
    return Ended(schedule.id, schedule.generation)


def taken(schedule: Schedule, event: object, now: datetime) -> TickSealed:
    assert schedule.plan is not None
    assert schedule.plan.due_at is not None  # the guard `due` saw one
    return TickSealed(TickId(schedule.id, schedule.generation, schedule.plan.due_at))


def done_with(schedule: Schedule, event: object, now: datetime) -> TickAcked:
    assert schedule.tick is not None
    return TickAcked(schedule.tick)


def _tick(tick: Mapping[str, Any]) -> TickId:
    """The tick that the invoked chart holds."""
    held = tick["tick"]
    return TickId(held["schedule"], held["generation"], datetime.fromisoformat(held["due_at"]))


def sealed(tick: Mapping[str, Any], event: object, now: datetime) -> TickSealed:
    return TickSealed(_tick(tick))


def sent(tick: Mapping[str, Any], event: object, now: datetime) -> TickSent:
    return TickSent(_tick(tick))


def acked(tick: Mapping[str, Any], event: object, now: datetime) -> TickAcked:
    return TickAcked(_tick(tick))


def void(tick: Mapping[str, Any], event: Answer[Dropped], now: datetime) -> TickVoid:
    return TickVoid(_tick(tick), event.body.reason)


# --- guards ---------------------------------------------------------------------------------------


def due(schedule: Schedule, event: object, now: datetime) -> bool:
    at = rings_at(schedule)
    return at is not None and now >= at


def no_next_instant(schedule: Schedule, event: object, now: datetime) -> bool:
    return schedule.plan is None


def was_moved(schedule: Schedule, event: object, now: datetime) -> bool:
    return moved(schedule)


def in_hand(schedule: Schedule, event: Ack | Answer[Any], now: datetime) -> bool:
    """An acknowledgement names its tick, an answer the key its tick was owed under."""
    if isinstance(event, Ack):
        return event.tick == schedule.tick
    return event.key == str(schedule.tick)


def fresh(tick: Mapping[str, Any], event: object, now: datetime) -> bool:
    return bool(tick["tick"]["generation"] == tick["current"])


def given_up(tick: Mapping[str, Any], event: Answer[Dropped | None], now: datetime) -> bool:
    return isinstance(event.body, Dropped)


# --- bound ----------------------------------------------------------------------------------------


def _moving(tell: Callable[..., Told]) -> Callable[..., Schedule]:
    """The action beside a telling: the context moves by the fact that is told, as a rebuild will."""

    def move(schedule: Schedule, event: object, now: datetime) -> Schedule:
        fact = tell(schedule, event, now)
        return schedule if fact is None else evolve(schedule, fact)

    return move


TELLS: Final[dict[str, Callable[..., Told]]] = {
    "scheduled": scheduled,
    "superseded": superseded,
    "planned": planned,
    "replanned": replanned,
    "ended": ended,
    "sealed": sealed,
    "sent": sent,
    "acked": acked,
    "void": void,
}
MOVES: Final[dict[str, Callable[..., Told]]] = {
    "scheduled": scheduled,
    "planned": planned,
    "replanned": replanned,
    "ended": ended,
    "taken": taken,
    "done with": done_with,
}

CHART: Final = load(
    SCHEDULE,
    name="schedule",
    context=Schedule(),
    guards={
        "due": due,
        "no next instant": no_next_instant,
        "moved": was_moved,
        "in hand": in_hand,
        "fresh": fresh,
        "given up": given_up,
    },
    actions={name: _moving(tell) for name, tell in MOVES.items()},
    effects={f"tell {name}": tell for name, tell in TELLS.items()},
    events={"Create", "Supersede", "End", "Ack", "Alarm", "Answer"},
)


def resumed(schedule: Schedule) -> dict[str, Any]:
    """The snapshot that a state stands for. The context is lent beside it, so none stands within."""
    if not schedule.id:
        return {"status": "active", "value": "unknown", "context": None}
    if schedule.ended:
        return {"status": "done", "value": "ended", "context": None}
    if schedule.tick is None:
        return {"status": "active", "value": {"active": "waiting"}, "context": None}
    tick = {
        "status": "active",
        "value": "sent" if schedule.sent else {"live": "sealed"},
        "context": {"tick": _written(schedule.tick), "current": schedule.generation},
    }
    children = {"tick": {"src": "tick", "snapshot": tick}}
    return {"status": "active", "value": {"active": "ticking"}, "context": None, "children": children}


def _written(tick: TickId) -> dict[str, Json]:
    return {"schedule": tick.schedule, "generation": tick.generation, "due_at": text(up(tick.due_at))}
