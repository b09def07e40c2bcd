"""What SQL an author may run on Postgres: their own schema, bound values, one statement, in time. Nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import psycopg
import pytest

from onefold.store.contract import AuthorSpace, Query, Tx
from onefold.store.postgres import PostgresWorld
from onefold.terms.errors import BadStatement, StepFenced, StoreUnavailable
from tests.store.postgres.authoring import MIGRATIONS, REFUSED, fetch, step
from tests.store.tables import SCHEMA, SENT


@pytest.fixture
async def space(postgres: str) -> AsyncIterator[AuthorSpace]:
    world = PostgresWorld(postgres)
    opened = await world.open("main", [SCHEMA])
    await opened.author_migrate(MIGRATIONS)
    other = await world.open("other", [SCHEMA])
    await other.author_migrate(["create table notes(x int)"])
    yield opened
    await world.close()


async def answer(space: AuthorSpace, sql: str, **values: object) -> Any:
    got: list[Any] = []
    await step(space, lambda tx: got.append(tx.fetch(sql, **values)))
    return got[0]


async def nothing_happened(space: AuthorSpace) -> None:
    assert await space.look(Query(SENT)) == ([],)
    assert await space.author_tables() == ["counted", "refunds"]
    for table in ("counted", "refunds"):
        assert (await space.author_rows(table, limit=10, after=None))[1] == []


async def test_statements_are_refused(space: AuthorSpace, subtests: pytest.Subtests) -> None:
    for what, sql in REFUSED.items():
        with subtests.test(what):
            with pytest.raises(BadStatement):
                await step(space, partial(fetch, sql))
            await nothing_happened(space)


async def test_what_was_refused_leaves_nothing_and_the_author_may_go_on(space: AuthorSpace) -> None:
    def stubborn(tx: Tx) -> None:
        tx.execute("insert into refunds values('7', 1)")
        for sql in REFUSED.values():
            with pytest.raises(BadStatement):
                tx.fetch(sql)
        with pytest.raises(BadStatement, match="refunds_pkey"):
            tx.execute("insert into refunds values('7', 1)")
        tx.execute("insert into refunds values('8', 1)")

    await step(space, stubborn)
    assert len((await space.author_rows("refunds", limit=9, after=None))[1]) == 2


async def test_the_role_owns_its_schema_and_can_do_nothing_else(space: AuthorSpace, postgres: str) -> None:
    with psycopg.connect(postgres) as conn:
        row = conn.execute(
            "select rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, pg_has_role(oid, current_user, 'member'),"
            " has_schema_privilege(oid, 'onefold', 'usage'), has_schema_privilege(oid, 'onefold_other', 'usage')"
            " from pg_roles where oid = (select nspowner from pg_namespace where nspname = 'onefold_main')"
        ).fetchone()
    assert row == (False, False, False, False, False, False, False)


async def test_a_space_without_tables_of_its_author_has_neither_schema_nor_role(postgres: str) -> None:
    world = PostgresWorld(postgres)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate([])
    assert await space.author_tables() == []
    await world.close()
    with psycopg.connect(postgres) as conn:
        assert conn.execute("select count(*) from pg_namespace where nspname like 'onefold\\_%'").fetchone() == (0,)


@pytest.mark.parametrize(
    "endless",
    [
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) as n from r",
        "select pg_sleep(600)",
        "insert into counted(what) select 'x' from generate_series(1, 1000000000)",
        "select set_config('statement_timeout', '0', false), pg_sleep(600)",
    ],
)
async def test_a_statement_without_end_is_ended(endless: str, space: AuthorSpace) -> None:
    with pytest.raises(StepFenced):  # it comes back at all: none of these would for minutes
        await step(space, lambda tx: tx.fetch(endless), budget_ms=50)
    await nothing_happened(space)


async def test_what_a_step_sets_ends_with_it(space: AuthorSpace) -> None:
    """Were it not taken back, a step could make its own commit, or those after it, less durable."""
    names = ("synchronous_commit", "statement_timeout", "search_path", "standard_conforming_strings", "lock_timeout")

    async def now() -> Any:
        shown = ", ".join(f"current_setting('{name}') as {name}" for name in names)
        locks = "(select count(*) from pg_locks where locktype = 'advisory') as n"
        return await answer(space, f"select {shown}, {locks}")

    before = await now()

    def sets(tx: Tx) -> None:
        for name, value in zip(names, ("off", "0", "onefold", "off", "0"), strict=True):
            for local in (True, False):
                tx.fetch("select set_config(:name, :value, :local) as x", name=name, value=value, local=local)
        tx.fetch("select pg_advisory_lock(7) as x")
        assert tx.fetch("select '\\' as x") == [{"x": "\\"}]

    await step(space, sets)
    assert await now() == before


async def test_ordinary_sql_works(space: AuthorSpace) -> None:
    def ordinary(tx: Tx) -> None:
        assert tx.execute("insert into refunds values(:id, :amount)", id="7", amount=Decimal("9.50")) == 1
        assert tx.execute("insert into refunds values('8', 1) on conflict do nothing; -- once") == 1
        assert tx.execute("insert into refunds values('8', 1) on conflict do nothing") == 0
        assert tx.execute("update refunds set amount = 2, paid = :paid", paid=1) == 2
        assert tx.fetch("select * from dear") == []
        assert tx.fetch("insert into refunds values('9', 7) returning order_id, amount") == [
            {"order_id": "9", "amount": "7.00"}
        ]
        assert tx.fetch_one("select * from dear") == {"order_id": "9", "amount": "7.00", "paid": False}
        assert tx.fetch_one("select * from dear where order_id = :no", no=1) is None
        assert tx.execute("select * from refunds for update") == 0
        assert (
            tx.execute("with gone as (delete from refunds returning *) insert into counted(what) select 'x' from gone")
            == 3
        )
        assert tx.execute("create table more(k text primary key, v double precision, w bytea, j jsonb, a int[])") == 0
        assert tx.execute("alter table more rename to less") == 0
        assert tx.execute("insert into less values('k', 1.5, :w, :j, '{1,2}')", w=b"\0\xff", j='{"a": [1, 2.5]}') == 1
        assert tx.fetch("select * from less") == [
            {"k": "k", "v": 1.5, "w": b"\0\xff", "j": {"a": [1, 2.5]}, "a": [1, 2]}
        ]
        assert tx.execute("create unique index less_by_v on less(v)") == 0
        assert tx.execute("drop table less") == 0
        assert tx.fetch("table counted limit :n", n=1) == [{"id": 1, "what": "x"}]

    await step(space, ordinary)
    assert await space.author_tables() == ["counted", "refunds"]


async def test_a_name_in_a_string_a_comment_or_behind_a_cast_is_no_value(space: AuthorSpace) -> None:
    sql = "select ':a' as \":b\", $$:c$$ as c, $x$ :d $x$ as d, 5::int as e, E'\\':f' as f, :g as g /* :h /* :i */ */ -- :j"
    assert await answer(space, sql, g="z") == [{":b": ":a", "c": ":c", "d": " :d ", "e": 5, "f": "':f", "g": "z"}]


async def test_values_take_the_type_of_their_place(space: AuthorSpace) -> None:
    at = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)
    sql = (
        "select :a::int8 as a, :b::float8 as b, :c as c, :d::bytea as d, :e::numeric as e, :f::timestamptz as f,"
        " :g::bool as g, :h::text as h, :a + :a as i, :big = 1::int2 as j"
    )
    values = {"a": -(2**31), "b": 0.5, "c": "'; drop table refunds; --", "d": b"\0\xff", "e": Decimal("10.50"), "f": at}
    assert await answer(space, sql, **values, g=True, h=None, big=2**62) == [
        {**values, "e": "10.50", "f": "2026-11-30T12:00:00.25Z", "g": True, "h": None, "i": -(2**32), "j": False}
    ]


@pytest.mark.parametrize(
    "sql,values,why",
    [
        ("select :a as a", {}, "no value came for :a"),
        ("select 1 as a", {"b": 1}, "it has no :b"),
        ("select :a as a", {"a": 2**63}, "64 bits"),
        ("select :a as a", {"a": "\ud800"}, "UTF-8"),
        ("select :a as a", {"a": "\0"}, "NUL"),
        ("select :a as a", {"a": [1]}, "list"),
        ("select :a as a", {"a": datetime(2026, 1, 1)}, "zone"),  # noqa: DTZ001 - a naive one is what is refused
        ("insert into counted(id) values(:a)", {"a": "x"}, "cannot insert|invalid input"),
        ("select * from refunds where amount = :a", {"a": "much"}, 'invalid input syntax for type numeric: "much"'),
        ("insert into refunds values('7', null), ('7', null)", {}, "refunds_pkey"),
    ],
)
async def test_a_value_that_does_not_fit_is_named(space: AuthorSpace, sql: str, values: Any, why: str) -> None:
    with pytest.raises(Exception, match=why) as raised:
        await step(space, lambda tx: tx.fetch(sql, **values))
    assert type(raised.value).__module__ == "onefold.terms.errors", "a driver's error got out"
    await nothing_happened(space)


@pytest.mark.parametrize("key", ["", "primary key", "unique"])
@pytest.mark.parametrize("kind", ["text", "int8", "numeric"])
async def test_every_row_is_on_one_page(space: AuthorSpace, key: str, kind: str) -> None:
    def filled(tx: Tx) -> None:
        tx.execute(f'create table "Odd ""Name" (k {kind} {key}, j jsonb)')
        tx.execute("""insert into "Odd ""Name" select n, '{"a": [1]}' from generate_series(1, 7) n""")

    await step(space, filled)
    seen: list[Any] = []
    after: int | None = None
    while True:
        columns, page, after = await space.author_rows('Odd "Name', limit=3, after=after)
        seen += page
        if after is None:
            break
    assert columns == ["k", "j"]
    assert sorted(str(k) for k, _ in seen) == [str(n) for n in range(1, 8)]
    assert {j for _, j in seen} == {'{"a": [1]}'}


async def test_what_a_step_puts_off_to_its_end_is_told_as_its_own(space: AuthorSpace) -> None:
    def breaks(tx: Tx) -> None:
        tx.execute("create table linked(id int primary key, to_id int references linked deferrable initially deferred)")
        tx.execute("insert into linked values(1, 2)")

    with pytest.raises(BadStatement, match="linked_to_id_fkey"):
        await step(space, breaks)
    await nothing_happened(space)


async def test_a_connection_that_is_lost_fails_its_step_and_no_other(space: AuthorSpace, postgres: str) -> None:
    inside, go = threading.Event(), threading.Event()

    def waits(tx: Tx) -> None:
        tx.execute("insert into refunds values('7', 1)")
        inside.set()
        go.wait(60)
        tx.execute("insert into refunds values('8', 1)")

    running = asyncio.create_task(step(space, waits))
    await asyncio.to_thread(inside.wait, 60)
    with psycopg.connect(postgres, autocommit=True) as conn:
        ended = "select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'"
        assert conn.execute(ended).fetchall() == [(True,)]
    go.set()
    with pytest.raises(StoreUnavailable):
        await running
    await nothing_happened(space)
    await step(space, lambda tx: tx.execute("insert into refunds values('9', 1)"))
