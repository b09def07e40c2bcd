"""store.sqlite.space - one file as a `contract.AuthorSpace`.

For: the lane before the engine, reads, numbers.
Never: stays open against the world's will: a space at rest is closed, and opens itself again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from onefold.store.contract import Answer, Body, Outcome, Party, Query, Table
from onefold.store.lane import Lane
from onefold.store.sqlite.engine import SqliteEngine

T = TypeVar("T")


class SqliteSpace:
    def __init__(self, engine: SqliteEngine, used: Callable[[str], None]) -> None:
        """`used` is told the space's name whenever it is about to be used."""
        self.name = engine.name
        self.engine = engine
        self._used = used
        self._lane = Lane(engine.name, engine, self._flushed)

    @property
    def idle(self) -> bool:
        return self._lane.idle

    def join(self, party: Party) -> None:
        self._used(self.name)
        self._lane.join(party)

    async def transact(self, body: Body[T]) -> Outcome[T]:
        self._used(self.name)
        return await self._lane.transact(body)

    async def look(self, *queries: Query) -> tuple[Answer, ...]:
        self._used(self.name)
        return self.engine.look(queries)

    def mint(self, table: Table) -> int:
        return self.engine.mint(table)

    def close(self) -> None:
        self._lane.close()
        self.engine.close()

    def _flushed(self, parties: int) -> None:
        pass
