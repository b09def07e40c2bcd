"""store.memory - the reference: every promise of the contract over dictionaries, none of the disk.

For: tests and `memory:` apps. A `MemoryWorld` outlives the app that opened it: opening a space
again finds its rows, as a file would.
Never: survives its process; is shared between processes.
Was wrong once: a store for tests with rules of its own. Programs that passed on it met their
first unique key in production.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from onefold.store.batch import Fell, Lost, Met, Unusable, attempt
from onefold.store.contract import (
    AddColumn,
    AddIndex,
    Answer,
    Append,
    Body,
    Cas,
    Claim,
    Create,
    Done,
    Outcome,
    Party,
    Put,
    Query,
    Refused,
    Row,
    Schema,
    Still,
    Table,
    Tx,
    Unknown,
    Verb,
)
from onefold.store.lane import Lane
from onefold.store.rows import Rows, Undo, changed, check_row, holds, narrowed, ordered
from onefold.store.schema import Applied, check, check_names, checksum, missing
from onefold.store.sqlite.aside import Aside
from onefold.store.sqlite.author import Door
from onefold.store.sqlite.export import Export
from onefold.terms.errors import StoreUnavailable

T = TypeVar("T")
Failpoint = Callable[[str], None]


class Common:
    """What all spaces of a world have together: the tables declared `everywhere`, and the log that undoes. One log will
    do: no transaction begins before another's end."""

    def __init__(self) -> None:
        self.undo: list[Undo] = []
        self.tables: dict[str, Rows] = {}
        self.next: dict[str, int] = {}


class Held:
    """What one space holds: rows by table, migrations applied, the next number of each serial key."""

    def __init__(self, name: str, common: Common | None = None) -> None:
        self.name = name
        self.common = common or Common()
        self.undo = self.common.undo
        self.tables: dict[str, Rows] = {}
        self.applied: list[Applied] = []
        self.next: dict[str, int] = {}
        self.aside = Aside()  # the author's tables

    def rows(self, table: str) -> Rows | None:
        """The rows of a table that this space declares; None where it does not."""
        mine = self.tables.get(table)
        return self.common.tables[table] if mine is not None and mine.table.everywhere else mine

    def mint(self, table: Table) -> int:
        numbers = self.common.next if table.everywhere else self.next
        number = numbers.get(table.name, 1)
        numbers[table.name] = number + 1
        return number

    def migrate(self, schemas: Sequence[Schema]) -> None:
        check_names(schemas)
        for schema in schemas:
            check(schema)
        for schema, steps in [(s, missing(s, self.applied, self.name)) for s in schemas]:
            for migration in steps:
                for step in migration.steps:
                    self._apply(step)
                self.applied.append(Applied(schema.room, migration.number, migration.oldest, checksum(migration)))

    def _apply(self, step: Create | AddColumn | AddIndex) -> None:
        if isinstance(step, AddIndex):
            return  # it reads all rows anyhow
        if isinstance(step, Create):
            new = Rows(step.table, self.undo)
            if step.table.everywhere:
                new = self.common.tables.setdefault(step.table.name, new)
            self.tables[step.table.name] = new
            return
        old = self.rows(step.table)
        assert old is not None
        if step.column.name in old.table.at:
            return  # another space was here before
        new = Rows(replace(old.table, columns=(*old.table.columns, step.column)), self.undo)
        for row in old.rows.values():
            new.append((*row, None))
        self.undo.clear()
        (self.common.tables if old.table.everywhere else self.tables)[step.table] = new


