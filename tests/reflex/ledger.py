"""A ledger with runs that are fanned out already, and the stages behind them by hand: claim, judge, record, retry.

For: what a scenario through the engine cannot order: a landing that comes late, two engines between two statements.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from onefold.reflex.claim import Claimed
from onefold.reflex.execute import Ending, Landing, Raised, Returned, Spent
from onefold.reflex.record import Recorded
from onefold.reflex.retention import PAGE, Swept
from onefold.reflex.tables import INTAKE, LEDGER, REFLEX_RUN, REFLEX_TEXT, STATE, TASK
from onefold.reflex.words import Cause, Overdue, Policy, Signal
from onefold.reflex.words import Write as Written
from onefold.store.contract import Append, Body, Cell, Query, Row, Space, Table, Write
from onefold.terms import codec
from onefold.terms.ids import Principal, principal_text
from onefold.terms.instant import Instant
from onefold.testing.broken.reflexes import Stages, committed
from onefold.testing.store_suite.ground import writing
from tests.reflex.stores import OPENINGS

T = TypeVar("T")
START = 1_767_225_600_000
STORES = tuple(OPENINGS)
PLAIN, SERIAL = "0" * 64, "5" * 64
ENV = codec.canonical({"key": "2026-01-01", "at": "2026-01-01T00:00:00Z"})


@asynccontextmanager
async def ledger_on(store: str, place: Path, stages: Stages | None = None) -> AsyncIterator[Ledger]:
    world = OPENINGS[store](place)()
    ledger = Ledger(await world.open("main", [LEDGER]), stages)
    try:
        yield ledger
    finally:
        await world.close()


class Ledger:
    """One engine's hands on a space. `now` is what it is told, in ms; move it as you like."""

    def __init__(self, space: Space, stages: Stages | None = None, now: int = START) -> None:
        self.space = space
        self.stages = stages or Stages()
        self.now = now
        self.policy = Policy(retry_max=2, backoff="fixed", base_ms=1_000)

    # --- rows -------------------------------------------------------------------------------

    async def commit(self, body: Body[T]) -> T:
        return await committed(self.space, body)

    async def write(self, *writes: Write) -> None:
        await self.commit(writing(*writes))

    async def rows(self, table: Table, **equal: Cell) -> list[dict[str, Any]]:
        """The rows whose columns equal these, by their number."""
        where = tuple((name, "=", value) for name, value in equal.items())
        (rows,) = await self.space.look(Query(table, where=where, order=(table.key[0],)))  # type: ignore[arg-type]
        return [dict(zip(table.at, row, strict=True)) for row in rows]

    async def tasks(self, **equal: Cell) -> list[dict[str, Any]]:
        return await self.rows(TASK, **equal)

    async def run(self, n: int) -> dict[str, Any]:
        return (await self.rows(REFLEX_RUN, n=n))[0]

    async def facts(self, **equal: Cell) -> list[dict[str, Any]]:
        return await self.rows(INTAKE, **equal)

    async def states(self, run: int) -> list[str]:
        """The state of each of a run's tasks, in their order."""
        return [task["state"] for task in await self.tasks(run=run)]

    async def arm(self, *reflexes: str, principal: Principal = None, generation: int = 1) -> None:
        """The rows of `state`, and the texts that tasks speak of."""
        whose = principal_text(principal)
        texts = {PLAIN: {}, SERIAL: {"policy": {"order": "serial", "timeoutMs": 90_000}}}
        await self.write(
            Append(STATE, [state_row("", gen=generation), *(state_row(r, principal=whose) for r in reflexes)], "keep"),
            Append(REFLEX_TEXT, [(version, codec.canonical(text)) for version, text in texts.items()], "keep"),
        )

    async def fan(
        self,
        units: Sequence[str],
        *,
        reflex: str = "r",
        serial: bool = False,
        principal: Principal = None,
        cause: str | None = None,
        **cells: Cell,
    ) -> int:
        """A run that was fanned out into these units."""
        n = self.space.mint(REFLEX_RUN)
        whose = principal_text(principal)
        version = SERIAL if serial else PLAIN
        known: dict[str, Cell] = {"n": n, "reflex": reflex, "principal": whose, "version": version, "total": len(units)}
        run = run_row(**(known | {"cause": cause or f"occurrence:{n}", "open": reflex} | cells))
        held = bool(await self.tasks(baton=reflex))
        tasks = []
        for unit in units:
            own: dict[str, Cell] = {"ready_at": self.now, "state": "ready"}
            if serial:
                own = {"state": "queued", "queue": reflex} if held else {**own, "baton": reflex}
                held = True
            mine: dict[str, Cell] = {
                "n": self.space.mint(TASK),
                "run": n,
                "unit": unit,
                "reflex": reflex,
                "version": version,
                "depth": cells.get("depth", 0),
            }
            tasks.append(task_row(**(mine | {"principal": whose, "at": self.now} | own)))
        await self.write(Append(REFLEX_RUN, [run]), Append(TASK, tasks))
        return n

    # --- stages -----------------------------------------------------------------------------

    @property
    def at(self) -> Instant:
        return Instant(self.now)

    async def claim(self, limit: int = 100, effects: Sequence[str] = ("do",)) -> Claimed:
        token = self.space.mint(TASK)
        return await self.stages.claim(self.space, self.at, limit, effects, token, {PLAIN: 30_000})

    def landing(self, task: Row, ending: Ending | None = None, *emitted: Signal | Written) -> Landing:
        """What an attempt leaves that ended so, having emitted these."""
        emits = self.stages.emits(task, self.at)
        for fact in emitted:
            emits(fact)
        return self.stages.judge(task, self.policy, Returned(None) if ending is None else ending, self.at, emits)

    async def record(self, *landings: Landing) -> Recorded:
        return await self.stages.record(self.space, landings, self.at)

    async def work(self, limit: int = 100, ending: Ending | None = None, *emitted: Signal | Written) -> list[str]:
        """Claim, let each end like this, record. Returns: the units that were run."""
        claimed = await self.claim(limit)
        spent = [self.landing(task, Spent()) for task in claimed.spent]
        await self.record(*(self.landing(task, ending, *emitted) for task in claimed.run), *spent)
        return [unit_of(task) for task in claimed.run]

    async def retry(self, n: int) -> bool:
        return await self.stages.retry(self.space, n, self.at)

    async def sweep_runs(self, before: int, limit: int = PAGE) -> Swept:
        """All pages of it."""
        return await self._pages(self.stages.sweep_runs, before, limit)

    async def sweep_facts(self, before: int, limit: int = PAGE) -> Swept:
        return await self._pages(self.stages.sweep_facts, before, limit)

    async def _pages(self, page: Any, before: int, limit: int) -> Swept:
        total, after = Swept(), None
        while True:
            swept: Swept = await page(self.space, Instant(before), after, limit)
            total, after = total.plus(swept), swept.after
            if after is None:
                return total

    async def explain(self, id: str, *principals: Principal) -> list[Cause]:
        """For anybody when no principal is named."""
        return await self.stages.explain(self.space, id, principals or None)

    async def overdue(self, *principals: Principal) -> list[Overdue]:
        return await self.stages.overdue(self.space, self.at, principals or None)


