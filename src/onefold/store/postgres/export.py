"""store.postgres.export - an author's schema as a file: SQL for Postgres, or its rows as a SQLite file.

For: what a person takes along, as it was at one instant, read as the role that owns it.
Never: keeps more than a page of rows; names the schema in the text, so that it can be read into any.
Was wrong once: rows by the pages that people look at, each in a transaction of its own. A refund stood in one table of
the export and not in the other. And `row_to_json(t)`: of a table with a column `t` that is the column.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from onefold.store.postgres.catalog import ENDS, INDEXES, KEYS, OWNED, SEQUENCES, STARTS, STORED, VIEWS
from onefold.store.postgres.handle import rows_of, shown
from onefold.store.postgres.home import Home, literal, looked_for
from onefold.store.postgres.wire import Statement, Wire
from onefold.store.sqlite.export import Made, told

PAGE = 200  # rows a trip
_SETTINGS = (
    "set local timezone = 'UTC'",
    "set local datestyle = 'ISO, MDY'",
    "set local intervalstyle = 'postgres'",
    "set local bytea_output = 'hex'",
    "set local extra_float_digits = 1",
    "set local statement_timeout = '10min'",
    "set local idle_in_transaction_session_timeout = '10min'",
)
_HEAD = (
    "SET client_encoding = 'UTF8';",
    "SET standard_conforming_strings = on;",
    "SET check_function_bodies = off;",
    "BEGIN;",
)


class Reading:
    """One transaction that reads, on a connection of its own."""

    def __init__(self, wire: Wire, home: Home) -> None:
        self._wire = wire
        self._home = home

    async def begin(self) -> bool:
        """Whether there is anything: an author without tables has no schema."""
        await self._wire.send([Statement(b"begin isolation level repeatable read read only")])
        found = await self.rows(looked_for(self._home))
        if not found:
            return False
        owner = str(found[0][0])
        place = literal(self._home.schema)
        texts = [f"set local role {owner}", *_SETTINGS, f"select set_config('search_path', quote_ident({place}), true)"]
        await self._wire.send([Statement(text.encode()) for text in texts])
        return True

    async def rows(self, text: str, *values: str) -> list[tuple[Any, ...]]:
        (result,) = await self._wire.send([Statement(text.encode(), [value.encode() for value in values])])
        return self._wire.rows(result)

    async def listed(self, text: str) -> list[tuple[Any, ...]]:
        """Rows of one of the catalog's questions."""
        return await self.rows(text, self._home.schema)

    async def lines(self, text: str) -> AsyncIterator[list[str]]:
        """The texts of a statement that gives one for each row, page by page."""
        await self._wire.send([Statement(f"declare page no scroll cursor for {text}".encode())])
        while found := await self.rows(f"fetch {PAGE} from page"):
            yield [line for (line,) in found]
        await self._wire.send([Statement(b"close page")])


async def exported(wire: Wire, home: Home, space: str, into: str, *, sql: bool) -> None:
    """Raises: Gone, Stopped; StoreUnavailable where the file cannot be written."""
    with told(space):
        await (write_sql if sql else write_sqlite)(wire, home, into)


async def write_sql(wire: Wire, home: Home, into: str) -> None:
    """SQL that psql and every driver reads. Raises: Gone, Stopped, OSError."""
    reading = Reading(wire, home)
    with await asyncio.to_thread(open, into, "w", encoding="utf-8", newline="\n") as out:

        async def write(lines: Sequence[str]) -> None:
            if lines:
                await asyncio.to_thread(out.write, "\n".join([*lines, ""]))

        await write(_HEAD)
        if await reading.begin():
            for text in STARTS:
                await write([line for (line,) in await reading.listed(text)])
            for name, columns, always in await reading.listed(STORED):
                async for lines in reading.lines(_inserts(name, columns, always=always)):
                    await write(lines)
            for name in [name for (name,) in await reading.listed(SEQUENCES)]:
                ((last, called),) = await reading.rows(f"select last_value::text, is_called::text from {name}")
                await write([f"SELECT pg_catalog.setval({literal(name)}, {last}, {called});"])
            for text in (OWNED, *ENDS, INDEXES, VIEWS):
                await write([line for (line,) in await reading.listed(text)])
        await write(["COMMIT;"])


def _inserts(name: str, columns: Sequence[str], *, always: bool) -> str:
    """A statement that gives an INSERT for each row of a table."""
    if not columns:
        return f"select {literal(f'INSERT INTO {name} DEFAULT VALUES;')}::text from only {name}"
    over = " OVERRIDING SYSTEM VALUE" if always else ""
    head = literal(f"INSERT INTO {name} ({', '.join(columns)}){over} VALUES (")
    cells = " || ', ' || ".join([f"quote_nullable({column}::text)" for column in columns])
    return f"select {head} || {cells} || ');' from only {name}"


async def write_sqlite(wire: Wire, home: Home, into: str) -> None:
    """The rows in tables with the same keys; types as near as SQLite has them. Raises: Gone, Stopped, and
    what a file does that cannot be written."""
    reading = Reading(wire, home)
    made = await asyncio.to_thread(Made, into)
    try:
        if await reading.begin():
            for table, name, columns, key in await reading.listed(KEYS):
                names, kinds = [str(c) for c in columns[0::2]], [int(c) for c in columns[1::2]]
                await asyncio.to_thread(made.table, table, list(zip(names, map(_affinity, kinds), strict=True)), key)
                types = list(zip(names, kinds, strict=True))
                async for lines in reading.lines(f"select row_to_json(t.*)::text from only {name} t"):
                    rows = [[shown(cell) for cell in row.values()] for row in rows_of(lines, types)]
                    await asyncio.to_thread(made.rows, table, rows)
        await asyncio.to_thread(made.commit)
    finally:
        made.close()


def _affinity(oid: int) -> str:
    """A numeric is text, as in an answer: SQLite's own would be cut to 15 digits."""
    if oid in (16, 20, 21, 23, 26):
        return "INTEGER"
    return {17: "BLOB", 700: "REAL", 701: "REAL"}.get(oid, "TEXT")
