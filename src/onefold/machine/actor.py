"""machine.actor - one chart in one moment: opened from its snapshot, moved, and written back.

For: the context, the events waiting and the acts of one actor while a step lasts.
Never: outlives the step. What is not in the snapshot is gone, so nothing may be needed that is not there.
Was wrong once: the whole family opened for every event. A child that hears nothing stays the JSON it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from onefold.machine.acts import PARENT, SELF
from onefold.machine.snapshot import history_json, history_of, states_of, value_of
from onefold.machine.table import Act, Arrow, Change, Chart, Guard, Owe, Raise, Send
from onefold.machine.words import EXECUTION, MICROSTEPS, ChartChanged, Effect, Endless, NoSuchChild, Plain
from onefold.terms.codec import Json
from onefold.terms.errors import BadArguments, Broken, HostError
from onefold.terms.faults import says
from onefold.terms.ids import join, nearest

WORLD: Final = (Broken, HostError, MemoryError, OSError, RecursionError)
"""What a chart's functions may raise without having said anything: the world around them failed, so the step does."""

UNREAD: Final = object()


class Wrong(Plain, frozen=True):
    """An event for an error, with the exception itself for whoever must raise it in the end."""

    cause: Exception | None = None


class Phase(Enum):
    """New: its first step is still to come. Stopped: it hears nothing any more."""

    NEW = 0
    RUNNING = 1
    STOPPED = 2


class Run:
    """One step of a whole family: its moment, its effects, and how much it may still move."""

    __slots__ = ("effects", "event_id", "left", "now", "taken")

    def __init__(self, now: datetime, event_id: str) -> None:
        self.now = now
        self.event_id = event_id
        self.effects: list[Effect] = []
        self.taken: list[Arrow] = []
        self.left = MICROSTEPS

    def owe(self, actor: Actor, name: str, value: Any) -> None:
        self.effects.append(Effect(join(self.event_id, str(len(self.effects))), name, actor.path, value))


class Letter(msgspec.Struct, eq=False):
    """An event on its way, sent when the actor has come to rest. `to` is a name until the child is there."""

    to: Actor | str
    event: Any


Later: TypeAlias = "Letter | Actor"
"""What an actor has to do once it is at rest: send a letter, or start (if new) or stop a child."""


