"""fleet.abroad - a space whose file another process has: looked at through its owner, and never written.

For: questions and answers as JSON, so that a run is shown wherever it is asked for.
Never: a body, a number, a lock: whoever wants to write goes to the owner with a turn.
Was wrong once: the file opened for reading beside its owner. What its owner had acknowledged lay in a log that the
reader might not touch.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn

from onefold.store.contract import Answer, Each, Query, Row, Table
from onefold.terms.codec import Json
from onefold.terms.errors import BadArguments, Fault, OwnedElsewhere

Asking = Callable[[str, Json], Awaitable[Json]]


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
        raise self._elsewhere()

    async def author_rows(
        self, table: str, *, limit: int, after: int | None
    ) -> tuple[list[str], list[Row], int | None]:
        raise self._elsewhere()


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
    return [_cells(one) for one in value] if isinstance(value, list | tuple) else value


def _values(value: Json) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["b"])
    return tuple(_values(one) for one in value) if isinstance(value, list) else value


def _row(row: Json) -> Row:
    return tuple([_values(cell) for cell in row])
