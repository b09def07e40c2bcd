"""The stores that the suite runs on: a factory for each, fresh for each check.

For: `Memory` (also for the broken twins), `Sqlite` and `Postgres`, as `OpenWorld`; `BACKENDS`, what both suites run
on, by name: how a fresh one is made in an empty folder; `store_of`, the same for tests that open a host by its
settings. A new store is one line more.
Never: shares rows between two factories.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import psycopg

from onefold import Run, actuator
from onefold.store.contract import World
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.testing import VirtualClock, staged
from onefold.testing.store_suite.ground import Failpoint, OpenWorld
from tests.postgres import fresh_database


class Memory:
    """Rows in memory, of the store itself or of a broken twin."""

    def __init__(self, kind: Callable[..., MemoryWorld] = MemoryWorld) -> None:
        self._kind = kind
        self._clock = VirtualClock()
        self._world: MemoryWorld | None = None

    def __call__(self, *, failpoint: Failpoint | None = None) -> World:
        self._world = self._kind(clock=self._clock.now, failpoint=failpoint, over=self._world)
        return self._world


class Sqlite:
    """Rows in a folder. `shared`: as one of several processes would have it."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self._folder = folder
        self._shared = shared
        self._clock = VirtualClock()

    def __call__(self, *, failpoint: Failpoint | None = None) -> World:
        return SqliteWorld(self._folder, clock=self._clock.now, failpoint=failpoint, shared=self._shared)


class Postgres:
    """Rows in a database of its own."""

    def __init__(self) -> None:
        self._url = fresh_database()

    def __call__(self, *, failpoint: Failpoint | None = None) -> World:
        from onefold.store.postgres import PostgresWorld

        return PostgresWorld(self._url, settle_s=0.05, failpoint=failpoint)


BACKENDS: Mapping[str, Callable[[Path], OpenWorld]] = {
    "memory": lambda folder: Memory(),
    "sqlite": Sqlite,
    "postgres": lambda folder: Postgres(),
}


EMPTIED = """do $$ declare r record; begin
for r in select c.oid::regclass as name, c.relkind as kind from pg_class c where c.relnamespace = 'onefold'::regnamespace
    and c.relkind in ('r', 'S') and c.relname not in ('_cluster', '_migration')
loop execute format(case r.kind when 'S' then 'alter sequence %s restart' else 'truncate %s restart identity' end, r.name);
end loop; end $$"""


def store_of(kind: str, folder: Path) -> str:
    """A new store of this kind without a row, as the setting `store` names it: a host opens it."""
    if kind == "postgres":
        return fresh_database(like=_opened())
    return "memory:" if kind == "memory" else str(folder)


@cache
def _opened() -> str:
    """A database that a host has opened before: a copy of it has its tables, which take most of an opening."""
    url = fresh_database(keep=True)
    with ThreadPoolExecutor(1) as aside:  # a loop may be running here
        aside.submit(asyncio.run, _open(url)).result()
    with psycopg.connect(url) as conn:
        conn.execute(EMPTIED)
    return url


async def _open(url: str) -> None:
    @actuator
    async def any_one(run: Run) -> None:
        """Has a space."""

    async with staged(any_one, store=url) as stage:
        await stage.host.start("any_one", {}, caller=stage.caller())
