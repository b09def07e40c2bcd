"""store.sqlite.outside - somebody else's file, asked and never written.

For: a selection's rows from a database that is not a space, a chunk at a time, in a thread, within a time.
Never: writes, attaches, creates the file; keeps a connection when its rows are read or left.
Was wrong once: one connection for all questions. The second waited for the first, and a statement that was
interrupted took both down.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from onefold.store.sqlite.connect import unusable
from onefold.store.statement import bound
from onefold.store.worker import Worker, heard
from onefold.terms.errors import StoreUnavailable

T = TypeVar("T")
CHUNK: Final = 500
BUSY_MS: Final = 1_000
CLOSING_S: Final = 1.0  # few statements are deaf to an interrupt; such a one keeps its thread, and nobody waits for it


class Outside:
    """A file that its owner may write meanwhile. The path is not told to anybody."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def rows(
        self, sql: str, values: Mapping[str, Any], *, timeout_ms: int, named: str
    ) -> AsyncIterator[Mapping[str, object]]:
        """Rows by column name. Lists and objects are bound as JSON text. Raises: StoreUnavailable."""
        loop = asyncio.get_running_loop()
        worker, conn = Worker(f"select-{named}"), None
        left = timeout_ms / 1000

        async def ask(call: Callable[[], T]) -> T:
            """Run in the thread, within what is left of the time. Raises: StoreUnavailable."""
            nonlocal left
            since = loop.time()
            answer = worker.ask(call)
            try:
                async with asyncio.timeout(max(left, 0.001)):
                    return await asyncio.shield(answer)
            except apsw.Error as error:
                raise unusable(named, error) or StoreUnavailable(named, f"SQLite says: {error}") from error
            except TimeoutError:
                answer.add_done_callback(heard)
                raise StoreUnavailable(named, f"it took longer than its {timeout_ms / 1000:g} s") from None
            finally:
                left -= loop.time() - since

        try:
            conn = await ask(partial(_opened, self._path))
            columns, cursor = await ask(partial(_begun, conn, sql, values))
            while chunk := await ask(lambda: list(islice(cursor, CHUNK))):
                for row in chunk:
                    yield dict(zip(columns, row, strict=True))
                if len(chunk) < CHUNK:
                    break
        finally:
            if conn is not None:
                with suppress(apsw.ConnectionClosedError):
                    conn.interrupt()
                closed = worker.ask(partial(conn.close, True))
                closed.add_done_callback(heard)
                await asyncio.wait([closed], timeout=CLOSING_S)
            worker.leave()


def _opened(path: Path) -> apsw.Connection:
    conn = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    conn.set_busy_timeout(BUSY_MS)
    conn.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("pragma query_only=on", "pragma trusted_schema=off"):
        conn.execute(pragma).fetchall()
    return conn


def _begun(conn: apsw.Connection, sql: str, values: Mapping[str, Any]) -> tuple[list[str], apsw.Cursor]:
    """The statement under way, and the names of its columns; without any, where it gives no rows."""
    columns: list[str] = []

    def traced(cursor: apsw.Cursor, statement: str, bound: Any) -> bool:
        columns[:] = [column[0] for column in cursor.get_description()]
        return True

    cursor = conn.cursor()
    cursor.exec_trace = traced
    cursor.execute(sql, {name: bound(value) for name, value in values.items()})
    return columns, cursor
