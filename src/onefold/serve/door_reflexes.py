"""serve.door_reflexes - what the doors ask of an opened application about reflexes, as a Protocol.

For: the verbs of reflexes that serve may call, a part of `serve.door.Host`.
Never: a verb that only one page wants.
Was wrong once: the engine handed to the doors. Each asked for rights in its own words, and one forgot to.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from onefold.host.caller import Caller
from onefold.reflex.words import (
    Cause,
    Draft,
    Drawn,
    Fired,
    Ingested,
    IntakeRow,
    Loaded,
    Overdue,
    Preview,
    ReflexRow,
    RunRow,
    Signal,
    TaskRow,
    Write,
)

T_co = TypeVar("T_co", covariant=True)
Json = Any


class Rows(Protocol[T_co]):
    """Some rows, and where to go on: `after=next`, or None at the end."""

    @property
    def items(self) -> Sequence[T_co]: ...
    @property
    def next(self) -> str | None: ...


class Incoming(Protocol):
    """How one signal is signed, by which secrets, and whose facts it makes."""

    @property
    def scheme(self) -> str: ...
    @property
    def secret_env(self) -> Sequence[str]: ...
    @property
    def principal(self) -> str | None: ...


class ReflexHost(Protocol):
    """The verbs of reflexes. Each checks rights and principals itself."""

    async def ingest(self, fact: Write | Signal, *, caller: Caller) -> Ingested: ...
    async def facts_list(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
        caller: Caller,
    ) -> Rows[IntakeRow]: ...
    async def fact_release(self, id: str, *, caller: Caller) -> bool: ...
    async def reflexes_load(self, definitions: Sequence[Json] | None = None, *, caller: Caller) -> Loaded: ...
    async def reflex_draft(self, definition: Json, *, caller: Caller) -> Draft: ...
    async def reflexes_list(self, *, caller: Caller) -> Sequence[ReflexRow]: ...
    async def reflex_show(self, id: str, *, caller: Caller) -> ReflexRow: ...
    async def reflex_graph(self, *, caller: Caller) -> Drawn: ...
    async def reflex_preview(
        self, id: str, *, fact: Json = None, at: datetime | None = None, next: int | None = None, caller: Caller
    ) -> Preview: ...
    async def reflex_fire(self, id: str, *, input: Json = None, by: str | None = None, caller: Caller) -> Fired: ...
    async def reflex_backfill(self, id: str, *, since: datetime, until: datetime, caller: Caller) -> int: ...
    async def reflex_retry(self, id: str, *, caller: Caller) -> TaskRow: ...
    async def reflex_runs(
        self, reflex: str | None = None, *, limit: int = 100, after: str | None = None, caller: Caller
    ) -> Rows[RunRow]: ...
    async def reflex_run(self, id: str, *, caller: Caller) -> RunRow: ...
    async def reflex_tasks(
        self, run: str, *, limit: int = 100, after: str | None = None, caller: Caller
    ) -> Rows[TaskRow]: ...
    async def reflex_explain(self, id: str, *, caller: Caller) -> Sequence[Cause]: ...
    async def reflex_overdue(self, *, caller: Caller) -> Sequence[Overdue]: ...
