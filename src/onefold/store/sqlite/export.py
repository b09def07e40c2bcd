"""store.sqlite.export - an author's tables as a file of their own.

For: `Copy`, which takes all that an author has made, as it was at one instant, into a new SQLite file; `write_dump`,
the same as SQL text; `Made`, a file for rows of another store.
Never: takes a reserved table along; stops a commit (the instant is a reader's, and the lane is not held for it).
Was wrong once: `vacuum into`, and the store's own tables dropped from the result. What other principals' runs had
journaled was still in the free pages of the file. And one text that is no UTF-8: no dump of its table was ever made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import apsw

from onefold.store.sqlite.connect import BUSY_MS, unusable
from onefold.store.sqlite.law import reserved
from onefold.store.worker import Worker, heard

T = TypeVar("T")
_PLAIN = (
    "pragma page_size=4096",
    "pragma journal_mode=off",  # why: an export that was cut off is thrown away whole
    "pragma synchronous=off",
    "pragma foreign_keys=off",
    "pragma ignore_check_constraints=on",  # they held when the row was written
    "pragma trusted_schema=off",
)
_SCHEMA = "select type, name, sql from {}.sqlite_schema where sql is not null order by rowid"
_COLUMNS = "select name from pragma_table_xinfo(?, ?) where hidden=0"
_ROWLESS = "select wr from pragma_table_list(?) where schema=?"
_COUNTED = "select count(*) from {}.sqlite_schema where name='sqlite_sequence'"


def uri(path: str, *, vfs: str | None = None) -> str:
    """A file as a connection attaches it for reading alone."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?mode=ro" + (f"&vfs={vfs}" if vfs else "")


def fresh(into: str) -> apsw.Connection:
    """A new file, for one writer who throws it away should anything fail."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    conn = apsw.Connection(into, flags=flags)
    try:
        conn.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # the source is its store's to check in
        conn.set_busy_timeout(BUSY_MS)
        for pragma in _PLAIN:
            conn.execute(pragma).fetchall()
    except BaseException:
        conn.close()
        raise
    return conn


class Copy:
    """The author's part of `source`, at the instant at which this is made, for a new file at `into`."""

    def __init__(self, source: str, into: str) -> None:
        self._conn = fresh(into)
        try:
            self._conn.execute("attach ? as source", (source,))
            self._conn.execute("begin")
            made: list[Any] = self._conn.execute(_SCHEMA.format("source")).fetchall()
            self._made = [row for row in made if not reserved(row[1])]
        except BaseException:
            self.close()
            raise

    def run(self) -> None:
        """In a thread: the tables with their rows first, then what would slow them down or act on them."""
        for kind, name, sql in self._made:
            if kind == "table":
                self._conn.execute(sql)
                self._rows(name)
        for last in ("index", "view", "trigger"):
            for kind, _, sql in self._made:
                if kind == last:
                    self._conn.execute(sql)
        if self._conn.execute(_COUNTED.format("main")).fetchall()[0][0]:
            self._conn.execute("delete from main.sqlite_sequence")
            counted: list[Any] = self._conn.execute("select name, seq from source.sqlite_sequence").fetchall()
            self._conn.executemany(
                "insert into main.sqlite_sequence values(?,?)", [row for row in counted if not reserved(row[0])]
            )
        self._conn.execute("commit")

    def stop(self) -> None:
        """From another thread: the statement under way ends, and `run` raises."""
        self._conn.interrupt()

    def close(self) -> None:
        self._conn.close(True)

    def _rows(self, table: str) -> None:
        listed = ",".join(columns(self._conn, "source", table))
        name = quoted(table)
        if listed:
            self._conn.execute(f"insert into main.{name}({listed}) select {listed} from source.{name}")


