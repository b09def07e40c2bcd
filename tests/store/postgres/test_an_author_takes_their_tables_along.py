"""An author's tables on Postgres as SQL that makes them again, and as a SQLite file; of one instant, nothing of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import psycopg
import pytest

from onefold.store.contract import AuthorSpace, Tx
from onefold.store.postgres import PostgresWorld, export
from onefold.terms.errors import StoreUnavailable
from tests.postgres import fresh_database
from tests.store.postgres.authoring import step
from tests.store.tables import SCHEMA

MIGRATIONS = [
    "create type mood as enum ('fine', 'not ''fine')",
    "create type spot as (x int, y numeric(5,2))",
    "create domain amount as numeric(12,2) check (value >= 0)",
    "create sequence tickets increment by 5",
    "create table people(id int generated always as identity primary key, name text not null unique, m mood, at spot)",
    "create table refunds(id text primary key, who int references people(id) on delete cascade, a amount default 1,"  # noqa: ISC004 - one text
    " at timestamptz, day date, raw bytea, doc jsonb, tags text[], paid bool, real float8, ticket int8 default"
    " nextval('tickets'), twice numeric generated always as (a * 2) stored, check (ticket > 0))",
    'create table "Odd ""Name"(n serial, "a,b" char(3) collate "C", primary key ("a,b", n))',
    "create table nothing()",
    "create table years(y int, v text) partition by range (y)",
    "create table old partition of years for values from (0) to (2000)",
    "create table young partition of years for values from (2000) to (3000)",
    "create unique index by_day on refunds(day, lower(id)) where paid",
    "create index years_v on years(v)",
    "create view aside as select 1 as one",
    "create view zdear as select id, a from refunds where a > 5",
    "create view adear as select zdear.a from zdear, aside",
]


@pytest.fixture
async def space(postgres: str) -> AsyncIterator[AuthorSpace]:
    world = PostgresWorld(postgres)
    opened = await world.open("main", [SCHEMA])
    await opened.author_migrate(MIGRATIONS)
    yield opened
    await world.close()


def fill(tx: Tx) -> None:
    tx.execute("insert into people(name, m, at) values('A\\d''a', 'not ''fine', row(1, 2.50)), ('Bob', null, null)")
    tx.execute(
        "insert into refunds(id, who, a, at, day, raw, doc, tags, paid, real) values"
        " ('r1', 1, 10, '2026-11-30T12:00:00.123456Z', '2026-11-30', '\\x00ff', '{\"a\": [1, null]}',"
        " '{a,\"b,c\",null}', true, 0.1), ('r2', 2, default, null, null, null, null, null, null, 'infinity')"
    )
    tx.execute('insert into "Odd ""Name" ("a,b") values(\'x\'), (\'y\')')
    tx.execute("insert into nothing default values")
    tx.execute("insert into years values(1999, 'a'), (2001, 'b'), (2002, 'c')")


def look(url: str, schema: str | None = None) -> dict[str, object]:
    """All that is in a schema: rows by table, and what the catalog says."""
    with psycopg.connect(url, autocommit=True) as conn:
        if schema is not None:
            conn.execute(f'set search_path to "{schema}"')
        of = "current_schema()::regnamespace"
        kinds = "select relkind::text, relname::text from pg_class where relkind not in ('c', 't', 'm')"
        made = conn.execute(f"{kinds} and relnamespace={of} order by 1, 2").fetchall()
        held = "select conname::text, pg_get_constraintdef(oid, true) from pg_constraint where connamespace=" + of  # noqa: S608 - a test's own
        constraints = conn.execute(f"{held} order by 1").fetchall()
        columns = conn.execute(
            "select table_name::text, column_name::text, data_type::text, domain_name::text, column_default::text,"
            " is_nullable::text, is_identity::text, collation_name::text from information_schema.columns"
            " where table_schema=current_schema() order by 1, ordinal_position"
        ).fetchall()
        rows = {}
        for kind, name in made:
            if kind in "rpvS":
                quoted = name.replace('"', '""')
                shown = "last_value, is_called" if kind == "S" else "t::text"
                rows[name] = conn.execute("select " + shown + ' from "' + quoted + '" t order by 1').fetchall()  # noqa: S608 - a test's own
    return {"made": made, "constraints": constraints, "columns": columns, "rows": rows}


async def test_the_sql_makes_all_of_it_again(space: AuthorSpace, postgres: str, tmp_path: Path) -> None:
    await step(space, fill)
    await space.author_export(str(tmp_path / "out.sql"), sql=True)
    text = (tmp_path / "out.sql").read_text(encoding="utf-8")
    assert "onefold" not in text
    other = fresh_database()
    with psycopg.connect(other, autocommit=True) as conn:
        conn.execute(text)
    first, again = look(postgres, "onefold_main"), look(other, "public")
    for what, had in first.items():
        assert again[what] == had, what
    with psycopg.connect(other, autocommit=True) as conn:
        assert conn.execute("insert into people(name) values('Eve') returning id").fetchall() == [(3,)]


async def test_a_column_with_the_name_that_a_question_uses_is_a_column(tmp_path: Path) -> None:
    url = fresh_database()
    world = PostgresWorld(url)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate(["create table t(t text, r int, page text)"])

    await step(space, lambda tx: tx.execute("insert into t values('x', 1, 'y')"))
    for sql in (False, True):
        await space.author_export(str(tmp_path / f"out-{sql}"), sql=sql)
    rows = await space.author_rows("t", limit=10, after=None)
    await world.close()
    conn = apsw.Connection(str(tmp_path / "out-False"))
    assert conn.execute("select * from t").fetchall() == [("x", 1, "y")]
    conn.close()
    assert "INSERT INTO t (t, r, page) VALUES ('x', '1', 'y');" in (tmp_path / "out-True").read_text()
    assert rows[1] == [("x", 1, "y")]


async def test_the_rows_as_a_sqlite_file(space: AuthorSpace, tmp_path: Path) -> None:
    await step(space, fill)
    await space.author_export(str(tmp_path / "out.sqlite"), sql=False)
    conn = apsw.Connection(str(tmp_path / "out.sqlite"))
    asked = 'select id, who, a, at, day, raw, doc, tags, paid, "real", twice from refunds order by id'
    assert conn.execute(asked).fetchall() == [
        ("r1", 1, "10.00", "2026-11-30T12:00:00.123456Z", "2026-11-30", b"\0\xff", '{"a": [1, null]}',
         '["a", "b,c", null]', 1, 0.1, "20.00"),
        ("r2", 2, "1.00", None, None, None, None, None, None, float("inf"), "2.00"),
    ]  # fmt: skip
    assert conn.execute('select "a,b", n from "Odd ""Name" order by n').fetchall() == [("x  ", 1), ("y  ", 2)]
    with pytest.raises(apsw.ConstraintError):
        conn.execute("insert into refunds(id) values('r1')")
    names = {name for (name,) in conn.execute("select name from sqlite_schema where type='table'")}
    assert names == {"people", "refunds", 'Odd "Name', "old", "young"}
    conn.close()


async def test_an_author_without_tables_has_an_empty_file(postgres: str, tmp_path: Path) -> None:
    world = PostgresWorld(postgres)
    space = await world.open("main", [SCHEMA])
    await space.author_export(str(tmp_path / "out.sql"), sql=True)
    await space.author_export(str(tmp_path / "out.sqlite"), sql=False)
    await world.close()
    assert "CREATE" not in (tmp_path / "out.sql").read_text()
    assert (tmp_path / "out.sqlite").exists()


async def test_it_is_of_one_instant(space: AuthorSpace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await step(space, fill)
    begun, go_on = asyncio.Event(), asyncio.Event()
    whole = export.Reading.begin

    async def held(reading: export.Reading) -> bool:
        found = await whole(reading)
        begun.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(export.Reading, "begin", held)
    task = asyncio.create_task(space.author_export(str(tmp_path / "out.sql"), sql=True))
    await begun.wait()
    await step(space, lambda tx: tx.execute("insert into people(name) values('late')"))
    go_on.set()
    await task
    text = (tmp_path / "out.sql").read_text()
    assert "'Bob'" in text
    assert "'late'" not in text


async def test_a_place_that_cannot_be_written_is_told(space: AuthorSpace, tmp_path: Path) -> None:
    for sql in (True, False):
        with pytest.raises(StoreUnavailable):
            await space.author_export(str(tmp_path / "nowhere" / "out"), sql=sql)
