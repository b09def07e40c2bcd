"""The schedule and the tick it invokes, as JSON: one unacknowledged tick at a time by the shape of the chart.

The parent forwards what its child must hear. Without SEALED, SENT and SEND_FAILED in `ticking` a tick
never left `due`, and the schedule rang once and never again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from onefold.machine.definition import load
from onefold.machine.table import Chart

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FORWARDED = ("ALARM", "ACKED", "SEALED", "SENT", "SEND_FAILED")

TICK: dict[str, Any] = {
    "id": "tick",
    "context": {"tick": {"$": "input.tick"}, "current": {"$": "input.current"}},
    "initial": "live",
    "states": {
        "live": {
            "initial": "due",
            "on": {"FENCED": "void"},
            "states": {
                "due": {"on": {"SEALED": {"guard": "fresh", "target": "sealed", "actions": "send"}}},
                "sealed": {"on": {"SENT": "#tick.sent", "SEND_FAILED": "owed"}},
                "owed": {"on": {"ALARM": "sealed"}},
            },
        },
        "sent": {"on": {"ACKED": "acked"}},
        "acked": {"type": "final", "output": {"acked": True}},
        "void": {"type": "final", "output": {"acked": False}},
    },
}

SCHEDULE: dict[str, Any] = {
    "id": "schedule",
    "initial": "active",
    "actors": {"tick": TICK},
    "states": {
        "active": {
            "initial": "waiting",
            "on": {
                "SUPERSEDE": {"target": "active", "reenter": True, "actions": "bumpGeneration"},
                "END": "ended",
            },
            "states": {
                "waiting": {
                    "always": {"guard": "noNextInstant", "target": "#schedule.ended"},
                    "on": {"ALARM": {"guard": "dueReached", "target": "ticking"}},
                },
                "ticking": {
                    "invoke": {
                        "id": "tick",
                        "src": "tick",
                        "input": {"tick": {"$": "context.tick"}, "current": {"$": "context.generation"}},
                        "onDone": {"target": "waiting", "actions": "nextFromNow"},
                    },
                    "on": {event: {"actions": {"forwardTo": "tick"}} for event in FORWARDED},
                },
            },
        },
        "ended": {"type": "final"},
    },
}


def due_reached(context: Mapping[str, Any], event: object, now: datetime) -> bool:
    return context["due"] is not None and now.isoformat() >= context["due"]


def no_next_instant(context: Mapping[str, Any], event: object, now: datetime) -> bool:
    return context["due"] is None


def fresh(context: Mapping[str, Any], event: object, now: datetime) -> bool:
    return bool(context["tick"]["generation"] == context["current"])


def bump_generation(context: Mapping[str, Any], event: object, now: datetime) -> Mapping[str, Any]:
    generation = context["generation"] + 1
    return {**context, "generation": generation, "tick": {**context["tick"], "generation": generation}}


def next_from_now(context: Mapping[str, Any], event: object, now: datetime) -> Mapping[str, Any]:
    instants = context["instants"]
    return {**context, "due": instants[0] if instants else None, "instants": instants[1:]}


def send(context: Mapping[str, Any], event: object, now: datetime) -> dict[str, Any]:
    return {"tick": context["tick"]}


GUARDS = {"dueReached": due_reached, "noNextInstant": no_next_instant, "fresh": fresh}
ACTIONS = {"bumpGeneration": bump_generation, "nextFromNow": next_from_now}
EFFECTS = {"send": send}


def schedule_chart(**context: Any) -> Chart:
    """The schedule, due at noon, with as many instants after it as given."""
    first = {
        "generation": 0,
        "due": NOON.isoformat(),
        "instants": [],
        "tick": {"schedule": "s1", "generation": 0},
        **context,
    }
    return load({**SCHEDULE, "context": first}, guards=GUARDS, actions=ACTIONS, effects=EFFECTS)
