"""testing.store_suite.schema - tables that come to be and grow, and worlds that are opened again.

For: migrations forward and refused, older code beside newer tables, spaces apart, a space at rest.
Never: how a backend spells a table.
"""

from __future__ import annotations

from dataclasses import replace

from onefold.store.contract import (
    AddColumn,
    Append,
    Cas,
    Column,
    Create,
    Migration,
    Put,
    Query,
    Schema,
    Table,
)
from onefold.terms.errors import LoadRefused, OnefoldError, StoreTooNew
from onefold.testing.store_suite.ground import Ground, Unfulfilled, ask, expect, picture, promise, rows, write
from onefold.testing.store_suite.tables import SCHEMA, TASK, TURN, Histories, task

NOTE = Table("note", (Column("id", "int"), Column("text", "text")), key=("id",))
STAR = Column("stars", "int", null=True)
STARRED = replace(NOTE, columns=(*NOTE.columns, STAR))
TAG = Table("tag", (Column("name", "text"),), key=("name",))
FIRST = Migration(1, oldest=1, steps=(Create(NOTE),))
OLD = Schema("notes", (NOTE,), (FIRST,))
NEW = Schema("notes", (STARRED, TAG), (FIRST, Migration(2, oldest=1, steps=(AddColumn("note", STAR), Create(TAG)))))
APART = replace(NEW, migrations=(FIRST, replace(NEW.migrations[1], oldest=2)))


async def _refused(ground: Ground, schemas: list[Schema], kind: type[OnefoldError], what: str) -> None:
    try:
        await ground.world.open("main", schemas)
    except kind:
        return
    raise Unfulfilled(f"{what} was opened; promised was {kind.__name__}")


