"""testing.broken.stores - the memory store with one fault each, so that the store suite can prove its teeth.

For: `BROKEN_STORES`: every twin, with the checks of the suite that must catch it, by name.
Never: is broken in two places; hides its fault: each is one a real store has had, or nearly had.
Was wrong once: twins written from nothing. They fell at the first check, whatever it was about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onefold.store.contract import Schema
from onefold.store.lane import Lane
from onefold.store.memory import Held, MemoryEngine, MemorySpace, MemoryWorld
from onefold.testing.broken import store_faults as faults

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
            schemas = twin.opening(self.held.setdefault(name, Held(name, self.common)), schemas)
        space = await super().open(name, schemas)
        space._engine.__class__, space._lane.__class__, space.__class__ = twin.engine, twin.lane, twin.space
        return space


BROKEN_STORES: tuple[BrokenStore, ...] = (
    BrokenStore(
        "claims twice",
        (
            "two claimers never hold one row, and between them they hold every row that was due",
            "a claim takes the first rows in its order, sets them, and answers with the rows after",
        ),
        engine=faults.ClaimsTwice,
    ),
    BrokenStore(
        "answers the wrong end of a list",
        (
            "a limit takes from the front of the order",
            "the first k for each value are the first in the order, and the limit comes last",
            "a history is read newest first, oldest first, from a number on, and by its newest row alone",
        ),
        engine=faults.AnswersTheWrongEnd,
    ),
    BrokenStore(
        "meets a key in silence",
        (
            "append answers nothing for a new row, and the whole row that holds the key for a met one",
            "a body whose last write meets a key is run again from the start, without what it wrote before",
        ),
        engine=faults.MeetsInSilence,
    ),
    BrokenStore("meets a None", ("a unique key with a None in it meets nothing",), engine=faults.MeetsNone),
    BrokenStore(
        "forgets a unique key",
        (
            "a key is met in the same commit, the next one, after a clean end and after a crash",
            "a write that would take another row's unique key is refused as contended, and changes nothing",
            "a turn is met by its event in the same body, the same commit, and ever after",
        ),
        opening=faults.without_unique,
    ),
    BrokenStore(
        "leaves half a transaction",
        (
            "a refused transaction leaves every table byte-identical",
            "what was acknowledged survives a crash, and what never was is wholly there or wholly absent",
        ),
        engine=faults.HalfATransaction,
    ),
    BrokenStore(
        "sees its neighbour's rolled back rows",
        ("bodies of one commit run one after another: each sees what was kept, and nothing that was rolled back",),
        engine=faults.SeesTheRolledBack,
    ),
    BrokenStore(
        "answers a batch after its first error",
        ("wherever the disk fails, each party is told the truth, and the next commit is done without reopening",),
        engine=faults.GoesOnAfterAnError,
    ),
    BrokenStore(
        "calls an unknown commit refused",
        (
            "a commit whose answer was lost is never called refused, and is found by looking it up",
            "every party of a lost commit is told so, but for those that were refused before it",
        ),
        engine=faults.CallsUnknownRefused,
    ),
    BrokenStore(
        "loses the fence",
        (
            "an owner row read under a share lock refuses the append of a stale epoch in the same body",
            "after a takeover no write, removal or claim of an older epoch lands, in one commit or in many",
        ),
        engine=faults.LosesTheFence,
    ),
    BrokenStore(
        "goes on with another's row",
        (
            "rows that are still as told let a body land; where one is not, nothing of it does, and it runs again",
            "an owner row among the last writes refuses a stale epoch, and is told apart from a key that is met",
        ),
        engine=faults.GoesOnWithAnothersRow,
    ),
    BrokenStore(
        "has a table of the whole world once for each space",
        (
            "a table of the whole world is one for all its spaces; where each has a file, only `main` may declare it",
            "an owner row of the whole world guards the writes of every space: none of an older epoch lands",
        ),
        opening=faults.without_a_world,
    ),
    BrokenStore(
        "answers before it is durable",
        (
            "what was acknowledged survives a crash, and what never was is wholly there or wholly absent",
            "rows are there after a clean end and after a crash, and a space is opened as often as one likes",
        ),
        engine=faults.AnswersBeforeItIsDurable,
        space=faults.LosesTheNewest,
    ),
    BrokenStore(
        "commits its parties one by one",
        (
            "everybody is asked before anybody decides, decides before anything runs, and is told after the commit",
            "a question shows what is committed, and nothing of the commit it is asked for",
        ),
        lane=faults.OneByOne,
    ),
    BrokenStore(
        "commits an author's rows before their journal",
        ("a journal that is refused takes the step's rows along",),
        space=faults.CommitsTheAuthorFirst,
    ),
    BrokenStore(
        "mints twice",
        (
            "a number is minted once, for each table apart, also after a clean end and after a crash",
            "a number minted for a row that is committed late is not minted meanwhile",
        ),
        opening=faults.minting_anew,
    ),
    BrokenStore(
        "forgets a history's keys when it is opened again",
        (
            "a turn is met by its event in the same body, the same commit, and ever after",
            "histories are whole over many thousand rows, through crashes and clean ends",
        ),
        opening=faults.without_keys,
    ),
    BrokenStore(
        "takes a changed migration",
        ("a migration that was changed after it was applied is refused, and the store stays as it is",),
        opening=faults.trusting,
    ),
    BrokenStore(
        "takes an author's changed migration",
        ("an author's migrations run once each and in order, and a changed one is refused",),
        space=faults.CountsMigrations,
    ),
    BrokenStore(
        "opens what only newer code may use",
        ("a store beside whose newer migration older code may not go on is refused, and stays as it is",),
        opening=faults.fearless,
    ),
)

__all__ = ["BROKEN_STORES", "BrokenStore"]
