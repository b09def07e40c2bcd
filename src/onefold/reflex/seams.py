"""reflex.seams - the three openings that a host fills: shape a template, select rows, act.

For: the shapes of transform, select and effects, and the closed environment that templates see.
Never: an expression language, a query language, a way out of the process. The identity of whoever asks is the
engine's to bind, never the definition's.
Was wrong once: an effect that could say in whose name it emits. It said somebody else's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from onefold.reflex.words import Json, Signal, Write
from onefold.terms.ids import Principal

Env: TypeAlias = "Mapping[str, Json]"
"""What templates see: params, occurrence {key, at} or fact (and facts), row or rows, now. Nothing else."""

ROOTS = ("params", "occurrence", "fact", "facts", "row", "rows", "now")

Row: TypeAlias = "Mapping[str, Json]"


class Transform(Protocol):
    """A template and its environment become JSON. Pure. Raises: BadArguments with the path of what did not work."""

    def __call__(self, template: Json, env: Env, /) -> Json: ...


@dataclass(frozen=True, slots=True)
class Query:
    """What a selection is asked with. `principal` was bound by the engine; `now` is the advance's."""

    params: Mapping[str, Json]
    principal: Principal
    now: datetime


class Select(Protocol):
    """Rows for a query, which is what the reflex wrote with its templates filled in. Raises whatever a database does."""

    def __call__(self, query: Json, principal: Principal, now: datetime, /) -> AsyncIterator[Row]: ...


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt at one unit. `key` is the same on every attempt; `emit` keeps a fact if this attempt succeeds."""

    key: str
    now: datetime
    attempt: int
    principal: Principal
    emit: Callable[[Write | Signal], None]


class Effect(Protocol):
    """The one thing a reflex does. `writes`: the entities whose facts it makes; None: nobody said, a blind edge."""

    @property
    def name(self) -> str: ...
    @property
    def writes(self) -> Sequence[str] | None: ...

    async def run(self, task: Task, input: Json, /) -> Json:
        """Returning is done, a decline too; raising is tried again. Both take and give JSON."""

    def show(self, input: Json, /) -> str | None:
        """What it would do, in a sentence; None when it cannot say. Raises: BadArguments for an input it cannot take."""


def truthy(value: Any) -> bool:
    """Whether a `when` lets pass: everything but false, null, nothing, 0, "" and []. One rule for engine and preview."""
    return not (value is None or value is False or value in (0, "") or (isinstance(value, list) and not value))
