"""Small charts for tests: functions on a JSON context, and a few words that make a test read as what it says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from onefold.machine.definition import load
from onefold.machine.step import start, step
from onefold.machine.table import Chart
from onefold.machine.words import Effect, Plain

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def add(context: Mapping[str, Any], event: object, now: datetime) -> Mapping[str, Any]:
    """n + 1."""
    return {**context, "n": context.get("n", 0) + 1}


def note(context: Mapping[str, Any], event: Any, now: datetime) -> Mapping[str, Any]:
    """Remember the event's name and data."""
    return {**context, "seen": [*context.get("seen", []), [event.type, dict(event.data)]]}


def fail(context: Mapping[str, Any], event: object, now: datetime) -> Mapping[str, Any]:
    raise ValueError("it went wrong")


def few(context: Mapping[str, Any], event: object, now: datetime) -> bool:
    return bool(context.get("n", 0) < 3)


def never(context: Mapping[str, Any], event: object, now: datetime) -> bool:
    return False


def unsure(context: Mapping[str, Any], event: object, now: datetime) -> bool:
    raise ValueError("who knows")


def owe(name: str) -> Any:
    return lambda context, event, now: name


ACTIONS = {"add": add, "note": note, "fail": fail}
GUARDS = {"few": few, "never": never, "unsure": unsure}
EFFECTS = {name: owe(name) for name in ("in a", "out a", "in b", "out b", "in p", "out p", "on the way", "first")}


def chart(states: dict[str, Any], initial: str = "a", **more: Any) -> Chart:
    """A chart of these states, named `c`."""
    raw = {"id": "c", "initial": initial, "states": states, **more}
    if raw.get("type") == "parallel":
        raw.pop("initial")
    return load(raw, actions=ACTIONS, guards=GUARDS, effects=EFFECTS)


def run(made: Chart, *events: str | Plain, input: Any = None) -> tuple[dict[str, Any], tuple[Effect, ...]]:
    """The snapshot after these events, and the effects of the last of them."""
    snapshot, effects = start(made, NOW, input=input)
    for at, event in enumerate(events):
        told = Plain(event, {}, f"e{at}") if isinstance(event, str) else event
        snapshot, effects = step(made, snapshot, told, NOW)
    return snapshot, effects


def value(made: Chart, *events: str | Plain) -> Any:
    return run(made, *events)[0]["value"]


def names(made: Chart, *events: str | Plain) -> list[str]:
    """The effects of the last event, by name."""
    return [effect.name for effect in run(made, *events)[1]]
