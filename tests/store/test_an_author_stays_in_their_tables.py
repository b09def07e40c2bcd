"""What SQL an author may run, on both stores: their own tables, bound values, one statement, in time. Nothing else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from onefold.store.contract import AuthorSpace, Done, Put, Query, Tx, World
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import BadStatement, StepFenced
from tests.store.child import clock
from tests.store.shorthand import writing
from tests.store.tables import SCHEMA, SENT

MIGRATIONS = [
    "create table refunds(order_id text primary key, amount text)",
    "create table counted(id integer primary key autoincrement, what text)",
    "create index refunds_by_amount on refunds(amount)",
    "create view dear as select * from refunds where amount > '5'",
    "create trigger noted after insert on refunds begin insert into counted(what) values(new.order_id); end",
]

LONG = "replace(hex(zeroblob(7000000)), '00', 'a')"
HALF = "replace(hex(zeroblob(3000000)), '00', 'a')"

REFUSED = {
    "reads a reserved table": "select * from _onefold_sent",
    "reads it by another case": "select * from _ONEFOLD_SENT",
    "reads it quoted": 'select * from "_onefold_sent"',
    "reads it in a subquery": "select (select count(*) from _onefold_sent) as n",
    "reads the store's notes": "select * from _onefold__meta",
    "writes a reserved table": "insert into _onefold_sent values(1, 'x', x'00')",
    "updates it": "update _onefold_sent set digest = x'00'",
    "deletes from it": "delete from _onefold_sent",
    "drops it": "drop table _onefold_sent",
    "copies it": "create table mine as select * from _onefold_sent",
    "alters it": "alter table _onefold_sent add column x",
    "renames it": "alter table _onefold_sent rename to mine",
    "indexes it": "create index mine on _onefold_sent(key)",
    "hangs a trigger on it": "create trigger mine after insert on _onefold_sent begin select 1; end",
    "takes a reserved name": "create table _onefold_mine(x)",
    "takes it by another case": "create table _OneFold_mine(x)",
    "takes it for a view": "create view _onefold_mine as select 1",
    "takes it for an index": "create index _onefold_mine on refunds(amount)",
    "renames into it": "alter table refunds rename to _onefold_mine",
    "renames into it by another case": "alter table refunds rename to _ONEFOLD_mine",
    "reads the schema": "select * from sqlite_master",
    "reads it by its other name": "select sql from sqlite_schema",
    "copies the schema": "create table mine as select name, sql from sqlite_master",
    "writes the schema": "update sqlite_master set sql = 'x'",
    "attaches": "attach ':memory:' as other",
    "detaches": "detach main",
    "vacuums into a file": "vacuum into 'x.db'",
    "vacuums": "vacuum",
    "sets a pragma": "pragma writable_schema = 1",
    "asks a pragma": "pragma table_info(refunds)",
    "asks a pragma as a table": "select * from pragma_table_list",
    "asks for page statistics": "select * from dbstat",
    "begins": "begin",
    "commits": "commit",
    "ends": "end",
    "rolls back": "rollback",
    "opens a savepoint": "savepoint mine",
    "releases one": "release body",
    "rolls back to one": "rollback to body",
    "loads an extension": "select load_extension('x') as x",
    "makes a temporary table": "create temp table mine(x)",
    "makes a temporary trigger": "create temp trigger mine after insert on _onefold_sent begin select 1; end",
    "makes a temporary view": "create temporary view mine as select * from _onefold_sent",
    "makes a virtual table": "create virtual table mine using fts5(x)",
    "analyzes": "analyze",
    "reindexes": "reindex",
    "explains a reserved table": "explain query plan select * from _onefold_sent",
    "says two statements": "select 1 as a; select 2 as a",
    "says two with a comment between": "select 1 as a; /* and */ delete from refunds",
    "binds by place": "select ? as a",
    "binds by number": "select ?1 as a",
    "says nonsense": "selekt 1",
    "has two columns of one name": "select 1 as a, 2 as a",
    "makes a huge value": "select hex(zeroblob(900000000)) as x",
    "makes a huge padded text": "select printf('%.*c', 999999999, 'x') as x",
    "makes it by digits": "select printf('%999999999d', 1) as x",
    "searches without end": f"select instr({LONG}, {HALF} || 'b') as x",
    "replaces without end": f"select length(replace({LONG}, {HALF} || 'b', 'x')) as x",
    "trims without end": f"select length(trim({LONG}, {HALF})) as x",
    "matches without end": f"select {LONG} like '%' || replace(hex(zeroblob(200)), '00', 'a') || 'b' as x",
    "fetches more than there is room for": "with recursive c(x) as (select 1 union all select x + 1 from c) select zeroblob(9999) as h from c",
    "makes it by the other name": "select format('%.*c', 999999999, 'x') as x",
}


@pytest.fixture(params=["memory", "sqlite"])
async def space(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AuthorSpace]:
    world: World = MemoryWorld(clock=clock) if request.param == "memory" else SqliteWorld(tmp_path, clock=clock)
    opened = await world.open("main", [SCHEMA])
    await opened.author_migrate(MIGRATIONS)
    yield opened
    await world.close()


async def step(space: AuthorSpace, run: Callable[[Tx], Any], budget_ms: int = 5_000) -> Any:
    outcome = await space.author(run, lambda result: writing(Put(SENT, [(1, "ran", b"")])), budget_ms=budget_ms)
    assert isinstance(outcome, Done), outcome


async def answer(space: AuthorSpace, sql: str, **values: object) -> Any:
    got: list[Any] = []
    await step(space, lambda tx: got.append(tx.fetch(sql, **values)))
    return got[0]


async def nothing_happened(space: AuthorSpace) -> None:
    assert await space.look(Query(SENT)) == ([],)
    assert await space.author_tables() == ["counted", "refunds"]
    for table in ("counted", "refunds"):
        assert (await space.author_rows(table, limit=10, after=None))[1] == []


@pytest.mark.parametrize("what", REFUSED)
async def test_a_statement_is_refused_that(what: str, space: AuthorSpace) -> None:
    started = time.process_time()  # of this process: how much is computed, however busy the machine is
    with pytest.raises(BadStatement):
        await step(space, lambda tx: tx.fetch(REFUSED[what]))
    assert time.process_time() - started < 5
    await nothing_happened(space)


@pytest.mark.parametrize("what", ["renames into it", "rolls back", "reads a reserved table", "takes a reserved name"])
async def test_what_was_refused_leaves_nothing_where_the_author_goes_on(what: str, space: AuthorSpace) -> None:
    """The author may catch the refusal; a step whose transaction or reserved names were touched fails all the same."""

    def stubborn(tx: Tx) -> None:
        tx.execute("insert into refunds values('7', '1')")
        with pytest.raises(BadStatement):
            tx.execute(REFUSED[what])
        tx.execute("insert into refunds values('8', '1')")

    if what == "renames into it":
        with pytest.raises(BadStatement, match="reserved name"):
            await step(space, stubborn)
        await nothing_happened(space)
    else:
        await step(space, stubborn)
        assert len((await space.author_rows("refunds", limit=9, after=None))[1]) == 2


@pytest.mark.parametrize(
    "trick",
    [
        "insert or rollback into refunds values('7', '2')",
        "update or rollback refunds set order_id = '7' where order_id = '8'",
        "insert into falls values('x')",
        "insert into raises values(1)",
    ],
)
async def test_a_statement_that_ends_the_transaction_fails_the_step(trick: str, space: AuthorSpace) -> None:
    def setting(tx: Tx) -> None:
        tx.execute("create table falls(k text unique on conflict rollback)")
        tx.execute("insert into falls values('x')")
        tx.execute("create table raises(x)")
        tx.execute("create trigger ends before insert on raises begin select raise(rollback, 'no'); end")

    def swallows(tx: Tx) -> None:
        tx.execute("insert into refunds values('7', '1')")
        tx.execute("insert into refunds values('8', '1')")
        for _ in range(2):
            with pytest.raises(BadStatement):
                tx.execute(trick)

    await step(space, setting)
    before = await space.look(Query(SENT))
    with pytest.raises(BadStatement, match="ended the transaction"):
        await step(space, swallows)
    assert await space.look(Query(SENT)) == before
    assert (await space.author_rows("refunds", limit=9, after=None))[1] == []


@pytest.mark.parametrize(
    "endless",
    [
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) as n from r",
        "select count(*) as n from counted a, counted b, counted c, counted d, counted e, counted f",
        "insert into counted(what) with recursive r(n) as (select 1 union all select n + 1 from r) select n from r",
    ],
)
async def test_a_statement_without_end_is_ended(endless: str, space: AuthorSpace) -> None:
    filling = "insert into counted(what) select value from json_each(:many)"
    await step(space, lambda tx: tx.execute(filling, many=str(list(range(500)))))
    with pytest.raises(StepFenced):  # it comes back at all
        await step(space, lambda tx: tx.fetch(endless), budget_ms=50)
    assert (await answer(space, "select count(*) as n from counted"))[0] == {"n": 500}


async def test_ordinary_sql_works(space: AuthorSpace) -> None:
    def ordinary(tx: Tx) -> None:
        assert tx.execute("insert into refunds values(:id, :amount)", id="7", amount=Decimal("9.50")) == 1
        assert tx.execute("insert into refunds values('8', '1') on conflict do nothing; -- once") == 1
        assert tx.execute("insert into refunds values('8', '1') on conflict do nothing") == 0
        assert tx.execute("update refunds set amount = '2'") == 2
        assert tx.fetch("select * from dear") == []
        assert tx.fetch("insert into refunds values('9', '7') returning order_id") == [{"order_id": "9"}]
        assert tx.fetch_one("select * from dear") == {"order_id": "9", "amount": "7"}
        assert tx.fetch_one("select * from dear where order_id = :no", no=1) is None
        assert tx.fetch_one("select what from counted where id = (select max(id) from counted)") == {"what": "9"}
        assert tx.execute("create table more(k text primary key, v any) strict, without rowid") == 0
        assert tx.execute("alter table more add column w any") == 0
        assert tx.execute("alter table more rename column w to x") == 0
        assert tx.execute("alter table more rename to less") == 0
        assert tx.execute("insert into less values('k', 1.5, x'00')") == 1
        assert tx.execute("create index less_by_x on less(x)") == 0
        assert tx.execute("drop index less_by_x") == 0
        assert tx.execute("delete from less") == 1
        assert tx.execute("drop table less") == 0
        assert tx.fetch_one("select printf('%5.2f|%-6s|%d', 3.14159, 'ab', 42) as x") == {"x": " 3.14|ab    |42"}
        assert tx.fetch_one("select json_extract('{\"a\": 1}', '$.a') as x, upper('é') as y") == {"x": 1, "y": "é"}
        assert tx.fetch_one("select instr('abc', 'c') as i, instr(x'0102', x'02') as b, instr(null, 1) as n") == {
            "i": 3,
            "b": 2,
            "n": None,
        }
        assert tx.fetch_one("select replace(12.5, '.', ',') as r, trim('  a ') as t, ltrim('xxa', 'x') as l") == {
            "r": "12,5",
            "t": "a",
            "l": "a",
        }
        assert tx.fetch_one("with t(n) as (values(1), (2)) select sum(n) over () as s from t") == {"s": 3}

    await step(space, ordinary)
    assert await space.author_tables() == ["counted", "refunds"]


async def test_values_are_bound_as_they_are(space: AuthorSpace) -> None:
    at = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)
    cells = {
        "none": None,
        "yes": True,
        "whole": -(2**63),
        "half": 0.5,
        "text": "'; drop table refunds; --",
        "bytes": b"\0\xff",
        "amount": Decimal("10.50"),
        "at": at,
    }
    sql = "select " + ", ".join(f":{name} as {name}" for name in cells)
    assert await answer(space, sql, **cells) == [
        {**cells, "yes": 1, "amount": "10.50", "at": "2026-11-30T12:00:00.250Z"}
    ]


@pytest.mark.parametrize(
    "sql,values,why",
    [
        ("select :a as a", {}, "no value came for :a"),
        ("select 1 as a", {"b": 1}, "it has no :b"),
        ("select :a as a", {"a": 2**63}, "int"),
        ("select :a as a", {"a": "\ud800"}, "surrogate"),
        ("select :a as a", {"a": "\0"}, "NUL"),
        ("select :a as a", {"a": [1]}, "list"),
        ("select :a as a", {"a": datetime(2026, 1, 1)}, "zone"),  # noqa: DTZ001 - a naive one is what is refused
        ("insert into refunds values('7', null), ('7', null)", {}, "UNIQUE constraint failed: refunds.order_id"),
    ],
)
async def test_a_value_that_does_not_fit_is_named(space: AuthorSpace, sql: str, values: Any, why: str) -> None:
    with pytest.raises(Exception, match=why) as raised:
        await step(space, lambda tx: tx.fetch(sql, **values))
    assert type(raised.value).__module__ == "onefold.terms.errors", "a driver's error got out"
    await nothing_happened(space)


async def test_a_handle_kept_after_its_step_is_dead(space: AuthorSpace) -> None:
    kept: list[Tx] = []
    await step(space, kept.append)
    for call in (kept[0].execute, kept[0].fetch, kept[0].fetch_one):
        with pytest.raises(StepFenced):
            call("select 1 as x")


async def test_a_step_that_leaves_its_thread_oddly_is_a_fault(space: AuthorSpace) -> None:
    for odd in (StopIteration, SystemExit, KeyboardInterrupt):

        def run(tx: Tx, odd: type[BaseException] = odd) -> None:
            raise odd

        with pytest.raises(RuntimeError, match=odd.__name__):
            await step(space, run)
    await step(space, lambda tx: tx.execute("insert into refunds values('7', '1')"))
