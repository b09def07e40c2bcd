"""The ground that every scenario of automations stands on: a clock moved by hand, spaces of each store, stubs.

`async with ground(store) as at:` gives `at`: engines over one store (`at.engine()`), definitions loaded, facts in,
`settle`, and the rows as dictionaries. Stub templates are JSON in which {"$": "fact.row.id"} reads a path.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from onefold.reflex.acting import committed
from onefold.reflex.engine import Engine
from onefold.reflex.grammar import parse
from onefold.reflex.load import LoadedSet, loading
from onefold.reflex.seams import Env, Task
from onefold.reflex.tables import INTAKE, LEDGER, REFLEX_RUN, STATE, TASK
from onefold.reflex.words import (
    ByHand,
    Json,
    OnClock,
    OnRun,
    OnSignal,
    OnWrite,
    Reflex,
    Report,
    Selection,
    Signal,
    Trigger,
    Write,
)
from onefold.store.contract import Last, Put, Query, Space, Table, World
from onefold.store.memory import MemoryWorld
from onefold.store.postgres import PostgresWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import Principal
from onefold.terms.instant import down
from tests.postgres import fresh_database

DEEP = bool(os.environ.get("ONEFOLD_DEEP"))
EVERY_STORE = ("memory", "sqlite", "postgres")
STORES = EVERY_STORE if DEEP else EVERY_STORE[:2]
# why: most scenarios decide over rows, which the store's own suite holds on Postgres. Where commits, reads and effects
# overlap they run on every store always.
T0 = datetime(2026, 3, 1, tzinfo=UTC)
ROUNDS = 200  # advances after which a scenario that still moves never rests
SHARED = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a folder of one test, gone at its end
LONGEST_S = 20.0
Failpoint = Callable[[str], None]


# --- stubs ------------------------------------------------------------------------------------------


def shape(template: Json, env: Env) -> Json:
    """{"$": "row.id"} reads a path, {"$raise": why} raises, anything else is itself."""
    if isinstance(template, Mapping):
        if set(template) == {"$"}:
            return _path(template["$"], env)
        if set(template) == {"$raise"}:
            raise BadArguments([Fault("$", template["$raise"])])
        return {key: shape(value, env) for key, value in template.items()}
    return [shape(item, env) for item in template] if isinstance(template, list) else template


def _path(path: str, env: Env) -> Json:
    value: Json = env
    for word in path.split("."):
        if not isinstance(value, Mapping) or word not in value:
            raise BadArguments([Fault(path, "there is nothing there")])
        value = value[word]
    return value


@dataclass
class Rows:
    """A selection: rows by the name in its query, and who asked for what. `down`: what it raises meanwhile."""

    tables: dict[str, list[Any]] = field(default_factory=dict)
    asked: list[tuple[Json, Principal]] = field(default_factory=list)
    down: Exception | None = None

    async def __call__(self, query: Json, principal: Principal, now: datetime) -> AsyncIterator[Any]:
        self.asked.append((query, principal))
        if self.down is not None:
            raise self.down
        for row in self.tables[query["from"]]:
            yield row


@dataclass
class Act:
    """An effect that keeps what it was given. `does`: what it does instead of giving its input back."""

    name: str = "act"
    writes: Sequence[str] | None = ()
    does: Callable[[Task, Json], Any] | None = None
    inputs: list[Json] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)

    async def run(self, task: Task, input: Json) -> Json:
        self.inputs.append(input)
        self.tasks.append(task)
        if self.does is None:
            return input
        given = self.does(task, input)
        return await given if hasattr(given, "__await__") else given

    def show(self, input: Json) -> str | None:
        return f"{self.name} {input}"


# --- reflexes ---------------------------------------------------------------------------------------


WORDS = {"overlap": "overlap", "catch_up": "catchUp", "order": "order", "timeout_ms": "timeoutMs", "late_ms": "lateMs"}
RETRY = {"retry_max": "max", "backoff": "backoff", "base_ms": "baseMs"}


def reflex(
    id: str,
    on: Trigger | Mapping[str, Any],
    *,
    effect: str = "act",
    input: Json = None,
    principal: Principal = None,
    select: Selection | None = None,
    when: Json | None = None,
    params: Json = None,
    enabled: bool = True,
    **policy: Any,
) -> Reflex:
    """A reflex, read from its definition. `on` may be a clock's clause; `policy` has the words of `Policy`."""
    definition: dict[str, Any] = {"id": id, "intent": "It is there to be tested.", "on": _on(on), "enabled": enabled}
    definition["effect"] = {"name": effect} if input is None else {"name": effect, "input": input}
    optional = {"as": principal, "when": when, "params": params}
    definition |= {word: value for word, value in optional.items() if value is not None}
    if select is not None:
        key = {} if select.unit_key is None else {"unitKey": select.unit_key}
        definition["select"] = {"query": select.query, "mode": select.mode, **key}
    told = {WORDS[name]: value for name, value in policy.items() if name in WORDS}
    retry = {RETRY[name]: value for name, value in policy.items() if name in RETRY}
    if told or retry:
        definition["policy"] = {**told, "retry": retry} if retry else told
    return parse(definition)