class MemoryEngine:
    """The `Engine` over one `Held`. The transaction is its undo log, a savepoint a place in it."""

    def __init__(self, held: Held, clock: Callable[[], int], failpoint: Failpoint | None) -> None:
        self.held = held
        self._clock = clock
        self._fail = failpoint
        self._now = 0
        self._open = False
        self._marks: list[int] = []

    def ready(self) -> None:
        self._point("statement")

    def begin(self) -> None:
        self._point("statement")
        self._now = self._clock()
        self._open = True

    def run(self, verb: Verb) -> Answer:
        self._point("statement")
        rows = self.held.rows(verb.table.name)
        if rows is None:
            raise ValueError(f"the space {self.held.name!r} has no table {verb.table.name!r}")
        if isinstance(verb, Query):
            return self._fitted(verb.table, rows.find(verb))
        if isinstance(verb, Append):
            return self._append(rows, verb)
        if isinstance(verb, Put):
            for row in verb.rows:
                rows.put(self._whole(rows, verb.table, row))
            return None
        if isinstance(verb, Cas):
            return [self._cas(rows, verb.table, *row) for row in verb.rows]
        if isinstance(verb, Claim):
            return self._claim(rows, verb)
        if isinstance(verb, Still):
            return self._still(rows, verb)
        keys = verb.keys
        if keys is None:
            keys = [k for k, row in rows.rows.items() if holds(rows.table, row, verb.where)]
        return rows.remove(keys)

    def mark(self) -> None:
        self._marks.append(len(self.held.undo))

    def keep(self) -> None:
        self._marks.pop()

    def back(self) -> None:
        self._undo_to(self._marks.pop())

    def stands(self) -> bool:
        return self._open

    def commit(self, beside: Callable[[], object] | None = None) -> None:
        """`beside` commits what goes along; when it raises, neither is committed."""
        try:
            self._point("before-commit")
            if beside is not None:
                beside()
        except BaseException:
            self.rollback()
            raise
        self.held.undo.clear()
        self._marks.clear()
        self._open = False
        try:
            self._point("after-commit")
        except Unusable as lost:
            raise Lost(lost.error) from lost

    def rollback(self) -> None:
        self._undo_to(0)
        self._marks.clear()
        self._open = False

    def _point(self, name: str) -> None:
        if self._fail is not None:
            try:
                self._fail(name)
            except OSError as fault:
                raise Unusable(StoreUnavailable(self.held.name, str(fault))) from fault

    def _undo_to(self, place: int) -> None:
        while len(self.held.undo) > place:
            self.held.undo.pop()()

    def _append(self, rows: Rows, verb: Append) -> list[Row | None]:
        answer: list[Row | None] = []
        for row in verb.rows:
            met = rows.append(self._whole(rows, verb.table, row))
            answer.append(None if met is None else self._fitted(verb.table, [met])[0])
        return answer

    def _cas(self, rows: Rows, table: Table, key: Row, expected: Any, new: Any) -> Row | None:
        row = rows.rows.get(tuple(key))
        if row is None or any(row[table.at[c]] != v for c, v in expected.items()):
            return None
        after = changed(rows.table, row, new, self._now)
        rows.put(after)
        return self._fitted(table, [after])[0]

    def _claim(self, rows: Rows, verb: Claim) -> list[Row]:
        query = Query(verb.table, verb.where, order=verb.order, limit=verb.limit)
        after = [changed(rows.table, row, verb.set, self._now) for row in rows.find(query)]
        for row in after:
            rows.put(row)
        return self._fitted(verb.table, after)

    def _still(self, rows: Rows, verb: Still) -> None:
        for key, expected in verb.rows:
            row = rows.rows.get(tuple(key))
            if row is None or any(row[verb.table.at[c]] != v for c, v in expected.items()):
                raise Met(verb.table.name)

    def _whole(self, rows: Rows, table: Table, row: Row) -> Row:
        """A row of older code, whose `table` has fewer columns, as the table has it now."""
        if len(row) != len(table.columns):
            check_row(table, row)
        short = len(rows.table.columns) - len(row)
        if short <= 0:
            return tuple(row)
        old = rows.rows.get(rows.key(row))
        return (*row, *(old[-short:] if old is not None else (None,) * short))

    def _fitted(self, table: Table, rows: list[Row]) -> list[Row]:
        width = len(table.columns)
        return rows if not rows or len(rows[0]) == width else [row[:width] for row in rows]


