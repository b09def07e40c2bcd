"""What an author tries on Postgres, and how a test lets one try it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onefold.store.contract import AuthorSpace, Done, Put, Tx
from tests.store.shorthand import writing
from tests.store.tables import SENT

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


async def step(space: AuthorSpace, run: Callable[[Tx], Any], budget_ms: int = 5_000) -> Any:
    outcome = await space.author(run, lambda result: writing(Put(SENT, [(1, "ran", b"")])), budget_ms=budget_ms)
    assert isinstance(outcome, Done), outcome


def fetch(sql: str, tx: Tx) -> None:
    tx.fetch(sql)
