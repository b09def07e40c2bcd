"""store.sqlite.author - the one narrow door for an author's SQL.

For: a database step in a thread of its own, on a connection of its own, inside one physical
commit with its journal; the author's migrations; looking at the author's tables.
Never: lets two steps in at once (the lane holds everybody else); commits without the journal.
Was wrong once: the step as one more body of the batch. A constraint declared `on conflict
rollback` ended everybody's transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import apsw

from onefold.store.contract import Tx
from onefold.store.schema import still_to_run
from onefold.store.sqlite.connect import BUSY_TRIES, unusable
from onefold.store.sqlite.handle import Handle, reserved_schema
from onefold.store.sqlite.law import SEARCHING, Law, guarded_format, guarded_search, reserved
from onefold.store.worker import Worker, heard
from onefold.terms.errors import BadStatement, Finding, LoadRefused, NotFound, StepFenced

T = TypeVar("T")
R = TypeVar("R")

MIGRATE_MS = 60_000
LOOK_MS = 2_000
STEPS = 10_000  # virtual machine steps between two looks at the fence; why: about 0.1 ms of work
LIMITS = (
    (apsw.SQLITE_LIMIT_LENGTH, 16_000_000),
    (apsw.SQLITE_LIMIT_SQL_LENGTH, 1_000_000),
    (apsw.SQLITE_LIMIT_ATTACHED, 0),
    (apsw.SQLITE_LIMIT_EXPR_DEPTH, 200),
    (apsw.SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),  # why: one of 990 in 7 MB took 6.8 s, deaf to interrupts
    (apsw.SQLITE_LIMIT_TRIGGER_DEPTH, 20),
    (apsw.SQLITE_LIMIT_WORKER_THREADS, 0),
)
_TABLES = "select name from sqlite_schema where type='table' order by name"
_MIGRATIONS = "create table if not exists _onefold__author(number integer primary key, checksum text not null) strict"


class Door:
    """The author's connection to one space. `connect` opens it; it is opened when first needed."""

    def __init__(self, space: str, connect: Callable[[], apsw.Connection]) -> None:
        self._space = space
        self._connect = connect
        self._law = Law()
        self._conn: apsw.Connection | None = None
        self._plain: apsw.Connection | None = None
        self._baseline: list[Any] = []
        self._handle: Handle | None = None
        self._worker: Worker | None = None

    async def run(
        self, step: Callable[[Tx], T], budget_ms: int, finish: Callable[[apsw.Connection, T], R], *, named: str = ""
    ) -> R:
        """Run `step` in a thread inside a transaction, then `finish` on the loop's thread, which commits.

        Whatever raises, the transaction is rolled back first. Raises: StepFenced past `budget_ms`
        milliseconds; BadStatement when the step ended its transaction; whatever `step` or `finish` raised.
        """
        name = named or str(getattr(step, "__name__", "step"))
        with self._guarded():
            conn = self._open()
            _begin(conn)
            handle = self._handle = Handle(conn, self._law, self._space, name, self._baseline)
            try:
                result = await self._inside(handle, partial(step, handle), budget_ms / 1000, name)
                if handle.fallen is not None:
                    raise handle.fallen
                if handle.fenced:
                    raise StepFenced(name)  # the space was closed meanwhile
                return finish(conn, result)
            finally:
                handle.fenced = True
                self._handle = None
                self._leave(conn)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """An error of the disk closes the connection; whoever comes next opens another. Raises: StoreUnavailable."""
        try:
            yield
        except apsw.Error as error:
            self.close()
            told = unusable(self._space, error)
            if told is None:
                raise
            raise told from error

    async def migrate(self, statements: Sequence[str]) -> None:
        """Run each of `statements` once, in order, all in one commit. Raises: LoadRefused, BadStatement."""
        with self._guarded():
            conn = self._open()
            conn.execute(_MIGRATIONS)
            self._baseline = reserved_schema(conn)
            done = [d for (d,) in conn.execute("select checksum from _onefold__author order by number")]
        todo = still_to_run(statements, done, self._space)
        if not todo:
            return

        def run(tx: Tx) -> None:
            for one in todo:
                tx.execute(one.sql)

        def note(conn: apsw.Connection, _: None) -> None:
            conn.executemany("insert into _onefold__author values(?,?)", [(one.number, one.checksum) for one in todo])
            conn.execute("commit")

        try:
            await self.run(run, MIGRATE_MS, note, named="migrations")
        except BadStatement as bad:
            raise LoadRefused([Finding(f"the migrations of {self._space}", str(bad))]) from bad

    def tables(self) -> list[str]:
        with self._guarded():
            return [name for (name,) in self._open().execute(_TABLES) if not reserved(name)]

    async def rows(self, table: str, limit: int, after: int | None) -> tuple[list[str], list[Any], int | None]:
        """A page of one table. Raises: NotFound; StepFenced when computing its columns takes too long."""
        if table not in self.tables():
            raise NotFound("table", table)
        with self._guarded():
            text, by_offset = _page(self._open(), table)
        start = after if after is not None else 0 if by_offset else -(2**63)
        found = await self.run(
            lambda tx: tx.fetch(text, start=start, size=limit + 1),
            LOOK_MS,
            lambda _, rows: rows,
            named=f"look at {table}",
        )
        page = found[:limit]
        with self._guarded():
            columns = [c for c in found[0] if c != _PLACE] if found else _columns(self._open(), table)
        following = None
        if len(found) > limit:
            last = page[-1][_PLACE] if page else start
            following = start + len(page) if by_offset else int(str(last))
        return columns, [tuple([row[c] for c in columns]) for row in page], following

    def close(self) -> None:
        """Close the connection; it is opened again when needed. A step under way is fenced."""
        if self._handle is not None:
            self._handle.fence()
        conn, self._conn = self._conn, None
        if conn is not None:
            # A step's thread may still be inside: it was interrupted, and its connection goes with it.
            with suppress(apsw.ThreadingViolationError):
                conn.close(True)
        if self._worker is not None:
            self._worker.leave()
            self._worker = None

    def _open(self) -> apsw.Connection:
        if self._conn is not None:
            return self._conn
        conn = self._connect()
        for limit, value in LIMITS:
            conn.limit(limit, value)
        conn.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        conn.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
        self._baseline = reserved_schema(conn)
        self._plain = apsw.Connection(":memory:")
        self._plain.limit(apsw.SQLITE_LIMIT_LENGTH, 16_000_000)
        flags = apsw.SQLITE_INNOCUOUS
        for name in ("printf", "format"):
            form = partial(guarded_format, self._plain)
            conn.create_scalar_function(name, form, -1, deterministic=True, flags=flags)
        conn.authorizer = self._law
        conn.set_progress_handler(self._late, STEPS)
        for name in SEARCHING:
            search = partial(guarded_search, self._plain, name)
            conn.create_scalar_function(name, search, -1, deterministic=True, flags=flags)
        self._conn = conn
        return conn

    def _leave(self, conn: apsw.Connection) -> None:
        """Leave the transaction of a step, unless its commit took the connection down."""
        try:
            if conn.in_transaction:
                conn.execute("rollback")
        except apsw.ConnectionClosedError:
            self._conn = None

    def _late(self) -> bool:
        return self._handle is not None and self._handle.fenced

    async def _inside(self, handle: Handle, call: Callable[[], T], budget_s: float, name: str) -> T:
        """Run `call` in the worker's thread; past the budget, or cancelled, fence it and wait for its statement's end."""
        if self._worker is None:
            self._worker = Worker(self._space)
        answer = self._worker.ask(call)
        try:
            async with asyncio.timeout(budget_s):
                return await asyncio.shield(answer)
        except (TimeoutError, asyncio.CancelledError) as late:
            if answer.done() and not answer.cancelled() and isinstance(late, TimeoutError):
                return answer.result()
            self._worker.leave()
            self._worker = None
            answer.add_done_callback(heard)
            handle.fence()
            while not handle.busy.acquire(blocking=False):
                handle.fence()
                await asyncio.sleep(0.002)
            handle.busy.release()
            if isinstance(late, TimeoutError):
                raise StepFenced(name) from None
            raise


def _begin(conn: apsw.Connection) -> None:
    for left in range(BUSY_TRIES, -1, -1):
        try:
            conn.execute("begin immediate")
            return
        except apsw.BusyError:
            if not left:
                raise


_PLACE = "_onefold_place"


def _columns(conn: apsw.Connection, table: str) -> list[str]:
    """The declared columns of a table that is known to exist."""
    return [row[0] for row in conn.execute("select name from pragma_table_xinfo(?) where hidden in (0,2,3)", (table,))]


def _page(conn: apsw.Connection, table: str) -> tuple[str, bool]:
    """The text of one page, and whether its place is an offset (a table without a rowid to go by)."""
    name = '"' + table.replace('"', '""') + '"'
    columns = {c.lower() for c in _columns(conn, table)}
    rowless = conn.execute("select wr from pragma_table_list(?) where schema='main'", (table,)).fetchall()[0][0]
    place = next((p for p in ("rowid", "_rowid_", "oid") if p not in columns), None)
    if rowless or place is None:
        return f"select 0 as {_PLACE}, * from {name} limit :size offset :start", True
    return f"select {place} as {_PLACE}, * from {name} where {place}>:start order by {place} limit :size", False
