"""fleet.abroad - a space whose file another process has: looked at through its owner, and never written.

For: questions and answers as JSON, so that a run, and an author's table, is shown wherever it is asked for.
Never: a body, a number, a lock: whoever wants to write goes to the owner with a turn.
Was wrong once: the file opened for reading beside its owner. What its owner had acknowledged lay in a log that the
reader might not touch.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NoReturn

from onefold.store.contract import Answer, AuthorSpace, Each, Query, Row, Table
from onefold.terms.codec import Json, canonical
from onefold.terms.errors import BadArguments, Fault, OwnedElsewhere, TooLarge

Asking = Callable[[str, Json], Awaitable[Json]]
PIECE: Final = 1 << 20  # bytes of an author's rows in one answer; a single row may be larger
ROW_MOST: Final = 32 << 20  # bytes of one row as JSON
ROWS_MOST: Final = 10_000  # that anybody may ask for at once


class Abroad:
    """A `contract.Space` for looks alone. `ask` puts questions to the owner. Everything else raises OwnedElsewhere."""

    far = True

    def __init__(self, name: str, ask: Asking, elsewhere: Callable[[], OwnedElsewhere]) -> None:
        self.name = name
        self._ask = ask
        self._elsewhere = elsewhere

    async def look(self, *queries: Query) -> tuple[Answer, ...]:
        """Raises: OwnedElsewhere where nobody answers for the file now."""
        told = await self._ask(self.name, [written(query) for query in queries])
        return tuple([[_row(row) for row in answer] for answer in told])

    def join(self, party: Any) -> NoReturn:
        raise self._elsewhere()

    async def transact(self, body: Any) -> NoReturn:
        raise self._elsewhere()

    def mint(self, table: Table) -> int:
        """The number of a row that is never written: of an actor that has no history yet."""
        return 0

    async def author(self, step: Any, journal: Any, *, budget_ms: int) -> NoReturn:
        raise self._elsewhere()

    async def author_migrate(self, statements: Sequence[str]) -> NoReturn:
        raise self._elsewhere()

    async def author_tables(self) -> list[str]:
        """Raises: OwnedElsewhere where nobody answers for the file now."""
        return list(await self._ask(self.name, {"author": "tables"}))

    async def author_rows(
        self, table: str, *, limit: int, after: int | None
    ) -> tuple[list[str], list[Row], int | None]:
        """A page as its owner has it, in pieces of PIECE bytes. Raises: NotFound, TooLarge; OwnedElsewhere."""
        columns: list[str] = []
        rows: list[Row] = []
        while True:
            asked = {"author": "rows", "table": table, "limit": limit - len(rows), "after": after}
            columns, piece, after = await self._ask(self.name, asked)
            rows += [_row(row) for row in piece]
            if after is None or not piece or len(rows) >= limit:
                return columns, rows, after

    async def author_export(self, into: str, *, sql: bool) -> None:
        """The whole of it as its owner made it, fetched in pieces of PIECE bytes. Raises: StoreUnavailable; OwnedElsewhere."""
        loan = await self._ask(self.name, {"author": "export", "sql": sql})
        at, more = 0, True
        while more:
            told, more = await self._ask(self.name, {"author": "piece", "loan": loan, "at": at})
            piece = base64.b64decode(told)
            await asyncio.to_thread(_appended, into, piece)
            at += len(piece)


def _appended(path: str, piece: bytes) -> None:
    with open(path, "ab") as file:
        file.write(piece)


async def authored(space: AuthorSpace, asked: Mapping[str, Json]) -> Json:
    """What an author's database shows to another process. Raises: BadArguments, NotFound, TooLarge."""
    if asked.get("author") == "tables":
        return await space.author_tables()
    table, limit, after = asked.get("table"), asked.get("limit"), asked.get("after")
    whole = isinstance(limit, int) and 0 < limit <= ROWS_MOST
    if asked.get("author") != "rows" or not isinstance(table, str) or not whole or not isinstance(after, int | None):
        raise BadArguments([Fault("query", "is no question about a table of this space")])
    assert isinstance(limit, int)
    while True:
        columns, rows, more = await space.author_rows(table, limit=limit, after=after)
        told = [columns, [_cells(row) for row in rows], more]
        size = len(canonical(told))
        if size <= PIECE or len(rows) <= 1:
            break
        limit = max(1, min(limit, len(rows)) // 2)
    if size > ROW_MOST:
        raise TooLarge(f"a row of {table}", size, ROW_MOST)
    return told


def written(query: Query) -> Json:
    """A question as JSON."""
    each = query.each
    return {
        "table": query.table.name,
        "where": [[column, op, _cells(value)] for column, op, value in query.where],
        "on": list(query.on),
        "keys": None if query.keys is None else [_cells(key) for key in query.keys],
        "order": list(query.order),
        "limit": query.limit,
        "each": None if each is None else [each.column, _cells(each.values), each.k],
    }


def read(told: Json, tables: Mapping[str, Table]) -> Query:
    """The question. Raises: BadArguments for one that is none of ours."""
    try:
        each = told["each"]
        return Query(
            tables[told["table"]],
            where=tuple((column, op, _values(value)) for column, op, value in told["where"]),
            on=tuple(told["on"]),
            keys=None if told["keys"] is None else [_row(key) for key in told["keys"]],
            order=tuple(told["order"]),
            limit=told["limit"],
            each=None if each is None else Each(each[0], _row(each[1]), each[2]),
        )
    except (KeyError, TypeError, ValueError):
        raise BadArguments([Fault("query", "is no question about a table of this space")]) from None


def shown(answers: Sequence[Answer]) -> Json:
    return [[_cells(row) for row in answer] for answer in answers]


def _cells(value: Any) -> Json:
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, float) and not isfinite(value):
        return {"f": str(value)}
    if isinstance(value, str) and "\0" in value:
        return {"t": base64.b64encode(value.encode()).decode()}
    return [_cells(one) for one in value] if isinstance(value, list | tuple) else value


def _values(value: Json) -> Any:
    if isinstance(value, dict):
        if "f" in value:
            return float(value["f"])
        return base64.b64decode(value["b"]) if "b" in value else base64.b64decode(value["t"]).decode()
    return tuple(_values(one) for one in value) if isinstance(value, list) else value


def _row(row: Json) -> Row:
    return tuple([_values(cell) for cell in row])
