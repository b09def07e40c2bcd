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
from typing import Any, TypeVar

from onefold.reflex import claim, execute, record
from onefold.reflex.definitions import Definitions
from onefold.reflex.execute import Ending, Landing, Setting
from onefold.reflex.seams import Effect, Transform
from onefold.reflex.tables import INTAKE, REFLEX_RUN, TASK
from onefold.reflex.watch import Loaded
from onefold.reflex.words import Policy, Reflex, task_id
from onefold.store.contract import Body, Done, Query, Row, Space
from onefold.terms.errors import HostError, OnefoldError
from onefold.terms.instant import Instant

T = TypeVar("T")
LEASE_MS = 60_000
"""How long a claim is good for: twice the usual timeout. A task that may take longer gets longer."""

TOGETHER = 256
"""Landings of one commit."""

GONE = execute.Raised("Its run is not in the store, so that nobody can say what it is of.")

_RUN, _VERSION = TASK.at["run"], TASK.at["version"]


@dataclass(slots=True)
class Acts:
    """What one engine has under way. unwritten: landings that the store could not take; a later advance writes them,
    if their tokens still count. left: effects past their time that have not ended yet. draining: nothing is claimed
    until nothing runs, so that a suspect comes to run alone, however much there is to do."""

    running: int = 0
    draining: bool = False
    unwritten: list[Landing] = field(default_factory=list)
    left: set[asyncio.Task[Any]] = field(default_factory=set)

    def ended(self, effect: asyncio.Task[Any]) -> None:
        """One that was left has ended after all; what it came to is nobody's."""
        self.left.discard(effect)
        if not effect.cancelled():
            effect.exception()


