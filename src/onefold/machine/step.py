"""machine.step - one event through a chart and its children: snapshot in, snapshot and effects out. Pure.

For: `start`, the first snapshot; `step`, the next one; `trace`, the same with the transitions taken.
Never: a clock, a thread, a machine that lives on. It is rebuilt from the snapshot for each event and
dropped after it, so a restart between two events cannot be told from none.
Was wrong once: the chart's own interpreter kept in memory beside the snapshot. After an eviction the
two told different stories.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from onefold.machine.actor import UNREAD, Actor, Phase, Run
from onefold.machine.children import deliver
from onefold.machine.children import start as begin
from onefold.machine.table import Arrow, Chart
from onefold.machine.words import Effect
from onefold.terms.codec import Json


class Trace(NamedTuple):
    """What a step came to. `taken`: the transitions of the chart and its children, in order."""

    snapshot: dict[str, Any]
    effects: tuple[Effect, ...]
    taken: tuple[Arrow, ...]


def start(
    chart: Chart, now: datetime, *, input: Json = None, id: str = "init"
) -> tuple[dict[str, Any], tuple[Effect, ...]]:
    """The first snapshot of a chart and the effects of entering it. `id` is what the effects' ids begin with.

    Raises: what a function of the chart raised and no state hears as `error.execution`; Endless.
    """
    begun = trace_start(chart, now, input=input, id=id)
    return begun.snapshot, begun.effects


def step(
    chart: Chart, snapshot: dict[str, Any], event: object, now: datetime
) -> tuple[dict[str, Any], tuple[Effect, ...]]:
    """The snapshot after an event, and its effects in order. The very same snapshot if the event changed nothing.

    event: a Plain, heard by its type, or any object, heard by the name of its class; its `id` or `key` is
    what the effects' ids begin with. A chart that is done hears nothing.
    Raises: what a function of the chart raised and no state hears; Endless; ChartChanged.
    """
    taken = trace(chart, snapshot, event, now)
    return taken.snapshot, taken.effects


def trace_start(chart: Chart, now: datetime, *, input: Json = None, id: str = "init") -> Trace:
    """`start`, with the transitions taken."""
    run = Run(now, id)
    root = Actor(chart, run, {}, id=chart.name, src=chart.name, parent=None)
    root.phase = Phase.NEW
    root.input = input
    begin(root)
    return Trace(root.written(), tuple(run.effects), tuple(run.taken))


def trace(chart: Chart, snapshot: dict[str, Any], event: object, now: datetime, *, context: Any = UNREAD) -> Trace:
    """`step`, with the transitions taken. `context`: what was read from this very snapshot before, if it was."""
    if snapshot["status"] != "active":
        return Trace(snapshot, (), ())
    run = Run(now, event_id(event))
    root = Actor(chart, run, snapshot, id=chart.name, src=chart.name, parent=None)
    if context is not UNREAD:
        root.lend(context)
    deliver(root, event)
    return Trace(root.written(), tuple(run.effects), tuple(run.taken))


def event_id(event: object) -> str:
    """What identifies an event: its `id`, or the key of an answer."""
    found = getattr(event, "id", None) or getattr(event, "key", None)
    return found if isinstance(found, str) else ""
