"""An author's tables as a file of their own, on both stores: whole, of one instant, and without anything of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from onefold.store.contract import AuthorSpace, Done, Put, Tx, World
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.store.sqlite.export import Copy
from onefold.terms.errors import StoreUnavailable
from tests.store.child import clock
from tests.store.shorthand import writing
from tests.store.tables import SCHEMA, SENT

MIGRATIONS = [
    "create table counted(id integer primary key autoincrement, what text)",
    "create table refunds(order_id text primary key, amount text check(amount > '')) without rowid",
    'create table "Odd ""Name"(rowid text, oid, "a,b" blob, twice as (oid * 2))',
    "create table places(a, unique(a)) -- ends in a comment",
    "create index refunds_by_amount on refunds(amount) where amount > '1'",
    "create view dear as select * from refunds where amount > '5' /* also",
    "create trigger noted after insert on refunds begin insert into counted(what) values(new.order_id); end",
]
VALUES = [None, 1, -(2**63), 1.5, 1e308 * 10, 1 / 3, "it's", "é\n--", b"\0'x", ""]


@pytest.fixture(params=["memory", "sqlite"])
async def space(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AuthorSpace]:
    folder = tmp_path / "a % store?#"
    world: World = MemoryWorld(clock=clock) if request.param == "memory" else SqliteWorld(folder, clock=clock)
    opened = await world.open("main", [SCHEMA])
    await opened.author_migrate(MIGRATIONS)
    yield opened
    await world.close()


async def fill(space: AuthorSpace, number: int = 7) -> None:
    def step(tx: Tx) -> None:
        for each in range(number):
            tx.execute("insert into refunds values(:id, :amount)", id=f"o{number}-{each}", amount=str(each + 1))
        for value in VALUES:
            tx.execute('insert into "Odd ""Name" values(:a, 2, :b)', a="r", b=value)
        tx.execute("""insert into "Odd ""Name" values('r', 2, 'a' || char(0) || 'b')""")
        tx.execute("delete from counted where id > 3")

    done = await space.author(step, lambda _: writing(Put(SENT, [(1, "secret", b"secret")])), budget_ms=9_000)
    assert isinstance(done, Done)


def seen(conn: apsw.Connection) -> dict[str, Any]:
    """All that is in a database: what was made, and each table's rows."""
    made: list[Any] = conn.execute("select type, name, sql from sqlite_schema order by type, name").fetchall()
    tables = [name for kind, name, _ in made if kind in ("table", "view")]
    quoted = {name: name.replace('"', '""') for name in tables}
    rows = {name: conn.execute('select * from "' + quoted[name] + '"').fetchall() for name in tables}  # noqa: S608 - a test's own
    return {"made": [(kind, name) for kind, name, _ in made], **rows}


async def test_the_file_holds_all_that_the_author_made_and_nothing_else(space: AuthorSpace, tmp_path: Path) -> None:
    await fill(space)
    into = tmp_path / "out.sqlite"
    await space.author_export(str(into), sql=False)
    conn = apsw.Connection(str(into))
    found = seen(conn)
    assert [row[0] for row in conn.execute("pragma integrity_check")] == ["ok"]
    assert {name for _, name in found["made"] if not name.startswith("sqlite_")} == {
        "counted",
        "refunds",
        'Odd "Name',
        "places",
        "refunds_by_amount",
        "dear",
        "noted",
    }
    assert found["refunds"] == [(f"o7-{each}", str(each + 1)) for each in range(7)]
    assert found["dear"] == [("o7-5", "6"), ("o7-6", "7")]
    assert [row[2] for row in found['Odd "Name']] == [*VALUES, "a\0b"]
    assert found["counted"] == [(1, "o7-0"), (2, "o7-1"), (3, "o7-2")]
    conn.execute("insert into refunds values('new', '1')")
    assert conn.execute("select max(id) from counted").fetchall() == [(8,)], "it numbers on where the author's does"
    conn.close()
    assert b"secret" not in into.read_bytes()


