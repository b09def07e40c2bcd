"""A store that is lived in, on a disk that keeps a tape; and what must be true of whatever is left of it.

Each thing that is written has a number, and stands in two tables, or in three when an author's step wrote it. The
tape notes when a number was tried, told (acknowledged) and seen (found by a look).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw

from onefold.store.contract import AddColumn, Append, Cas, Column, Create, Done, Last, Migration, Query, Schema, Tx
from onefold.store.sqlite import SqliteWorld
from onefold.store.sqlite.space import SqliteSpace
from onefold.testing.faulty_disk import FaultyDisk, Platter, Tape
from onefold.testing.faulty_disk.tape import Note
from tests.store.child import Asking, clock
from tests.store.tables import OWED, SCHEMA, SENT, TABLES, TASK, TURN

ACTORS = 5
DEEP = bool(os.environ.get("ONEFOLD_DEEP"))  # every place, not a sample of them
LATER_TASK = replace(TASK, columns=(*TASK.columns, Column("later", "text", null=True)))
MORE = replace(SENT, name="more")
LATER = Schema(
    "room",
    (TURN, LATER_TASK, SENT, OWED, MORE),
    (
        Migration(1, 1, tuple(Create(t) for t in TABLES)),
        Migration(2, 1, (AddColumn("task", Column("later", "text", null=True)), Create(MORE))),
    ),
)
NOTES = ["create table note(id integer primary key, said text not null)"]
LATER_NOTES = [*NOTES, "create table second(id integer primary key)"]


def facts(number: int) -> bytes:
    """What the turn with this number carries: of any size up to some pages, and no other's."""
    return (b"%d." % number) * (number * 37 % 900)


class Life:
    """One process after another over one folder. A fault of the disk is told by what the verbs return."""

    shared = False  # whether each has it as one of several would

    def __init__(self, folder: Path, disk: FaultyDisk, durability: str = "full") -> None:
        self.folder = folder
        self.disk = disk
        self.durability = durability
        self.world: SqliteWorld | None = None
        self.space: Any = None
        self.number = 0

    async def opens(self, schema: Schema = LATER) -> SqliteSpace:
        if self.world is None:
            self.world = SqliteWorld(
                self.folder, clock=clock, disk=self.disk, durability=self.durability, shared=self.shared
            )
        self.space = await self.world.open("main", [schema])
        return self.space  # type: ignore[no-any-return]

    async def writes(self, count: int) -> list[Any]:
        """So many at once, in one commit. Their outcomes."""
        first, self.number = self.number + 1, self.number + count
        return await asyncio.gather(*(self._write(n) for n in range(first, first + count)))

    async def again(self, number: int) -> Any:
        """The same as before under the same number: it is there, or written now."""
        return await self._write(number)

    async def _write(self, number: int) -> Any:
        self.disk.note(("tried", number))
        outcome = await self.space.transact(lambda: self._rows(number))
        if isinstance(outcome, Done):
            self.disk.note(("told", number))
        return outcome

    def _rows(self, number: int) -> Asking:
        actor = number % ACTORS
        (head, met) = yield (
            Query(TURN, where=(("actor", "=", actor),), order=("-n",), limit=1),
            Query(TURN, on=("actor", "event"), keys=[(actor, f"e{number}")]),
        )
        if met:
            return Last((), met[0][0])
        n, o = self.space.mint(TURN), self.space.mint(OWED)
        turn = (n, actor, head[0][0] if head else None, f"e{number}", facts(number))
        more: list[Any] = [Cas(SENT, [((0, "count"), {}, {"digest": b"%d" % number})])] if number % 3 else []
        return Last((Append(TURN, [turn]), Append(OWED, [(o, actor, b"%d" % number)]), *more), n)

    async def migrates(self, statements: Sequence[str] = NOTES) -> None:
        await self.space.author_migrate(statements)

    async def steps(self) -> Any:
        """A database step and its journal, one commit. Its outcome."""
        self.number += 1
        number = self.number

        def step(tx: Tx) -> int:
            return tx.execute("insert into note values(:id, :said)", id=number, said="x" * 3_000)

        self.disk.note(("tried", number))
        outcome = await self.space.author(step, lambda _: lambda: self._rows(number), budget_ms=60_000)
        if isinstance(outcome, Done):
            self.disk.note(("told", number))
        return outcome

    async def looks(self) -> set[int]:
        """Every number that is there, noted as seen."""
        seen = await numbers(self.space)
        self.disk.note(("seen", frozenset(seen)))
        return seen

    def checks_in(self) -> None:
        self.space.engine.file.checkpoint()

    async def closes(self) -> None:
        assert self.world is not None
        await self.world.close()
        self.world = None

    def dies(self) -> None:
        if self.world is not None:
            self.world.abandon()
            self.world = None


