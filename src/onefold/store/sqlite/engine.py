"""store.sqlite.engine - the one writer of one file: verbs, and what rides along with a commit.

For: `ready` .. `begin` .. `commit` with lagging lookups, reserved numbers and the mark; what a
failed COMMIT did.
Never: decides who takes part (lane and batch do); runs the author's SQL (author does).
Was wrong once: going on with the connection after COMMIT had raised. An error of the WAL's
sync left a commit that no connection saw and that the next crash brought back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    Still,
    Table,
    Unknown,
    Verb,
)
from onefold.store.sqlite import sql
from onefold.store.sqlite.chain import ChainPlan
from onefold.store.sqlite.ends import compare, highest
from onefold.store.sqlite.file import File, Options
from onefold.store.sqlite.hold import Mark
from onefold.store.sqlite.migrate import migrate, notes
from onefold.store.sqlite.mint import Lines, Numbers, Source
from onefold.store.sqlite.tables import Plan
from onefold.terms.errors import OnefoldError

NOTE = f"insert or replace into {sql.META} values(?,?)"


class SqliteEngine:
    """See `batch.Engine`. Opens its file when first needed and after an error that closed it."""

    chained: type[ChainPlan] = ChainPlan
    others = False  # whether somebody else may write between two statements

    def __init__(
        self, name: str, path: str, schemas: Sequence[Schema], options: Options, opening: Callable[[str], None]
    ) -> None:
        """`opening` is told the name before a file is opened, so that others can be closed."""
        self.name = name
        self._opening = opening
        self.file = File(name, path, options)
        self.schemas = tuple(schemas)
        self._plans: dict[int, Plan] = {}
        self._by_name: dict[str, Plan] = {}
        for table in (t for s in schemas for t in s.tables):
            plan = Plan(table) if table.chain is None else self.chained(table)
            self._plans[id(table)] = self._by_name[table.name] = plan
        self._chains = [p for p in self._by_name.values() if isinstance(p, ChainPlan)]
        serial = [t.name for s in schemas for t in s.tables if t.serial]
        self._numbers = self._source(serial)
        self._verbs: dict[type, Callable[[Any, Any], Answer]] = {
            Query: lambda plan, verb: plan.find(verb),
            Append: self._append,
            Put: lambda plan, verb: plan.put(verb),
            Cas: lambda plan, verb: plan.cas(verb, self._now),
            Claim: lambda plan, verb: plan.claim(verb, self._now),
            Remove: lambda plan, verb: plan.remove(verb),
            Still: lambda plan, verb: plan.still(verb),
        }
        self._ready = False  # whether `ready` was called, and its transaction not begun
        self._asking = False  # whether nothing was asked since
        self._now = 0
        self._commits = 0
        self._filled: Lines = []
        self._changes = 0
        self._witness: list[tuple[Plan, Row]] = []
        self._marks: list[int] = []

    # --- opening and closing -----------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self.file.is_open

    def open(self) -> None:
        """Raises: StoreLocked, StoreRolledBack, StoreTooNew, LoadRefused, StoreUnavailable."""
        if not self.file.is_open:
            self._opening(self.name)
            self._numbers.rolled_back()
            self.file.open(self._fill)
            self._numbers.committed(self._filled)
            self.file.note(self._top(), self._commits)

    def close(self) -> None:
        """Write what lags, check the WAL into the main file, and say so in the mark."""
        try:
            if self.file.is_open:
                self._settle_lookups()
                self.file.close(self._top(), self._commits)
        except (apsw.Error, OSError, Unusable, Lost):
            pass  # nothing answered is lost: the WAL is still there, and the next opening reads it
        finally:
            self.file.drop()

    def abandon(self) -> None:
        """Let go of the file as a kill would."""
        self.file.drop()

    def _fill(self, before: Mark | None) -> bytes:
        """Inside the first transaction: is it the file we had, are its tables ours, and where does it end?"""
        self._use()
        assert self.file.conn is not None
        if before is not None:
            there = self.file.conn.table_exists("main", sql.META)
            tables = [plan.table for plan in self._chains]
            compare(self.name, self.file.conn, tables, before, notes(self.file.db) if there else {})
        migrate(self.file.db, self.schemas, self.name, self.file.options.clock())
        held = notes(self.file.db)
        self._commits = held["commits"]
        self._filled = []
        for plan in self._chains:
            marker = held.get(f"marker.{plan.table.name}", 0)
            plan.load(marker)
            plan.top = max(plan.top, highest(self.file.db, plan.table, held))
            if plan.marker != marker:
                self._filled.append((f"marker.{plan.table.name}", plan.marker))
        self._numbers.opened(held, lambda name: highest(self.file.db, self._by_name[name].table, {}))
        self._filled += self._numbers.taken()
        if self._filled:
            self.file.db.executemany(NOTE, self._filled)
        return bytes(held["id"])

    def _use(self) -> None:
        for plan in self._by_name.values():
            plan.db = self.file.db

    def _top(self) -> int:
        return sum(plan.top for plan in self._chains)

    def _settle_lookups(self) -> None:
        self.begin()
        try:
            self._commit(everything=True)
        except BaseException:
            self.rollback()
            raise

    # --- the transaction -----------------------------------------------------------------------

    def ready(self) -> None:
        self._check()
        self._ready = self._asking = True
        for plan in self._chains:
            plan.ready()

    def begin(self) -> None:
        checked, self._ready, self._asking = self._ready, False, False
        if self.stands():
            self._send("commit")  # what the first question opened; nobody but us could write meanwhile
        elif not checked:
            self._check()
        try:
            self.file.begin()
        except (apsw.Error, OSError) as error:
            raise self.file.unusable(error) from error
        self._started()

    def run(self, verb: Verb) -> Answer:
        plan = self._plans.get(id(verb.table)) or self._plan(verb.table)
        try:
            if self._asking and not self._is_one_look(plan, verb):
                self._asking = False
                self.file.db.execute("begin")
            return self._verbs[type(verb)](plan, verb)
        except (apsw.Error, OSError) as error:
            raise self.file.unusable(error) from error

    def look(self, queries: Sequence[Query]) -> tuple[Answer, ...]:
        """Committed rows, all of one moment. Raises: StoreUnavailable and what opening raises."""
        try:
            self._check()
            if len(queries) == 1 and not self.others:
                return (self.run(queries[0]),)
            self._send("begin")
            try:
                return tuple([self.run(q) for q in queries])
            finally:
                self.file.leave()
        except Unusable as fault:
            raise fault.error from fault

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

    def stands(self) -> bool:
        return self.file.stands()

    def commit(self) -> None:
        self._commit(everything=False)

    def rollback(self) -> None:
        self._ready = self._asking = False
        self._let_go()
        self._marks.clear()
        self.file.undo()

    def journal(self, conn: apsw.Connection, body: Body[Any]) -> Outcome[Any]:
        """Run `body` in the transaction that is open on the author's connection, and commit it."""
        self.file.lend(conn)
        self._use()
        try:
            self._start()
            self._changes = -1  # the author's writes count
            outcome = attempt(self, body, alone=False)
            if isinstance(outcome, Done):
                self.commit()
            return outcome
        except (Fell, Unusable) as fell:
            return Refused(fell.error)
        except Lost as lost:
            return Unknown(lost.error)
        finally:
            self._let_go()
            self.file.take_back()
            self._use()

    def mint(self, table: Table) -> int:
        """The next number of a serial key. Raises: what opening raises."""
        if not self.file.is_open:
            self.open()
        return self._numbers.mint(table.name)

    def check(self) -> None:
        """That this process may use this file now; opens it where it is closed. Raises: what opening raises."""
        try:
            self.file.check()
            if not self.file.is_open:
                self.open()
        except (apsw.Error, OSError) as error:
            raise self.file.unusable(error).error from error

    def _check(self) -> None:
        try:
            self.check()
        except OnefoldError as error:
            raise Unusable(error) from error

    def _started(self) -> None:
        try:
            self._start()
        except (apsw.Error, OSError) as error:
            raise self.file.unusable(error) from error

    def _start(self) -> None:
        self._now = self.file.options.clock()
        self._refresh()
        self._changes = self.file.db.total_changes()
        self._witness.clear()
        self._marks.clear()
        for plan in self._chains:
            plan.begin()

    def _let_go(self) -> None:
        for plan in self._chains:
            plan.rolled_back()
        self._numbers.rolled_back()

    def _send(self, statement: str) -> None:
        try:
            self.file.db.execute(statement)
        except (apsw.Error, OSError) as error:
            raise self.file.unusable(error) from error

    def _commit(self, *, everything: bool) -> None:
        fail = self.file.options.failpoint
        try:
            if fail is not None:
                fail("before-commit")
            self.file.sync_names()
            moved = [plan.before_commit(everything) for plan in self._chains]
            lines = self._notes(moved, everything)
            if lines:
                self.file.db.executemany(NOTE, lines)
        except (apsw.Error, OSError) as error:
            raise self.file.unusable(error) from error
        try:
            self.file.db.execute("commit")
            if fail is not None:
                fail("after-commit")
        except apsw.FullError as error:
            # No room for a frame of it, so that its last frame, which would make it a commit, was never whole.
            self.rollback()
            self.file.checkpoint()  # may let the WAL begin anew where it cannot grow
            raise self.file.unusable(error) from error
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
        lines += self._numbers.lines(last=everything)
        if not appended and self.file.db.total_changes() != self._changes:
            lines.append(("commits", self._commits + 1))
        return lines

    def _committed(self, moved: Sequence[int | None], lines: Sequence[tuple[str, Any]]) -> None:
        for plan, marker in zip(self._chains, moved, strict=False):
            plan.committed(marker)
        self._numbers.committed(lines)
        self._commits = max(self._commits, dict(lines).get("commits", 0))
        self.file.note(self._top(), self._commits)

    # --- after an error ------------------------------------------------------------------------

    def _find_out(self, error: Exception) -> None:
        """COMMIT raised. Open the file anew, empty the WAL, and look for a row of this commit.

        Returns when it is there and durable. Raises: Unusable when it is certainly not; Lost
        when it cannot be told.
        """
        told = self.file.unusable(error)
        witness = self._witness[:1]
        self.rollback()
        self.file.reopen_later()
        try:
            self.open()
            self.file.empty_wal()
            if not witness:
                raise Lost(told.error) from error
            plan, row = witness[0]
            found = plan.get([plan.primary(row)])
        except (apsw.Error, OSError, OnefoldError) as again:
            raise Lost(told.error) from again
        if not found:
            raise told from error

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

    # --- where several processes have the file, more is done (shared) ------------------------------

    def _source(self, serial: Sequence[str]) -> Source:
        """Where the numbers of these tables come from."""
        return Numbers(serial)

    def _refresh(self) -> None:
        """A transaction has begun: what of the file is known from before is still so."""

    def _is_one_look(self, plan: Plan, verb: Verb) -> bool:
        """Whether it is one statement on the file. What is read by it alone is of one moment without a transaction."""
        return type(verb) is Query and verb.keys is not None and len(verb.keys) == 1
