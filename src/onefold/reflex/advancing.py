"""reflex.advancing - the stages of one advance, one after another: what waits for a store, a selection or an effect.

For: asking what is due, deciding over it outside any transaction, and committing what was decided.
Never: decides anything itself (the stages' pure files do); reads a clock; holds what matters between two commits.
Was wrong once: `when` and selection inside the transaction. One slow query held the writer of everybody.

Several engines may advance over one store, and one engine several times at once: whatever was decided is checked
again under lock, and what somebody else did meanwhile is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from onefold.reflex import backfill, birth, fanout, intake, match, materialize, watch
from onefold.reflex.acting import Acting, Acts, committed
from onefold.reflex.backlog import Backlog
from onefold.reflex.definitions import Definitions
from onefold.reflex.fanout import Fan, Unit
from onefold.reflex.seams import Effect, Select, Transform, truthy
from onefold.reflex.tables import INTAKE, REFLEX_RUN, STATE, TASK
from onefold.reflex.watch import Loaded
from onefold.reflex.words import Fact, Reflex, Report, fact_id
from onefold.store.contract import Query, Row, Space
from onefold.terms.errors import CallerError, OnefoldError
from onefold.terms.faults import says
from onefold.terms.ids import principal_of
from onefold.terms.instant import Instant, moment

T = TypeVar("T")
LATE_S = 2.0
"""How long selections may take before an advance claims nothing any more. A lease counts from its now: a task that is
claimed long after it would be somebody else's before its time is up."""

SELECTING = 8
"""Selections under way at once: each holds a connection to somebody's database."""


@dataclass(slots=True)
class Parts:
    """What an engine stands on, for all its advances. armed: since when each reflex is, in ms, by generation. fanning:
    runs that one of its advances is selecting for, so that no other asks the same database the same."""

    space: Space
    transform: Transform
    select: Select | None
    effects: Mapping[str, Effect]
    ceiling: int
    backlog: Backlog
    loaded: Loaded | None = None
    armed: tuple[int, dict[str, int]] = (0, {})
    fanning: set[object] = field(default_factory=set)
    definitions: Definitions = field(default_factory=Definitions)
    acts: Acts = field(default_factory=Acts)
    life: Callable[[], str | None] = lambda: None


