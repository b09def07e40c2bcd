"""store.rows - what the verbs mean, over plain dictionaries.

For: one table's rows with its keys, conditions and order in Python, an undo log. The words of
the contract's docstrings as code; the memory store stands on it, other stores are measured by it.
Never: reads a clock (the instant is given); knows transactions beyond its undo log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from onefold.store.batch import Met
from onefold.store.contract import Cell, Condition, DbNow, Each, Inc, Query, Row, Table, Value

Undo = Callable[[], None]

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_PYTHON = {"int": int, "text": str, "bytes": bytes}


def holds(table: Table, row: Row, where: Iterable[Condition]) -> bool:
    """Whether every condition is met. A None meets "null" only."""
    for column, op, value in where:
        cell = row[table.at[column]]
        if op == "null":
            if (cell is None) != bool(value):
                return False
        elif cell is None:
            return False
        elif op == "in":
            if cell not in [v for v in value if v is not None]:
                return False
        elif value is None or not _COMPARE[op](cell, value):
            return False
    return True


def ordered(table: Table, rows: Iterable[Row], order: Sequence[str]) -> list[Row]:
    """Rows in `order`, None first; stable."""
    out = list(rows)
    for name in reversed(order):
        i = table.at[name.lstrip("-")]
        out.sort(key=lambda row: (row[i] is not None, row[i]), reverse=name.startswith("-"))
    return out


def narrowed(query: Query, rows: list[Row]) -> list[Row]:
    """`rows`, already in order, cut down to the query's `each` and `limit`."""
    if query.each is not None:
        rows = _each(query.table, query.each, rows)
    return rows if query.limit is None else rows[: query.limit]


def changed(table: Table, row: Row, new: Mapping[str, Value], now: int) -> Row:
    """The row after `new` was set in it at `now` (milliseconds)."""
    cells = list(row)
    for column, value in new.items():
        i = table.at[column]
        if isinstance(value, Inc):
            old = cells[i]
            cells[i] = (old if isinstance(old, int) else 0) + value.by
        elif isinstance(value, DbNow):
            cells[i] = now + value.plus_ms
        else:
            cells[i] = value
    return tuple(cells)


def check_row(table: Table, row: Row) -> None:
    """Raises: ValueError for a row that does not fit its table; a fault of the room that wrote it."""
    if len(row) != len(table.columns):
        raise ValueError(f"{table.name}: a row of {len(row)} cells for {len(table.columns)} columns")
    for column, cell in zip(table.columns, row, strict=True):
        if cell is None:
            if not column.null:
                raise ValueError(f"{table.name}.{column.name} may not be None")
        elif type(cell) is not _PYTHON[column.kind]:
            raise ValueError(f"{table.name}.{column.name} is {column.kind}, not {type(cell).__name__}")
        elif column.kind == "int" and not -(2**63) <= int(cell) < 2**63:
            raise ValueError(f"{table.name}.{column.name} is beyond 64 bits")
        elif column.kind == "text":
            _check_text(table, column.name, str(cell))


