"""host.automations - `app.reflexes`: what a person's code does with the reflexes of an app.

For: the verbs of reflexes under an app's principal, for code that runs in the process.
Never: checks anything itself; what is asked here goes through the same verbs as at every other door.
Was wrong once: the engine given to the code. It fired as whomever the code liked.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from onefold.host.caller import Caller
from onefold.host.host import Host
from onefold.host.modules import Page
from onefold.host.sweep import Swept
from onefold.reflex.words import (
    Cause,
    Draft,
    Drawn,
    Fired,
    Loaded,
    Overdue,
    Preview,
    ReflexRow,
    RunRow,
    Signal,
    TaskRow,
    Write,
)
from onefold.terms.duration import duration_ms
from onefold.terms.errors import BadArguments, Fault

Json = Any
T = TypeVar("T")


class Opened(Protocol):
    """An app, as far as its verbs need it."""

    @property
    def host(self) -> Host: ...
    @property
    def caller(self) -> Caller: ...


class Automations:
    """`app.reflexes`."""

    def __init__(self, app: Opened) -> None:
        self._app = app

    async def list(self) -> Sequence[ReflexRow]:
        """The loaded reflexes."""
        return await self._app.host.reflexes_list(caller=self._app.caller)

    async def draft(self, definition: Mapping[str, Json]) -> Draft:
        """A definition as it would be saved, its timer anchored to now, with what is wrong with it. Arms nothing."""
        return await self._app.host.reflex_draft(definition, caller=self._app.caller)

    async def schema(self) -> dict[str, Json]:
        """JSON Schema of what a draft may say, with the names that this app has. It has no word for arming."""
        return await self._app.host.reflex_schema(caller=self._app.caller)

    async def load(self, source: Sequence[Mapping[str, Json]] | None = None) -> Loaded:
        """Make these definitions the set; without any, read the code's own file again. Raises: LoadRefused."""
        return await self._app.host.reflexes_load(source, caller=self._app.caller)

    async def preview(
        self,
        id: str | Mapping[str, Json],
        *,
        fact: Write | Signal | Mapping[str, Json] | None = None,
        at: datetime | None = None,
        next: int | None = None,
    ) -> Preview:
        """What it, or a draft's definition, would do now, at `at`, or upon `fact`, armed or not, and its `next`
        occurrences. Writes nothing.
        """
        return await self._app.host.reflex_preview(id, fact=fact, at=at, next=next, caller=self._app.caller)

    async def fire(self, id: str, *, input: Json = None, by: str | None = None) -> Fired:
        """Fire a reflex of this principal now, armed or not. Raises: UnknownName, BadArguments."""
        return await self._app.host.reflex_fire(id, input=input, by=by, caller=self._app.caller)

    async def retry(self, task_id: str) -> TaskRow:
        """Open a failed or parked task again. Raises: NotFound, BadArguments."""
        return await self._app.host.reflex_retry(task_id, caller=self._app.caller)

    async def release(self, fact_id: str) -> bool:
        """Let a parked fact pass although its chain is too long. False: it is not parked. Raises: NotFound."""
        return await self._app.host.fact_release(fact_id, caller=self._app.caller)

    async def backfill(self, id: str, *, since: datetime, until: datetime) -> int:
        """Make runs of the occurrences from `since` to `until` that have none; how many. Raises: BadArguments."""
        return await self._app.host.reflex_backfill(id, since=since, until=until, caller=self._app.caller)

    async def facts(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[Any]:
        """What arrived, newest first."""
        return await self._app.host.facts_list(
            kind=kind, subject=subject, state=state, limit=limit, after=after, caller=self._app.caller
        )

    async def runs(self, id: str | None = None, *, limit: int = 100, after: str | None = None) -> Page[RunRow]:
        """Runs of one reflex, or of all, newest first; `after` is the `next` of the page before."""
        return await self._app.host.reflex_runs(id, limit=limit, after=after, caller=self._app.caller)

    async def tasks(self, run_id: str, *, limit: int = 100, after: str | None = None) -> Page[TaskRow]:
        """The tasks of a run, in the order of their selection. Raises: NotFound."""
        return await self._app.host.reflex_tasks(run_id, limit=limit, after=after, caller=self._app.caller)

    async def explain(self, id: str) -> Sequence[Cause]:
        """From a fact, a run or a task to its first cause, newest first. Raises: NotFound."""
        return await self._app.host.reflex_explain(id, caller=self._app.caller)

    async def overdue(self) -> Sequence[Overdue]:
        """What should have happened by now and did not, the longest first."""
        return await self._app.host.reflex_overdue(caller=self._app.caller)

    async def graph(self) -> Drawn:
        """What wakes what: `text`, `dot`, and `findings`."""
        return await self._app.host.reflex_graph(caller=self._app.caller)

    async def sweep(
        self,
        *,
        intake: str | timedelta | None = None,
        runs: str | timedelta | None = None,
        dry_run: bool = False,
    ) -> Swept:
        """Take away delivered facts and settled runs, with their tasks, that are so old; by default as the settings
        say.
        """
        return await self._app.host.reflex_sweep(
            intake=kept(intake, "intake"), runs=kept(runs, "runs"), dry_run=dry_run, caller=self._app.caller
        )


class Waiting(Protocol):
    """A blocking app, as far as its verbs need it."""

    @property
    def awaited(self) -> Any: ...
    def wait_for(self, work: Coroutine[Any, Any, T]) -> T: ...


class BlockingAutomations:
    """`app.reflexes`, without `await`."""

    def __init__(self, app: Waiting) -> None:
        self._app = app

    @property
    def _awaited(self) -> Automations:
        awaited: Automations = self._app.awaited.reflexes
        return awaited

    def list(self) -> Sequence[ReflexRow]:
        return self._app.wait_for(self._awaited.list())

    def draft(self, definition: Mapping[str, Json]) -> Draft:
        """A definition as it would be saved, with what is wrong with it. Arms nothing."""
        return self._app.wait_for(self._awaited.draft(definition))

    def schema(self) -> dict[str, Json]:
        return self._app.wait_for(self._awaited.schema())

    def load(self, source: Sequence[Mapping[str, Json]] | None = None) -> Loaded:
        """Make these definitions the set; without any, read the code's own file again. Raises: LoadRefused."""
        return self._app.wait_for(self._awaited.load(source))

    def preview(
        self,
        id: str | Mapping[str, Json],
        *,
        fact: Write | Signal | Mapping[str, Json] | None = None,
        at: datetime | None = None,
        next: int | None = None,
    ) -> Preview:
        """What it would do. Writes nothing."""
        return self._app.wait_for(self._awaited.preview(id, fact=fact, at=at, next=next))

    def fire(self, id: str, *, input: Json = None, by: str | None = None) -> Fired:
        """Fire a reflex of this principal now, armed or not. Raises: UnknownName, BadArguments."""
        return self._app.wait_for(self._awaited.fire(id, input=input, by=by))

    def retry(self, task_id: str) -> TaskRow:
        return self._app.wait_for(self._awaited.retry(task_id))

    def release(self, fact_id: str) -> bool:
        return self._app.wait_for(self._awaited.release(fact_id))

    def backfill(self, id: str, *, since: datetime, until: datetime) -> int:
        """Make runs of the occurrences from `since` to `until` that have none; how many. Raises: BadArguments."""
        return self._app.wait_for(self._awaited.backfill(id, since=since, until=until))

    def facts(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[Any]:
        """What arrived, newest first."""
        asked = self._awaited.facts(kind=kind, subject=subject, state=state, limit=limit, after=after)
        return self._app.wait_for(asked)

    def runs(self, id: str | None = None, *, limit: int = 100, after: str | None = None) -> Page[RunRow]:
        return self._app.wait_for(self._awaited.runs(id, limit=limit, after=after))

    def tasks(self, run_id: str, *, limit: int = 100, after: str | None = None) -> Page[TaskRow]:
        return self._app.wait_for(self._awaited.tasks(run_id, limit=limit, after=after))

    def explain(self, id: str) -> Sequence[Cause]:
        return self._app.wait_for(self._awaited.explain(id))

    def overdue(self) -> Sequence[Overdue]:
        return self._app.wait_for(self._awaited.overdue())

    def graph(self) -> Drawn:
        return self._app.wait_for(self._awaited.graph())

    def sweep(
        self,
        *,
        intake: str | timedelta | None = None,
        runs: str | timedelta | None = None,
        dry_run: bool = False,
    ) -> Swept:
        """Take away delivered facts and settled runs that are so old; by default as the settings say."""
        return self._app.wait_for(self._awaited.sweep(intake=intake, runs=runs, dry_run=dry_run))


def kept(said: str | timedelta | None, field: str) -> int | None:
    """How long `field` is kept, in milliseconds. Raises: BadArguments, naming it."""
    try:
        return None if said is None else duration_ms(said)
    except BadArguments as fault:
        raise BadArguments([Fault(field, fault.faults[0].problem, said)], nothing_was="swept") from None