async def numbers(space: SqliteSpace) -> set[int]:
    """What is there, by number; each whole, in its history and behind its key."""
    turns, owed = await space.look(Query(TURN), Query(OWED))
    found = {int(str(row[3])[1:]): row for row in turns}
    assert sorted(int(bytes(row[2])) for row in owed) == sorted(found), "half of a transaction"
    walked = []
    for actor in range(ACTORS):
        (history,) = await space.look(Query(TURN, where=(("actor", "=", actor),), order=("-n",)))
        walked += history
    assert sorted(walked) == sorted(turns), "a history lost its head"
    if turns:
        (by_key,) = await space.look(Query(TURN, on=("actor", "event"), keys=[(r[1], r[3]) for r in turns]))
        assert sorted(by_key) == sorted(turns), "an id was forgotten"
    assert all(row[4] == facts(number) for number, row in found.items()), "another's bytes"
    return set(found)


@dataclass
class Known:
    """What was known at some place of a tape."""

    tried: set[int] = field(default_factory=set)
    sure: set[int] = field(default_factory=set)  # told, or seen

    def hear(self, said: tuple[str, Any]) -> None:
        what, which = said
        if what == "tried":
            self.tried.add(which)
        elif what == "told":
            self.sure.add(which)
        elif what == "seen":
            self.sure |= which


def places(tape: Tape, stride: int, first: int = 0) -> Iterable[tuple[int, Known, Platter]]:
    """Each place where the power may go: the known so far, and the disk then. All of them when deep."""
    platter, known = Platter(seed=first), Known()
    for place, op in enumerate((*tape.ops, Note(("end", 0)))):
        if place >= first and (DEEP or (place - first) % stride == 0):
            yield place, known, platter
        if isinstance(op, Note):
            known.hear(op.said)
        platter.play(op)


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


async def holds(folder: Path, known: Known, durability: str = "full") -> set[int]:
    """A file as it was left is sound, opens, holds what it must, nothing in part, and goes on. What is there."""
    if (folder / "main.db").exists():
        db = apsw.Connection(str(folder / "main.db"))
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        noted: set[Any] = set()
        if db.table_exists("main", "note"):
            noted = {id for (id,) in db.execute("select id from note")}
        turned: set[int] = set()
        if db.table_exists("main", "_onefold_turn"):
            turned = {int(event[1:]) for (event,) in db.execute("select event from _onefold_turn")}
        db.close()
        assert noted <= turned, "a step without its journal"
    life = Life(folder, FaultyDisk(), durability)
    try:
        space = await life.opens()
        there = await numbers(space)
        assert known.sure <= there, f"acknowledged, and gone: {sorted(known.sure - there)}"
        assert there <= known.tried, "nobody wrote this"
        life.number = 1_000_000
        assert [type(outcome) for outcome in await life.writes(2)] == [Done, Done]
        life.dies()
        assert await numbers(await life.opens()) == there | {1_000_001, 1_000_002}
        await life.closes()
        return there
    finally:
        life.dies()
        life.disk.close()


__all__ = ["DEEP", "LATER", "LATER_NOTES", "NOTES", "SCHEMA", "Known", "Life", "holds", "laid_out", "numbers", "places"]
