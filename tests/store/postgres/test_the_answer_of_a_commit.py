"""A commit is done, refused or unknown, and never called otherwise than it was, wherever its connection ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from typing import Any

import psycopg
import pytest

from onefold.store.contract import Append, Body, Done, Last, Put, Query, Refused, Unknown
from onefold.store.postgres import PostgresWorld, wire
from onefold.terms.errors import StoreUnavailable
from onefold.testing.store_suite.ground import Member, asking, together, writing
from onefold.testing.store_suite.tables import SCHEMA, SENT, TASK, task
from tests.postgres import Server
from tests.store.postgres.cut import Line
from tests.store.postgres.waiting import until

HELD_UP = "select pid from pg_stat_activity where wait_event='SyncRep'"
CANCEL = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event='SyncRep'"
TERMINATE = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event='SyncRep'"


@pytest.fixture
async def line(url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Line]:
    async with Line(url, tmp_path_factory.mktemp("l")) as line:
        yield line


@pytest.fixture
async def world(line: Line) -> AsyncIterator[PostgresWorld]:
    world = PostgresWorld(line.url, settle_s=0.2)
    yield world
    world.abandon()


async def test_a_commit_whose_answer_was_lost_is_found_by_its_number(line: Line, world: PostgresWorld) -> None:
    space = await world.open("main", [SCHEMA])
    bodies: tuple[Body[Any], ...] = (writing(Append(TASK, [task(1)])), asking(Query(TASK), Put(TASK, [task(2)])))
    for number, body in enumerate(bodies):
        line.cut = "answer"
        assert isinstance(await space.transact(body), Done)
        assert len((await space.look(Query(TASK)))[0]) == number + 1
    line.cut = "answer"
    outcomes = await together(space, *[writing(Append(TASK, [task(i)])) for i in (3, 1, 4)])
    assert [type(outcome) for outcome in outcomes] == [Done, Refused, Done]
    assert [outcome.answers for outcome in outcomes if isinstance(outcome, Done)] == [([None],), ([None],)]
    assert len((await space.look(Query(TASK)))[0]) == 4


async def test_a_commit_of_which_nothing_was_heard_is_unknown(line: Line, world: PostgresWorld) -> None:
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [task(1)]))), Done)
    line.cut = "everything"
    assert isinstance(await space.transact(writing(Append(TASK, [task(2)]))), Unknown)
    assert isinstance(await space.transact(writing(Append(TASK, [task(3)]))), Done)


async def test_a_commit_that_nobody_can_look_up_is_unknown_and_what_comes_after_is_told_why(
    line: Line, world: PostgresWorld
) -> None:
    space = await world.open("main", [SCHEMA])
    line.cut, line.dies = "answer", True
    assert isinstance(await space.transact(writing(Append(TASK, [task(1)]))), Unknown)
    outcome = await space.transact(writing(Append(TASK, [task(2)])))
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, StoreUnavailable)
    line.dead = False
    assert isinstance(await space.transact(writing(Append(TASK, [task(3)]))), Done)
    assert [row[0] for row in (await space.look(Query(TASK, order=("id",))))[0]] == [1, 3]


async def test_who_waits_for_a_lost_commit_in_company_is_told_alike_but_for_the_refused(
    line: Line, world: PostgresWorld
) -> None:
    space = await world.open("main", [SCHEMA])
    line.cut, line.dies = "answer", True
    wrong = writing(Put(TASK, [(1, None, None, None, None)]))
    outcomes = await together(space, writing(Put(TASK, [task(1)])), wrong, writing(Put(TASK, [task(2)])))
    assert [type(outcome) for outcome in outcomes] == [Unknown, Refused, Unknown]


async def test_a_peer_that_says_nothing_more_is_given_up_and_what_it_did_is_found(
    line: Line, world: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [task(1)]))), Done)
    monkeypatch.setattr(wire, "PATIENCE_S", 1.0)  # an answer that does come is sooner here
    line.cut = "silence"  # the server commits; its answer comes never, and nobody hangs up
    assert isinstance(await space.transact(writing(Append(TASK, [task(2)]))), Done)
    line.cut = "silence"
    assert await space.look(Query(TASK), Query(SENT)) == ([task(1), task(2)], [])


async def test_a_wait_for_a_replica_that_was_cancelled_is_unknown_though_the_server_calls_it_done(
    hurt: Server, url: str, admin: psycopg.Connection
) -> None:
    world = PostgresWorld(url, node="waits", settle_s=0.2)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [task(1)]))), Done)
    admin.execute("set synchronous_commit = 'local'")
    admin.execute("alter system set synchronous_standby_names = 'nobody'")
    admin.execute("select pg_reload_conf()")
    try:
        number = 1
        for ends in (CANCEL, TERMINATE):
            waiting: asyncio.Task[Any] = asyncio.create_task(asyncio.sleep(0))
            while not admin.execute(HELD_UP).fetchone():  # the server takes a setting up some moments after it is told
                if waiting.done():
                    number += 1
                    waiting = asyncio.create_task(space.transact(writing(Append(TASK, [task(number)]))))
                await asyncio.sleep(0.01)
            admin.execute(ends)
            assert isinstance(await waiting, Unknown)
            assert admin.execute("select count(*) from onefold.task where space > 0").fetchone() == (number,)
    finally:
        admin.execute("alter system reset synchronous_standby_names")
        admin.execute("select pg_reload_conf()")
    await until(admin, "select 1 where current_setting('synchronous_standby_names')=''")
    assert isinstance(await space.transact(writing(Append(TASK, [task(9)]))), Done)
    await world.close()


async def test_what_was_acknowledged_survives_a_server_that_is_killed_and_the_rest_is_wholly_there_or_absent(
    hurt: Server, url: str
) -> None:
    """The server ends in the middle of commits, six times, one time after another."""
    world = PostgresWorld(url, settle_s=5.0)
    space = await world.open("main", [SCHEMA])
    told: dict[int, Any] = {}
    for life in range(6):
        members = []
        for place in range(8):
            number = life * 100 + place
            body = stopping(hurt, life, number) if place == 4 else both(number)
            members.append((number, Member(str(number), body)))
            space.join(members[-1][1])
        for number, member in members:
            told[number] = await member.outcome
        late = await space.transact(both(life * 100 + 99))
        assert isinstance(late, Done)
        told[life * 100 + 99] = late
    found = [row[0] for row in (await space.look(Query(TASK, order=("id",))))[0]]
    for number, outcome in told.items():
        there = (number in found, number + 50_000 in found)
        allowed = {Done: [(True, True)], Refused: [(False, False)]}
        assert there in allowed.get(type(outcome), [(True, True), (False, False)]), (number, outcome)
    assert any(isinstance(outcome, Done) for outcome in told.values())
    await world.close()


def both(number: int) -> Body[Any]:
    return asking(Append(TASK, [task(number)]), then=[Append(TASK, [task(number + 50_000)])])


def stopping(server: Server, life: int, number: int) -> Body[None]:
    """A body whose server ends while it runs: before its writes, or (every second time) before its question."""
    left = 1

    def run() -> Generator[Any, Any, Last[None]]:
        nonlocal left
        if left and life % 2:
            left = 0
            again(server)
        yield (Append(TASK, [task(number)]),)
        if left:
            left = 0
            again(server)
        return Last((Append(TASK, [task(number + 50_000)]),), None)

    return run


def again(server: Server) -> None:
    server.stop("immediate")
    server.start()
