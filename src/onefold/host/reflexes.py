"""host.reflexes - the verbs of reflexes: facts in, definitions, people's hands, and the ledger as it is looked at.

For: one place where rights and principals are asked for before the engine is.
Never: mints a fact or starts work as another: an operator sees all, and fires only what is their own principal's.
Was wrong once: an operator's fire under the reflex's principal. The ledger said that the studio had done it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from onefold.host.caller import Caller
from onefold.host.core import Core
from onefold.host.modules import Page
from onefold.host.reflexing import Reflexing
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
from onefold.terms.errors import BadArguments, Fault, Finding, Forbidden, LoadRefused, UnknownName
from onefold.terms.ids import nearest
from onefold.terms.instant import moment

Json = Any


class ReflexVerbs:
    """Verbs of reflexes. `_core` is the opened application, `_reflexing` its engine."""

    _core: Core
    _reflexing: Reflexing

    # --- facts ----------------------------------------------------------------------------------

    async def ingest(self, fact: Write | Signal, *, caller: Caller) -> Ingested:
        """Keep a fact under the caller's principal. Durable when it returns; a repeat of its key counts once.

        Raises: Forbidden, BadArguments, TooLarge, Busy, OutcomeUnknown.
        """
        if not caller.rights & {"call", "operate"}:
            raise Forbidden("call", "Sending a fact")
        engine = await self._reflexing.engine()
        kept = await engine.ingest(fact, caller.principal, now=self._now())
        self._core.point("before-reply")
        return kept

    async def facts_list(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
        caller: Caller,
    ) -> Page[IntakeRow]:
        """Facts, newest first: the caller's own, or with `operate` everybody's."""
        engine = await self._reflexing.engine()
        said = {"kind": kind, "subject": subject, "state": state}
        return Page(*await engine.facts(caller.whose, **said, limit=limit, after=after))

    async def fact_release(self, id: str, *, caller: Caller) -> bool:
        """Let a parked fact pass although its chain is too long. False: it is not parked. Raises: NotFound."""
        caller.need("operate", "Releasing a fact")
        engine = await self._reflexing.engine()
        released = await engine.release(id, now=self._now())
        return released

    # --- definitions ----------------------------------------------------------------------------

    async def reflexes_load(self, definitions: Sequence[Json] | None = None, *, caller: Caller) -> Loaded:
        """Make these the set; None reads the code's own file again. What is armed does what its definition says, as
        whoever it says: that is deploying. Raises: LoadRefused, also where the code gives a file.
        """
        caller.need("deploy", "Loading reflexes")
        if definitions is None:
            if not self._reflexing.given:
                raise LoadRefused([Finding("reflexes", "the code gives no file to read again; give the definitions")])
            return await self._reflexing.load_given()
        if self._reflexing.given:
            told = "the code says what is loaded, and what the code says wins. Change that file, or give App none"
            raise LoadRefused([Finding("reflexes", told)])
        return await self._reflexing.load([(one, f"[{n}]") for n, one in enumerate(definitions)])

    async def reflex_draft(self, definition: Json, *, caller: Caller) -> Draft:
        """What is wrong with a definition, with its timer anchored to now. Arms nothing, writes nothing."""
        engine = await self._reflexing.current()
        return engine.draft(definition, self._now(), caller.whose)

    async def reflexes_list(self, *, caller: Caller) -> list[ReflexRow]:
        """The loaded reflexes that the caller may see, by id."""
        engine = await self._reflexing.current()
        return await engine.reflexes(caller.whose)

    async def reflex_show(self, id: str, *, caller: Caller) -> ReflexRow:
        """One of them. Raises: UnknownName."""
        rows = await self.reflexes_list(caller=caller)
        found = next((row for row in rows if row.id == id), None)
        if found is None:
            known = [row.id for row in rows]
            raise UnknownName("reflex", id, nearest(id, known), known)
        return found

    async def reflex_graph(self, *, caller: Caller) -> Drawn:
        """What wakes what, of the reflexes that the caller may see."""
        return await self._reflexing.drawn(caller.whose)

    # --- people's hands -------------------------------------------------------------------------

    async def reflex_preview(
        self, id: Json, *, fact: Json = None, at: datetime | None = None, next: int | None = None, caller: Caller
    ) -> Preview:
        """What would happen now, at `at`, or upon a fact, and the `next` occurrences. Writes nothing. `id`: of a loaded
        reflex, or a draft's definition, which is tried as the caller's own.

        Raises: UnknownName, BadArguments; LoadRefused for a draft that could not be loaded.
        """
        engine = await self._reflexing.engine()
        whose = caller.principal
        if isinstance(id, str):
            whose = (await self.reflex_show(id, caller=caller)).principal
        asked: dict[str, Any] = {} if next is None else {"count": next}
        return await engine.preview(id, now=self._now(), fact=fact, at=at, principal=whose, **asked)

    async def reflex_schema(self, *, caller: Caller) -> dict[str, Json]:
        """JSON Schema of what a draft of the caller's may say."""
        return (await self._reflexing.current()).schema(caller.principal)

    async def reflex_fire(self, id: str, *, input: Json = None, by: str | None = None, caller: Caller) -> Fired:
        """A person's fact, aimed at one reflex of their own principal, armed or not.

        Raises: UnknownName, BadArguments.
        """
        caller.need("operate", "Firing a reflex")
        await self._own(id, "fired", caller)
        engine = await self._reflexing.engine()
        fired = await engine.fire(id, now=self._now(), input=input, by=by, principal=caller.principal)
        self._core.point("before-reply")
        return fired

    async def reflex_backfill(self, id: str, *, since: datetime, until: datetime, caller: Caller) -> int:
        """Make runs of past occurrences, once each; how many. Raises: UnknownName, BadArguments."""
        caller.need("operate", "Backfilling a reflex")
        await self._own(id, "backfilled", caller)
        engine = await self._reflexing.engine()
        count = await engine.backfill(id, since=since, until=until, now=self._now(), principal=caller.principal)
        return count

    async def reflex_retry(self, id: str, *, caller: Caller) -> TaskRow:
        """Open a failed or parked task again. Raises: NotFound; BadArguments for one that is done."""
        caller.need("operate", "Retrying a task")
        engine = await self._reflexing.engine()
        await engine.retry(id, self._now())
        return await engine.task(id)

    # --- looking ----------------------------------------------------------------------------------

    async def reflex_runs(
        self, reflex: str | None = None, *, limit: int = 100, after: str | None = None, caller: Caller
    ) -> Page[RunRow]:
        """Reflex runs, newest first; of one reflex, also of one that is loaded no more."""
        engine = await self._reflexing.engine()
        return Page(*await engine.runs(reflex, caller.whose, limit=limit, after=after))

    async def reflex_run(self, id: str, *, caller: Caller) -> RunRow:
        """One reflex run. Raises: NotFound."""
        return await (await self._reflexing.engine()).run(id, caller.whose)

    async def reflex_tasks(
        self, run: str, *, limit: int = 100, after: str | None = None, caller: Caller
    ) -> Page[TaskRow]:
        """The tasks of a run, in the order of their selection. Raises: NotFound."""
        engine = await self._reflexing.engine()
        return Page(*await engine.tasks(run, caller.whose, limit=limit, after=after))

    async def reflex_explain(self, id: str, *, caller: Caller) -> list[Cause]:
        """From a fact, a run or a task to its first cause, newest first. Raises: NotFound."""
        engine = await self._reflexing.engine()
        return await engine.explain(id, caller.whose)

    async def reflex_overdue(self, *, caller: Caller) -> list[Overdue]:
        """What should have happened by now and did not, the longest first."""
        engine = await self._reflexing.current()
        return await engine.overdue(self._now(), caller.whose)

    async def reflex_idle(self, *, caller: Caller) -> list[TaskRow]:
        """Tasks that are due, and that no effect of this app takes."""
        engine = await self._reflexing.current()
        return await engine.idle(self._now(), caller.whose)

    # --- inside -----------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return moment(self._core.clock.now())

    async def _own(self, id: str, was: str, caller: Caller) -> None:
        """Raises: UnknownName for what the caller may not see; BadArguments for another principal's."""
        row = await self.reflex_show(id, caller=caller)
        if row.principal != caller.principal:
            whose = "nobody" if row.principal is None else repr(row.principal)
            how = "act as nobody" if row.principal is None else "act as it: with its key, or --as on the command line"
            fault = Fault("reflex", f"acts as {whose}, and nothing is {was} as another; {how}", id)
            raise BadArguments([fault], nothing_was=was)
