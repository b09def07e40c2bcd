"""reflex.ledger - what people ask of the rows, and what they do to them by hand.

For: pages of facts, runs and tasks; the cause of a row; what is late; a task opened again; a sweep.
Never: reads a clock; shows or changes a row of a principal that was not asked for.
Was wrong once: each door with queries of its own. One of them forgot the principal.

`principals`: whose rows; None is everybody's, and nobody's own choice to say: a host asks for the right first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any, TypeVar

from onefold.reflex import explain, listing, overdue, parking, retention
from onefold.reflex.acting import committed
from onefold.reflex.record import retrying
from onefold.reflex.seams import Effect
from onefold.reflex.tables import STATE
from onefold.reflex.watch import Loaded
from onefold.reflex.words import TASK, Cause, IntakeRow, Overdue, ReflexRow, RunRow, TaskRow, number_of
from onefold.store.contract import Body, Last, Query, Row, Space
from onefold.terms.errors import NotFound
from onefold.terms.ids import Principal
from onefold.terms.instant import Instant, down

T = TypeVar("T")
PAGES = 16
"""Commits of a sweep at a beat: some thousand runs in half a minute, and nobody waits for them."""
Principals = Collection[Principal] | None


@dataclass(frozen=True, slots=True)
class Gone:
    """What a sweep took, or would: settled runs with their tasks, and facts, of some of which an empty row stays."""

    runs: int = 0
    tasks: int = 0
    facts: int = 0


class Ledger(ABC):
    """The verbs of the ledger, over one space: what an engine has beside its own."""

    _effects: Mapping[str, Effect]
    stirred: Callable[[], None]

    @abstractmethod
    async def _space(self) -> Space:
        """The space of its tables, opened."""

    @property
    @abstractmethod
    def loaded(self) -> Loaded | None:
        """The set that is held; None before one was loaded."""

    # --- looking --------------------------------------------------------------------------------

    async def reflexes(self, principals: Principals = None) -> list[ReflexRow]:
        """The loaded reflexes, by id."""
        known = {} if self.loaded is None else self.loaded.by_id
        shown = [one for one in known.values() if principals is None or one.principal in principals]
        rows = await self._look(Query(STATE, on=STATE.key, keys=[(one.id,) for one in shown]))
        states = {str(row[STATE.at["reflex"]]): row for row in rows}
        return [listing.reflex_row(one, states.get(one.id)) for one in sorted(shown, key=lambda one: one.id)]

    async def facts(
        self,
        principals: Principals = None,
        *,
        kind: str | None = None,
        subject: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> tuple[list[IntakeRow], str | None]:
        """Facts, newest first, and what to give as `after` for the next page. Raises: NotFound for no page."""
        asked = listing.facts(principals, kind=kind, subject=subject, state=state, limit=limit + 1, after=after)
        return await self._page(asked, limit, listing.fact_row)

    async def runs(
        self, reflex: str | None = None, principals: Principals = None, *, limit: int = 100, after: str | None = None
    ) -> tuple[list[RunRow], str | None]:
        """Runs of one reflex, or of all, newest first; also of one that is loaded no more."""
        asked = listing.runs(principals, reflex=reflex, limit=limit + 1, after=after)
        return await self._page(asked, limit, listing.run_row)

    async def run(self, id: str, principals: Principals = None) -> RunRow:
        """One run. Raises: NotFound."""
        rows = await self._look(listing.run(id, principals))
        if not rows:
            raise NotFound("reflex run", id)
        return listing.run_row(rows[0])

    async def tasks(
        self, run: str, principals: Principals = None, *, limit: int = 100, after: str | None = None
    ) -> tuple[list[TaskRow], str | None]:
        """The tasks of a run, in the order of their selection. Raises: NotFound."""
        await self.run(run, principals)
        return await self._page(listing.tasks(run, principals, limit=limit + 1, after=after), limit, listing.task_row)

    async def task(self, id: str, principals: Principals = None) -> TaskRow:
        """One task. Raises: NotFound."""
        rows = await self._look(listing.task(id, principals))
        if not rows:
            raise NotFound("task", id)
        return listing.task_row(rows[0])

    async def explain(self, id: str, principals: Principals = None) -> list[Cause]:
        """From a fact, a run or a task to its first cause, newest first. Raises: NotFound."""
        space, walk = await self._space(), explain.links(id, principals)
        try:
            asked = next(walk)
            while True:
                asked = walk.send(await space.look(*asked))
        except StopIteration as end:
            chain: list[Cause] = end.value
            return chain

    async def overdue(self, now: datetime, principals: Principals = None) -> list[Overdue]:
        """What should have happened by now and did not, the longest first."""
        at = down(now, what="now")
        answers = await (await self._space()).look(*overdue.questions(at))
        return overdue.overdue(answers, at, principals)

    async def idle(self, now: datetime, principals: Principals = None) -> list[TaskRow]:
        """Tasks that are due, and that this engine has no effect for: they wait for one that has."""
        rows = await self._look(listing.idle(self._effects, down(now, what="now"), principals))
        return [listing.task_row(row) for row in rows]

    async def parked(self, principals: Principals = None) -> list[IntakeRow | TaskRow]:
        """Facts and tasks that wait for a person."""
        return parking.found(await (await self._space()).look(*parking.questions(principals)))

    # --- by hand --------------------------------------------------------------------------------

    async def retry(self, task: str, now: datetime, principals: Principals = None) -> bool:
        """Open a failed or parked task again, with all its attempts before it. False: it is under way already.

        Raises: NotFound; BadArguments for one that is done.
        """
        n = number_of(task, TASK)
        if n is None:
            raise NotFound("task", task)
        opened = await committed(await self._space(), retrying(n, down(now, what="now"), principals))
        self.stirred()
        return opened

    async def drop(self, id: str, reason: str, principals: Principals = None) -> None:
        """Give up a parked fact or task. Raises: NotFound for what is not parked."""
        if not parking.is_one(id):
            raise NotFound("parked item", id)
        await committed(await self._space(), parking.dropping(id, reason, principals))

    async def take_over(self, now: datetime) -> int:
        """Let go of what was claimed and not answered; how many there were. Only for who alone has this store: of others
        a claim lapses by itself.
        """
        at, count = down(now, what="now"), 0
        while taken := await committed(await self._space(), parking.left_behind(at)):
            count += taken
        return count

    async def sweep(
        self, *, intake: datetime | None = None, runs: datetime | None = None, dry_run: bool = False
    ) -> Gone:
        """Take settled runs and delivered facts from before these instants; dry_run: only count.

        Raises: HostError; what was swept until then is swept, and the same again goes on.
        """
        gone = await self._swept(retention.sweeping_runs, runs, dry_run)
        facts = await self._swept(retention.sweeping_facts, intake, dry_run)
        return Gone(gone.runs, gone.tasks, facts.facts + facts.emptied)

    async def sweep_some(
        self, *, intake: datetime | None = None, runs: datetime | None = None, pages: int = PAGES
    ) -> bool:
        """As `sweep`, a few pages of each, beginning with the oldest. Returns whether it could have gone on."""
        more = False
        for sweeping, before in ((retention.sweeping_runs, runs), (retention.sweeping_facts, intake)):
            if before is not None:
                more |= (await self._swept(sweeping, before, False, pages)).after is not None
        return more

    async def _swept(
        self,
        sweeping: Callable[[Instant, Any], Body[retention.Swept]],
        before: datetime | None,
        dry_run: bool,
        pages: int | None = None,
    ) -> retention.Swept:
        total, took = retention.Swept(), retention.Swept()
        if before is None:
            return total
        space, at = await self._space(), down(before, what="before")
        for _ in count() if pages is None else range(pages):
            body = sweeping(at, took.after)
            took = await committed(space, _dry(body) if dry_run else body)
            total = total.plus(took)
            if took.after is None:
                break
        return replace(total, after=took.after)

    # --- inside ---------------------------------------------------------------------------------

    async def _page(self, asked: Query, limit: int, row_of: Callable[[Row], T]) -> tuple[list[T], str | None]:
        rows, more = listing.next_page(await self._look(asked), limit)
        return [row_of(row) for row in rows], more

    async def _look(self, asked: Query) -> list[Row]:
        (rows,) = await (await self._space()).look(asked)
        return list(rows)


def _dry(body: Body[T]) -> Body[T]:
    """The same without its writes."""

    def looking() -> Generator[Any, Any, Last[T]]:
        last = yield from body()
        return Last((), last.value)

    return looking