def _on(on: Trigger | Mapping[str, Any]) -> dict[str, Any]:
    match on:
        case OnWrite(entity, op):
            return {"fact": {"entity": entity} if op is None else {"entity": entity, "op": op}}
        case OnSignal(name):
            return {"fact": {"signal": name}}
        case OnRun(other):
            return {"fact": {"run": other}}
        case ByHand():
            return {"manual": {}}
        case OnClock(clause):
            return {"clock": dict(clause)}
        case _:
            return {"clock": dict(on)}


# --- the ground -------------------------------------------------------------------------------------


class At:
    """One store, the engines over it, and the time it is."""

    def __init__(self, open_world: Callable[[Failpoint | None], World]) -> None:
        self._open_world = open_world
        self.world: World = open_world(None)
        self.now = T0
        self.store = ""
        self.transform = shape
        self.rows = Rows()
        self.acts: dict[str, Act] = {"act": Act()}
        self.engines: list[Engine] = []

    async def space(self) -> Space:
        return await self.world.open("main", [LEDGER])

    async def reopen(self, failpoint: Failpoint | None = None) -> None:
        """The process ended; another one opens the same rows."""
        self.world.abandon()
        self.world = self._open_world(failpoint)

    def another_world(self) -> World:
        """Over the same rows, beside the one that is open."""
        return self._open_world(None)

    @property
    def act(self) -> Act:
        return self.acts["act"]

    async def engine(self, **given: Any) -> Engine:
        """An engine of its own over the one store. What is given stands in for the stubs."""
        parts = {"transform": shape, "select": self.rows, "effects": self.acts, **given}
        engine = Engine(await self.space(), **parts)
        self.engines.append(engine)
        return engine

    def later(self, **delta: float) -> datetime:
        self.now += timedelta(**delta)
        return self.now

    async def load(self, engine: Engine, reflexes: Iterable[Reflex], at: datetime | None = None) -> None:
        """Arm these, and nothing else, at an instant (now where none is given)."""
        held = list(reflexes)
        begins = down(self.now if at is None else at)
        generation = await committed(await self.space(), loading(held, begins))
        await engine.adopt(LoadedSet(held, generation))

    async def signal(self, engine: Engine, name: str = "ping", payload: Json = None, **given: Any) -> str:
        principal = given.pop("principal", None)
        return (await engine.ingest(Signal(name, payload, **given), principal, now=self.now)).id

    async def write(self, engine: Engine, entity: str, row: Json, op: Any = "insert", **given: Any) -> str:
        principal = given.pop("principal", None)
        return (await engine.ingest(Write(entity, op, row, **given), principal, now=self.now)).id

    async def settle(self, engine: Engine, now: datetime | None = None) -> list[Report]:
        """Advance until only time can help."""
        if now is not None:
            self.now = now
        reports = []
        for _ in range(ROUNDS):
            reports.append(await engine.advance(self.now))
            if not reports[-1].moved:
                return reports
        raise AssertionError(f"it still moves after {ROUNDS} advances")

    async def pass_until(self, engine: Engine, end: datetime) -> None:
        """Let time pass as a driver would: from one due instant to the next."""
        for _ in range(100_000):
            await self.settle(engine)
            due = await engine.next_due(self.now)
            if due is None or due > end:
                break
            assert due > self.now, "a driver would spin"
            self.now = due
        await self.settle(engine, max(end, self.now))

    async def table(self, table: Table, **where: Any) -> list[dict[str, Any]]:
        """Rows as dictionaries, in the order of their key."""
        (rows,) = await (await self.space()).look(Query(table, order=table.key))
        found = [dict(zip(table.at, row, strict=True)) for row in rows]
        return [row for row in found if all(row[name] == value for name, value in where.items())]

    async def runs(self, **where: Any) -> list[dict[str, Any]]:
        return await self.table(REFLEX_RUN, **where)

    async def tasks(self, **where: Any) -> list[dict[str, Any]]:
        return await self.table(TASK, **where)

    async def facts(self, **where: Any) -> list[dict[str, Any]]:
        return await self.table(INTAKE, **where)

    async def state(self, id: str) -> dict[str, Any]:
        (row,) = await self.table(STATE, reflex=id)
        return row

    async def put_fact(self, n: int, **cells: Any) -> None:
        """Write a fact's row by hand."""
        await self._put(INTAKE, n, cells)

    async def put_run(self, n: int, **cells: Any) -> None:
        await self._put(REFLEX_RUN, n, cells)

    async def _put(self, table: Table, n: int, cells: dict[str, Any]) -> None:
        (before,) = await self.table(table, n=n)

        def body() -> Any:
            yield ()
            return Last((Put(table, [tuple({**before, **cells}.values())]),), None)

        await (await self.space()).transact(body)

    async def hold_before_commit(self, engine: Engine, act: Callable[[], Any]) -> None:
        """Have `act` done after this engine has decided, and before what it decided is committed."""
        space = await self.space()

        class Holding:
            name = space.name
            mint, look, join, far = space.mint, space.look, space.join, space.far

            async def transact(self, body: Any) -> Any:
                engine._parts.space = space  # type: ignore[union-attr]
                await act()
                return await space.transact(body)

        parts = await engine._opened()
        parts.space = Holding()

    async def put_state(self, id: str, **cells: Any) -> None:
        """Write a row of `state` by hand, as older code or another process may have left it."""
        before = await self.table(STATE, reflex=id)
        row = {**(before[0] if before else {"reflex": id}), **cells}

        def body() -> Any:
            yield ()
            return Last((Put(STATE, [tuple(row.get(name) for name in STATE.at)]),), None)

        await (await self.space()).transact(body)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Let everything go on until it holds. Ends what would never end."""
    for _ in range(int(LONGEST_S * 1_000)):
        if await condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came to hold")


@asynccontextmanager
async def ground(store: str) -> AsyncIterator[At]:
    """A store of this kind, empty, and gone at the end."""
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        at = At(opener(store, Path(folder), lambda: down(at.now)))
        at.store = store
        try:
            yield at
        finally:
            at.world.abandon()


def opener(store: str, folder: Path, clock: Callable[[], int]) -> Callable[[Failpoint | None], World]:
    if store == "sqlite":
        return lambda failpoint: SqliteWorld(folder, clock=clock, failpoint=failpoint, durability="lossy-on-power-cut")
    if store == "postgres":
        url = fresh_database()
        return lambda failpoint: PostgresWorld(url, failpoint=failpoint, durability="lossy-on-power-cut")
    kept = MemoryWorld(clock=clock)
    return lambda failpoint: MemoryWorld(clock=clock, failpoint=failpoint, over=kept)


__all__ = ["STORES", "T0", "Act", "At", "ByHand", "Rows", "ground", "reflex", "shape"]