class Rows:
    """One table in memory. Every change tells `undo` how to take it back."""

    def __init__(self, table: Table, undo: list[Undo]) -> None:
        self.table = table
        self.rows: dict[Row, Row] = {}
        self._key = [table.at[k] for k in table.key]
        self._unique = [([table.at[c] for c in u], dict[Row, Row]()) for u in table.unique]
        chain = () if table.chain is None else (table.chain.by, table.chain.prev)
        self._fixed = [table.at[c] for c in chain]
        self._by = None if table.chain is None else table.at[table.chain.by]
        self._histories: dict[Cell, dict[Row, None]] = {}
        self._undo = undo

    def key(self, row: Row) -> Row:
        return tuple([row[i] for i in self._key])

    def meets(self, row: Row) -> Row | None:
        """The row that already holds one of this row's keys."""
        met = self.rows.get(self.key(row))
        if met is not None:
            return met
        for at, keys in self._unique:
            owner = keys.get(tuple([row[i] for i in at]))
            if owner is not None:
                return self.rows[owner]
        return None

    def append(self, row: Row) -> Row | None:
        check_row(self.table, row)
        met = self.meets(row)
        if met is None:
            self._write(self.key(row), row)
        return met

    def put(self, row: Row) -> None:
        check_row(self.table, row)
        key = self.key(row)
        old = self.rows.get(key)
        if old is not None and any(old[i] != row[i] for i in self._fixed):
            raise ValueError(f"{self.table.name}: the key and the chain columns of a row never change")
        for at, keys in self._unique:
            if keys.get(tuple([row[i] for i in at]), key) != key:
                raise Met(self.table.name)
        if old != row:
            self._write(key, row)

    def remove(self, keys: Sequence[Row]) -> int:
        there = [k for k in dict.fromkeys(tuple(k) for k in keys) if k in self.rows]
        self._check_oldest(there)
        for key in there:
            self._write(key, None)
        return len(there)

    def find(self, query: Query) -> list[Row]:
        found = (row for row in self._candidates(query) if holds(self.table, row, query.where))
        return narrowed(query, ordered(self.table, found, query.order))

    def _candidates(self, query: Query) -> list[Row]:
        if query.keys is not None:
            return self._by_keys(query.on, dict.fromkeys(tuple(k) for k in query.keys))
        if self.table.chain is not None:
            for column, op, value in query.where:
                if column == self.table.chain.by and op == "=":
                    return [self.rows[k] for k in self._histories.get(value, ())]
        return list(self.rows.values())

    def _by_keys(self, on: Sequence[str], wanted: Mapping[Row, None]) -> list[Row]:
        at = [self.table.at[c] for c in on]
        if at == self._key:
            return [self.rows[k] for k in wanted if k in self.rows]
        for unique, owners in self._unique:
            if at == unique:
                return [self.rows[owners[k]] for k in wanted if k in owners]
        cells = [(tuple([row[i] for i in at]), row) for row in self.rows.values()]
        return [row for found, row in cells if found in wanted and None not in found]

    def _check_oldest(self, keys: Sequence[Row]) -> None:
        if self.table.chain is None:
            return
        at = self.table.at[self.table.chain.prev]
        gone = set(keys)
        for key in keys:
            prev = (self.rows[key][at],)
            if prev in self.rows and prev not in gone:
                raise ValueError(f"{self.table.name}: a row leaves only together with everything before it")

    def _write(self, key: Row, row: Row | None) -> None:
        old = self.rows.pop(key, None)
        if old is not None:
            self._unlink(key, old)
        if row is not None:
            self.rows[key] = row
            self._link(key, row)
        self._undo.append(lambda: self._restore(key, old))

    def _restore(self, key: Row, old: Row | None) -> None:
        now = self.rows.pop(key, None)
        if now is not None:
            self._unlink(key, now)
        if old is not None:
            self.rows[key] = old
            self._link(key, old)

    def _link(self, key: Row, row: Row) -> None:
        for at, keys in self._unique:
            cells = tuple([row[i] for i in at])
            if None not in cells:
                keys[cells] = key
        if self._by is not None:
            self._histories.setdefault(row[self._by], {})[key] = None

    def _unlink(self, key: Row, row: Row) -> None:
        for at, keys in self._unique:
            cells = tuple([row[i] for i in at])
            if keys.get(cells) == key:
                del keys[cells]
        if self._by is not None:
            self._histories[row[self._by]].pop(key, None)


def _each(table: Table, each: Each, rows: Iterable[Row]) -> list[Row]:
    at = table.at[each.column]
    left = dict.fromkeys((v for v in each.values if v is not None), each.k)
    out = []
    for row in rows:
        cell = row[at]
        if cell is not None and left.get(cell, 0) > 0:
            left[cell] -= 1
            out.append(row)
    return out


def _check_text(table: Table, column: str, text: str) -> None:
    if "\0" in text:
        raise ValueError(f"{table.name}.{column} has a NUL in it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{table.name}.{column} has a lone surrogate in it") from None