class Advance:
    """One committed increment."""

    def __init__(self, parts: Parts, now: Instant, limit: int) -> None:
        self._parts, self._now, self._limit = parts, now, limit
        self._space = parts.space
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._events: list[str] = []
        self._counts: dict[str, int] = {}
        self._moved = False
        self._behind = False

    async def run(self) -> Report:
        """Materialize, match, fan out, then claim, execute and record. Raises: HostError; what is committed stays."""
        loaded = self._parts.loaded
        if loaded is not None and loaded.by_id:
            clocks, facts, newest = await self._space.look(
                materialize.due(self._now, self._limit), match.due(self._now, self._limit), watch.newest()
            )
            if watch.is_newest(loaded, newest):
                await self._materialize(loaded, clocks)
                await self._match(loaded, facts)
            else:
                self._behind = True
                self._events.append(watch.behind(loaded, newest))
        await self._let_go()
        await self._fan_out()
        if self._loop.time() - self._began < LATE_S:
            await self._act()
        else:
            self._moved = (
                True  # for whoever drives: there may be tasks, and this advance's now is none to claim them by
            )
        return Report(self._moved, **self._counts, events=tuple(self._events), behind=self._behind)

    # --- the clock and the facts ----------------------------------------------------------------

    async def _materialize(self, loaded: Loaded, rows: Sequence[Row]) -> None:
        if not rows:
            return
        body = materialize.materializing(loaded, rows, self._now, self._mint(REFLEX_RUN))
        moved = await committed(self._space, body)
        self._count("materialized", moved.runs)
        self._moved |= moved.changed

    async def _match(self, loaded: Loaded, rows: Sequence[Row]) -> None:
        if not rows:
            self._parts.backlog.matched(0, more=False)
            return
        facts = [_read(row) for row in rows]
        armed = await self._armed(loaded, [fact for fact in facts if isinstance(fact, Fact)])
        decided = [self._heard(loaded, row, fact, armed) for row, fact in zip(rows, facts, strict=True)]
        body = match.matching(loaded, decided, self._now, self._parts.ceiling, self._mint(REFLEX_RUN))
        matched = await committed(self._space, body)
        self._parts.backlog.matched(matched.facts, more=len(rows) >= self._limit)
        self._count("matched", matched.facts)
        self._moved |= matched.facts > 0
        self._events.extend(matched.parked)

    def _heard(self, loaded: Loaded, row: Row, fact: Fact | str, armed: Mapping[str, int]) -> match.Heard:
        """Who hears a fact. One that cannot be read stops no other: it waits for a person."""
        if isinstance(fact, str):
            return match.unread(row, fact)
        return match.Heard(fact.n, fact, self._wakes(loaded, fact, armed))

    def _wakes(self, loaded: Loaded, fact: Fact, armed: Mapping[str, int]) -> tuple[Reflex, ...]:
        return tuple([reflex for reflex in match.candidates(loaded, fact, armed) if self.why_not(reflex, fact) is None])

    def why_not(self, reflex: Reflex, fact: Fact) -> str | None:
        """Why its `when` lets a fact not pass, None where it does. One that raises lets nothing pass, and is told of."""
        if reflex.when is None:
            return None
        env = birth.environment(reflex.params, birth.of_a_fact(fact.body), self._now)
        try:
            return None if truthy(self._parts.transform(reflex.when, env)) else "its `when` does not let this fact pass"
        except Exception as fault:  # noqa: BLE001 - the door: whatever a template raises, the other reflexes hear the fact
            why = f"its `when` failed: {_said(fault)}"
            self._events.append(f"{reflex.id} did not hear {fact_id(fact.n)}: {why}")
            return why

    async def _armed(self, loaded: Loaded, facts: Sequence[Fact]) -> Mapping[str, int]:
        """Since when each reflex is armed that may hear these. Asked once for each, as long as the set is the same."""
        generation, armed = self._parts.armed
        if generation != loaded.generation:
            armed = {}
            self._parts.armed = (loaded.generation, armed)
        watching = {r.id for fact in facts for r in loaded.watching(fact.kind, fact.subject, fact.principal)}
        unknown = sorted(watching - armed.keys())
        if unknown:
            (rows,) = await self._space.look(Query(STATE, on=STATE.key, keys=[(id,) for id in unknown]))
            armed |= {str(row[STATE.at["reflex"]]): int(row[STATE.at["armed_at"]]) for row in rows}
        return armed

    # --- fan-out ----------------------------------------------------------------------------------

    async def _let_go(self) -> None:
        """Of each reflex whose past was asked for, the next occurrence in its queue, if nothing of it is open."""
        (waiting,) = await self._space.look(backfill.queued(self._limit))
        if waiting:
            self._moved |= await committed(self._space, backfill.letting(waiting, self._now)) > 0

    async def _fan_out(self) -> None:
        mine = self._parts.fanning
        (found,) = await self._space.look(fanout.due(self._now, self._limit + len(mine)))
        runs = [run for run in found if run[0] not in mine][: self._limit]
        mine.update(run[0] for run in runs)
        try:
            await self._fan_all(runs)
        finally:
            mine.difference_update(run[0] for run in runs)

    async def _fan_all(self, runs: Sequence[Row]) -> None:
        if not runs:
            return
        version = REFLEX_RUN.at["version"]
        found = await self._parts.definitions.of(self._space, {str(run[version]) for run in runs}, self._parts.loaded)
        gate = asyncio.Semaphore(min(SELECTING, self._limit))
        fans = await _all(lambda run: self.fan(run, found[str(run[version])], gate), runs)
        for some in fanout.gathered(fans):
            mints = (self._mint(TASK), self._mint(INTAKE))
            fanned = await committed(self._space, fanout.fanning(some, self._now, *mints))
            self._count("fanned", fanned.runs)
            self._count("settled", fanned.settled)
            self._events.extend(fanned.events)
            self._moved |= bool(fanned.runs or fanned.events)

    async def fan(self, run: Row, reflex: Reflex | str, gate: asyncio.Semaphore) -> Fan:
        """The units of a run. What would be wrong again is skipped; whatever else a seam raises is tried again."""
        if isinstance(reflex, str):
            return Fan(run, None, put_off=reflex)
        try:
            seen = birth.pinned(run)
            if reflex.select is None:
                return Fan(run, reflex, fanout.without_selection(seen.get("fact")))
            async with gate:
                return Fan(
                    run, reflex, await self._selected(run, reflex, birth.environment(reflex.params, seen, self._now))
                )
        except (fanout.NeverFans, CallerError) as never:
            return Fan(run, reflex, skipped=str(never))
        except Exception as fault:  # noqa: BLE001 - the door: a database that has a bad minute puts one run off, and no other
            return Fan(run, reflex, put_off=_said(fault))

    async def _selected(self, run: Row, reflex: Reflex, env: Mapping[str, Any]) -> tuple[Unit, ...]:
        """Row by row, so that a selection that never ends is left in time."""
        if self._parts.select is None:
            raise fanout.NeverFans("it has a selection, and this engine was given none to ask")
        assert reflex.select is not None
        query = self._parts.transform(reflex.select.query, env)
        principal = principal_of(str(run[REFLEX_RUN.at["principal"]]))
        rows = fanout.Rows(reflex)
        given = self._parts.select(query, principal, moment(self._now))
        try:
            async for row in given:
                rows.take(row)
        finally:
            if isinstance(given, AsyncGenerator):
                await given.aclose()  # lets go of its connection
        return rows.units()

    # --- effects ----------------------------------------------------------------------------------

    async def _act(self) -> None:
        parts = self._parts
        acting = Acting(
            self._space,
            parts.transform,
            parts.effects,
            parts.definitions,
            parts.loaded,
            parts.acts,
            self._now,
            parts.life(),
        )
        acted = await acting.run(self._limit)
        self._count("executed", acted.executed)
        self._count("settled", acted.settled)
        self._events.extend(acted.events)
        self._moved |= acted.moved

    # --- what all stages use ------------------------------------------------------------------------

    def _mint(self, table: Any) -> Callable[[], int]:
        return lambda: self._space.mint(table)

    def _count(self, what: str, by: int) -> None:
        self._counts[what] = self._counts.get(what, 0) + by


def _read(row: Row) -> Fact | str:
    """The fact of a row, or why nobody here can read it."""
    try:
        return intake.fact_of(row)
    except OnefoldError as damaged:
        return str(damaged)


async def _all(act: Callable[[Any], Awaitable[T]], items: Sequence[Any]) -> list[T]:
    return list(await asyncio.gather(*(act(item) for item in items)))


def _said(fault: BaseException) -> str:
    """One line of an exception, for a note."""
    told = " ".join(says(fault).split())[:300]
    return f"{type(fault).__name__}: {told}" if told else type(fault).__name__
