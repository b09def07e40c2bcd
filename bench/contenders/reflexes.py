"""bench.contenders.reflexes - Onefold's automations: one trigger, so many tasks, one settle; and what an advance costs.

For: `fan TASKS seconds`: from a signal until the reflex that hears of the settled run has acted, each task claimed
under a lease, each landing and the settle committed. `pair TASKS seconds`: the same with two engines, on Postgres in
two processes, on SQLite in one. `loaded N times`: an advance with N reflexes loaded; `settled N times`: one with N
settled runs in the ledger.
Never: counts a task whose landing is not committed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from bench.answering import answer_async
from bench.measures import Sample, median, sample
from bench.postgres import postgres
from onefold.reflex import CelTransform, Engine, Query, Signal, Task, effect, select
from onefold.reflex.selects import Selects
from onefold.reflex.tables import LEDGER, REFLEX_RUN
from onefold.store.contract import Append, Last, World
from onefold.store.contract import Query as Asked
from onefold.store.postgres.world import PostgresWorld
from onefold.store.sqlite import SqliteWorld

AT_ONCE = 500  # rows of each stage in one advance
CHUNK = 2_000  # settled rows of one commit, while the ledger is filled
MINUTELY = {"every": "year", "on": "01-01", "at": "00:00", "tz": "UTC"}  # a clock that is not due here

ENDED: list[float] = []
SETTLED = asyncio.Event()


@effect("one", writes=[])
async def one(task: Task, n: int) -> int:
    ENDED.append(time.perf_counter())
    return n + 1


@effect("last", writes=[])
async def last(task: Task) -> None:
    SETTLED.set()


@select("numbers")
async def numbers(query: Query) -> AsyncIterator[dict[str, int]]:
    for n in range(query.params["count"]):
        yield {"n": n}


def reflex(id: str, on: dict[str, Any], name: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "intent": "It is measured.", "on": on, "effect": {"name": name}, **more}


FAN = [
    reflex(
        "fan",
        {"fact": {"signal": "go"}},
        "one",
        select={
            "query": {"name": "numbers", "with": {"count": {"$": "fact.payload.tasks"}}},
            "mode": "each",
            "unitKey": "n",
        },
    )
    | {"effect": {"name": "one", "input": {"$": "row.n"}}},
    reflex("settle", {"fact": {"run": "fan"}}, "last"),
]


def engine(world: World) -> Engine:
    return Engine(world, transform=CelTransform(), select=Selects([numbers]), effects=[one, last])


def now() -> datetime:
    return datetime.now(UTC)


async def drained(one: Engine) -> None:
    while (await one.advance(now(), AT_ONCE)).moved:
        pass


async def fan(engines: list[Engine], tasks: int) -> Sample:
    ENDED.clear()
    SETTLED.clear()
    start = time.perf_counter()
    await engines[0].ingest(Signal("go", {"tasks": tasks}), now=now())
    while not SETTLED.is_set():
        await asyncio.gather(*(drained(each) for each in engines))
    elapsed = time.perf_counter() - start
    if len(ENDED) != tasks:
        raise ValueError(f"{len(ENDED)} of {tasks} tasks ran")
    return sample([at - start for at in ENDED], elapsed)


async def shared(one: Engine, world: World, tasks: int) -> Sample:
    """As `fan`, where another process may have run any of them: the rows say when all of it has settled."""
    space = await world.open("main", [LEDGER])
    state = REFLEX_RUN.at["state"]
    start = time.perf_counter()
    fact = await one.ingest(Signal("go", {"tasks": tasks}), now=now())
    mine = Asked(REFLEX_RUN, on=("reflex", "cause"), keys=[("fan", f"fact:{fact.id.removeprefix('fact_')}")])
    settled: list[Any] = []
    while not settled:
        await drained(one)
        (runs,) = await space.look(mine)
        settled = [run for run in runs if run[state] == "settled"]
    elapsed = time.perf_counter() - start
    if settled[0][REFLEX_RUN.at["done"]] != tasks:
        raise ValueError(f"{settled[0][REFLEX_RUN.at['done']]} of {tasks} tasks ran")
    return sample([elapsed] * tasks, elapsed)


async def works(dsn: str) -> None:
    """A second process: advances until it is ended."""
    world = PostgresWorld(dsn)
    one = engine(world)
    await one.reload()
    print("ready", flush=True)
    while True:
        await drained(one)
        await asyncio.sleep(0.001)


@asynccontextmanager
async def beside(dsn: str) -> AsyncIterator[None]:
    """Another engine in a process of its own."""
    command = [sys.executable, "-m", "bench.contenders.reflexes", "works", dsn]
    other = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert other.stdout is not None
    await other.stdout.readline()
    try:
        yield
    finally:
        other.kill()
        await other.wait()


async def costs(one: Engine, times: int) -> dict[str, Any]:
    """Microseconds of an advance with nothing due, and of a fact from its intake until its effect has landed."""
    await fan([one], 1)
    idle, acting = [], []
    for _ in range(times):
        start = time.perf_counter()
        await one.advance(now(), AT_ONCE)
        idle.append(time.perf_counter() - start)
        start = time.perf_counter()
        await fan([one], 1)
        acting.append(time.perf_counter() - start)
    return {"idle_us": median(idle) * 1e6, "fact_us": median(acting) * 1e6}


async def loaded(one: Engine, count: int, times: float) -> dict[str, Any]:
    others = [
        reflex(f"other-{n}", {"fact": {"signal": f"s{n}"}} if n % 2 else {"clock": MINUTELY}, "last")
        for n in range(count - len(FAN))
    ]
    start = time.perf_counter()
    await one.load([*FAN, *others], now())
    return {**await costs(one, int(times)), "load_s": time.perf_counter() - start}


async def settled(one: Engine, world: World, count: int, times: float) -> dict[str, Any]:
    await one.load(FAN, now())
    await fan([one], 1)
    space = await world.open("main", [LEDGER])
    (rows,) = await space.look(Asked(REFLEX_RUN, order=("n",), limit=1))
    cell = REFLEX_RUN.at

    def filled(first: int) -> Any:
        some = []
        for n in range(first, min(count, first + CHUNK)):
            row = list(rows[0])
            row[cell["n"]], row[cell["cause"]], row[cell["fact"]] = space.mint(REFLEX_RUN), f"old:{n}", None
            some.append(tuple(row))

        def body() -> Any:
            yield ()
            return Last((Append(REFLEX_RUN, some),), None)

        return body

    for first in range(0, count, CHUNK):
        await space.transact(filled(first))
    return await costs(one, int(times))


async def answering(world: World, dsn: str | None) -> None:
    pair = [engine(world), engine(world)]
    await pair[0].load(FAN, now())
    await pair[1].reload()

    async def both(tasks: int, seconds: float) -> Sample:
        if dsn is None:
            return await fan(pair, tasks)
        async with beside(dsn):
            return await shared(pair[0], world, tasks)

    await answer_async(
        {
            "fan": lambda tasks, seconds: fan(pair[:1], tasks),
            "pair": both,
            "loaded": lambda count, times: loaded(pair[0], count, times),
            "settled": lambda count, times: settled(pair[0], world, count, times),
        }
    )
    await world.close()


async def main(folder: Path, store: str = "sqlite") -> None:
    if store == "postgres":
        with postgres(folder) as dsn:
            await answering(PostgresWorld(dsn), dsn)
    else:
        await answering(SqliteWorld(folder / "store", clock=lambda: int(time.time() * 1000)), None)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        words = sys.argv[1:]
        runner.run(works(words[1]) if words[0] == "works" else main(Path(words[0]), *words[1:]))
