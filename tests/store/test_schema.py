"""Declarations and migrations: what adds up, what is pinned, what newer and older code may do; views for people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from onefold.store.contract import (
    AddColumn,
    AddIndex,
    Append,
    Chain,
    Column,
    Create,
    Done,
    Migration,
    Schema,
    Table,
    View,
)
from onefold.store.schema import Applied, check, check_names, checksum, missing, still_to_run
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import LoadRefused, StoreTooNew
from onefold.testing.store_suite.tables import REIGN, SHARED
from tests.store.child import clock
from tests.store.shorthand import turn, writing
from tests.store.tables import SCHEMA, TABLES, TASK, TURN

WIDER = replace(TASK, columns=(*TASK.columns, Column("note", "text", null=True)))
SECOND = Migration(2, 1, (AddColumn("task", Column("note", "text", null=True)),))
WIDE = Schema("room", tuple(WIDER if t is TASK else t for t in TABLES), (*SCHEMA.migrations, SECOND))


def test_checksums_are_pinned() -> None:
    """A change here refuses every store that exists: it is the rendering that must stay."""
    assert checksum(SCHEMA.migrations[0]) == "f2735c310e23b23e168d228a66dad7e6"
    assert checksum(SECOND) == "5f1f0f908effd11072646c65a8bb21c9"
    assert checksum(SHARED.migrations[0]) == "0e190a1ce422a86b8afcb19f26b0c0f0"


def test_what_is_missing_comes_in_order() -> None:
    assert missing(WIDE, [], "main") == list(WIDE.migrations)
    first = Applied("room", 1, 1, checksum(WIDE.migrations[0]))
    assert missing(WIDE, [first], "main") == [SECOND]
    assert missing(WIDE, [Applied("other", 1, 1, "x")], "main") == list(WIDE.migrations)


@pytest.mark.parametrize("oldest,may", [(1, True), (2, False)])
def test_older_code_may_go_on_beside_what_says_so(oldest: int, may: bool) -> None:
    applied = [Applied("room", 1, 1, checksum(SCHEMA.migrations[0])), Applied("room", 2, oldest, "newer")]
    if may:
        assert missing(SCHEMA, applied, "main") == []
    else:
        with pytest.raises(StoreTooNew) as refused:
            missing(SCHEMA, applied, "main")
        assert (refused.value.found, refused.value.known) == (2, 1)


def test_an_authors_statements_run_once_and_in_order() -> None:
    first = still_to_run(["create a", "create b"], [], "shop")
    assert [(one.number, one.sql) for one in first] == [(1, "create a"), (2, "create b")]
    ran = [one.checksum for one in first]
    assert [(one.number, one.sql) for one in still_to_run(["create a", "create b", "alter a"], ran, "shop")] == [
        (3, "alter a")
    ]
    assert still_to_run(["create a"], ran, "shop") == []  # older code, beside a newer file
    with pytest.raises(LoadRefused, match="migration 2 of shop: it was changed after it ran"):
        still_to_run(["create a", "create c"], ran, "shop")


def test_a_changed_migration_is_named() -> None:
    with pytest.raises(LoadRefused, match="migration 1 of room in main"):
        missing(SCHEMA, [Applied("room", 1, 1, "other")], "main")


ONE = Table("one", (Column("n", "int"), Column("by", "int"), Column("prev", "int", null=True)), ("n",), serial=True)


@pytest.mark.parametrize(
    "schema,why",
    [
        (replace(SCHEMA, tables=TABLES[1:]), "do not add up"),
        (replace(SCHEMA, tables=WIDE.tables), "do not add up"),
        (replace(SCHEMA, migrations=(replace(SCHEMA.migrations[0], number=2),)), "missing or out of order"),
        (replace(SCHEMA, migrations=(*SCHEMA.migrations, SECOND, SECOND)), "missing or out of order"),
        (replace(SCHEMA, migrations=(replace(SCHEMA.migrations[0], oldest=2),)), "oldest"),
        (replace(WIDE, migrations=(*SCHEMA.migrations, Migration(2, 1, (AddColumn("x", SECOND.steps[0].column),)))), "cannot be added"),  # type: ignore[union-attr]
        (replace(WIDE, views=(View("v", "task", ("nothing",)),)), "shows a column"),
        (Schema("r", (replace(ONE, key=("x",)),), (Migration(1, 1, (Create(replace(ONE, key=("x",))),)),)), "not there"),
        (Schema("r", (replace(ONE, key=("prev",)),), (Migration(1, 1, (Create(replace(ONE, key=("prev",))),)),)), "may be None"),
        (
            Schema("r", (t := replace(ONE, serial=False, chain=Chain("by", "prev")),), (Migration(1, 1, (Create(t),)),)),
            "a chain needs",
        ),
    ],
)  # fmt: skip
def test_declarations_that_do_not_add_up_are_refused(schema: Schema, why: str) -> None:
    with pytest.raises(LoadRefused, match=why):
        check(schema)


def test_two_rooms_share_no_name() -> None:
    with pytest.raises(LoadRefused, match="declared twice"):
        check_names([SCHEMA, replace(SCHEMA, room="other")])
    with pytest.raises(LoadRefused, match="declared twice"):
        check_names([SCHEMA, replace(SCHEMA, tables=())])


async def test_views_show_what_they_declare(tmp_path: Path) -> None:
    shown = replace(
        SCHEMA, views=(View("event", "turn", ("actor", "event")), View("fact", "turn", ("n",), each="facts"))
    )
    for _ in range(2):
        world = SqliteWorld(tmp_path, clock=clock)
        space = await world.open("main", [shown])
        await world.close()
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [shown])
    row = turn(space, 7, "d/1", None, b'[{"type":"Paid","of":1},"text",2,null]')
    assert isinstance(await space.transact(writing(Append(TURN, [row]))), Done)
    await world.close()
    db = apsw.Connection(str(tmp_path / "main.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("select * from _onefold_event").fetchall() == [(7, "d/1")]
    assert db.execute("select * from _onefold_fact").fetchall() == [
        (row[0], 0, '{"type":"Paid","of":1}'),
        (row[0], 1, '"text"'),
        (row[0], 2, "2"),
        (row[0], 3, "null"),
    ]
    db.close()
    world = SqliteWorld(tmp_path, clock=clock)
    await world.open("main", [replace(SCHEMA, views=(View("event", "turn", ("event",)),))])
    await world.close()
    db = apsw.Connection(str(tmp_path / "main.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("select * from _onefold_event").fetchall() == [("d/1",)]
    db.close()


def test_an_added_index_is_part_of_the_declaration_and_of_the_checksum() -> None:
    table = SCHEMA.tables[0]
    column = table.columns[0].name
    indexed = replace(table, index=(*table.index, (column,)))
    added = Migration(2, 1, (AddIndex(table.name, (column,)),))
    tables = (indexed, *SCHEMA.tables[1:])
    check(replace(SCHEMA, tables=tables, migrations=(*SCHEMA.migrations[:1], added)))
    assert checksum(added) != checksum(Migration(2, 1, (AddIndex(table.name, (column, column)),)))
    for wrong in (AddIndex("nothing", (column,)), AddIndex(table.name, ("nothing",)), AddIndex(table.name, ())):
        with pytest.raises(LoadRefused, match="can be added"):
            check(replace(SCHEMA, tables=tables, migrations=(*SCHEMA.migrations[:1], Migration(2, 1, (wrong,)))))


async def test_a_file_of_a_space_refuses_a_table_of_the_whole_world_and_main_has_it(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock)
    with pytest.raises(LoadRefused, match="cannot have 'reign', which is main's"):
        await world.open("other", [SCHEMA, SHARED])
    assert not (tmp_path / "other.db").exists()
    main = await world.open("main", [SCHEMA, SHARED])
    assert isinstance(await main.transact(writing(Append(REIGN, [("a", "one", 1)]))), Done)
    await world.close()
