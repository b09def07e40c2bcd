"""store.sqlite.engine - the one writer of one file.

For: opening and checking a file, `begin` .. `commit` with all that rides along (lagging
lookups, reserved numbers, the mark), what an error leaves behind.
Never: decides who takes part (lane and batch do); runs the author's SQL (author does).
Was wrong once: going on with the connection after COMMIT had raised. An error of the WAL's
sync left a commit that no connection saw and that the next crash brought back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from onefold.store.batch import Fell, Lost, Unusable, attempt
from onefold.store.contract import (
    Answer,
    Append,
    Body,
    Cas,
    Claim,
    Done,
    Outcome,
    Put,
    Query,
    Refused,
    Remove,
    Row,
    Schema,
    Table,
    Unknown,
    Verb,
)
from onefold.store.sqlite import sql
from onefold.store.sqlite.chain import ChainPlan
from onefold.store.sqlite.connect import BUSY_TRIES, Failpoint, Watched, connect, unusable
from onefold.store.sqlite.hold import Mark, Sidecar, boot
from onefold.store.sqlite.migrate import migrate, notes
from onefold.store.sqlite.tables import Plan
from onefold.terms.errors import OnefoldError, StoreLocked, StoreRolledBack, StoreUnavailable

AUTHOR_CACHE_KIB = 2_048
BLOCK = 4096  # numbers reserved at a time; why: one small write each so many rows, a gap of at most so many a crash


@dataclass(frozen=True, slots=True)
class Options:
    """clock: milliseconds since 1970. lossy: a power cut may take the last commits along."""

    clock: Callable[[], int]
    node: str = ""
    lossy: bool = False
    accept_rollback: bool = False
    failpoint: Failpoint | None = None


class SqliteEngine:
    """See `batch.Engine`. Opens its file when first needed and after an error that closed it."""

    def __init__(self, name: str, path: str, schemas: Sequence[Schema], options: Options) -> None:
        self.name = name
        self.path = path
        self.options = options
        self.schemas = tuple(schemas)
        self._plans: dict[int, Plan] = {}
        self._by_name: dict[str, Plan] = {}
        for table in (t for s in schemas for t in s.tables):
            plan = Plan(table) if table.chain is None else ChainPlan(table)
            self._plans[id(table)] = self._by_name[table.name] = plan
        self._chains = [p for p in self._by_name.values() if isinstance(p, ChainPlan)]
        self._serial = [t for s in schemas for t in s.tables if t.serial]
        self._next: dict[str, int] = {}
        self._bound: dict[str, int] = {}
        self._verbs: dict[type, Callable[[Any, Any], Answer]] = {
            Query: lambda plan, verb: plan.find(verb),
            Append: self._append,
            Put: lambda plan, verb: plan.put(verb),
            Cas: lambda plan, verb: plan.cas(verb, self._now),
            Claim: lambda plan, verb: plan.claim(verb, self._now),
            Remove: lambda plan, verb: plan.remove(verb),
        }
        self.conn: apsw.Connection | None = None
        self.db: Any = None
        self.wal_pages = 0
        self._lent: apsw.Connection | None = None  # ours, while the author's connection commits
        self._sidecar: Sidecar | None = None
        self._pid = os.getpid()
        self._now = 0
        self._commits = 0
        self._changes = 0
        self._witness: list[tuple[Plan, Row]] = []
        self._marks: list[int] = []

    # --- opening and closing -----------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self.conn is not None

    def open(self) -> None:
        """Raises: StoreLocked, StoreRolledBack, StoreTooNew, LoadRefused, StoreUnavailable."""
        if self.conn is not None:
            return
        self._pid = os.getpid()
        try:
            if self._sidecar is None:
                self._sidecar = Sidecar(f"{self.path[:-3]}.mark", self.name, self.options.node, self.options.clock())
            self._connect(self._sidecar.before)
        except (apsw.Error, OSError) as error:
            self._drop()
            told = unusable(self.name, error)
            if told is None:
                raise
            raise told from error
        except BaseException:
            self._drop()
            raise

    def close(self) -> None:
        """Write what lags, check the WAL into the main file, and say so in the mark."""
        if self.conn is None or self._sidecar is None:
            self._drop()
            return
        try:
            self._settle_lookups()
            self.conn.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            self.conn.close()
            self.conn = None
            self._sidecar.write(self._top(), self._commits, clean=True)
            self._sidecar.close(sync=True)
            self._sidecar = None
        except (apsw.Error, OSError, Unusable):
            # Nothing answered is lost: the WAL is still there, and the next opening reads it.
            self._drop()

    def abandon(self) -> None:
        """Let go of the file as a kill would. For tests, and for a file that is no longer ours."""
        self._drop()

    def _connect(self, before: Mark | None) -> None:
        accept = self.options.accept_rollback
        if before is not None and not accept and not os.path.exists(self.path):
            raise StoreRolledBack(self.name, before.top, 0)
        self.conn = connect(self.path, lossy=self.options.lossy)
        # A file that is refused must stay as it is: no checkpoint when its connection closes.
        self.conn.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.conn.set_wal_hook(self._wrote_wal)
        self._use(self.conn)
        stat = os.stat(self.path)
        self._inode = (stat.st_dev, stat.st_ino)
        self._begin()
        there = self.conn.table_exists("main", sql.META)
        if before is not None and not accept:
            self._compare(before, notes(self.db) if there else {})
        migrate(self.db, self.schemas, self.name, self.options.clock())
        held = notes(self.db)
        self._load(held)
        self.db.execute("commit")
        assert self._sidecar is not None
        self._sidecar.settle(bytes(held["id"]), boot())
        self._sidecar.write(self._top(), self._commits)

    def _use(self, conn: apsw.Connection) -> None:
        self.db = conn if self.options.failpoint is None else Watched(conn, self.options.failpoint)
        for plan in self._by_name.values():
            plan.db = self.db

    def _compare(self, before: Mark, held: dict[str, Any]) -> None:
        """Raises: StoreRolledBack when the file ends before what was acknowledged; StoreUnavailable for another's file."""
        if held and held["id"] != before.id:
            raise StoreUnavailable(
                self.name, "its file belongs to another store than its mark; put the right file back"
            )
        if self.options.lossy and before.boot != boot():
            return
        top = 0
        for plan in self._chains:
            if self.conn is not None and self.conn.table_exists("main", sql.RESERVED + plan.table.name):
                top += self._highest(plan.table, held)
        if top < before.top:
            raise StoreRolledBack(self.name, before.top, top)
        commits = held.get("commits", 0)
        if commits < before.commits:
            raise StoreRolledBack(self.name, before.commits, commits)

    def _load(self, held: dict[str, Any]) -> None:
        self._commits = held["commits"]
        for plan in self._chains:
            plan.load(held.get(f"marker.{plan.table.name}", 0))
            plan.top = max(plan.top, self._highest(plan.table, held))
        for table in self._serial:
            bound = held.get(f"next.{table.name}", 1)
            self._next[table.name] = max(bound, self._highest(table, {}) + 1)
            self._bound[table.name] = bound

    def _highest(self, table: Table, held: dict[str, Any]) -> int:
        text = f"select max({sql.quoted(table.key[0])}) from {sql.table_name(table)}"
        return int(max(self.db.execute(text).fetchall()[0][0] or 0, held.get(f"top.{table.name}", 0)))

    def _top(self) -> int:
        return sum(plan.top for plan in self._chains)

    def _settle_lookups(self) -> None:
        self.begin()
        try:
            self._commit(everything=True)
        except BaseException:
            self.rollback()
            raise

    def _drop(self) -> None:
        conn, self.conn, self.db = self.conn, None, None
        if conn is not None:
            conn.close()
        if self._sidecar is not None:
            self._sidecar.close(sync=False)
            self._sidecar = None

    # --- the transaction -----------------------------------------------------------------------

    def ready(self) -> None:
        try:
            self.check()
            self.db.execute("begin")
        except (apsw.Error, OSError) as error:
            raise self._unusable(error) from error
        except OnefoldError as error:
            raise Unusable(error) from error
        for plan in self._chains:
            plan.ready()

    def begin(self) -> None:
        try:
            if self.stands():
                self.db.execute("commit")  # what `ready` opened; nobody but us could write meanwhile
            else:
                self.check()
            self._begin()
        except (apsw.Error, OSError) as error:
            raise self._unusable(error) from error
        except OnefoldError as error:
            raise Unusable(error) from error
        self._start()

    def _start(self) -> None:
        self._now = self.options.clock()
        self._changes = self.db.total_changes()
        self._witness.clear()
        self._marks.clear()
        for plan in self._chains:
            plan.begin()

    def run(self, verb: Verb) -> Answer:
        plan = self._plans.get(id(verb.table)) or self._plan(verb.table)
        try:
            return self._verbs[type(verb)](plan, verb)
        except (apsw.Error, OSError) as error:
            raise self._unusable(error) from error

    def look(self, queries: Sequence[Query]) -> tuple[Answer, ...]:
        """Committed rows, all of one moment. Raises: StoreUnavailable and what opening raises."""
        try:
            self.check()
            if len(queries) == 1:
                return (self.run(queries[0]),)
            self.db.execute("begin")
            try:
                return tuple([self.run(q) for q in queries])
            finally:
                self.db.execute("commit")
        except Unusable as fault:
            raise fault.error from fault
        except (apsw.Error, OSError) as error:
            raise self._unusable(error).error from error

    def mark(self) -> None:
        self._send("savepoint body")
        self._marks.append(len(self._witness))
        for plan in self._chains:
            plan.mark()

    def keep(self) -> None:
        self._send("release body")
        self._marks.pop()
        for plan in self._chains:
            plan.keep()

    def back(self) -> None:
        self._send("rollback to body")
        self._send("release body")
        del self._witness[self._marks.pop() :]
        for plan in self._chains:
            plan.back()

    def _send(self, statement: str) -> None:
        try:
            self.db.execute(statement)
        except (apsw.Error, OSError) as error:
            raise self._unusable(error) from error

    def stands(self) -> bool:
        return self.conn is not None and self.conn.in_transaction

    def commit(self) -> None:
        self._commit(everything=False)

    def rollback(self) -> None:
        for plan in self._chains:
            plan.rolled_back()
        self._marks.clear()
        if self.stands():
            try:
                self.db.execute("rollback")
            except (apsw.Error, OSError):
                self._reopen_later()

    def journal(self, conn: apsw.Connection, body: Body[Any]) -> Outcome[Any]:
        """Run `body` in the transaction that is open on the author's connection, and commit it."""
        self._lent, self.conn = self.conn, conn
        self._use(conn)
        self._start()
        self._changes = -1  # the author's writes count
        try:
            outcome = attempt(self, body, alone=False)
            if isinstance(outcome, Done):
                self.commit()
            return outcome
        except (Fell, Unusable) as fell:
            return Refused(fell.error)
        except Lost as lost:
            return Unknown(lost.error)
        finally:
            if self._lent is not None:
                for plan in self._chains:
                    plan.rolled_back()
                self.conn, self._lent = self._lent, None
                self._use(self.conn)

    def author_connection(self) -> apsw.Connection:
        """A second connection to the same file, for the author's door. Never writes at the same time as the first."""
        conn = connect(self.path, lossy=self.options.lossy, cache_kib=AUTHOR_CACHE_KIB)
        conn.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        conn.set_wal_hook(self._wrote_wal)
        return conn

    def checkpoint(self) -> None:
        """Check the WAL into the main file; the next commit then begins it anew. An error leaves the WAL as it is."""
        if self.conn is None or self.conn.in_transaction:
            return
        try:
            size, done = self.conn.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            return  # nothing is lost: the WAL is still whole, and the next commit meets the same disk
        if size == done:
            self.wal_pages = 0

    def mint(self, table: Table) -> int:
        """The next number of a serial key. Raises: what opening raises."""
        if self.conn is None:
            self.open()
        number = self._next[table.name]
        self._next[table.name] = number + 1
        return number

    def check(self) -> None:
        """That this process may write this file now. Opens it when it is closed. Raises: OnefoldError, OSError."""
        if os.getpid() != self._pid:
            raise StoreLocked(self.name, f"process {self._pid}, of which this one is a fork")
        if self.conn is None:
            self.open()
            return
        stat = os.stat(self.path)
        if (stat.st_dev, stat.st_ino) != self._inode or (self._sidecar is not None and self._sidecar.moved()):
            raise StoreUnavailable(
                self.name, "its file was removed or replaced while it was open; restart on the right file"
            )

    def _begin(self) -> None:
        for left in range(BUSY_TRIES, -1, -1):
            try:
                self.db.execute("begin immediate")
                return
            except apsw.BusyError:
                if not left:
                    raise

    def _commit(self, *, everything: bool) -> None:
        fail = self.options.failpoint
        try:
            if fail is not None:
                fail("before-commit")
            moved = [plan.before_commit(everything) for plan in self._chains]
            lines = self._notes(moved, everything)
            if lines:
                self.db.executemany(f"insert or replace into {sql.META} values(?,?)", lines)
        except (apsw.Error, OSError) as error:
            raise self._unusable(error) from error
        try:
            self.db.execute("commit")
            if fail is not None:
                fail("after-commit")
        except (apsw.Error, OSError) as error:
            self._find_out(error)
            moved = []
        self._committed(moved, lines)

    def _notes(self, moved: Sequence[int | None], everything: bool) -> list[tuple[str, Any]]:
        """What must be noted in the same commit."""
        lines: list[tuple[str, Any]] = []
        appended = False
        for plan, marker in zip(self._chains, moved, strict=True):
            appended = appended or plan.appended > 0
            if marker is not None:
                lines.append((f"marker.{plan.table.name}", marker))
            if plan.cut:
                lines.append((f"top.{plan.table.name}", plan.new_top))
        for name, number in self._next.items():
            if number > self._bound[name] or everything:
                lines.append((f"next.{name}", number if everything else number + BLOCK))
        if not appended and self.db.total_changes() != self._changes:
            lines.append(("commits", self._commits + 1))
        return lines

    def _committed(self, moved: Sequence[int | None], lines: Sequence[tuple[str, Any]]) -> None:
        for plan, marker in zip(self._chains, moved, strict=False):
            plan.committed(marker)
        for name, value in lines:
            if name == "commits":
                self._commits = value
            elif name.startswith("next."):
                self._bound[name[5:]] = value
        if self._sidecar is not None:
            self._sidecar.write(self._top(), self._commits)

    # --- after an error ------------------------------------------------------------------------

    def _find_out(self, error: Exception) -> None:
        """COMMIT raised. Open the file anew, empty the WAL, and look for a row of this commit.

        Returns when it is there and durable. Raises: Unusable when it is certainly not; Lost
        when it cannot be told.
        """
        told = self._unusable(error)
        witness = list(self._witness[:1])
        self.rollback()
        self._reopen_later()
        try:
            self.open()
            assert self.conn is not None
            self.conn.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            if not witness:
                raise Lost(told.error) from error
            plan, row = witness[0]
            found = plan.get([plan.primary(row)])
        except (apsw.Error, OSError, OnefoldError) as again:
            raise Lost(told.error) from again
        if not found:
            raise told from error

    def _reopen_later(self) -> None:
        """Close the connection, keep the lock; `check` opens it again."""
        for conn in (self.conn, self._lent):
            if conn is not None:
                conn.close(True)
        self.conn = self._lent = None
        if self._sidecar is not None:
            self._sidecar.before = None

    def _unusable(self, error: Exception) -> Unusable:
        told = unusable(self.name, error)
        if told is None:
            raise error
        return Unusable(told)

    def _append(self, plan: Plan, verb: Append) -> Answer:
        answer = plan.append(verb)
        if not self._witness:
            for row, met in zip(verb.rows, answer, strict=True):
                if met is None:
                    self._witness.append((plan, row))
                    break
        return answer

    def _plan(self, table: Table) -> Plan:
        plan = self._by_name.get(table.name)
        if plan is None or plan.table != table:
            raise ValueError(f"the space {self.name!r} has no table {table.name!r} declared like this")
        self._plans[id(plan.alias(table))] = plan
        return plan

    def _wrote_wal(self, conn: apsw.Connection, name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK
