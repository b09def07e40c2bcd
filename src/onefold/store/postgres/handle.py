"""store.postgres.handle - the author's handle inside a database step, and its end.

For: `Tx`: plain calls from the step's thread, each answered by the loop; rows as dictionaries of plain values.
Never: outlives its step; lets a driver's error out; knows the connection (the door does).
Was wrong once: rows as the driver loads them. A step's result is kept as JSON, and a Decimal came back as another value
than the first run had.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json  # noqa: TID251 - the server's own text: only these hooks keep a numeric's digits
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from onefold.terms.errors import BadStatement, OnefoldError, StepFenced
from onefold.terms.instant import down, text

T = TypeVar("T")
BYTES, NUMERIC, MOMENT = 17, 1700, 1184
REALS, DOCUMENTS = (700, 701), (114, 3802)
TYPES: Mapping[int, str] = {
    16: "bool",
    17: "bytea",
    20: "int8",
    21: "int2",
    23: "int4",
    25: "text",
    114: "json",
    700: "float4",
    701: "float8",
    1042: "bpchar",
    1043: "varchar",
    1082: "date",
    1114: "timestamp",
    1184: "timestamptz",
    1700: "numeric",
    2950: "uuid",
    3802: "jsonb",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement of the author's. most: how many rows are wanted; None for none, only the number it changed."""

    sql: str
    values: Mapping[str, object]
    most: int | None


class Handle:
    """See `contract.Tx`. `run` is the door's, on the loop. `fenced` ends it; whoever holds a future is told."""

    def __init__(self, step: str, run: Callable[[Handle, Asked], Coroutine[Any, Any, Any]]) -> None:
        self.step = step
        self._run = run
        self._loop = asyncio.get_running_loop()
        self.fenced = False
        self.fallen: OnefoldError | None = None
        self.flying: asyncio.Task[Any] | None = None

    def execute(self, sql: str, /, **values: object) -> int:
        """Run one statement. Returns: how many rows it changed. Raises: BadStatement, StepFenced, StoreUnavailable,
        Contended."""
        changed: int = self._ask(Asked(sql, values, None))
        return changed

    def fetch(self, sql: str, /, **values: object) -> list[dict[str, object]]:
        """All rows of one statement, by column name. Raises: as `execute`."""
        rows: list[dict[str, object]] = self._ask(Asked(sql, values, 2**31 - 1))
        return rows

    def fetch_one(self, sql: str, /, **values: object) -> dict[str, object] | None:
        """The first row, or None. Raises: as `execute`."""
        rows: list[dict[str, object]] = self._ask(Asked(sql, values, 1))
        return rows[0] if rows else None

    def _ask(self, asked: Asked) -> Any:
        if self.fenced:
            raise StepFenced(self.step)
        if self.fallen is not None:
            raise self.fallen
        flight = self._fly(asked)
        answer: Any
        try:
            answer = asyncio.run_coroutine_threadsafe(flight, self._loop).result()
        except (concurrent.futures.CancelledError, RuntimeError):  # the loop was closed, or lets go of everything
            flight.close()
            raise StepFenced(self.step) from None
        except OnefoldError as told:
            raise (StepFenced(self.step) if self._is_over() else told) from told.__cause__
        if self._is_over():
            raise StepFenced(self.step)
        return answer

    def _is_over(self) -> bool:
        """Asked again after a wait: the loop may have fenced it meanwhile."""
        return self.fenced

    async def _fly(self, asked: Asked) -> Any:
        if self.fenced:
            raise StepFenced(self.step)
        self.flying = asyncio.current_task()
        try:
            return await self._run(self, asked)
        finally:
            self.flying = None


# --- values in, rows out ----------------------------------------------------------------------------


def bound(name: str, value: object, sql: str) -> str | None:
    """A value as text that the server reads as the type of the place it stands in. Raises: BadStatement."""
    if value is None:
        return None
    if isinstance(value, int):
        if isinstance(value, bool):
            return "1" if value else "0"
        if not -(2**63) <= value < 2**63:
            raise BadStatement(f":{name} is beyond 64 bits", sql)
        return str(value)
    if isinstance(value, float | Decimal):
        return repr(value) if isinstance(value, float) else str(value)
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, str):
        if "\0" in value:
            raise BadStatement(f":{name} has a NUL in it", sql)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadStatement(f":{name} is no text that UTF-8 could hold", sql) from None
        return value
    if isinstance(value, datetime):
        return text(down(value, what=name))
    raise BadStatement(f":{name} is a {type(value).__name__}; bind numbers, text, bytes, Decimal or an instant", sql)


def fitting(kind: str, value: object) -> str:
    """The type of a value whose place is of this one: what is larger than any in a column equals none of them, and
    bytes are no text."""
    if isinstance(value, bytes):
        return "bytea"
    if kind in ("int2", "int4") and isinstance(value, int) and not -(2**15) <= value < 2**15:
        return said_type(value)
    return kind


def said_type(value: object) -> str:
    """The type of a value where its place does not tell."""
    if isinstance(value, int):
        return "int4" if -(2**31) <= value < 2**31 else "int8"
    return "float8" if isinstance(value, float) else "bytea" if isinstance(value, bytes) else "text"


def shown(value: object) -> object:
    """A cell as people look at it: a document or an array as its text."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


class _Number(str):
    """A number as the server wrote it."""

    __slots__ = ()


def rows_of(lines: Sequence[str], columns: Sequence[tuple[str, int]]) -> list[dict[str, object]]:
    """Rows of JSON text as dictionaries: numeric and what is unknown here as text, bytes as bytes, instants with Z."""
    kinds = dict(columns)
    out = []
    for line in lines:
        row = json.loads(line, parse_int=_Number, parse_float=_Number)
        out.append({name: _plain(value, kinds.get(name, 0)) for name, value in row.items()})
    return out


def _plain(value: Any, oid: int) -> object:
    if value is None or isinstance(value, bool):
        return value
    if oid == BYTES:
        return bytes.fromhex(value[2:])
    if oid in REALS:
        return float(value)
    if oid == NUMERIC:
        return str(value)
    if oid == MOMENT and isinstance(value, str) and value.endswith("+00:00"):
        return f"{value[:-6]}Z"
    return _nested(value)


def _nested(value: Any) -> object:
    if isinstance(value, _Number):
        return int(value) if value.lstrip("-").isdigit() else float(value)
    if isinstance(value, list):
        return [_nested(one) for one in value]
    if isinstance(value, dict):
        return {name: _nested(one) for name, one in value.items()}
    return value
