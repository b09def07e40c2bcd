"""testing.broken.store_faults - parts of the memory store with one fault each.

For: engines, spaces, lanes and openings that take the place of the sound ones in a twin (stores puts them together).
Never: has two faults; is used by anything but a twin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onefold.store.batch import Lost, Unusable, commit
from onefold.store.contract import (
    AddColumn,
    AddIndex,
    Answer,
    Append,
    Body,
    Claim,
    Create,
    Outcome,
    Query,
    Row,
    Schema,
    Still,
    Table,
    Verb,
)
from onefold.store.lane import Lane
from onefold.store.memory import Held, MemoryEngine, MemorySpace
from onefold.store.rows import Rows, Undo, changed
from onefold.store.schema import checksum

if TYPE_CHECKING:
    import apsw

# --- verbs ----------------------------------------------------------------------------------------


class ClaimsTwice(MemoryEngine):
    """Says what a claim would set, and sets nothing."""

    def run(self, verb: Verb) -> Answer:
        if not isinstance(verb, Claim):
            return super().run(verb)
        found = super().run(Query(verb.table, verb.where, order=verb.order, limit=verb.limit))
        return [changed(verb.table, row, verb.set, self._now) for row in found]


class AnswersTheWrongEnd(MemoryEngine):
    """Cuts a list off at its front."""

    def run(self, verb: Verb) -> Answer:
        if not isinstance(verb, Query) or verb.limit is None or not verb.order:
            return super().run(verb)
        found = super().run(replace(verb, limit=None))
        return found[len(found) - min(verb.limit, len(found)) :]


class MeetsInSilence(MemoryEngine):
    """Leaves a met row alone, and says that it was new."""

    def _append(self, rows: Rows, verb: Append) -> list[Row | None]:
        super()._append(rows, verb)
        return [None] * len(verb.rows)


class MeetsNone(MemoryEngine):
    """Takes a None in a unique key for a value like any other."""

    def _append(self, rows: Rows, verb: Append) -> list[Row | None]:
        answer: list[Row | None] = []
        for row in verb.rows:
            for on in verb.table.unique:
                cells = [row[verb.table.at[c]] for c in on]
                met = [r for r in rows.rows.values() if None in cells and [r[verb.table.at[c]] for c in on] == cells]
                if met:
                    answer.append(met[0])
                    break
            else:
                answer += super()._append(rows, replace(verb, rows=[row]))
        return answer


def without_unique(held: Held, schemas: Sequence[Schema]) -> Sequence[Schema]:
    """Every unique key is forgotten on the way to the store."""
    return _declared(schemas, lambda table: replace(table, unique=()))


def without_a_world(held: Held, schemas: Sequence[Schema]) -> Sequence[Schema]:
    """Each space has the tables of the whole world for itself."""
    return _declared(schemas, lambda table: replace(table, everywhere=False))


def _declared(schemas: Sequence[Schema], bare: Callable[[Table], Table]) -> Sequence[Schema]:
    def step(one: Create | AddColumn | AddIndex) -> Create | AddColumn | AddIndex:
        return Create(bare(one.table)) if isinstance(one, Create) else one

    def migrated(schema: Schema) -> Schema:
        steps = [replace(m, steps=tuple(map(step, m.steps))) for m in schema.migrations]
        return replace(schema, tables=tuple(map(bare, schema.tables)), migrations=tuple(steps))

    return [migrated(s) for s in schemas]


# --- transactions -----------------------------------------------------------------------------------


class HalfATransaction(MemoryEngine):
    """What is rolled back leaves its first write behind."""

    def back(self) -> None:
        place = self._marks.pop()
        self._undo_to(min(place + 1, len(self.held.undo)))

    def rollback(self) -> None:
        self._undo_to(1)
        self.held.undo.clear()
        super().rollback()


class SeesTheRolledBack(MemoryEngine):
    """Rolls back at the end of the commit, so that neighbours see what a refused body wrote."""

    def back(self) -> None:
        place = self._marks.pop()
        ghosts: list[Undo] = vars(self).setdefault("ghosts", [])
        ghosts[:0] = reversed(self.held.undo[place:])
        del self.held.undo[place:]

    def commit(self, beside: Callable[[], object] | None = None) -> None:
        self._lay_ghosts()
        super().commit(beside)

    def rollback(self) -> None:
        self._lay_ghosts()
        super().rollback()

    def _lay_ghosts(self) -> None:
        kept, ghosts = list(self.held.undo), vars(self).pop("ghosts", [])
        for undo in ghosts:
            undo()
        self.held.undo[:] = kept


class GoesOnAfterAnError(MemoryEngine):
    """An error rolls everything back, as a full disk does, and nobody asks whether the transaction stands."""

    def run(self, verb: Verb) -> Answer:
        try:
            return super().run(verb)
        except Unusable:
            self._undo_to(0)
            self._marks = [0] * len(self._marks)
            raise


class CallsUnknownRefused(MemoryEngine):
    """Takes an error of COMMIT for a commit that did not happen."""

    def commit(self, beside: Callable[[], object] | None = None) -> None:
        try:
            super().commit(beside)
        except Lost as lost:
            raise Unusable(lost.error) from lost


class LosesTheFence(MemoryEngine):
    """Answers a question under a share lock from what it was answered before."""

    def run(self, verb: Verb) -> Answer:
        if not isinstance(verb, Query) or verb.lock != "share":
            return super().run(verb)
        known: dict[str, Answer] = vars(self).setdefault("known", {})
        return known.setdefault(f"{verb.table.name} {verb.where} {verb.keys}", super().run(verb))


class GoesOnWithAnothersRow(MemoryEngine):
    """Looks whether a row is there, and not whether it is as the body was told."""

    def run(self, verb: Verb) -> Answer:
        if isinstance(verb, Still):
            verb = replace(verb, rows=[(key, {}) for key, _ in verb.rows])
        return super().run(verb)


class AnswersBeforeItIsDurable(MemoryEngine):
    """Keeps the newest commit where a crash takes it."""

    def commit(self, beside: Callable[[], object] | None = None) -> None:
        newest = list(self.held.undo)
        super().commit(beside)
        vars(self.held)["newest"] = newest


class LosesTheNewest(MemorySpace):
    def abandon(self) -> None:
        super().abandon()
        for undo in reversed(vars(self._held).pop("newest", [])):
            undo()
        self._held.undo.clear()


class OneByOne(Lane):
    """Gives every party a commit of its own, one after another."""

    def _flush(self) -> None:
        self._due = False
        parties, self._waiting = self._waiting, []
        for party in parties:
            self._tell(commit(self._engine, [party]))


class CommitsTheAuthorFirst(MemorySpace):
    """Commits what a step wrote, and then sees to its journal."""

    def _journal(self, conn: apsw.Connection, body: Body[Any]) -> Outcome[Any]:
        conn.execute("commit")
        conn.execute("begin")
        return super()._journal(conn, body)


class CountsMigrations(MemorySpace):
    """Remembers how many of an author's migrations it ran, and not which."""

    async def author_migrate(self, statements: Sequence[str]) -> None:
        ran: list[str] = vars(self._held).setdefault("ran", [])
        todo = [*ran, *statements[len(ran) :]]
        await super().author_migrate(todo)
        ran[:] = todo


# --- what a space remembers when it is opened again ---------------------------------------------------


def minting_anew(held: Held, schemas: Sequence[Schema]) -> Sequence[Schema]:
    """Numbers begin at one again."""
    held.next.clear()
    return schemas


def without_keys(held: Held, schemas: Sequence[Schema]) -> Sequence[Schema]:
    """The keys of a history lived in memory, and nobody read them again from the end of its table."""
    for rows in held.tables.values():
        if rows.table.chain is not None:
            for _, keys in rows._unique:
                keys.clear()
    return schemas


def trusting(held: Held, schemas: Sequence[Schema]) -> Sequence[Schema]:
    """A migration's checksum is written again at each opening, and never compared."""
    sums = {(s.room, m.number): checksum(m) for s in schemas for m in s.migrations}
    held.applied = [replace(a, checksum=sums.get((a.room, a.number), a.checksum)) for a in held.applied]
    return schemas


def fearless(held: Held, schemas: Sequence[Schema]) -> Sequence[Schema]:
    """Opens whatever newer code made."""
    held.applied = [replace(a, oldest=0) for a in held.applied]
    return schemas