@promise("rows are there after a clean end and after a crash, and a space is opened as often as one likes")
async def rows_outlive_the_world(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    await write(space, Append(TASK, [task(1)]), Append(TURN, [turn.row(1, "e")]))
    again = await ground.open()
    await write(again, Append(TASK, [task(2)]))
    before = await picture(again)
    expect(await picture(space), before, "the space opened first, against the same opened again")
    for life in ("a clean end", "a crash", "another clean end"):
        space = await (ground.crashed() if life == "a crash" else ground.reopened())
        expect(await picture(space), before, f"everything after {life}")


@promise("spaces are apart")
async def spaces_are_apart(ground: Ground) -> None:
    main, other = await ground.open(), await ground.open(name="other.space-2")
    expect((main.name, other.name), ("main", "other.space-2"), "their names")
    await write(main, Append(TASK, [task(1, baton="b")]))
    await write(other, Append(TASK, [task(1, baton="b", kind="o")]))
    expect(await rows(main, TASK), [task(1, baton="b")], "the rows of one")
    expect(await rows(other, TASK), [task(1, baton="b", kind="o")], "the rows of the other")


@promise("a migration is applied once, and a new column is None in the rows before it")
async def tables_grow(ground: Ground) -> None:
    space = await ground.open(schema=OLD)
    await write(space, Append(NOTE, [(1, "one"), (2, "two")]))
    for _ in range(2):
        await ground.close()
        space = await ground.open(schema=NEW)
    expect(await rows(space, STARRED), [(1, "one", None), (2, "two", None)], "the rows of older code")
    await write(
        space,
        Append(STARRED, [(3, "three", 3)]),
        Cas(STARRED, [((1,), {"stars": None}, {"stars": 1})]),
        Append(TAG, [("t",)]),
    )
    (found,) = await space.look(Query(STARRED, where=(("stars", ">=", 1),), order=("-stars",)))
    expect(found, [(3, "three", 3), (1, "one", 1)], "the rows with a star")


@promise("older code goes on beside a newer migration that allows it, and leaves what it does not know alone")
async def older_code_goes_on(ground: Ground) -> None:
    space = await ground.open(schema=NEW)
    await write(space, Append(STARRED, [(1, "one", 5), (2, "two", 6)]))
    await ground.close()
    space = await ground.open(schema=OLD)
    expect(await rows(space, NOTE), [(1, "one"), (2, "two")], "the rows, as older code declares them")
    met = await ask(space, Append(NOTE, [(1, "again"), (3, "three")]))
    expect(met, ([(1, "one"), None],), "appending by older code")
    await write(space, Put(NOTE, [(1, "put")]))
    expect(await ask(space, Cas(NOTE, [((2,), {}, {"text": "set"})])), ([(2, "set")],), "setting by older code")
    await ground.close()
    space = await ground.open(schema=NEW)
    expect(await rows(space, STARRED), [(1, "put", 5), (2, "set", 6), (3, "three", None)], "as newer code sees it")


@promise("a store beside whose newer migration older code may not go on is refused, and stays as it is")
async def too_new_is_refused(ground: Ground) -> None:
    space = await ground.open(schema=APART)
    await write(space, Append(STARRED, [(1, "one", 5)]))
    await ground.close()
    await _refused(ground, [OLD], StoreTooNew, "a store that only newer code may use")
    await _refused(ground, [OLD], StoreTooNew, "the same again")
    await ground.close()
    expect(await rows(await ground.open(schema=APART), STARRED), [(1, "one", 5)], "the rows for newer code")


@promise("a migration that was changed after it was applied is refused, and the store stays as it is")
async def changed_migrations_are_refused(ground: Ground) -> None:
    space = await ground.open(schema=OLD)
    await write(space, Append(NOTE, [(1, "one")]))
    await ground.close()
    wider = replace(NOTE, columns=(*NOTE.columns, Column("more", "text", null=True)))
    keyed = replace(NOTE, unique=(("text",),))
    for table in (wider, keyed):
        changed = Schema("notes", (table,), (replace(FIRST, steps=(Create(table),)),))
        await _refused(ground, [changed], LoadRefused, "a changed migration")
    await _refused(ground, [replace(OLD, migrations=(replace(FIRST, oldest=0),))], LoadRefused, "a changed `oldest`")
    await ground.close()
    expect(await rows(await ground.open(schema=OLD), NOTE), [(1, "one")], "the rows")


@promise("migrations that do not add up to the declared tables are refused before anything is made")
async def declarations_add_up(ground: Ground) -> None:
    missing = Schema("notes", (NOTE, TAG), (FIRST,))
    gap = Schema("notes", (NOTE,), (replace(FIRST, number=2),))
    solid = Column("stars", "int")
    hard = Schema(
        "notes",
        (replace(NOTE, columns=(*NOTE.columns, solid)),),
        (FIRST, Migration(2, oldest=1, steps=(AddColumn("note", solid),))),
    )
    for schema, what in ((missing, "a table without a migration"), (gap, "a gap"), (hard, "a column without None")):
        await _refused(ground, [schema], LoadRefused, what)
    twice = [OLD, replace(OLD, room="others")]
    await _refused(ground, twice, LoadRefused, "one table of two rooms")
    await ground.close()
    expect(await rows(await ground.open(schema=OLD), NOTE), [], "the rows of a sound one")


@promise("a room comes to a space later, beside the rows of others")
async def rooms_come_later(ground: Ground) -> None:
    await write(await ground.open(), Append(TASK, [task(1)]))
    await ground.close()
    space = await ground.world.open("main", [SCHEMA, OLD])
    await write(space, Append(NOTE, [(1, "one")]), Append(TASK, [task(2)]))
    expect((await rows(space, NOTE), await rows(space, TASK)), ([(1, "one")], [task(1), task(2)]), "the rows of both")
    await ground.close()
    expect(await rows(await ground.open(), TASK), [task(1), task(2)], "the rows, without the room")


@promise("a space at rest answers one question without being opened, and one that does not exist has nothing")
async def spaces_at_rest(ground: Ground) -> None:
    query = Query(TASK, where=(("ready", "null", False),), order=("ready",), limit=1)
    expect(await ground.world.soonest("main", query), (), "of a space that does not exist")
    expect(await ground.world.soonest("main", query), (), "of a space that asking did not make")
    space = await ground.open()
    expect(await ground.world.soonest("main", query), ([],), "of a space without rows")
    await write(space, Append(TASK, [task(1, ready=9), task(2, ready=4), task(3, ready=None)]))
    expect(await ground.world.soonest("main", query), ([task(2, ready=4)],), "of a space that is open")
    await ground.close()
    expect(await ground.world.soonest("main", query), ([task(2, ready=4)],), "of a space at rest")
    expect(await ground.world.soonest("main", Query(NOTE)), (), "of a table that is not there")
    expect(await rows(await ground.open(), TASK), [task(1, ready=9), task(2, ready=4), task(3, ready=None)], "the rows")


CHECKS = (
    rows_outlive_the_world,
    spaces_are_apart,
    tables_grow,
    older_code_goes_on,
    too_new_is_refused,
    changed_migrations_are_refused,
    declarations_add_up,
    rooms_come_later,
    spaces_at_rest,
)
