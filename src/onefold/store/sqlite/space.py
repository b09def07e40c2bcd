"""store.sqlite.space - one file as a `contract.AuthorSpace`.

For: the lane before the engine, reads, numbers.
Never: stays open against the world's will: a space at rest is closed, and opens itself again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from onefold.store.contract import Answer, Body, Outcome, Party, Query, Row, Table, Tx
from onefold.store.lane import Lane
from onefold.store.sqlite.author import Door
from onefold.store.sqlite.engine import SqliteEngine
from onefold.store.sqlite.export import Export, uri
from onefold.store.sqlite.shared import SharedEngine
from onefold.store.sqlite.wal import Wal

T = TypeVar("T")


class SqliteSpace:
    far = False

    def __init__(self, engine: SqliteEngine, used: Callable[[str], None]) -> None:
        """`used` is told the space's name whenever it is about to be used."""
        self.name = engine.name
        self.engine = engine
        self._used = used
        self._door = Door(engine.name, engine.file.author_connection)
        self._wal = Wal(engine.file)
        self._lane = Lane(
            engine.name, engine, self._wal.flushed, engine.take if isinstance(engine, SharedEngine) else None
        )

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

    async def author(
        self, step: Callable[[Tx], T], journal: Callable[[T], Body[Any]], *, budget_ms: int
    ) -> Outcome[Any]:
        self._used(self.name)
        async with self._lane.held():
            self.engine.check()
            return await self._door.run(step, budget_ms, lambda conn, done: self.engine.journal(conn, journal(done)))

    async def author_migrate(self, statements: Sequence[str]) -> None:
        self._used(self.name)
        async with self._lane.held():
            self.engine.check()
            await self._door.migrate(statements)

    async def author_tables(self) -> list[str]:
        self._used(self.name)
        async with self._lane.held():
            self.engine.check()
            return self._door.tables()

    async def author_rows(
        self, table: str, *, limit: int, after: int | None
    ) -> tuple[list[str], list[Row], int | None]:
        self._used(self.name)
        async with self._lane.held():
            self.engine.check()
            return await self._door.rows(table, limit, after)

    async def author_export(self, into: str, *, sql: bool) -> None:
        self._used(self.name)
        async with self._lane.held():
            self.engine.check()
            file = self.engine.file
            export = Export(self.name, uri(file.path, vfs=file.options.disk.vfs), into, sql=sql)
        await export.run()

    def rest(self) -> None:
        """Close the files; the space opens itself again when it is used."""
        self._door.close()
        self._wal.closed()
        self.engine.close()

    def close(self) -> None:
        self._lane.close()
        self.rest()

    def abandon(self) -> None:
        """Let go of the files as a kill would."""
        self._lane.abandon()
        self._door.close()
        self._wal.closed()
        self.engine.abandon()
