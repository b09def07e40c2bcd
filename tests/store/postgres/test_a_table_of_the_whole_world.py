"""A table declared `everywhere` is one for all spaces: a guard in one of them waits for a seizure in another."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import psycopg

from onefold.store.contract import Append, Done, Put, View
from onefold.store.postgres import PostgresWorld
from onefold.terms.errors import OwnedElsewhere
from onefold.testing.store_suite.fence import SLOT, Node
from onefold.testing.store_suite.ground import refused, rows, writing
from onefold.testing.store_suite.tables import REIGN, SCHEMA, SENT, SHARED
from tests.store.postgres.waiting import until

BOTH = [SCHEMA, SHARED]
WAITING = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def test_a_guard_in_another_space_waits_for_a_seizure_and_sees_it(url: str, admin: psycopg.Connection) -> None:
    world = PostgresWorld(url)
    main, other = await world.open("main", BOTH), await world.open("other", BOTH)
    one = Node("one", main, REIGN)
    assert isinstance(await main.transact(one.seizing()), Done)
    with psycopg.connect(url) as seizing:
        seizing.execute("update onefold.reign set epoch = 2, node = 'two'")
        told = asyncio.create_task(other.transact(one.guarded(Append(SENT, [(1, "stale", b"")]))))
        assert await until(admin, WAITING)
        assert not told.done()
        seizing.commit()
    error = refused(await told, OwnedElsewhere)
    assert error.fields["record_epoch"] == 2
    assert await rows(other, SENT) == []
    await world.close()


async def test_a_seizure_waits_for_the_guards_of_every_space(url: str, admin: psycopg.Connection) -> None:
    world = PostgresWorld(url)
    main = await world.open("main", BOTH)
    one, two = Node("one", main, REIGN), Node("two", main, REIGN)
    assert isinstance(await main.transact(one.seizing()), Done)
    with psycopg.connect(url) as guarding:
        guarding.execute("select 1 from onefold.reign for share")
        told = asyncio.create_task(main.transact(two.seizing()))
        assert await until(admin, WAITING)
        assert not told.done()
        guarding.commit()
    assert isinstance(await told, Done)
    await world.close()


async def test_its_view_shows_each_row_once_as_of_main(url: str, admin: psycopg.Connection) -> None:
    shown = replace(SHARED, views=(View("reigns", "reign", ("name", "epoch")),))
    world = PostgresWorld(url)
    spaces = [await world.open(name, [SCHEMA, shown]) for name in ("other", "main")]
    for number, space in enumerate(spaces):
        assert isinstance(await space.transact(writing(Put(REIGN, [(f"{SLOT}{number}", "n", number)]))), Done)
    await world.close()
    found = admin.execute("select space, name, epoch from onefold.reigns order by name").fetchall()
    assert found == [("main", "slot/170", 0), ("main", "slot/171", 1)]
