"""What SQL an author may run on Postgres: their own schema, bound values, one statement, in time. Nothing else."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import psycopg
import pytest

from onefold.store.contract import AuthorSpace, Done, Put, Query, Tx
from onefold.store.postgres import PostgresWorld
from onefold.terms.errors import BadStatement, LoadRefused, StepFenced, StoreUnavailable
from tests.store.shorthand import writing
from tests.store.tables import SCHEMA, SENT

MIGRATIONS = [
    "create table refunds(order_id text primary key, amount numeric(12,2), paid bool default false)",
    "create table counted(id int generated always as identity primary key, what text)",
    "create index refunds_by_amount on refunds(amount)",
    "create view dear as select * from refunds where amount > 5",
]

REFUSED = {
    "reads a table of the store": "select * from onefold.sent",
    "reads it quoted": 'select * from "onefold"."sent"',
    "reads it as a whole": "table onefold.sent",
    "reads it in a subquery": "select (select count(*) from onefold.sent) as n",
    "reads what others are in": "select * from onefold._space",
    "reads it as text that is run": "select query_to_xml('select * from onefold.sent', true, true, '') as x",
    "reads it as somebody else": (
        "select set_config('role', 'none', true) as a, query_to_xml('select * from onefold.sent', true, true, '') as b"
    ),
    "becomes the store's own": "select set_config('role', 'postgres', true) as x",
    "becomes who logged in": "select set_config('session_authorization', 'postgres', false) as x",
    "reads another actuator's table": "select * from onefold_other.notes",
    "writes a table of the store": "insert into onefold.sent values(1, 1, 'x', '\\x00')",
    "deletes from it": "delete from onefold.sent",
    "drops it": "drop table onefold.sent",
    "copies it": "create table mine as select * from onefold.sent",
    "alters it": "alter table onefold.sent add column x int",
    "takes a number of it": "select nextval('onefold.turn__n') as x",
    "calls the way in": "select * from onefold._author_main('select 1', null, 1)",
    "changes the way in": "alter function onefold._author_main(text, text[], int4) security invoker",
    "reads the server's secrets": "select * from pg_authid",
    "reads a file": "select pg_read_file('/etc/passwd') as x",
    "takes a file in": "select lo_import('/etc/passwd') as x",
    "ends another session": "select pg_terminate_backend(pid) as x from pg_stat_activity",
    "makes a table in public": "create table public.mine(x int)",
    "makes a table in the store's schema": "create table onefold.mine(x int)",
    "makes a schema": "create schema mine",
    "makes a function": "create function mine() returns int language sql as 'select 1'",
    "makes a trigger": "create trigger t after insert on refunds execute function suppress_redundant_updates_trigger()",
    "makes an extension": "create extension dblink",
    "makes a role": "create role mine",
    "makes a temporary table": "create temp table mine(x int)",
    "makes one by its schema": "create temporary view mine as select 1 as x",
    "selects into one": "select 1 as x into temp mine",
    "makes an unlogged table": "create unlogged table mine(x int)",
    "begins": "begin",
    "commits": "commit",
    "commits behind a comment": "/* a step */ -- and\n commit",
    "ends": "end",
    "rolls back": "rollback",
    "opens a savepoint": "savepoint mine",
    "releases ours": "release savepoint author",
    "rolls back to ours": "rollback to savepoint author",
    "prepares a commit": "prepare transaction 'x'",
    "sets": "set search_path to onefold",
    "sets for a while": "set local role postgres",
    "resets": "reset role",
    "shows": "show all",
    "runs a block": "do $$ begin commit; end $$",
    "calls": "call mine()",
    "copies out to a program": "copy refunds to program 'cat'",
    "copies in from a program": "copy refunds from program 'echo x'",
    "copies out": "copy refunds to stdout",
    "listens": "listen x",
    "notifies": "notify x",
    "locks": "lock table refunds",
    "grants": "grant all on refunds to public",
    "gives away": "alter table refunds owner to postgres",
    "analyzes": "analyze",
    "explains": "explain select * from onefold.sent",
    "says two statements": "select 1 as a; select 2 as a",
    "says two with a comment between": "select 1 as a; /* and */ delete from refunds",
    "hides the second behind a string": "select E'\\'' as a; delete from refunds; --'",
    "binds by place": "select $1 as a",
    "says nonsense": "selekt 1",
    "says nothing": " -- nothing",
    "leaves a quote open": "select 'x",
    "has two columns of one name": "select 1 as a, 2 as a",
    "fetches more than there is room for": "select repeat('x', 9999) as x from generate_series(1, 10000)",
}


@pytest.fixture
async def space(postgres: str) -> AsyncIterator[AuthorSpace]:
    world = PostgresWorld(postgres)
    opened = await world.open("main", [SCHEMA])
    await opened.author_migrate(MIGRATIONS)
    other = await world.open("other", [SCHEMA])
    await other.author_migrate(["create table notes(x int)"])
    yield opened
    await world.close()


async def step(space: AuthorSpace, run: Callable[[Tx], Any], budget_ms: int = 5_000) -> Any:
    outcome = await space.author(run, lambda result: writing(Put(SENT, [(1, "ran", b"")])), budget_ms=budget_ms)
    assert isinstance(outcome, Done), outcome


async def answer(space: AuthorSpace, sql: str, **values: object) -> Any:
    got: list[Any] = []
    await step(space, lambda tx: got.append(tx.fetch(sql, **values)))
    return got[0]


def _fetch(sql: str, tx: Tx) -> None:
    tx.fetch(sql)


async def nothing_happened(space: AuthorSpace) -> None:
    assert await space.look(Query(SENT)) == ([],)
    assert await space.author_tables() == ["counted", "refunds"]
    for table in ("counted", "refunds"):
        assert (await space.author_rows(table, limit=10, after=None))[1] == []


async def test_statements_are_refused(space: AuthorSpace, subtests: pytest.Subtests) -> None:
    for what, sql in REFUSED.items():
        with subtests.test(what):
            with pytest.raises(BadStatement):
                await step(space, partial(_fetch, sql))
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
    started = time.perf_counter()
    with pytest.raises(StepFenced):
        await step(space, lambda tx: tx.fetch(endless), budget_ms=50)
    assert time.perf_counter() - started < 5
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
        go.wait(10)
        tx.execute("insert into refunds values('8', 1)")

    running = asyncio.create_task(step(space, waits))
    await asyncio.to_thread(inside.wait, 10)
    with psycopg.connect(postgres, autocommit=True) as conn:
        ended = "select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'"
        assert conn.execute(ended).fetchall() == [(True,)]
    go.set()
    with pytest.raises(StoreUnavailable):
        await running
    await nothing_happened(space)
    await step(space, lambda tx: tx.execute("insert into refunds values('9', 1)"))


async def test_who_may_not_make_roles_is_told_what_is_missing(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as conn:
        name = conn.info.dbname + "_plain"
        conn.execute(f"create role {name} login")
        conn.execute(f"grant create on database {conn.info.dbname} to {name}")
        conn.execute(f"grant execute on function pg_control_system to {name}")
    world = PostgresWorld(postgres.replace("postgres@", f"{name}@"))
    try:
        space = await world.open("main", [SCHEMA])
        with pytest.raises(StoreUnavailable, match="CREATEROLE"):
            await space.author_migrate(MIGRATIONS)
    finally:
        await world.close()


async def test_a_user_who_is_no_superuser_has_all_of_it(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as conn:
        name = conn.info.dbname + "_user"
        conn.execute(f"create role {name} login createrole")
        conn.execute(f"grant create on database {conn.info.dbname} to {name}")
    url = postgres.replace("postgres@", f"{name}@")
    for _ in range(2):
        world = PostgresWorld(url)
        space = await world.open("main", [SCHEMA])
        await space.author_migrate(MIGRATIONS)
        await step(space, lambda tx: tx.execute("insert into counted(what) values('x')"))
        for what in ("becomes the store's own", "reads it as somebody else", "calls the way in", "changes the way in"):
            with pytest.raises(BadStatement):
                await step(space, partial(_fetch, REFUSED[what]))
        await world.close()


async def test_a_copy_restored_without_its_owners_is_taken_over(postgres: str) -> None:
    world = PostgresWorld(postgres)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate(MIGRATIONS)
    await world.close()
    with psycopg.connect(postgres, autocommit=True) as conn:
        ((role,),) = conn.execute(
            "select nspowner::regrole::text from pg_namespace where nspname = 'onefold_main'"
        ).fetchall()
        conn.execute(f"reassign owned by {role} to current_user")
        conn.execute(f"drop owned by {role}")
        conn.execute(f"drop role {role}")
    world = PostgresWorld(postgres)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate([*MIGRATIONS, "alter table refunds add column more int"])
    await step(space, lambda tx: tx.execute("insert into counted(what) values('x')"))
    with pytest.raises(LoadRefused):
        await space.author_migrate(["create table other(x int)"])
    await world.close()


async def test_many_authors_share_few_connections(postgres: str) -> None:
    world = PostgresWorld(postgres)
    spaces = [await world.open(f"space{n}", [SCHEMA]) for n in range(6)]
    for _ in range(2):
        for space in spaces:
            await space.author_migrate(["create table notes(x int)"])
            await step(space, partial(_fetch, "insert into notes values(1)"))
    with psycopg.connect(postgres) as conn:
        used = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        ((count,),) = conn.execute(used).fetchall()
        assert count <= 8
        made = "select count(*) from pg_namespace where starts_with(nspname, 'onefold_space')"
        assert conn.execute(made).fetchone() == (6,)
    await world.close()


async def test_two_processes_make_one_home(postgres: str) -> None:
    worlds = [PostgresWorld(postgres) for _ in range(3)]
    spaces = [await world.open("main", [SCHEMA]) for world in worlds]
    await asyncio.gather(*[space.author_migrate(MIGRATIONS[:1]) for space in spaces], return_exceptions=True)
    for space in spaces:
        await space.author_migrate(MIGRATIONS[:1])
        assert await space.author_tables() == ["refunds"]
    for world in worlds:
        await world.close()
