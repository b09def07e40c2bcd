"""store.sqlite.handle - the author's handle inside a database step, and its end.

For: `Tx`: one vetted statement at a time, values bound by name, rows as dictionaries.
Never: outlives its step; lets a driver's error out; begins or ends a transaction.
Was wrong once: trusting that the transaction stands because the next statement worked. After
`insert or rollback` it did work, alone, and committed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

import apsw

from onefold.store.sqlite.connect import unusable
from onefold.store.sqlite.law import Law
from onefold.store.sqlite.sql import RESERVED
from onefold.terms.errors import BadStatement, OnefoldError, StepFenced
from onefold.terms.instant import down, text

T = TypeVar("T")
Raw = int | float | str | bytes | None

FETCH_AT_MOST = 32_000_000  # why: `fetch` of a recursion without end filled 300 MB to 1 GB within its second
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(\*/|\Z)", re.DOTALL)
_RESERVED_ROWS = (
    "select type, name, tbl_name, sql from sqlite_schema"
    f" where lower(name) glob '{RESERVED}*' or lower(tbl_name) glob '{RESERVED}*' order by 1, 2"
)


def reserved_schema(conn: apsw.Connection) -> list[Any]:
    """What the schema says about reserved names; the same before and after whatever an author did."""
    return conn.execute(_RESERVED_ROWS).fetchall()


class Handle:
    """See `contract.Tx`. `fence` ends it from any thread; whoever holds `busy` is inside a statement."""

    def __init__(self, conn: apsw.Connection, law: Law, space: str, step: str, baseline: list[Any]) -> None:
        self._conn = conn
        self._law = law
        self._space = space
        self._step = step
        self._baseline = baseline
        self.busy = threading.Lock()
        self.fenced = False
        self.fallen: OnefoldError | None = None
        self._columns: list[str] = []

    def execute(self, sql: str, /, **values: object) -> int:
        """Run one statement. Returns: how many rows it changed. Raises: BadStatement, StepFenced, StoreUnavailable."""
        before = self._conn.total_changes()

        def count(cursor: apsw.Cursor) -> int:
            for _ in cursor:
                pass
            return self._conn.changes() if self._conn.total_changes() != before else 0

        return self._run(sql, values, count)

    def fetch(self, sql: str, /, **values: object) -> list[dict[str, object]]:
        """All rows of one statement, by column name. Raises: as `execute`."""

        def read(cursor: apsw.Cursor) -> list[dict[str, object]]:
            rows: list[dict[str, object]] = []
            size = 0
            for row in cursor:
                size += 100 + sum([len(cell) if isinstance(cell, str | bytes) else 8 for cell in row])
                if size > FETCH_AT_MOST:
                    cursor.close(True)
                    raise BadStatement(f"its rows hold more than {FETCH_AT_MOST} bytes; fetch fewer at a time", sql)
                rows.append(dict(zip(self._columns, row, strict=True)))
            return rows

        return self._run(sql, values, read)

    def fetch_one(self, sql: str, /, **values: object) -> dict[str, object] | None:
        """The first row, or None. Raises: as `execute`."""

        def read(cursor: apsw.Cursor) -> dict[str, object] | None:
            row = cursor.fetchone()
            cursor.close(True)
            return None if row is None else dict(zip(self._columns, row, strict=True))

        return self._run(sql, values, read)

    def fence(self) -> None:
        """Nothing more through this handle; a statement under way is interrupted. From any thread."""
        self.fenced = True
        self._conn.interrupt()

    def _run(self, sql: str, values: Mapping[str, object], read: Callable[[apsw.Cursor], T]) -> T:
        with self.busy:
            if self.fenced:
                raise StepFenced(self._step)
            if self.fallen is not None:
                raise self.fallen
            bound = {name: _cell(name, value, sql) for name, value in values.items()}
            self._law.begin()
            try:
                cursor = self._conn.cursor()
                cursor.exec_trace = self._traced(sql, bound)
                cursor.execute(sql, bound, can_cache=False)
                answer = read(cursor)
            except (apsw.Error, KeyError, OverflowError, UnicodeError, ValueError) as error:
                raise self._told(error, sql) from error
            finally:
                self._law.end()
                self._look_after(sql)
            if self.fallen is not None:
                raise self.fallen
            return answer

    def _traced(self, sql: str, bound: Mapping[str, Raw]) -> Callable[..., bool]:
        """Called between prepare and the first step: what the text of the statement must be like."""

        seen = False

        def check(cursor: apsw.Cursor, first: str, _: Any) -> bool:
            nonlocal seen
            if seen:
                return True  # what is behind the statement: comments, as was seen before it ran
            seen = True
            if _COMMENT.sub("", sql[len(first) :]).strip(" \t\r\n;"):
                raise BadStatement("one statement at a time; give each a call of its own", sql)
            names = cursor.bindings_names
            if any(name is None or name.isdigit() for name in names):
                raise BadStatement("values are bound by name, as in `:name`", sql)
            if unused := sorted(bound.keys() - set(names)):
                raise BadStatement(f"it has no :{unused[0]}", sql)
            self._columns = [column[0] for column in cursor.get_description()]
            if len(set(self._columns)) < len(self._columns):
                raise BadStatement("two of its columns have one name; name them apart with AS", sql)
            return True

        return check

    def _look_after(self, sql: str) -> None:
        """Whatever the statement did or raised: does the transaction stand, and is the reserved part untouched?"""
        if self.fallen is not None or self.fenced:
            return
        if not self._conn.in_transaction:
            self.fallen = BadStatement("it ended the transaction of its step, which therefore failed", sql)
        elif self._law.changes_schema and reserved_schema(self._conn) != self._baseline:
            self.fallen = BadStatement("it changed a reserved name, so that its step failed", sql)

    def _told(self, error: Exception, sql: str) -> OnefoldError:
        if self.fenced:
            return StepFenced(self._step)
        if self._law.why is not None:
            return BadStatement(self._law.why, sql)
        if isinstance(error, KeyError):
            return BadStatement(f"no value came for :{error.args[0]}", sql)
        if isinstance(error, apsw.TooBigError):
            return BadStatement("a value or the statement is too long", sql)
        if isinstance(error, apsw.Error) and not isinstance(error, apsw.ReadOnlyError):
            told = unusable(self._space, error)
            if told is not None:
                return told
        return BadStatement(str(error), sql)


def _cell(name: str, value: object, sql: str) -> Raw:
    """A value as it is bound. Raises: BadStatement."""
    if value is None or isinstance(value, int | float | bytes):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, str):
        if "\0" in value:
            raise BadStatement(f":{name} has a NUL in it", sql)
        return value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return text(down(value, what=name))
    raise BadStatement(f":{name} is a {type(value).__name__}; bind numbers, text, bytes, Decimal or an instant", sql)