class Actor:
    """One actor during one step. `version` counts its changes; at 0 its snapshot stays the JSON it was."""

    __slots__ = (
        "_json", "_shown", "active", "busy", "cause", "chart", "children", "error", "event", "id", "inner", "input",
        "later", "mailbox", "mark", "memory", "output", "parent", "phase", "raw", "run", "src", "status", "version",
    )  # fmt: skip

    def __init__(self, chart: Chart, run: Run, raw: dict[str, Any], *, id: str, src: str, parent: Actor | None) -> None:
        self.chart = chart
        self.run = run
        self.raw = raw
        self.id = id
        self.src = src
        self.parent = parent
        self.phase = Phase.RUNNING
        self.status = raw.get("status", "active")
        self.active = states_of(chart, raw["value"]) if "value" in raw else set()
        self.memory = history_of(chart, raw["history"]) if "history" in raw else {}
        self.children: dict[str, Actor | dict[str, Any]] = dict(raw["children"]) if "children" in raw else {}
        self.output: Json = raw.get("output")
        self.error: Json = raw.get("error")
        self.cause: Exception | None = None
        self.input: Json = None
        self._json: Json = raw.get("context")
        self._shown: Any = UNREAD
        self.event: Any = None
        self.inner: list[Plain] = []
        self.mailbox: list[Any] = []
        self.later: list[Later] = []
        self.busy = False
        self.mark = 0  # where its effects of this event begin
        self.version = 0

    @property
    def path(self) -> tuple[str, ...]:
        return () if self.parent is None else (*self.parent.path, self.id)

    @property
    def now(self) -> datetime:
        return self.run.now

    # --- the context --------------------------------------------------------------------------

    @property
    def shown(self) -> Any:
        """The context as functions see it: the typed value, or JSON that cannot be changed in place."""
        if self._shown is UNREAD:
            codec = self.chart.codec
            if codec is not None:
                self._shown = codec.from_json(self._json)
            else:
                self._shown = MappingProxyType(self._json) if isinstance(self._json, dict) else self._json
        return self._shown

    def lend(self, context: Any) -> None:
        """A context that was read from this snapshot before."""
        self._shown = context

    def give(self, json: Json) -> None:
        """The first context, as JSON."""
        self._json = json
        self._shown = UNREAD

    def change(self, new: Any, name: str) -> None:
        """Keep what an action gave. Raises: TypeError when it is no context."""
        old = self.shown
        if new is old:
            return
        if isinstance(old, MappingProxyType):
            if type(new) is not dict:
                if not isinstance(new, Mapping):
                    raise TypeError(f"action {name!r} gave {new!r}; an action gives the whole context")
                new = dict(new)
            if new == self._json:
                return
            self._json = new
            self._shown = MappingProxyType(new)
        else:
            if type(new) is not type(old):
                raise TypeError(f"action {name!r} gave {new!r}; an action gives the whole context")
            if new == old:
                return
            self._json = UNREAD
            self._shown = new
        self.version += 1

    # --- acts ---------------------------------------------------------------------------------

    def passes(self, guard: Guard) -> bool:
        """Whether a guard holds; one that raises does not, and its error is an event."""
        try:
            return guard(self)
        except Exception as fault:
            if isinstance(fault, WORLD):
                raise
            self.wrong(fault)
            return False

    def perform(self, acts: Sequence[Act], pending: Sequence[str] = ()) -> None:
        """One block of acts. One that raises ends the block, and its error is an event.

        pending: the children that the state being entered is about to have.
        """
        try:
            for act in acts:
                self._do(act, pending)
        except Exception as fault:
            if isinstance(fault, WORLD):
                raise
            self.wrong(fault)

    def wrong(self, fault: Exception) -> None:
        self.inner.append(Wrong(EXECUTION, {"error": described(fault)}, "", fault))

    def _do(self, act: Act, pending: Sequence[str]) -> None:
        if isinstance(act, Change):
            self.change(act.run(self.shown, self.event, self.run.now), act.name)
        elif isinstance(act, Send):
            event = self.event if act.event is None else act.event(self)
            self.later.append(Letter(self._receiver(act.to, pending), event))
        elif isinstance(act, Owe):
            self.run.owe(self, act.name, act.run(self.shown, self.event, self.run.now))
        elif isinstance(act, Raise):
            self.inner.append(act.event(self))
        else:
            for guard, _, acts in act.branches:
                if guard is None or self.passes(guard):
                    for inner in acts:
                        self._do(inner, pending)
                    break

    def _receiver(self, to: str, pending: Sequence[str]) -> Actor | str:
        if to == SELF:
            return self
        if to == PARENT:
            assert self.parent is not None  # refused at load
            return self.parent
        if to in pending:
            return to
        if to in self.children:
            return self.child(to)
        raise NoSuchChild(f"no child {to!r} runs now")

    # --- children -----------------------------------------------------------------------------

    def child(self, id: str) -> Actor:
        """A child, opened. Raises: ChartChanged when its chart is gone."""
        kept = self.children[id]
        if isinstance(kept, Actor):
            return kept
        chart = self.chart.actors.get(kept["src"])
        if chart is None:
            known = self.chart.actors
            raise ChartChanged(self.chart.name, f"the child chart {kept['src']!r}", nearest(kept["src"], known))
        opened = Actor(chart, self.run, kept["snapshot"], id=id, src=kept["src"], parent=self)
        if opened.status != "active":
            opened.phase = Phase.STOPPED
        self.children[id] = opened
        return opened

    def stop_children(self) -> None:
        for id in list(self.children):
            self.stop_child(id)

    def stop_child(self, id: str) -> None:
        """Take a child out; one that runs first hears what was sent to it before."""
        child = self.children.pop(id, None)
        if child is None:
            return
        self.version += 1
        if not isinstance(child, Actor):
            return  # it was not opened, so nothing was sent to it
        if child.phase is Phase.NEW:
            child.phase = Phase.STOPPED
        else:
            self.later.append(child)

    # --- writing ------------------------------------------------------------------------------

    def written(self) -> dict[str, Any]:
        """The snapshot; the very same one if nothing changed."""
        children, still = self._children() if self.children else ({}, "children" not in self.raw)
        if self.version == 0 and still:
            return self.raw
        if self._json is UNREAD:
            self._json = self._context_json()
        found: dict[str, Any] = {
            "status": self.status,
            "value": value_of(self.chart.root, self.active),
            "context": self._json,
        }
        if children:
            found["children"] = children
        if self.memory:
            found["history"] = history_json(self.memory)
        if self.output is not None:
            found["output"] = self.output
        if self.error is not None:
            found["error"] = self.error
        return found

    def _context_json(self) -> Json:
        codec = self.chart.codec
        if codec is None:
            return self._shown
        try:
            return codec.to_json(self._shown)
        except BadArguments as bad:  # not the caller's fault: an action made a context that is none
            raise TypeError(f"the context of {self.chart.name} does not fit its type: {bad.faults[0]}") from None

    def _children(self) -> tuple[dict[str, Any], bool]:
        """The children's snapshots, and whether they are the ones that were read."""
        kept = self.raw.get("children", {})
        still = len(kept) == len(self.children)
        found: dict[str, Any] = {}
        for id, child in self.children.items():
            before = kept.get(id)
            if isinstance(child, Actor):
                snapshot = child.written()
                same = before is not None and before["snapshot"] is snapshot
                found[id] = before if same else {"src": child.src, "snapshot": snapshot}
                still = still and same
            else:
                found[id] = child
        return found, still

    def spend(self) -> None:
        """One more transition. Raises: Endless."""
        self.run.left -= 1
        if self.run.left < 0:
            raise Endless(self.chart.name, MICROSTEPS, value_of(self.chart.root, self.active))


def described(fault: BaseException) -> dict[str, Json]:
    """An error as a snapshot and an event hold it."""
    return {"kind": type(fault).__name__, "message": says(fault)}


def named(event: Any) -> str:
    """What an event is called: its own word, or the name of its class."""
    return event.type if isinstance(event, Plain) else type(event).__name__
