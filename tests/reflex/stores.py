"""The stores that reflexes are tested on, each empty in an empty folder.

On Postgres all share one database, each in a schema of its own: a database for each costs more than its test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

from onefold.store.contract import World
from onefold.store.postgres import PostgresWorld
from onefold.testing.store_suite.ground import Failpoint, OpenWorld
from tests.contracts.backends import BACKENDS
from tests.postgres import fresh_database

_numbers = count(1)
_database: list[str] = []


class Part:
    """Rows in a schema of its own."""

    def __init__(self) -> None:
        if not _database:
            _database.append(fresh_database(keep=True))
        self._within = f"part_{next(_numbers)}"

    def __call__(self, *, failpoint: Failpoint | None = None) -> World:
        return PostgresWorld(_database[0], within=self._within, settle_s=0.05, failpoint=failpoint)


OPENINGS: Mapping[str, Callable[[Path], OpenWorld]] = {**BACKENDS, "postgres": lambda folder: Part()}
"""By name: how a fresh one is made."""
