"""machine.table - a chart as it is once loaded: states in document order, arrows with their targets found.

For: the data that selection, stepping and drawing read. Everything that depends on the chart alone
(ancestors, the span of descendants, the domain of an arrow) is worked out once, when it is loaded.
Never: holds anything of a running actor.
Was wrong once: strings resolved on every step. Finding `#schedule.ended` cost more than going there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias

from onefold.machine.words import Plain
from onefold.terms.codec import Json

Kind = Literal["atomic", "compound", "parallel", "final", "history"]


class Scope(Protocol):
    """What guards, actions and templates may see: the moment of one actor."""

    @property
    def shown(self) -> Any:
        """The context, as functions see it."""

    @property
    def event(self) -> Any: ...

    @property
    def now(self) -> datetime: ...

    @property
    def active(self) -> set[Node]: ...


Guard: TypeAlias = Callable[[Scope], bool]
Make: TypeAlias = Callable[[Scope], Plain]
Fill: TypeAlias = Callable[[Any, Any], Json]
"""(context or input, event) to JSON."""


@dataclass(eq=False, slots=True)
class Node:
    """One state. `order` and `last` span it and its descendants in document order."""

    key: str
    id: str
    kind: Kind
    order: int
    parent: Node | None
    last: int = 0
    states: dict[str, Node] = field(default_factory=dict)
    regions: tuple[Node, ...] = ()  # its states but those of history
    memories: tuple[Node, ...] = ()  # its states of history
    above: tuple[Node, ...] = ()  # proper ancestors, nearest first
    deep: bool = False
    initial: tuple[Node, ...] = ()  # of history: where it leads when there is none
    initial_acts: tuple[Act, ...] = ()
    entry: tuple[Act, ...] = ()
    exit: tuple[Act, ...] = ()
    on: dict[str, tuple[Arrow, ...]] = field(default_factory=dict)
    wild: tuple[tuple[str, tuple[Arrow, ...]], ...] = ()  # ("a.*" or "*", arrows), longest first
    always: tuple[Arrow, ...] = ()
    watching: tuple[Node, ...] = ()  # itself and its ancestors that have `always`, nearest first
    invokes: tuple[Invoke, ...] = ()
    output: Fill | None = None
    line: frozenset[Node] | None = None  # of a leaf in no parallel state: all that is active with it

    def holds(self, other: Node) -> bool:
        """Whether `other` is a proper descendant."""
        return self.order < other.order <= self.last

    @property
    def atomic(self) -> bool:
        return self.kind == "atomic" or self.kind == "final"

    def __repr__(self) -> str:
        return f"<state {self.id}>"


@dataclass(eq=False, slots=True)
class Arrow:
    """One transition. `targets` None: it stays where it is, and still keeps its ancestors from hearing the event.

    `domain`: the innermost state that is not left; None: the whole chart is left and entered again.
    `fixed`: the domain does not depend on history. `enters`: what it enters when taken alone, if history
    has no say in that; `by_default`: those of them whose initial transition is followed.
    """

    index: int
    source: Node
    event: str  # "" for `always`
    targets: tuple[Node, ...] | None
    guard: Guard | None
    guard_text: str
    acts: tuple[Act, ...]
    reenter: bool
    domain: Node | None = None
    fixed: bool = True
    enters: tuple[Node, ...] | None = None
    by_default: frozenset[Node] = frozenset()

    @property
    def name(self) -> str:
        """What it is called where arrows are counted and drawn."""
        heading = f"#{self.source.id} --{self.event or 'always'}"
        guard = f" [{self.guard_text}]" if self.guard_text else ""
        to = ", ".join(f"#{t.id}" for t in self.targets) if self.targets else "stays"
        return f"{heading}{guard}--> {to}"

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass(eq=False, slots=True)
class Invoke:
    """A child chart that runs while its state is active."""

    id: str
    src: str
    input: Fill | None


# --- what a transition does, in order -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """A named action: (context, event, now) to the next context."""

    name: str
    run: Callable[[Any, Any, datetime], Any]


@dataclass(frozen=True, slots=True)
class Owe:
    """A named effect: (context, event, now) to what is owed."""

    name: str
    run: Callable[[Any, Any, datetime], Any]


@dataclass(frozen=True, slots=True)
class Raise:
    """An event for this chart itself, before any from outside."""

    event: Make


@dataclass(frozen=True, slots=True)
class Send:
    """An event, or (None) the one that came, for a child, for "#parent", or for "#self" after this event."""

    to: str
    event: Make | None


@dataclass(frozen=True, slots=True)
class Choose:
    """The first branch whose guard holds; None always does."""

    branches: tuple[tuple[Guard | None, str, tuple[Act, ...]], ...]


Act: TypeAlias = "Change | Owe | Raise | Send | Choose"


class ContextCodec(Protocol):
    """How a context that is no plain JSON is kept in a snapshot."""

    def to_json(self, value: Any, /) -> Json: ...

    def from_json(self, json: Json, /) -> Any: ...


@dataclass(eq=False, slots=True)
class Chart:
    """A loaded chart, bound to the functions it names."""

    name: str
    root: Node
    nodes: tuple[Node, ...]
    ids: Mapping[str, Node]
    arrows: tuple[Arrow, ...]
    actors: Mapping[str, Chart]
    context: Fill
    codec: ContextCodec | None
    watched: bool  # some state has `always`
    hears: frozenset[str]  # the events its own states name, "*" and "name.*" among them
    enters: tuple[Node, ...] = ()  # what an actor enters when it starts, and
    by_default: frozenset[Node] = frozenset()  # those of them whose initial transition is followed

    def __repr__(self) -> str:
        return f"<chart {self.name}>"
