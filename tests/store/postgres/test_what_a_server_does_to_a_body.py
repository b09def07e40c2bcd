"""Whatever ends a body on its server, its party is told plainly, and the space goes on without being opened again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import psycopg
import pytest

from onefold.store.contract import Append, Body, Cas, Done, Inc, Last, Outcome, Put, Query, Refused
from onefold.store.postgres import PostgresWorld
from onefold.terms.errors import Contended, StoreUnavailable
from onefold.testing.store_suite.ground import Member, asking, together, writing
from onefold.testing.store_suite.tables import OWNER, SCHEMA, SENT, TASK, task
from tests.postgres import Server

SHORT = {"lock_timeout": "40ms", "idle_in_transaction_session_timeout": "60ms"}
END_ALL = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'onefold%'"
IN_TRANSACTION = "select 1 from pg_stat_activity where state='idle in transaction' and application_name like 'onefold%'"


@pytest.fixture
async def world(url: str) -> AsyncIterator[PostgresWorld]:
    world = PostgresWorld(url, settle_s=2.0, settings=SHORT)
    yield world
    world.abandon()


def meanwhile(*does: Callable[[], object], then: int = 1) -> Body[None]:
    """A body that asks, lets something happen to its server, once each, and asks again before it writes."""
    rest = list(does)

    def run() -> Generator[Any, Any, Last[None]]:
        yield (Append(TASK, [task(then)]),)
        if rest:
            rest.pop(0)()
        yield (Query(TASK),)
        return Last((Append(SENT, [(then, "k", b"")]),), None)

    return run


def unavailable(outcome: Outcome[Any]) -> str:
    assert isinstance(outcome, Refused), outcome
    assert isinstance(outcome.error, StoreUnavailable)
    return str(outcome.error)


async def test_a_connection_that_was_ended_in_a_body_refuses_it_and_the_next_is_done(
    world: PostgresWorld, admin: psycopg.Connection
) -> None:
    space = await world.open("main", [SCHEMA])
    outcome = await space.transact(meanwhile(lambda: admin.execute(END_ALL)))
    assert "ended the connection" in unavailable(outcome)
    assert isinstance(await space.transact(meanwhile()), Done)
    assert (await space.look(Query(TASK), Query(SENT))) == ([task(1)], [(1, "k", b"")])


async def test_the_company_of_a_body_whose_connection_was_ended_runs_again_and_is_done(
    world: PostgresWorld, admin: psycopg.Connection
) -> None:
    space = await world.open("main", [SCHEMA])
    bodies = [writing(Put(OWNER, [(str(i), None, i)])) for i in range(3)]
    ended = meanwhile(lambda: admin.execute(END_ALL))
    outcomes = await together(space, bodies[0], bodies[1], ended, bodies[2])
    assert [type(outcome) for outcome in outcomes] == [Done] * 4
    assert [row[2] for row in (await space.look(Query(OWNER, order=("name",))))[0]] == [0, 1, 2]


async def test_a_connection_that_was_ended_at_rest_costs_nobody_anything(
    world: PostgresWorld, admin: psycopg.Connection
) -> None:
    space = await world.open("main", [SCHEMA])
    for number in range(3):
        assert isinstance(await space.transact(writing(Append(TASK, [task(number)]))), Done)
        admin.execute(END_ALL)
        assert len((await space.look(Query(TASK)))[0]) == number + 1


async def test_a_transaction_that_stood_still_is_refused_with_its_reason(
    world: PostgresWorld, admin: psycopg.Connection
) -> None:
    space = await world.open("main", [SCHEMA])
    outcome = await space.transact(meanwhile(lambda: gone(admin, IN_TRANSACTION)))
    assert "stood still" in unavailable(outcome)
    assert isinstance(await space.transact(meanwhile()), Done)


async def test_a_server_that_restarts_at_rest_and_in_a_body_is_used_again(hurt: Server, world: PostgresWorld) -> None:
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Put(OWNER, [("a", None, 1)]))), Done)
    restart(hurt, "fast")
    assert (await space.look(Query(OWNER)))[0] == [("a", None, 1)]
    assert isinstance(await space.transact(writing(Put(OWNER, [("b", None, 1)]))), Done)
    unavailable(await space.transact(meanwhile(lambda: restart(hurt, "immediate"))))
    assert isinstance(await space.transact(meanwhile()), Done)


async def test_a_server_that_is_down_is_told_and_found_again(hurt: Server, world: PostgresWorld) -> None:
    space = await world.open("main", [SCHEMA])
    hurt.stop("fast")
    try:
        members = [
            Member("asks", writing(Put(TASK, [task(1)])), asks=(Query(TASK),)),
            Member("writes", writing(Put(TASK, [task(2)]))),
        ]
        for member in members:
            space.join(member)
        for member in members:
            unavailable(await member.outcome)
        assert members[0].answers is None
        with pytest.raises(StoreUnavailable):
            await space.look(Query(TASK))
        with pytest.raises(StoreUnavailable):
            await world.open("other", [SCHEMA])
    finally:
        hurt.start()
    assert (await space.look(Query(TASK)))[0] == []
    assert isinstance(await space.transact(writing(Put(TASK, [task(1)]))), Done)
    other = await world.open("other", [SCHEMA])
    assert isinstance(await other.transact(writing(Put(TASK, [task(1)]))), Done)


async def test_bodies_that_lock_each_other_out_run_again_and_both_are_done(world: PostgresWorld, url: str) -> None:
    space = await world.open("main", [SCHEMA])
    beside = PostgresWorld(url, settings={"lock_timeout": "5s"})
    other = await beside.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Put(OWNER, [("a", None, 0), ("b", None, 0)]))), Done)
    runs: list[str] = []

    def crossing(first: str, second: str) -> Body[None]:
        def run() -> Generator[Any, Any, Last[None]]:
            runs.append(first)
            yield (Cas(OWNER, [((first,), {}, {"epoch": Inc(1)})]),)
            yield (Cas(OWNER, [((second,), {}, {"epoch": Inc(1)})]),)
            return Last((), None)

        return run

    rounds = 0
    while len(runs) == 2 * rounds and rounds < 200:  # until two met
        rounds += 1
        outcomes = await asyncio.gather(space.transact(crossing("a", "b")), other.transact(crossing("b", "a")))
        assert [type(outcome) for outcome in outcomes] == [Done, Done]
    counted = 2 * rounds
    assert (await space.look(Query(OWNER, order=("name",))))[0] == [("a", None, counted), ("b", None, counted)]
    assert len(runs) > counted, "no two ever met"
    await beside.close()


async def test_a_lock_that_is_not_to_be_had_is_contended_and_its_company_is_done(
    world: PostgresWorld, admin: psycopg.Connection
) -> None:
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Put(OWNER, [("a", None, 0)]))), Done)
    wants = asking(Query(OWNER, on=("name",), keys=[("a",)], lock="update"), then=[Put(OWNER, [("a", None, 1)])])
    with admin.transaction():
        admin.execute("select * from onefold.owner for update")
        alone = await space.transact(wants)
        outcomes = await together(space, writing(Put(TASK, [task(1)])), wants, writing(Put(TASK, [task(2)])))
    assert isinstance(alone, Refused)
    assert isinstance(alone.error, Contended)
    assert [type(outcome) for outcome in outcomes] == [Done, Refused, Done]
    assert isinstance(await space.transact(wants), Done)


async def test_rows_that_somebody_holds_are_skipped_where_a_question_says_so(
    world: PostgresWorld, admin: psycopg.Connection
) -> None:
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Put(TASK, [task(i) for i in range(4)]))), Done)
    free = Query(TASK, order=("id",), lock="update", skip_locked=True)
    with admin.transaction():
        admin.execute("select * from onefold.task where id in (0, 2) for update")
        outcome = await space.transact(asking(free))
    assert isinstance(outcome, Done)
    assert [row[0] for row in outcome.value[0]] == [1, 3]


async def test_a_read_repeats_itself_over_a_connection_that_was_ended(
    world: PostgresWorld, admin: psycopg.Connection
) -> None:
    space = await world.open("main", [SCHEMA])
    looks = [asyncio.create_task(space.look(Query(TASK), Query(OWNER))) for _ in range(20)]
    admin.execute(END_ALL)
    assert [await look for look in looks] == [([], [])] * 20


def restart(server: Server, how: str) -> None:
    server.stop(how)
    server.start()


def gone(admin: psycopg.Connection, text: str) -> None:
    """Returns once nothing is found any more."""
    ends = time.monotonic() + 20
    while admin.execute(text).fetchall():
        assert time.monotonic() < ends
