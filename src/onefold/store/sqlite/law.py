"""store.sqlite.law - what SQL an author may run, decided when it is prepared.

For: the authorizer's answers with a reason each, the guards over functions that hear no interrupt, what a name may be.
Never: runs a statement; trusts the authorizer alone (it never sees a table's new name: door
compares the reserved part of the schema after every change of it).
Was wrong once: a list of what is forbidden. The next release of SQLite added a way around it;
now whatever is not allowed by name is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import apsw

from onefold.store.sqlite.sql import RESERVED

FORMAT_AT_MOST = 1_000_000
# why: `printf('%.*c', 999999999, 'x')` ran 6.7 s under a length limit, deaf to interrupts;
# one of a million characters takes some milliseconds.

_SCHEMA = {"sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"}
_COUNTER = "sqlite_sequence"  # what AUTOINCREMENT counts in; SQLite makes it with the first such table
_MACHINERY = {"dbstat", "bytecode", "tables_used", "carray", "completion", "fts5vocab"}
_UNSAFE = {"load_extension", "fts3_tokenizer", "fts5", "sqlite_log", "readfile", "writefile", "edit"}
_MAKES = {
    apsw.SQLITE_CREATE_TABLE: False,
    apsw.SQLITE_CREATE_VIEW: False,
    apsw.SQLITE_CREATE_INDEX: True,
    apsw.SQLITE_CREATE_TRIGGER: True,
    apsw.SQLITE_DROP_TABLE: False,
    apsw.SQLITE_DROP_VIEW: False,
    apsw.SQLITE_DROP_INDEX: True,
    apsw.SQLITE_DROP_TRIGGER: True,
}  # whether the second name is a table
_DROPS = {
    apsw.SQLITE_DROP_TABLE,
    apsw.SQLITE_DROP_VIEW,
    apsw.SQLITE_DROP_INDEX,
    apsw.SQLITE_DROP_TRIGGER,
}
_WHY: Mapping[int, str] = {
    apsw.SQLITE_TRANSACTION: "a database step is one transaction already; leave out BEGIN, COMMIT and ROLLBACK",
    apsw.SQLITE_SAVEPOINT: "a database step is one transaction already; leave out SAVEPOINT",
    apsw.SQLITE_ATTACH: "other files are out of reach; leave out ATTACH and VACUUM",
    apsw.SQLITE_DETACH: "other files are out of reach; leave out DETACH",
    apsw.SQLITE_PRAGMA: "PRAGMA is not available; how the database is kept is not the program's business",
    apsw.SQLITE_CREATE_VTABLE: "virtual tables are not available; use an ordinary table",
    apsw.SQLITE_DROP_VTABLE: "virtual tables are not available; use an ordinary table",
    apsw.SQLITE_ANALYZE: "ANALYZE is not available",
    apsw.SQLITE_REINDEX: "REINDEX is not available",
}
_READS = {apsw.SQLITE_READ, apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}


def reserved(name: str | None) -> bool:
    """Whether a name belongs to the store or to SQLite."""
    low = (name or "").lower()
    return low.startswith((RESERVED[:-1], "sqlite_", "pragma_")) or low in _MACHINERY


class Law:
    """The authorizer of one connection. Armed around the author's statements only; `why` says what it refused."""

    def __init__(self) -> None:
        self.armed = False
        self.changes_schema = False
        self.why: str | None = None
        self._op = 0

    def begin(self) -> None:
        """A new statement of the author's comes."""
        self.armed, self.changes_schema, self.why, self._op = True, False, None, 0

    def end(self) -> None:
        self.armed = False

    def __call__(self, op: int, one: str | None, two: str | None, database: str | None, within: str | None) -> int:
        if not self.armed:
            return apsw.SQLITE_OK
        why = self._judge(op, one, two, database)
        if why is None:
            return apsw.SQLITE_OK
        self.why = self.why or why
        return apsw.SQLITE_DENY

    def _judge(self, op: int, one: str | None, two: str | None, database: str | None) -> str | None:
        if op in (apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE) or self._op == apsw.SQLITE_ALTER_TABLE:
            return None  # nothing of an ALTER is the author's but its first line: it reads the schema, and checks rows
        if op == apsw.SQLITE_FUNCTION:
            return self._function(two or "")
        if op in _READS:
            return self._access(op, one or "", two or "", database)
        if op in _MAKES or op == apsw.SQLITE_ALTER_TABLE:
            return self._make(op, one, two, database)
        if op == apsw.SQLITE_REINDEX and self._op == apsw.SQLITE_CREATE_INDEX:
            return None
        return _WHY.get(op, "this kind of statement is not available; temporary tables are not either")

    def _function(self, name: str) -> str | None:
        low = name.lower()
        if low in _UNSAFE or (low.startswith("sqlite_") and low != "sqlite_version"):
            return f"the function {name} is not available"
        return None

    def _access(self, op: int, table: str, column: str, database: str | None) -> str | None:
        if table.lower() in _SCHEMA:
            # Writes to it come from SQLite's own work on CREATE, DROP and ALTER; it refuses all others itself.
            if op != apsw.SQLITE_READ or self._op in _DROPS or (self._op and column == "ROWID"):
                return None
            return "the schema's own table is out of reach"
        if database not in (None, "main"):
            return "only the actuator's own tables are in reach"
        if reserved(table) and table != _COUNTER:
            return f"the table {table} is reserved"
        return None

    def _make(self, op: int, one: str | None, two: str | None, database: str | None) -> str | None:
        self._op = self._op or op
        self.changes_schema = True
        if op == apsw.SQLITE_ALTER_TABLE:
            return f"the table {two} is reserved" if reserved(two) else None
        if database not in (None, "main"):
            return "temporary tables, views and triggers are not available"
        if reserved(one) and not (one or "").startswith("sqlite_autoindex_") and one != _COUNTER:
            return f"the name {one} is reserved"
        if _MAKES[op] and reserved(two):
            return f"the table {two} is reserved"
        return None


SEARCHING = {"instr": 10**9, "replace": 10**9, "json_patch": 10**9, "trim": 10**8, "ltrim": 10**8, "rtrim": 10**8}
# the product of two lengths. why: these compare each place of one value with all of the other, within one call that
# hears no interrupt: `instr` of 3 MB in 7 MB took hours. Below these products each takes less than a second.


def guarded_search(plain: apsw.Connection, name: str, *values: object) -> object:
    """One of `SEARCHING` as SQLite has it, without work that nobody could end."""
    sizes = [len(value) for value in values[:2] if isinstance(value, str | bytes)]
    if len(sizes) == 2 and sizes[0] * sizes[1] > SEARCHING[name]:
        raise ValueError(f"{name} of two values this long is not available")
    marks = ",".join("?" * len(values))
    return plain.execute(f"select {name}({marks})", values).fetchall()[0][0]


_WIDE = re.compile(r"\d{7,}")


def guarded_format(plain: apsw.Connection, form: object, *values: object) -> object:
    """`printf` and `format` as SQLite has them, without results beyond a million characters a value."""
    if isinstance(form, str):
        huge = "*" in form and any(isinstance(v, int | float) and abs(v) > FORMAT_AT_MOST for v in values)
        if huge or _WIDE.search(form):
            raise ValueError(f"a width or precision above {FORMAT_AT_MOST} is not available")
    marks = ",".join("?" * (len(values) + 1))
    return plain.execute(f"select printf({marks})", (form, *values)).fetchall()[0][0]
