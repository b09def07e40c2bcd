"""testing.broken.stores - the memory store with one fault each, so that the store suite can prove its teeth.

For: `BROKEN_STORES`: every twin, with the checks of the suite that must catch it, by name.
Never: is broken in two places; hides its fault: each is one a real store has had, or nearly had.
Was wrong once: twins written from nothing. They fell at the first check, whatever it was about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onefold.store.batch import Lost, Unusable, commit
from onefold.store.contract import (
    AddColumn,
    Answer,
    Append,
    Body,
    Claim,
    Create,
    Outcome,
    Query,
    Row,
    Schema,
    Table,
    Verb,
)
from onefold.store.lane import Lane
from onefold.store.memory import Held, MemoryEngine, MemorySpace, MemoryWorld
from onefold.store.rows import Rows, Undo, changed
from onefold.store.schema import checksum

if TYPE_CHECKING:
    import apsw

Opening = Callable[[Held, Sequence[Schema]], Sequence[Schema]]


@dataclass(frozen=True, slots=True)
class BrokenStore:
    """A twin: what is wrong with it, the checks that must catch it, and the part that is not as it should be.

    `opening` is called before a space is opened, with what it holds and the tables it is opened
    with; what it gives is what the space is opened with. `world` makes one, as `MemoryWorld` does.
    """

    name: str
    caught_by: tuple[str, ...]
    engine: type[MemoryEngine] = MemoryEngine
    space: type[MemorySpace] = MemorySpace
    lane: type[Lane] = Lane
    opening: Opening = lambda held, schemas: schemas

    def world(self, **given: Any) -> MemoryWorld:
        return _World(self, **given)


class _World(MemoryWorld):
    def __init__(self, twin: BrokenStore, **given: Any) -> None:
        super().__init__(**given)
        self._twin = twin

    async def open(self, name: str, schemas: Sequence[Schema]) -> MemorySpace:
        twin = self._twin
        if name not in self._spaces:
            schemas = twin.opening(self.held.setdefault(name, Held(name)), schemas)
        space = await super().open(name, schemas)
        space._engine.__class__, space._lane.__class__, space.__class__ = twin.engine, twin.lane, twin.space
        return space


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

    def bare(table: Table) -> Table:
        return replace(table, unique=())

    def step(one: Create | AddColumn) -> Create | AddColumn:
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


BROKEN_STORES: tuple[BrokenStore, ...] = (
    BrokenStore(
        "claims twice",
        (
            "two claimers never hold one row, and between them they hold every row that was due",
            "a claim takes the first rows in its order, sets them, and answers with the rows after",
        ),
        engine=ClaimsTwice,
    ),
    BrokenStore(
        "answers the wrong end of a list",
        (
            "a limit takes from the front of the order",
            "the first k for each value are the first in the order, and the limit comes last",
            "a history is read newest first, oldest first, from a number on, and by its newest row alone",
        ),
        engine=AnswersTheWrongEnd,
    ),
    BrokenStore(
        "meets a key in silence",
        (
            "append answers nothing for a new row, and the whole row that holds the key for a met one",
            "a body whose last write meets a key is run again from the start, without what it wrote before",
        ),
        engine=MeetsInSilence,
    ),
    BrokenStore("meets a None", ("a unique key with a None in it meets nothing",), engine=MeetsNone),
    BrokenStore(
        "forgets a unique key",
        (
            "a key is met in the same commit, the next one, after a clean end and after a crash",
            "a write that would take another row's unique key is refused as contended, and changes nothing",
            "a turn is met by its event in the same body, the same commit, and ever after",
        ),
        opening=without_unique,
    ),
    BrokenStore(
        "leaves half a transaction",
        (
            "a refused transaction leaves every table byte-identical",
            "what was acknowledged survives a crash, and what never was is wholly there or wholly absent",
        ),
        engine=HalfATransaction,
    ),
    BrokenStore(
        "sees its neighbour's rolled back rows",
        ("bodies of one commit run one after another: each sees what was kept, and nothing that was rolled back",),
        engine=SeesTheRolledBack,
    ),
    BrokenStore(
        "answers a batch after its first error",
        ("wherever the disk fails, each party is told the truth, and the next commit is done without reopening",),
        engine=GoesOnAfterAnError,
    ),
    BrokenStore(
        "calls an unknown commit refused",
        (
            "a commit whose answer was lost is never called refused, and is found by looking it up",
            "every party of a lost commit is told so, but for those that were refused before it",
        ),
        engine=CallsUnknownRefused,
    ),
    BrokenStore(
        "loses the fence",
        (
            "an owner row read under a share lock refuses the append of a stale epoch in the same body",
            "after a takeover no write, removal or claim of an older epoch lands, in one commit or in many",
        ),
        engine=LosesTheFence,
    ),
    BrokenStore(
        "answers before it is durable",
        (
            "what was acknowledged survives a crash, and what never was is wholly there or wholly absent",
            "rows are there after a clean end and after a crash, and a space is opened as often as one likes",
        ),
        engine=AnswersBeforeItIsDurable,
        space=LosesTheNewest,
    ),
    BrokenStore(
        "commits its parties one by one",
        (
            "everybody is asked before anybody decides, decides before anything runs, and is told after the commit",
            "a question shows what is committed, and nothing of the commit it is asked for",
        ),
        lane=OneByOne,
    ),
    BrokenStore(
        "commits an author's rows before their journal",
        ("a journal that is refused takes the step's rows along",),
        space=CommitsTheAuthorFirst,
    ),
    BrokenStore(
        "mints twice",
        (
            "a number is minted once, for each table apart, also after a clean end and after a crash",
            "a number minted for a row that is committed late is not minted meanwhile",
        ),
        opening=minting_anew,
    ),
    BrokenStore(
        "forgets a history's keys when it is opened again",
        (
            "a turn is met by its event in the same body, the same commit, and ever after",
            "histories are whole over many thousand rows, through crashes, clean ends and commits that failed",
        ),
        opening=without_keys,
    ),
    BrokenStore(
        "takes a changed migration",
        ("a migration that was changed after it was applied is refused, and the store stays as it is",),
        opening=trusting,
    ),
    BrokenStore(
        "opens what only newer code may use",
        ("a store beside whose newer migration older code may not go on is refused, and stays as it is",),
        opening=fearless,
    ),
)

__all__ = ["BROKEN_STORES", "BrokenStore"]
