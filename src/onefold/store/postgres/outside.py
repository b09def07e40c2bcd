"""store.postgres.outside - somebody else's Postgres, asked and never written.

For: a selection's rows through a cursor of the server, a chunk at a time, within a time.
Never: writes (the transaction is read-only); spells a value into the text; tells an address in an error.
Was wrong once: the whole answer at once. The driver holds what it was sent, and a question that was meant to find
twelve rows found the table.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from onefold.store.statement import with_values
from onefold.terms.errors import OnefoldError, StoreUnavailable

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
CHUNK: Final = 500
CONNECT_S: Final = 10


class Outside:
    """A database by its address, which may hold a password and is told to nobody."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def rows(
        self, sql: str, values: Mapping[str, Any], *, timeout_ms: int, named: str
    ) -> AsyncIterator[Mapping[str, object]]:
        """Rows by column name. A list is bound as an array, an object as jsonb. Raises: StoreUnavailable."""
        import psycopg  # only who has such a selection pays for the driver
        from psycopg.rows import dict_row

        loop = asyncio.get_running_loop()
        left = timeout_ms / 1000

        async def within(act: Awaitable[T]) -> T:
            nonlocal left
            since = loop.time()
            try:
                async with asyncio.timeout(max(left, 0.001)):
                    return await act
            except TimeoutError:
                raise StoreUnavailable(named, f"it took longer than its {timeout_ms / 1000:g} s") from None
            except psycopg.Error as error:
                raise _told(named, error) from None  # the driver's own may quote the address
            finally:
                left -= loop.time() - since

        connect = psycopg.AsyncConnection.connect(self._url, connect_timeout=CONNECT_S, application_name="onefold")
        conn = await within(connect)
        try:
            await within(conn.set_read_only(True))
            await within(conn.execute("select set_config('statement_timeout', %s, true)", [str(timeout_ms)]))
            text = with_values(sql, lambda name: f"%({name})s", percent="%%")
            async with conn.cursor("onefold_select", row_factory=dict_row) as cursor:
                await within(cursor.execute(text, {name: _bound(value) for name, value in values.items()}))
                while chunk := await within(cursor.fetchmany(CHUNK)):
                    for row in chunk:
                        yield row
                    if len(chunk) < CHUNK:
                        break
        finally:
            await conn.close()  # and with it the transaction: nothing was written


def _bound(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    from psycopg.types.json import Jsonb

    return Jsonb(value)


def _told(named: str, error: psycopg.Error) -> OnefoldError:
    """What the server said of the statement; of a connection only that there is none."""
    if error.sqlstate is None or error.sqlstate.startswith(("08", "28")):
        return StoreUnavailable(named, f"its Postgres cannot be reached ({type(error).__name__})")
    said = error.diag.message_primary or type(error).__name__
    return StoreUnavailable(named, f"Postgres says: {said} ({error.sqlstate})")