async def test_the_dump_makes_the_same_database(space: AuthorSpace, tmp_path: Path) -> None:
    await fill(space)
    await space.author_export(str(tmp_path / "out.sqlite"), sql=False)
    await space.author_export(str(tmp_path / "out.sql"), sql=True)
    text = (tmp_path / "out.sql").read_text(encoding="utf-8")
    again = apsw.Connection(str(tmp_path / "again.sqlite"))
    again.execute(text).fetchall()
    first = apsw.Connection(str(tmp_path / "out.sqlite"))
    assert seen(again) == seen(first)
    assert "_onefold" not in text
    assert not (tmp_path / "out.sql.made").exists()
    for conn in (again, first):
        conn.close()


async def test_a_text_that_is_no_utf8_is_taken_along_byte_for_byte(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate(["create table notes(a integer, b text)", "create index both on notes(b, a)"])
    values = [
        "'z'",
        "cast(x'ff41fe' as text)",
        "x'ff'",
        "'y'",
        "cast(x'eda080' as text)",
        "'a' || char(0) || 'b'",
        "null",
    ]

    def step(tx: Tx) -> None:
        for value in values:
            tx.execute(f"insert into notes values(1, {value})")

    assert isinstance(await space.author(step, lambda _: writing(), budget_ms=9_000), Done)
    await space.author_export(str(tmp_path / "out.sql"), sql=True)
    await world.close()
    again = apsw.Connection(str(tmp_path / "again.sqlite"))
    again.execute((tmp_path / "out.sql").read_text(encoding="utf-8")).fetchall()
    found = again.execute("select typeof(b), cast(b as blob) from notes order by rowid").fetchall()
    again.close()
    texts = [b"z", b"\xff\x41\xfe", b"\xff", b"y", b"\xed\xa0\x80", b"a\0b", None]
    assert found == list(zip(["text", "text", "blob", "text", "text", "text", "null"], texts, strict=True))


async def test_an_author_without_tables_has_an_empty_file(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    space = await world.open("main", [SCHEMA])
    await space.author_export(str(tmp_path / "out.sql"), sql=True)
    await world.close()
    assert (tmp_path / "out.sql").read_text() == "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCOMMIT;\n"


async def test_it_is_of_one_instant_and_nobodys_commit_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate(MIGRATIONS)
    await fill(space, 3)
    loop, begun, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    whole = Copy.run

    def held(copy: Copy) -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        whole(copy)

    monkeypatch.setattr(Copy, "run", held)
    export = asyncio.create_task(space.author_export(str(tmp_path / "out.sqlite"), sql=False))
    await begun.wait()
    await fill(space, 5)
    go_on.set()
    await export
    await world.close()
    conn = apsw.Connection(str(tmp_path / "out.sqlite"))
    assert conn.execute("select count(*) from refunds").fetchall() == [(3,)]
    conn.close()


async def test_one_that_nobody_waits_for_any_more_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate(["create table t(a)"])
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def endless(copy: Copy) -> None:
        loop.call_soon_threadsafe(begun.set)
        copy._conn.execute("with recursive c(x) as (select 1 union all select x + 1 from c) select max(x) from c")

    monkeypatch.setattr(Copy, "run", endless)
    export = asyncio.create_task(space.author_export(str(tmp_path / "out.sqlite"), sql=False))
    await begun.wait()
    export.cancel()
    with pytest.raises(asyncio.CancelledError):
        await export
    await fill_one(space)
    await world.close()


async def fill_one(space: AuthorSpace) -> None:
    done = await space.author(lambda tx: tx.execute("insert into t values(2)"), lambda _: writing(), budget_ms=9_000)
    assert isinstance(done, Done)


async def test_a_place_that_cannot_be_written_is_told(space: AuthorSpace, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        await space.author_export(str(tmp_path / "nowhere" / "out.sqlite"), sql=False)
    await fill(space)
