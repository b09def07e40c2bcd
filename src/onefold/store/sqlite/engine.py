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
    Table,
    Unknown,
    Verb,
)
from onefold.store.sqlite import sql
from onefold.store.sqlite.chain import ChainPlan
from onefold.store.sqlite.file import File, Options
from onefold.store.sqlite.hold import Mark
from onefold.store.sqlite.migrate import migrate, notes
from onefold.store.sqlite.tables import Plan
from onefold.terms.errors import OnefoldError, StoreRolledBack, StoreUnavailable

BLOCK = 4096  # numbers reserved at a time; why: one small write each so many rows, a gap of at most so many a crash
_NOTE = f"insert or replace into {sql.META} values(?,?)"


class SqliteEngine:
    """See `batch.Engine`. Opens its file when first needed and after an error that closed it."""

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
        self._ready = False  # whether `ready` was called, and its transaction not begun
        self._asking = False  # whether nothing was asked since
        self._now = 0
        self._commits = 0
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
            self.file.open(self._fill)
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
            self._compare(before, notes(self.file.db) if there else {})
        migrate(self.file.db, self.schemas, self.name, self.file.options.clock())
        held = notes(self.file.db)
        self._commits = held["commits"]
        for plan in self._chains:
            plan.load(held.get(f"marker.{plan.table.name}", 0))
            plan.top = max(plan.top, self._highest(plan.table, held))
        for table in self._serial:
            bound = held.get(f"next.{table.name}", 1)
            # What was minted before the file was closed by an error may still be under way.
            self._next[table.name] = max(self._next.get(table.name, 1), bound, self._highest(table, {}) + 1)
            self._bound[table.name] = bound
        return bytes(held["id"])

    def _compare(self, before: Mark, held: dict[str, Any]) -> None:
        """Raises: StoreRolledBack when the file ends before what was acknowledged; StoreUnavailable for another's."""
        if held and held["id"] != before.id:
            why = "its file belongs to another store than its mark; put the right file back"
            raise StoreUnavailable(self.name, why)
        assert self.file.conn is not None
        top = 0
        for plan in self._chains:
            if self.file.conn.table_exists("main", sql.RESERVED + plan.table.name):
                top += self._highest(plan.table, held)
        if top < before.top:
            raise StoreRolledBack(self.name, before.top, top)
        commits = held.get("commits", 0)
        if commits < before.commits:
            raise StoreRolledBack(self.name, before.commits, commits)

    def _use(self) -> None:
        for plan in self._by_name.values():
            plan.db = self.file.db

    def _highest(self, table: Table, held: dict[str, Any]) -> int:
        text = f"select max({sql.quoted(table.key[0])}) from {sql.table_name(table)}"
        return int(max(self.file.db.execute(text).fetchall()[0][0] or 0, held.get(f"top.{table.name}", 0)))

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
        self._start()

    def run(self, verb: Verb) -> Answer:
        plan = self._plans.get(id(verb.table)) or self._plan(verb.table)
        try:
            if self._asking and not _is_one_look(verb):
                self._asking = False
                self.file.db.execute("begin")
            return self._verbs[type(verb)](plan, verb)
        except (apsw.Error, OSError) as error:
            raise self.file.unusable(error) from error

    def look(self, queries: Sequence[Query]) -> tuple[Answer, ...]:
        """Committed rows, all of one moment. Raises: StoreUnavailable and what opening raises."""
        try:
            self._check()
            if len(queries) == 1:
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
        for plan in self._chains:
            plan.rolled_back()
        self._marks.clear()
        self.file.undo()

    def journal(self, conn: apsw.Connection, body: Body[Any]) -> Outcome[Any]:
        """Run `body` in the transaction that is open on the author's connection, and commit it."""
        self.file.lend(conn)
        self._use()
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
            for plan in self._chains:
                plan.rolled_back()
            self.file.take_back()
            self._use()

    def mint(self, table: Table) -> int:
        """The next number of a serial key. Raises: what opening raises."""
        if not self.file.is_open:
            self.open()
        number = self._next[table.name]
        self._next[table.name] = number + 1
        return number

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

    def _start(self) -> None:
        self._now = self.file.options.clock()
        self._changes = self.file.db.total_changes()
        self._witness.clear()
        self._marks.clear()
        for plan in self._chains:
            plan.begin()

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
                self.file.db.executemany(_NOTE, lines)
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
        for name, number in self._next.items():
            if number > self._bound[name] or everything:
                lines.append((f"next.{name}", number if everything else number + BLOCK))
        if not appended and self.file.db.total_changes() != self._changes:
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


def _is_one_look(verb: Verb) -> bool:
    """Whether it is one statement on the file. What is read by it alone is of one moment without a transaction."""
    return type(verb) is Query and verb.keys is not None and len(verb.keys) == 1