class Made:
    """A new file for rows that come from another kind of store. Its calls may come from any thread, one at a time."""

    def __init__(self, into: str) -> None:
        self._conn = fresh(into)
        try:
            self._conn.execute("begin")
        except BaseException:
            self.close()
            raise

    def table(self, name: str, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> None:
        """`columns`: each with its type. A table of no columns is left out: this store has none."""
        parts = [f"{quoted(column)} {kind}" for column, kind in columns]
        if key:
            parts.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
        if columns:
            self._conn.execute(f"CREATE TABLE {quoted(name)} ({', '.join(parts)})")

    def rows(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows and rows[0]:
            marks = ",".join("?" * len(rows[0]))
            self._conn.executemany(f"insert into {quoted(name)} values({marks})", rows)

    def commit(self) -> None:
        self._conn.execute("commit")

    def close(self) -> None:
        self._conn.close(True)


def columns(conn: apsw.Connection, schema: str, table: str, *, place: bool = True) -> list[str]:
    """What is stored of a table, quoted: its columns without the computed ones. `place`: behind the number of its rows,
    where those have one that a name is left for."""
    names = [name for (name,) in conn.execute(_COLUMNS, (table, schema))]
    taken = {name.lower() for name in names}
    rowless = not place or any(wr for (wr,) in conn.execute(_ROWLESS, (table, schema)))
    found = None if rowless else next((p for p in ("rowid", "_rowid_", "oid") if p not in taken), None)
    return [*([found] if found and names else []), *map(quoted, names)]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Export:
    """One export. Made where nobody commits, which is its instant; `run` goes on beside commits."""

    def __init__(self, space: str, source: str, into: str, *, sql: bool) -> None:
        """Raises: StoreUnavailable."""
        self._space = space
        self._into = into
        self._made = f"{into}.made" if sql else into
        with told(space):
            self._copy = Copy(source, self._made)

    async def run(self) -> None:
        """What was begun is there when it raises. Raises: StoreUnavailable."""
        try:
            with told(self._space):
                try:
                    await beside(self._space, self._copy.run, self._copy.stop)
                finally:
                    self._copy.close()
                if self._made != self._into:
                    await dumped(self._space, self._made, self._into)
        finally:
            if self._made != self._into:
                with suppress(OSError):
                    os.unlink(self._made)


@contextmanager
def told(space: str) -> Iterator[None]:
    """What the driver or the disk says as ours. Raises: StoreUnavailable."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        known = unusable(space, error)
        if known is None:
            raise
        raise known from error


async def beside(space: str, call: Callable[[], T], stop: Callable[[], None]) -> T:
    """What `call` gives in a thread of its own; cancelled, `stop` ends it first."""
    worker = Worker(space)
    answer = worker.ask(call)
    try:
        return await asyncio.shield(answer)
    except asyncio.CancelledError:
        answer.add_done_callback(heard)
        while not answer.done():
            stop()
            await asyncio.wait([answer], timeout=0.05)
        raise
    finally:
        worker.leave()


# --- as text --------------------------------------------------------------------------------------------


async def dumped(space: str, made: str, into: str) -> None:
    """The file `made` as SQL text at `into`."""
    going = [True]
    await beside(space, lambda: write_dump(made, into, going), going.clear)


def write_dump(made: str, into: str, going: list[bool]) -> None:
    """As long as there is something in `going`."""
    conn = apsw.Connection(made, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        with open(into, "w", encoding="utf-8", newline="\n") as out:
            for line in _lines(conn):
                if not going:
                    return
                out.write(line)
    finally:
        conn.close(True)


def _lines(conn: apsw.Connection) -> Iterator[str]:
    made: list[Any] = conn.execute(_SCHEMA.format("main")).fetchall()
    yield "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n"
    for kind, name, sql in made:
        if kind == "table" and not reserved(name):
            yield f"{_ended(sql)}\n"
            yield from _inserts(conn, name)
    if conn.execute(_COUNTED.format("main")).fetchall()[0][0]:
        yield "DELETE FROM sqlite_sequence;\n"
        yield from _inserts(conn, "sqlite_sequence")
    for last in ("index", "view", "trigger"):
        for kind, _, sql in made:
            if kind == last:
                yield f"{_ended(sql)}\n"
    yield "COMMIT;\n"


def _inserts(conn: apsw.Connection, table: str) -> Iterator[str]:
    names, name = columns(conn, "main", table, place=False), quoted(table)
    if not names:
        return
    head, whole, went = f"INSERT INTO {name}({','.join(names)}) VALUES(", True, 0
    try:
        for row in conn.execute(f"select {','.join(names)} from main.{name} not indexed"):
            yield f"{head}{','.join(map(apsw.format_sql_value, row))});\n"
            went += 1
    except UnicodeDecodeError:
        whole = False
    if not whole:
        for cells in _as_bytes(conn, name, names, went):
            yield f"{head}{','.join(cells)});\n"


def _as_bytes(conn: apsw.Connection, name: str, names: Sequence[str], went: int) -> Iterator[list[str]]:
    """The values of the rows behind so many, as SQL. A text may be bytes that are none: an author can cast them to it."""
    raw = ",".join(f"case typeof({each}) when 'text' then cast({each} as blob) else {each} end" for each in names)
    texts = ",".join(f"typeof({each})='text'" for each in names)
    rows, which = (
        conn.execute(f"select {c} from main.{name} not indexed limit -1 offset {went}") for c in (raw, texts)
    )
    for row, are in zip(rows, which, strict=True):
        yield [_text(cell) if is_text else apsw.format_sql_value(cell) for cell, is_text in zip(row, are, strict=True)]


def _text(raw: Any) -> str:
    try:
        return apsw.format_sql_value(raw.decode())
    except UnicodeDecodeError:
        return f"CAST(X'{raw.hex()}' AS TEXT)"


def _ended(sql: str) -> str:
    """A statement as SQLite keeps it, with its semicolon where that ends it: the text may end within a comment."""
    return next((whole for end in (";", "\n;", "*/;") if apsw.complete(whole := sql + end)), f"{sql}\n;")