def unit_of(task: Row) -> str:
    return str(task[TASK.at["unit"]])


def number_of(task: Row) -> int:
    n = task[0]
    assert isinstance(n, int)
    return n


RAISED = Raised("ValueError: no")


def run_row(**cells: Cell) -> Row:
    """A run that was fanned out; any cell may be another."""
    known: dict[str, Cell] = {
        "n": 0, "reflex": "r", "cause": "occurrence:1", "principal": "-", "version": PLAIN, "state": "fanned",
        "note": None, "due_at": None, "tries": 0, "open": None, "occurred_at": START, "fact": None, "env": ENV,
        "depth": 0, "total": 0, "done": 0, "failed": 0, "drained": 0, "at": START, "settled_at": None, "tz": None,
    }  # fmt: skip
    return _row(REFLEX_RUN, known, cells)


def task_row(**cells: Cell) -> Row:
    known: dict[str, Cell] = {
        "n": 0, "run": 0, "unit": "u", "reflex": "r", "effect": "do", "version": PLAIN, "principal": "-",
        "state": "ready", "baton": None, "queue": None, "ready_at": None, "token": None, "claims": 0, "attempt": 0,
        "depth": 0, "row": None, "output": None, "error": None, "at": START, "ended_at": None, "holder": None,
    }  # fmt: skip
    return _row(TASK, known, cells)


def fact_row(**cells: Cell) -> Row:
    known: dict[str, Cell] = {
        "n": 0, "principal": "-", "dedupe": None, "due_at": None, "state": "delivered", "kind": "signal",
        "subject": "s", "op": None, "body": b'{"kind":"signal","name":"s","payload":null}', "at": START, "depth": 0,
        "released": 0, "cause": None, "note": None,
    }  # fmt: skip
    return _row(INTAKE, known, cells)


def state_row(reflex: str, **cells: Cell) -> Row:
    known: dict[str, Cell] = {
        "reflex": reflex, "principal": "-", "version": PLAIN, "enabled": 1, "armed_at": START, "watermark": None,
        "next_at": None, "gen": 1, "swept_at": None,
    }  # fmt: skip
    return _row(STATE, known, cells)


def _row(table: Table, known: dict[str, Cell], cells: dict[str, Cell]) -> Row:
    assert list(known) == [column.name for column in table.columns], table.name
    assert cells.keys() <= known.keys()
    return tuple({**known, **cells}.values())
