"""The ground that every scenario of automations stands on: a clock moved by hand, spaces of each store, stubs.

`async with ground(store) as at:` gives `at`: engines over one store (`at.engine()`), definitions loaded, facts in,
`settle`, and the rows as dictionaries. Stub templates are JSON in which {"$": "fact.row.id"} reads a path.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from onefold.almanac import START, clock_rule
from onefold.reflex.engine import Engine
from onefold.reflex.seams import Env, Task
from onefold.reflex.tables import INTAKE, LEDGER, REFLEX_RUN, REFLEX_TEXT, STATE, TASK
from onefold.reflex.watch import SET
from onefold.reflex.words import (
    ByHand,
    Json,
    OnClock,
    OnRun,
    OnSignal,
    OnWrite,
    Policy,
    Reflex,
    Report,
    Selection,
    Signal,
    Trigger,
    Write,
)
from onefold.store.contract import Last, Put, Query, Space, Table, World
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms import codec
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import Principal, principal_text
from onefold.terms.instant import down

STORES = ("memory", "sqlite")
T0 = datetime(2026, 3, 1, tzinfo=UTC)
ROUNDS = 200  # advances after which a scenario that still moves never rests
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
    """A reflex as the grammar would give it. `on` may be a clock's clause."""
    trigger = OnClock(on, clock_rule(on)) if isinstance(on, Mapping) else on
    definition = {"id": id, "on": repr(on), "effect": effect, "input": input, "policy": repr(sorted(policy.items()))}
    version = codec.digest(codec.canonical({**definition, "when": when, "select": repr(select)})).hex()
    told = {"params": {} if params is None else params, "select": select, "when": when, "enabled": enabled}
    return Reflex(
        id, "It is there to be tested.", principal, trigger, effect, input, definition, version,
        policy=Policy(**policy), **told,
    )  # fmt: skip


@dataclass(frozen=True)
class Held:
    """A set as `load` gives it."""

    generation: int
    by_id: Mapping[str, Reflex]

    def watching(self, kind: str, subject: str, principal: Principal) -> list[Reflex]:
        return [one for one in self.by_id.values() if one.principal == principal and _hears(one.on, kind, subject)]

    def definition(self, version: str) -> Reflex | None:
        return next((one for one in self.by_id.values() if one.version == version), None)


def _hears(on: Trigger, kind: str, subject: str) -> bool:
    match on:
        case OnWrite(entity):
            return (kind, subject) == ("write", entity)
        case OnSignal(name):
            return (kind, subject) == ("signal", name)
        case OnRun(other):
            return (kind, subject) == ("run", other)
        case _:
            return False


# --- the ground -------------------------------------------------------------------------------------


class At:
    """One store, the engines over it, and the time it is."""

    def __init__(self, open_world: Callable[[Failpoint | None], World]) -> None:
        self._open_world = open_world
        self.world: World = open_world(None)
        self.now = T0
        self.rows = Rows()
        self.acts: dict[str, Act] = {"act": Act()}
        self.generation = 0
        self.engines: list[Engine] = []

    async def space(self) -> Space:
        return await self.world.open("main", [LEDGER])

    async def reopen(self, failpoint: Failpoint | None = None) -> None:
        """The process ended; another one opens the same rows."""
        self.world.abandon()
        self.world = self._open_world(failpoint)

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
        at_ms = down(self.now if at is None else at)
        held = {one.id: one for one in sorted(reflexes, key=lambda one: one.id)}
        self.generation += 1
        (known,) = await (await self.space()).look(Query(STATE))
        before = {row[0]: dict(zip(STATE.at, row, strict=True)) for row in known}
        rows: list[Any] = [_state(SET, 0, at_ms, None, self.generation)]
        for one in held.values():
            rows.append(_armed(one, before.get(one.id), at_ms, self.generation))
        rows += [(*(r | {"next_at": None}).values(),) for id, r in before.items() if id and id not in held]
        texts = [(one.version, codec.canonical(dict(one.definition))) for one in held.values()]

        def body() -> Any:
            yield ()
            return Last((Put(STATE, rows), Put(REFLEX_TEXT, texts)), None)

        await (await self.space()).transact(body)
        await engine.adopt(Held(self.generation, held))

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
        (before,) = await self.table(INTAKE, n=n)

        def body() -> Any:
            yield ()
            return Last((Put(INTAKE, [tuple({**before, **cells}.values())]),), None)

        await (await self.space()).transact(body)

    async def hold_before_commit(self, engine: Engine, act: Callable[[], Any]) -> None:
        """Have `act` done after this engine has decided, and before what it decided is committed."""
        space = await self.space()

        class Holding:
            name = space.name
            mint, look, join = space.mint, space.look, space.join

            async def transact(self, body: Any) -> Any:
                engine._parts.space = space  # type: ignore[union-attr]
                await act()
                return await space.transact(body)

        parts = await engine._opened()
        parts.space = Holding()  # type: ignore[assignment]

    async def put_state(self, id: str, **cells: Any) -> None:
        """Write a row of `state` by hand, as older code or another process may have left it."""
        before = await self.table(STATE, reflex=id)
        row = {**(before[0] if before else {"reflex": id}), **cells}

        def body() -> Any:
            yield ()
            return Last((Put(STATE, [tuple(row.get(name) for name in STATE.at)]),), None)

        await (await self.space()).transact(body)


def _state(id: str, enabled: int, at: int, clock: Any, generation: int) -> tuple[Any, ...]:
    given = {"reflex": id, "principal": "-", "version": "", "enabled": enabled, "armed_at": at, "gen": generation}
    mark, next_at = clock or (None, None)
    given |= {"watermark": mark, "next_at": next_at}
    return tuple(given.get(name) for name in STATE.at)


def _armed(one: Reflex, before: dict[str, Any] | None, at: int, generation: int) -> tuple[Any, ...]:
    clock = None
    if isinstance(one.on, OnClock):
        last = one.on.rule.latest(at)  # type: ignore[arg-type]
        mark = START if last is None else last.key
        if before is not None and before["gen"] == generation - 1 and before["watermark"] is not None:
            mark = before["watermark"]
        coming = one.on.rule.next(mark)
        clock = (mark, None if coming is None else coming.at)
    armed = before["armed_at"] if before and before["gen"] == generation - 1 and before["enabled"] else at
    row = list(_state(one.id, int(one.enabled), armed, clock, generation))
    row[STATE.at["principal"]], row[STATE.at["version"]] = principal_text(one.principal), one.version
    return tuple(row)


@asynccontextmanager
async def ground(store: str) -> AsyncIterator[At]:
    """A store of this kind, empty, and gone at the end."""
    with tempfile.TemporaryDirectory() as folder:
        at = At(_opener(store, Path(folder), lambda: down(at.now)))
        try:
            yield at
        finally:
            at.world.abandon()


def _opener(store: str, folder: Path, clock: Callable[[], int]) -> Callable[[Failpoint | None], World]:
    if store == "sqlite":
        return lambda failpoint: SqliteWorld(folder, clock=clock, failpoint=failpoint, durability="lossy-on-power-cut")
    kept = MemoryWorld(clock=clock)
    return lambda failpoint: MemoryWorld(clock=clock, failpoint=failpoint, over=kept)


__all__ = ["STORES", "T0", "Act", "At", "ByHand", "Rows", "ground", "reflex", "shape"]
