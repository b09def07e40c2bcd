"""What people find in the database: views under their space's name, tables that grew, and nothing of one space in another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from onefold.store.contract import (
    AddColumn,
    AddIndex,
    Append,
    Column,
    Create,
    Done,
    Migration,
    Put,
    Query,
    Refused,
    Schema,
    Still,
    View,
)
from onefold.store.postgres import PostgresWorld
from onefold.store.postgres.ddl import LATER
from onefold.terms.errors import Contended
from onefold.testing.store_suite.ground import writing
from onefold.testing.store_suite.tables import SCHEMA, TASK, TURN, Histories, task
from tests.store.postgres.waiting import until

SHOWN = replace(SCHEMA, views=(View("event", "turn", ("n", "event")), View("fact", "turn", ("n",), each="facts")))


def rows(url: str, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as conn:
        return conn.execute(text.encode()).fetchall()


async def test_views_show_each_row_and_each_fact_under_its_spaces_name(postgres: str) -> None:
    world = PostgresWorld(postgres)
    facts = [{"a": [1, "\u00e9"]}, "t", None, 7]
    for name in ("main", "other"):
        space = await world.open(name, [SHOWN])
        turn = Histories(space)
        written = [turn.row(1, "e", json.dumps(facts).encode()), turn.row(1, "f", b"[]"), turn.row(1, "g")]
        assert isinstance(await space.transact(writing(Append(TURN, written))), Done)
    await world.close()
    assert rows(postgres, "select space, event from onefold.event order by 1, n") == [
        (name, event) for name in ("main", "other") for event in ("e", "f", "g")
    ]
    found = rows(postgres, "select space, at, item from onefold.fact order by 1, 2")
    assert [(space, at, json.loads(item)) for space, at, item in found] == [
        (name, at, fact) for name in ("main", "other") for at, fact in enumerate(facts)
    ]


async def test_a_view_is_made_anew_when_its_declaration_changed_and_not_otherwise(postgres: str) -> None:
    which = "select oid, relname::text from pg_class where relkind = 'v' and relnamespace = 'onefold'::regnamespace"

    async def opened(schema: Schema) -> dict[str, int]:
        world = PostgresWorld(postgres)
        await world.open("main", [schema])
        await world.close()
        return {name: oid for oid, name in rows(postgres, which)}

    before = await opened(SHOWN)
    assert await opened(SHOWN) == before
    wider = replace(SHOWN, views=(View("event", "turn", ("n", "actor", "event")), SHOWN.views[1]))
    after = await opened(wider)
    assert (after["event"] == before["event"], after["fact"] == before["fact"]) == (False, True)
    assert rows(postgres, "select actor from onefold.event") == []


async def test_a_column_and_an_index_are_added_to_tables_that_hold_rows_of_other_spaces(postgres: str) -> None:
    world = PostgresWorld(postgres)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Put(TASK, [task(1), task(2)]))), Done)
    column = Column("soon", "int", null=True)
    grown = replace(TASK, columns=(*TASK.columns, column), index=(*TASK.index, ("soon", "kind")))
    steps = (AddColumn("task", column), AddIndex("task", ("soon", "kind")))
    schema = replace(
        SCHEMA,
        tables=tuple(grown if table is TASK else table for table in SCHEMA.tables),
        migrations=(*SCHEMA.migrations, Migration(2, oldest=1, steps=steps)),
    )
    newer = PostgresWorld(postgres)
    other = await newer.open("other", [schema])
    assert isinstance(await other.transact(writing(Put(grown, [(*task(1), 7)]))), Done)
    assert (await other.look(Query(grown)))[0] == [(*task(1), 7)]
    assert isinstance(await space.transact(writing(Put(TASK, [task(2, kind="n")]))), Done)
    assert (await space.look(Query(TASK, order=("id",))))[0] == [task(1), task(2, kind="n")]
    (found,) = rows(postgres, "select indexdef from pg_indexes where indexname = 'task__by_soon_kind'")
    assert "(space, soon NULLS FIRST, kind)" in found[0]
    for one in (world, newer):
        await one.close()


async def test_what_is_the_stores_own_since_then_is_made_where_an_older_store_is_opened(postgres: str) -> None:
    world = PostgresWorld(postgres)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Put(TASK, [task(1)]))), Done)
    await world.close()
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("drop function onefold.other(text)")
        conn.execute("alter table onefold._cluster drop column place")
        conn.execute("delete from onefold._migration where room = '_store'")
    for _ in range(2):
        world = PostgresWorld(postgres)
        space = await world.open("main", [SCHEMA])
        outcome = await space.transact(writing(Still(TASK, [((1,), {"tries": 7})]), Put(TASK, [task(2)])))
        assert isinstance(outcome, Refused)
        assert isinstance(outcome.error, Contended)
        await world.close()
        kept = rows(postgres, "select number, oldest from onefold._migration where room = '_store' order by 1")
        assert kept == [(number, 1) for number in range(1, len(LATER) + 1)]


async def test_spaces_are_many_and_connections_few(postgres: str) -> None:
    world = PostgresWorld(postgres)
    for number in range(40):
        space = await world.open(f"s{number}", [SCHEMA])
        assert isinstance(await space.transact(writing(Put(TASK, [task(number)]))), Done)
    used = rows(
        postgres,
        "select count(*) from pg_stat_activity where application_name like 'onefold%' and datname=current_database()",
    )
    assert used[0][0] <= 4
    assert len({id(space._by_name["task"]) for space in world._spaces.values()}) == 1
    for number in range(40):
        (found,) = await (await world.open(f"s{number}", [SCHEMA])).look(Query(TASK))
        assert found == [task(number)]
    await world.close()
    with psycopg.connect(postgres, autocommit=True) as admin:  # a server process ends a moment after its client hung up
        assert await until(
            admin,
            "select 1 where not exists (select from pg_stat_activity where application_name like 'onefold%'"
            " and datname = current_database())",
        )


async def test_spaces_at_rest_are_asked_with_a_trip_each(postgres: str) -> None:
    world = PostgresWorld(postgres)
    for number in range(20):
        space = await world.open(f"s{number}", [SCHEMA])
        assert isinstance(await space.transact(writing(Put(TASK, [task(number, ready=number)]))), Done)
    await world.close()
    world = PostgresWorld(postgres)
    wire = await world._reader.wire()
    before = wire.trips
    soonest = Query(TASK, (("ready", "null", False),), order=("ready",), limit=1)
    for number in range(20):
        assert await world.soonest(f"s{number}", soonest) == ([task(number, ready=number)],)
    assert wire.trips - before <= 20 + 3
    assert await world.soonest("absent", soonest) == ()
    later = PostgresWorld(postgres)
    space = await later.open("absent", [SCHEMA])
    assert await world.soonest("absent", soonest) == ([],)
    for one in (world, later):
        await one.close()


@pytest.mark.parametrize("name", ['a"b', "a'b", "a;drop table x", "ünï", "$1", "%s", "x" * 200])
async def test_the_name_of_a_space_is_a_value(postgres: str, name: str) -> None:
    world = PostgresWorld(postgres)
    space = await world.open(name, [SCHEMA])
    assert isinstance(await space.transact(writing(Put(TASK, [task(1)]))), Done)
    await world.close()
    assert await world.soonest(name, Query(TASK)) == ([task(1)],)
    world.abandon()


_CREATED = [step.table for step in SCHEMA.migrations[0].steps if isinstance(step, Create)]


async def test_what_keeps_plans_straight_is_of_no_space_and_in_no_view(postgres: str) -> None:
    world = PostgresWorld(postgres)
    space = await world.open("main", [SHOWN])
    assert [(await space.look(Query(table)))[0] for table in _CREATED] == [[]] * len(_CREATED)
    await world.close()
    assert rows(postgres, "select * from onefold.event union all select space, at::int8, item from onefold.fact") == []
