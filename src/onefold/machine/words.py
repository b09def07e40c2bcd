"""machine.words - what goes into a chart's step and what comes out.

For: events without a class, effects, the faults that have a name, and a module's reply, fact and view.
Never: behaviour.
Was wrong once: an error raised out of the middle of a step. The states left and the states entered
then disagreed; now an error is an event like any other, and only an unheard one leaves the step.

A snapshot is plain JSON, and all there is of a running chart:
    {"status": "active" | "done" | "error", "value": "waiting" | {"ticking": …}, "context": …,
     "children": {"tick": {"src": "tick", "snapshot": {…}}}, "history": {"id of the history state": [ids]},
     "output": …, "error": {"kind", "message"}}              the last four only where there is something
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from onefold.terms.codec import Json
from onefold.terms.errors import Failed, HostError

C = TypeVar("C")

Value: TypeAlias = Any
"""Where a chart is: the key of the one active state, or {key: value} for each state that has states within."""

MICROSTEPS: Final = 1_000
"""Transitions one event may set off. The W3C and SCION charts need at most 40; a thousand take 10 ms."""

INIT: Final = "init"
EXECUTION: Final = "error.execution"
DONE_STATE, DONE_ACTOR, ERROR_ACTOR = "done.state.", "done.actor.", "error.actor."


class Plain(msgspec.Struct, frozen=True):
    """An event by name and data: what a chart says to itself, its parent and its children.

    `init` has `input`; `done.state.ID` `output`; `done.actor.ID` `actor` and `output`; `error.actor.ID`
    `actor` and `error`; `error.execution` `error`. An error is {"kind": class name, "message": text}.
    """

    type: str
    data: Mapping[str, Json] = {}
    id: str = ""


class Effect(msgspec.Struct, frozen=True):
    """Something to do after the step was kept.

    id: of the event and the place among its effects, so that a step taken again gives the same ids.
    actor: the path of the child it came from, () for the chart itself. value: what the named function gave.
    """

    id: str
    name: str
    actor: tuple[str, ...]
    value: Any


class Endless(Failed):
    """A chart that never comes to rest: its transitions set each other off."""

    def __init__(self, chart: str, limit: int, value: Value) -> None:
        self.chart = chart
        self.limit = limit
        self.value = value
        super().__init__(
            f"Chart {chart!r} took {limit} transitions for one event and was still moving, last in {value!r}. "
            "Nothing was stored. Give its `always` and raised events a guard that ends them."
        )


class ChartChanged(HostError):
    """A snapshot speaks of a state or a child that this chart does not have."""

    def __init__(self, chart: str, what: str, near: str | None) -> None:
        self.chart = chart
        self.what = what
        self.near = near
        hint = f" (the nearest it has is {near!r})" if near else ""
        super().__init__(
            f"A snapshot of chart {chart!r} speaks of {what}, which the chart no longer has{hint}. It waits "
            "unchanged; start the version that wrote it, or give the chart that name back."
        )


class NoSuchChild(LookupError):
    """An event for a child that does not run now."""


# --- what a module made of a chart says ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stepped:
    """The reply: whether the event changed anything, and where the chart is now."""

    changed: bool
    value: Value


@dataclass(frozen=True, slots=True)
class Moved:
    """The fact: the event's name and the whole snapshot after it, so that every fact is a snapshot too."""

    event: str
    snapshot: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[C]):
    """The view: where the chart is, what it holds, and whether it is `active` or `done`."""

    value: Value
    context: C
    status: str
