"""reflex.acting - claimed tasks are run at once, each against its time, and each is written down as soon as it ends.

For: the one door through which anything leaves: template, effect, timeout; and landings that share a commit with
whichever neighbours ended meanwhile.
Never: runs what was not claimed; waits for an effect that is past its time; decides what becomes of a task.
Was wrong once: a batch claimed together and run one after another. The last lease had lapsed before its task began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onefold.reflex import claim, execute, record
from onefold.reflex.definitions import Definitions
from onefold.reflex.execute import Ending, Landing
from onefold.reflex.seams import Effect, Transform
from onefold.reflex.tables import INTAKE, REFLEX_RUN, TASK
from onefold.reflex.watch import Loaded
from onefold.reflex.words import Policy, Reflex, task_id
from onefold.store.contract import Body, Done, Query, Row, Space
from onefold.terms.errors import HostError, OnefoldError
from onefold.terms.instant import Instant

LEASE_MS = 60_000
"""How long a claim is good for: twice the usual timeout. A task that may take longer gets longer."""

TOGETHER = 256
"""Landings of one commit."""


@dataclass(slots=True)
class Acts:
    """What one engine has under way. unwritten: landings that the store could not take; a later advance writes them,
    if their tokens still count. left: effects past their time that have not ended yet."""

    running: int = 0
    unwritten: list[Landing] = field(default_factory=list)
    left: set[asyncio.Task[Any]] = field(default_factory=set)


@dataclass(slots=True)
class Acted:
    """What came of it. `executed`: tasks that were written down."""

    executed: int = 0
    settled: int = 0
    moved: bool = False
    events: list[str] = field(default_factory=list)


class Acting:
    """The tasks of one advance."""

    def __init__(
        self,
        space: Space,
        transform: Transform,
        effects: Mapping[str, Effect],
        definitions: Definitions,
        loaded: Loaded | None,
        acts: Acts,
        now: Instant,
    ) -> None:
        self._space, self._transform, self._effects = space, transform, effects
        self._definitions, self._loaded, self._acts, self._now = definitions, loaded, acts, now
        self._waiting, acts.unwritten = acts.unwritten, []
        self._writing: asyncio.Task[None] | None = None
        self._fault: OnefoldError | None = None
        self._told = Acted()

    async def run(self, limit: int) -> Acted:
        """Claim what is due, as much as can start now, and see it through.

        Raises: HostError of a commit. Answers that it could not take are kept, and written by a later advance.
        """
        await self._write()
        free = 0 if self._fault is not None else max(0, limit - self._acts.running)
        self._acts.running += free  # nobody else fills these places while the claim is on its way
        try:
            if free and self._effects:
                claimed = await self._claimed(free)
                self._acts.running -= free - len(claimed.run)
                free = len(claimed.run)
                await self._see_through(claimed)
        finally:
            self._acts.running -= free
        if self._fault is not None:
            raise self._fault
        return self._told

    async def _claimed(self, free: int) -> claim.Claimed:
        token = self._space.mint(TASK)
        timeouts = self._definitions.timeouts
        claiming = claim.claiming(self._now, free, tuple(self._effects), token, LEASE_MS, timeouts)
        claimed: claim.Claimed = await _committed(self._space, claiming)
        self._told.moved |= bool(claimed.run or claimed.spent)
        return claimed

    async def _see_through(self, claimed: claim.Claimed) -> None:
        for row in claimed.spent:
            self._land(execute.judged(row, Policy(), execute.Spent(), self._now))
            self._told.events.append(f"{_name(row)} was parked: it was claimed too often without an answer")
        if claimed.run:
            keys = [(n,) for n in sorted({row[TASK.at["run"]] for row in claimed.run})]  # type: ignore[type-var]
            (found,) = await self._space.look(Query(REFLEX_RUN, on=REFLEX_RUN.key, keys=keys))
            runs = {run[0]: run for run in found}
            versions = {str(row[TASK.at["version"]]) for row in claimed.run}
            known = await self._definitions.of(self._space, versions, self._loaded)
            unread = [row for row in claimed.run if isinstance(known[str(row[TASK.at["version"]])], str)]
            if unread:
                await self._give_back(unread, str(known[str(unread[0][TASK.at["version"]])]))
            await asyncio.gather(
                *(
                    self._one(row, runs[row[TASK.at["run"]]], reflex)
                    for row in claimed.run
                    if isinstance(reflex := known[str(row[TASK.at["version"]])], Reflex)
                )
            )
        if self._writing is not None:
            await self._writing

    async def _give_back(self, rows: Sequence[Row], why: str) -> None:
        """Tasks whose definition this code does not read are left to an engine that does."""
        await _committed(self._space, claim.giving_back(rows, Instant(self._now + LEASE_MS)))
        self._told.events.extend(f"{_name(row)} was given back: {why}" for row in rows)

    # --- one attempt ------------------------------------------------------------------------------

    async def _one(self, row: Row, run: Row, reflex: Reflex) -> None:
        emits = execute.Emits(row, self._now)
        ending = await self._ending(row, run, reflex, emits)
        kept = emits.close()
        if isinstance(ending, execute.Returned):
            ending = execute.Returned(ending.output, kept)
        self._land(execute.judged(row, reflex.policy, ending, self._now))

    async def _ending(self, row: Row, run: Row, reflex: Reflex, emits: execute.Emits) -> Ending:
        """The only place from which anything leaves. Whatever it raises is an answer; whatever takes too long is left
        to end by itself, and its answer is nobody's."""
        try:
            given = self._transform(reflex.input, execute.env_of(row, run, reflex, self._now))
            attempt = execute.attempt_of(row, run, self._now, emits)
            effect = asyncio.create_task(_run(self._effects[reflex.effect], attempt, given))
        except Exception as fault:  # noqa: BLE001 - the door: a template that raises fails its own attempt
            return execute.Raised(execute.words_of(fault))
        try:
            await asyncio.wait((effect,), timeout=reflex.policy.timeout_ms / 1000)
        finally:
            if not effect.done():
                self._leave(effect)
        if not effect.done():
            return execute.too_long(reflex.policy.timeout_ms)
        if effect.cancelled():
            return execute.Raised("It was cancelled from within.")
        raised = effect.exception()
        return execute.Returned(effect.result()) if raised is None else execute.Raised(execute.words_of(raised))

    def _leave(self, effect: asyncio.Task[Any]) -> None:
        """Cancel it, and keep it until it has ended: what nobody holds may vanish half way."""

        def ended(task: asyncio.Task[Any]) -> None:
            self._acts.left.discard(task)
            if not task.cancelled():
                task.exception()

        self._acts.left.add(effect)
        effect.add_done_callback(ended)
        effect.cancel()

    # --- writing down -------------------------------------------------------------------------------

    def _land(self, landing: Landing) -> None:
        self._waiting.append(landing)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        """Write down what has landed, until nothing waits. Who ends in the same turn of the loop comes along."""
        while self._waiting:
            await asyncio.sleep(0)
            some, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
            await self._record(some)

    async def _record(self, some: Sequence[Landing]) -> None:
        try:
            told = await _committed(self._space, record.recording(some, self._now, lambda: self._space.mint(INTAKE)))
        except HostError as fault:
            self._acts.unwritten.extend(some)
            self._fault = fault
            return
        except OnefoldError as fault:
            if len(some) == 1:
                self._told.events.append(f"{task_id(some[0].task)} could not be written down: {fault}")
                return
            for landing in some:  # one that cannot be written takes no neighbour with it
                await self._record([landing])
            return
        self._told.executed += len(told.kept)
        self._told.settled += len(told.settled)
        self._told.moved |= bool(told.kept)
        self._told.events.extend(f"{task_id(n)} answered too late: it is somebody else's by now" for n in told.late)


async def _run(effect: Effect, attempt: Any, given: Any) -> Any:
    return await effect.run(attempt, given)


async def _committed(space: Space, body: Body[Any]) -> Any:
    outcome = await space.transact(body)
    if isinstance(outcome, Done):
        return outcome.value
    raise outcome.error


def _name(row: Row) -> str:
    return task_id(int(row[TASK.at["n"]] or 0))
