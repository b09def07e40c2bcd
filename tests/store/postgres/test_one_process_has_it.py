"""One process has a store that is not shared: the second is told which, and nothing of the first lands after it took over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from onefold.store.contract import Done, Put, Query, Refused
from onefold.store.postgres import PostgresWorld
from onefold.store.postgres.hold import _ROOMS
from onefold.terms.errors import OnefoldError, StoreLocked
from onefold.testing.store_suite.tables import task
from tests.store.shorthand import writing
from tests.store.tables import SCHEMA, TASK


def world_of(url: str, node: str, patience_s: float = 0.1) -> PostgresWorld:
    return PostgresWorld(url, node=node, alone=True, patience_s=patience_s, settle_s=0.05)


@pytest.fixture
async def first(postgres: str) -> AsyncIterator[PostgresWorld]:
    world = world_of(postgres, "process 7 on a")
    yield world
    world.abandon()


def end(url: str, which: str) -> int:
    """End sessions of the first process. `which`: `held`, the one with the lock, or `others`."""
    said = "l.mode = 'ExclusiveLock'" if which == "held" else "l.mode = 'ShareLock'"
    asked = (
        "select count(pg_terminate_backend(pid)) from (select distinct l.pid from pg_locks l join pg_stat_activity a"
    )
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(
            f"{asked} using (pid) where l.locktype = 'advisory' and {said} and a.application_name like '%7 on a') x"
        ).fetchone()
    assert row is not None
    return int(row[0])


async def test_the_second_is_told_who_has_it(first: PostgresWorld, postgres: str) -> None:
    await first.open("main", [SCHEMA])
    second = world_of(postgres, "process 8 on b")
    with pytest.raises(StoreLocked, match="process 7 on a"):
        await second.open("main", [SCHEMA])
    second.abandon()


async def test_it_is_free_once_the_first_has_closed_or_was_killed(postgres: str) -> None:
    for ends in ("close", "abandon"):
        world = world_of(postgres, "process 7 on a", 5.0)
        space = await world.open("main", [SCHEMA])
        assert isinstance(await space.transact(writing(Put(TASK, [task(1)]))), Done)
        if ends == "close":
            await world.close()
        else:
            world.abandon()


async def test_a_lock_that_was_cut_is_taken_again(first: PostgresWorld, postgres: str) -> None:
    space = await first.open("main", [SCHEMA])
    assert end(postgres, "held") == 1
    for n in range(3):
        outcome = await space.transact(writing(Put(TASK, [task(n)])))
        assert isinstance(outcome, Done), outcome
    assert len((await space.look(Query(TASK)))[0]) == 3


async def test_while_a_session_of_the_first_stands_nobody_else_has_it(first: PostgresWorld, postgres: str) -> None:
    """The lock's own session is gone and the first has not noticed: what it sends still lands, so the second must wait."""
    space = await first.open("main", [SCHEMA])
    await space.transact(writing(Put(TASK, [task(1)])))
    assert end(postgres, "held") == 1
    with psycopg.connect(postgres, autocommit=True) as conn:  # the loop stands still meanwhile
        assert conn.execute(f"select pg_try_advisory_lock({_ROOMS.replace('$1', '%s')})", ["onefold"]).fetchone() == (
            False,
        )


async def test_who_lost_it_to_another_writes_nothing_more(first: PostgresWorld, postgres: str) -> None:
    space = await first.open("main", [SCHEMA])
    await space.transact(writing(Put(TASK, [task(1)])))
    assert end(postgres, "held") == 1
    assert end(postgres, "others") >= 1
    second = world_of(postgres, "process 8 on b", 5.0)
    theirs = await second.open("main", [SCHEMA])
    outcome = await space.transact(writing(Put(TASK, [task(2)])))
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, StoreLocked)
    assert "process 8 on b" in str(outcome.error)
    assert await theirs.look(Query(TASK)) == ([task(1)],)
    await second.close()
    for _ in range(2):  # it may have forgotten what the other wrote meanwhile
        outcome = await space.transact(writing(Put(TASK, [task(2)])))
        assert isinstance(outcome, Refused)
        assert "meanwhile" in str(outcome.error)


async def test_a_step_under_way_ends_where_the_lock_is_lost(first: PostgresWorld, postgres: str) -> None:
    space = await first.open("main", [SCHEMA])
    await space.author_migrate(["create table notes(x int)"])

    def step(tx: object) -> None:
        tx.execute("insert into notes values(1)")  # type: ignore[attr-defined]
        assert end(postgres, "held") == 1
        for number in range(1000):  # until the loop has heard of it
            tx.execute(f"insert into notes values({number})")  # type: ignore[attr-defined]

    with pytest.raises(OnefoldError):
        await space.author(step, lambda result: writing(Put(TASK, [task(1)])), budget_ms=5_000)
    await asyncio.sleep(0)
    assert await space.look(Query(TASK)) == ([],)
    assert (await space.author_rows("notes", limit=9, after=None))[1] == []