@dataclass(frozen=True, slots=True)
class _Attempt:
    row: Row
    policy: Policy
    emits: execute.Emits


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
        life: str | None = None,
    ) -> None:
        """life: of the node that this is, of a fleet: it goes with each claim."""
        self._life = life
        self._space, self._transform, self._effects = space, transform, effects
        self._definitions, self._loaded, self._acts, self._now = definitions, loaded, acts, now
        self._waiting, acts.unwritten = acts.unwritten, []
        self._writing: asyncio.Task[None] | None = None
        self._fault: OnefoldError | None = None
        self._told = Acted()
        self._loop = asyncio.get_running_loop()
        self._calls: dict[asyncio.Task[Any], _Attempt] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}  # by timeout, in ms
        self._all_ended = asyncio.Event()

    async def run(self, limit: int) -> Acted:
        """Claim what is due, as much as can start now, and see it through.

        Raises: HostError of a commit. Answers that it could not take are kept, and written by a later advance.
        """
        await self._write()
        beside = self._acts.running > 0
        busy = self._fault is not None or (beside and self._acts.draining)
        free = 0 if busy else max(0, limit - self._acts.running)
        self._acts.running += free  # nobody else fills these places while the claim is on its way
        try:
            if free and self._effects:
                claimed = await self._claimed(free, beside)
                if not claimed.suspect:  # beside which no place is free
                    self._acts.running -= free - len(claimed.run)
                    free = len(claimed.run)
                await self._see_through(claimed)
        finally:
            self._acts.running -= free
        if self._fault is not None:
            raise self._fault
        return self._told

    async def _claimed(self, free: int, beside: bool) -> claim.Claimed:
        (due,) = await self._space.look(claim.due(self._now, tuple(self._effects)))
        if not due:
            return claim.Claimed()
        token, effects = self._space.mint(TASK), claim.wanted(due)
        timeouts = self._definitions.timeouts
        claiming = claim.claiming(self._now, free, effects, token, LEASE_MS, timeouts, beside=beside, life=self._life)
        claimed = await committed(self._space, claiming)
        self._acts.draining = claimed.waits
        self._told.moved |= bool(claimed.run or claimed.spent)
        return claimed

    async def _see_through(self, claimed: claim.Claimed) -> None:
        for row in claimed.spent:
            self._land(execute.judged(row, Policy(), execute.Spent(), self._now))
            self._told.events.append(f"{_name(row)} was parked: it was claimed too often without an answer")
        try:
            for row, setting in await self._set(claimed.run):
                self._start(row, setting)
            if self._calls:
                await self._all_ended.wait()
        finally:
            self._leave(tuple(self._calls))
        if self._writing is not None:
            await self._writing

    async def _set(self, rows: Sequence[Row]) -> list[tuple[Row, Setting]]:
        """Each task with what it stands in. One whose definition this code does not read is left to an engine that
        does."""
        if not rows:
            return []
        keys = [(n,) for n in sorted({row[_RUN] for row in rows})]  # type: ignore[type-var]
        (found,) = await self._space.look(Query(REFLEX_RUN, on=REFLEX_RUN.key, keys=keys))
        runs = {run[0]: run for run in found}
        known = await self._definitions.of(self._space, {str(row[_VERSION]) for row in rows}, self._loaded)
        told = {version: reflex for version, reflex in known.items() if isinstance(reflex, str)}
        unread = [row for row in rows if str(row[_VERSION]) in told]
        if unread:
            await committed(self._space, claim.giving_back(unread, Instant(self._now + LEASE_MS)))
            self._told.events += [f"{_name(row)} was given back: {told[str(row[_VERSION])]}" for row in unread]
        settings: dict[object, Setting] = {}
        for row in rows:
            reflex = known[str(row[_VERSION])]
            if row[_RUN] not in runs:
                self._land(execute.judged(row, Policy(retry_max=0), GONE, self._now))
            elif isinstance(reflex, Reflex) and row[_RUN] not in settings:
                settings[row[_RUN]] = Setting(runs[row[_RUN]], reflex, self._now)
        return [(row, settings[row[_RUN]]) for row in rows if row[_RUN] in settings and str(row[_VERSION]) not in told]

    # --- one attempt ------------------------------------------------------------------------------

    def _start(self, row: Row, setting: Setting) -> None:
        """The only place from which anything leaves. Whatever it raises is an answer; whatever takes too long is left
        to end by itself, and its answer is nobody's.
        """
        emits = execute.Emits(row, self._now)
        reflex = setting.reflex
        try:
            given = self._transform(reflex.input, setting.env(row))
            effect = self._loop.create_task(_run(self._effects[reflex.effect], setting.attempt(row, emits), given))
        except Exception as fault:  # noqa: BLE001 - the door: a template that raises fails its own attempt
            emits.close()
            self._land(execute.judged(row, reflex.policy, execute.Raised(execute.words_of(fault)), self._now))
            return
        self._calls[effect] = _Attempt(row, reflex.policy, emits)
        effect.add_done_callback(self._ended)
        timeout = reflex.policy.timeout_ms
        if timeout not in self._timers:
            self._timers[timeout] = self._loop.call_later(timeout / 1000, self._expire, timeout)

    def _ended(self, effect: asyncio.Task[Any]) -> None:
        attempt = self._calls.pop(effect, None)
        if attempt is None:
            return  # its time was up before
        kept = attempt.emits.close()
        raised = None if effect.cancelled() else effect.exception()
        if effect.cancelled():
            self._judge(attempt, execute.Raised("It was cancelled from within."))
        elif raised is not None:
            self._judge(attempt, execute.Raised(execute.words_of(raised)))
        else:
            self._judge(attempt, execute.Returned(effect.result(), kept))

    def _expire(self, timeout: int) -> None:
        """All of one round began together, so that those of one timeout end together."""
        late = [(effect, one) for effect, one in self._calls.items() if one.policy.timeout_ms == timeout]
        self._leave([effect for effect, _ in late])
        for _, attempt in late:
            self._judge(attempt, execute.too_long(timeout))

    def _judge(self, attempt: _Attempt, ending: Ending) -> None:
        self._land(execute.judged(attempt.row, attempt.policy, ending, self._now))
        if not self._calls:
            self._all_ended.set()
            for timer in self._timers.values():
                timer.cancel()

    def _leave(self, effects: Sequence[asyncio.Task[Any]]) -> None:
        """Cancel them, and keep them until they have ended: what nobody holds may vanish half way."""
        for effect in effects:
            attempt = self._calls.pop(effect, None)
            if attempt is not None:
                attempt.emits.close()
            self._acts.left.add(effect)
            effect.add_done_callback(self._acts.ended)
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
            told = await committed(self._space, record.recording(some, self._now, lambda: self._space.mint(INTAKE)))
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


async def committed(space: Space, body: Body[T]) -> T:
    """What a body came to. Raises: what it was refused with; StoreUnavailable or its like where the outcome is not
    known: the stages look again and nothing is done twice.
    """
    outcome = await space.transact(body)
    if isinstance(outcome, Done):
        return outcome.value
    raise outcome.error


def _name(row: Row) -> str:
    return task_id(int(row[TASK.at["n"]] or 0))