class MemorySpace:
    """A space over a `Held`; see `contract.Space`."""

    far = False

    def __init__(self, held: Held, clock: Callable[[], int], failpoint: Failpoint | None) -> None:
        self.name = held.name
        self._engine = MemoryEngine(held, clock, failpoint)
        self._held = held
        self._lane = Lane(held.name, self._engine)
        self._door = Door(held.name, held.aside.connect)

    def join(self, party: Party) -> None:
        self._lane.join(party)

    async def transact(self, body: Body[T]) -> Outcome[T]:
        return await self._lane.transact(body)

    async def look(self, *queries: Query) -> tuple[Answer, ...]:
        try:
            return tuple([self._engine.run(q) for q in queries])
        except Unusable as fault:
            raise fault.error from fault

    def mint(self, table: Table) -> int:
        return self._held.mint(table)

    async def author(
        self, step: Callable[[Tx], T], journal: Callable[[T], Body[Any]], *, budget_ms: int
    ) -> Outcome[Any]:
        async with self._lane.held():
            return await self._door.run(step, budget_ms, lambda conn, done: self._journal(conn, journal(done)))

    async def author_migrate(self, statements: Sequence[str]) -> None:
        async with self._lane.held():
            await self._door.migrate(statements)

    async def author_tables(self) -> list[str]:
        async with self._lane.held():
            return self._door.tables()

    async def author_rows(
        self, table: str, *, limit: int, after: int | None
    ) -> tuple[list[str], list[Row], int | None]:
        async with self._lane.held():
            return await self._door.rows(table, limit, after)

    async def author_export(self, into: str, *, sql: bool) -> None:
        async with self._lane.held():  # to its end: a database in memory has one instant, and that is now
            await Export(self.name, self._held.aside.uri, into, sql=sql).run()

    def close(self) -> None:
        self._lane.close()
        self._door.close()

    def abandon(self) -> None:
        self._lane.abandon()
        self._door.close()
        self._engine.rollback()

    def _journal(self, conn: Any, body: Body[Any]) -> Outcome[Any]:
        """The body's rows and the author's commit together; both are in memory, so neither can be lost alone."""
        try:
            self._engine.begin()
            outcome = attempt(self._engine, body, alone=True)
            if isinstance(outcome, Done):
                self._engine.commit(lambda: conn.execute("commit"))
            return outcome
        except (Fell, Unusable) as fell:
            return Refused(fell.error)
        except Lost as lost:
            return Unknown(lost.error)
        finally:
            if self._engine.stands():
                self._engine.rollback()


class MemoryWorld:
    """Spaces by name. `clock` gives milliseconds since 1970. `over`: another world whose rows this one has too.

    `failpoint` is called with "statement", "before-commit" and "after-commit"; an OSError that
    it raises is a disk that failed there.
    """

    def __init__(
        self, *, clock: Callable[[], int], failpoint: Failpoint | None = None, over: MemoryWorld | None = None
    ) -> None:
        self._clock = clock
        self._failpoint = failpoint
        self.held: dict[str, Held] = {} if over is None else over.held
        self.common: Common = Common() if over is None else over.common
        self._spaces: dict[str, MemorySpace] = {}

    async def open(self, name: str, schemas: Sequence[Schema]) -> MemorySpace:
        space = self._spaces.get(name)
        if space is None:
            held = self.held.setdefault(name, Held(name, self.common))
            held.migrate(schemas)
            space = self._spaces[name] = MemorySpace(held, self._clock, self._failpoint)
        return space

    async def soonest(self, name: str, query: Query) -> tuple[Answer, ...]:
        held = self.held.get(name)
        rows = None if held is None else held.rows(query.table.name)
        if rows is None:
            return ()
        return (narrowed(query, ordered(rows.table, rows.find(query), query.order)),)

    def abandon(self) -> None:
        """Let go of every space as a kill would leave it. For tests."""
        for space in self._spaces.values():
            space.abandon()
        self._spaces.clear()

    async def close(self) -> None:
        """Everything open is closed; the rows stay for whoever opens again."""
        for space in self._spaces.values():
            space.close()
        self._spaces.clear()
