"""store.sqlite.tables - the verbs on one table, as few statements as they allow.

For: a `Plan` for each declared table: texts compiled once, rows bound as the tuples they are.
Never: opens or ends a transaction; knows chains beyond being overridden by one (chain does).
Was wrong once: `on conflict do nothing` and counting afterwards. Which row had been met was
then a guess; a plain insert stops exactly at it, and costs nothing where none is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from operator import itemgetter
from typing import Any

import apsw

from onefold.store.batch import Met
from onefold.store.contract import Append, Cas, Cell, Claim, Condition, Put, Query, Remove, Row, Still, Table
from onefold.store.rows import changed, check_row, narrowed, ordered
from onefold.store.sqlite import sql

SPLIT_AT_MOST = 64
# why: an ordered look with `in` is one short statement a value, read in index order; beyond
# this many values one statement that sorts is cheaper.

_MET = (apsw.SQLITE_CONSTRAINT_PRIMARYKEY, apsw.SQLITE_CONSTRAINT_UNIQUE, apsw.SQLITE_CONSTRAINT_ROWID)


class Plan:
    """One table on one connection. `db` is replaced when the file is opened anew."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.db: Any = None
        self.insert = sql.insert(table)
        self._put = sql.put(table)
        self._select = sql.select(table)
        self._get = sql.select_by(table, table.key)
        self._delete = sql.delete(table)
        self._key_at = [table.at[k] for k in table.key]
        self._texts: dict[Any, str] = {}
        self._aliases: list[Table] = []
        self.latest = itemgetter(self._key_at[0])
        # SQLite would number a row itself whose whole key is one integer and None.
        self._numbered = len(table.key) == 1 and table.columns[self._key_at[0]].kind == "int"

    # --- reading ---------------------------------------------------------------------------

    def find(self, query: Query) -> list[Row]:
        if query.keys is not None:
            rows = self.by_keys(tuple(query.on), [tuple(k) for k in query.keys], query.where)
            if len(rows) > 1 and query.order:
                rows = ordered(self.table, rows, query.order)
            return narrowed(query, rows)
        if query.each is None and (query.limit is None or not query.order):
            return self.where(query.where, query.order, query.limit)
        return narrowed(query, self._spread(query))

    def by_keys(self, on: tuple[str, ...], keys: Sequence[Row], where: tuple[Condition, ...] = ()) -> list[Row]:
        """Rows whose `on` cells equal one of `keys`, by key in the given order."""
        if not where:
            text = self._texts.get(on)
            if text is None:
                text = self._texts[on] = sql.select_by(self.table, on)
            if len(keys) == 1:
                return self.db.execute(text, keys[0]).fetchall()  # type: ignore[no-any-return]
            return self.db.executemany(text, dict.fromkeys(keys)).fetchall()  # type: ignore[no-any-return]
        text = f"{sql.select_by(self.table, on)} and {sql.filtered(where)}"
        tail = sql.bound(where)
        return self.db.executemany(text, [(*k, *tail) for k in dict.fromkeys(keys)]).fetchall()  # type: ignore[no-any-return]

    def where(self, where: tuple[Condition, ...], order: tuple[str, ...], limit: int | None) -> list[Row]:
        values = sql.bound(where)
        shape = (sql.shape(where), order, limit is None)
        text = self._texts.get(shape)
        if text is None:
            text = (
                f"{self._select} where {sql.filtered(where)}{sql.order_by(order)}{'' if limit is None else ' limit ?'}"
            )
            self._texts[shape] = text
        if limit is not None:
            values.append(limit)
        return self.db.execute(text, values).fetchall()  # type: ignore[no-any-return]

    def get(self, keys: Sequence[Row]) -> list[Row]:
        """Rows by primary key, in the given order."""
        return self.by_keys(self.table.key, keys)

    def _spread(self, query: Query) -> list[Row]:
        """An ordered look with a limit: one statement a value of `each` and of `in`, so that an index gives the order."""
        fixed = [c for c in query.where if c[1] != "in"]
        spread = [(c[0], list(dict.fromkeys(c[2]))) for c in query.where if c[1] == "in"]
        k = query.limit
        if query.each is not None:
            spread.insert(0, (query.each.column, list(dict.fromkeys(query.each.values))))
            k = query.each.k
        size = 1
        for _, values in spread:
            size *= len(values)
        if size > SPLIT_AT_MOST and query.each is None:
            return self.where(query.where, query.order, query.limit)
        rows: list[Row] = []
        for cells in product(*(values for _, values in spread)):
            chosen: tuple[Condition, ...] = tuple([(c, "=", v) for (c, _), v in zip(spread, cells, strict=True)])
            rows += self.where((*chosen, *fixed), query.order, k)
        return ordered(self.table, rows, query.order) if size > 1 else rows

    # --- writing ---------------------------------------------------------------------------

    def append(self, verb: Append) -> list[Row | None]:
        """Insert all rows; at each row that is met, note the row that holds the key and go on behind it."""
        rows = verb.rows
        self._check_keys(rows)
        met: list[Row | None] = [None] * len(rows)
        start = 0
        while start < len(rows):
            before = self.db.total_changes()
            try:
                self.db.executemany(self.insert, rows if start == 0 else rows[start:])
                break
            except apsw.ConstraintError as error:
                if _how(error) not in _MET:
                    check_row(self.table, rows[start + self.db.total_changes() - before])
                    raise
                start += self.db.total_changes() - before
                met[start] = self.holder(rows[start])
                start += 1
        return met

    def holder(self, row: Row) -> Row:
        """The row that already holds one of this row's keys."""
        for on in (self.table.key, *self.table.unique):
            cells = tuple([row[self.table.at[c]] for c in on])
            if None not in cells:
                found = self.by_keys(on, [cells])
                if found:
                    return found[0]
        raise AssertionError(f"{self.table.name} met a key that nobody holds")

    def put(self, verb: Put) -> None:
        self._write_rows(self._put, verb.rows)

    def cas(self, verb: Cas, now: int) -> list[Row | None]:
        return [self._cas(tuple(key), expected, new, now) for key, expected, new in verb.rows]

    def claim(self, verb: Claim, now: int) -> list[Row]:
        """The writer is alone, so that what was found is still so when it is set."""
        rows = self.find(Query(self.table, verb.where, order=verb.order, limit=verb.limit))
        after = [changed(self.table, row, verb.set, now) for row in rows]
        self._write_rows(self._put, after)
        return after

    def remove(self, verb: Remove) -> int:
        before: int = self.db.total_changes()
        if verb.keys is not None:
            self.db.executemany(self._delete, verb.keys)
        else:
            text = f"delete from {sql.table_name(self.table)} where {sql.filtered(verb.where)}"
            self.db.execute(text, sql.bound(verb.where))
        return int(self.db.total_changes()) - before

    def still(self, verb: Still) -> None:
        """The writer is alone: what is so now is so to the end of the transaction. Raises: Met."""
        for key, expected in verb.rows:
            found = self.db.execute(self._get, tuple(key)).fetchall()
            if not found or any(found[0][self.table.at[c]] != v for c, v in expected.items()):
                raise Met(self.table.name)

    def _cas(self, key: Row, expected: Any, new: Any, now: int) -> Row | None:
        found = self.db.execute(self._get, key).fetchall()
        if not found or any(found[0][self.table.at[c]] != v for c, v in expected.items()):
            return None
        after = changed(self.table, found[0], new, now)
        if after != found[0]:
            self._write_rows(self._put, [after])
        return after

    def _check_keys(self, rows: Sequence[Row]) -> None:
        if self._numbered and None in map(self.latest, rows):
            for row in rows:
                check_row(self.table, row)

    def _write_rows(self, text: str, rows: Sequence[Row]) -> None:
        self._check_keys(rows)
        try:
            self.db.executemany(text, rows)
        except apsw.ConstraintError as error:
            if _how(error) in _MET:
                raise Met(self.table.name) from error
            for row in rows:
                check_row(self.table, row)
            raise

    def alias(self, table: Table) -> Table:
        """Keep an equal declaration alive, so that its identity stays its own."""
        self._aliases.append(table)
        return table

    def primary(self, row: Row) -> tuple[Cell, ...]:
        return tuple([row[i] for i in self._key_at])


def _how(error: apsw.ConstraintError) -> int:
    """SQLite's extended code: which kind of constraint it was."""
    return int(getattr(error, "extendedresult", 0))
