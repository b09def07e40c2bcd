"""The stores that the suite runs on: a factory for each, fresh for each check.

For: `Memory` (also for the broken twins) and `Sqlite`, as `OpenWorld`; `BACKENDS`, what both suites run on, by
name: how a fresh one is made in an empty folder. A new store is one line more.
Never: shares rows between two factories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from onefold.store.contract import World
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.testing import VirtualClock
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
    """Rows in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = VirtualClock()

    def __call__(self, *, failpoint: Failpoint | None = None) -> World:
        return SqliteWorld(self._folder, clock=self._clock.now, failpoint=failpoint)


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
