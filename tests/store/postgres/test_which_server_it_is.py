"""A server that would not keep what it acknowledged is refused, and so is one with another history, until somebody
confirmed it. Nobody is told where it is."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from onefold.store.contract import Append, Done, Outcome, Query, Refused, Unknown
from onefold.store.postgres import PostgresWorld, ddl
from onefold.terms.damage import StoreReplaced
from onefold.terms.errors import BadArguments, OnefoldError, StoreUnavailable
from onefold.testing.store_suite.ground import writing
from onefold.testing.store_suite.tables import SCHEMA, TASK, task
from tests.postgres import Server, in_memory
from tests.store.postgres.waiting import until

SECRETS = ("hunter2", "tram-depot", "moneyhost")


async def refused(url: str, kind: type[OnefoldError] = StoreUnavailable, **more: Any) -> str:
    """The sentence with which a new world is refused."""
    world = PostgresWorld(url, settle_s=0.05, **more)
    with pytest.raises(kind) as told:
        await world.open("main", [SCHEMA])
    world.abandon()
    return str(told.value)


def error(outcome: Outcome[Any]) -> OnefoldError:
    assert isinstance(outcome, Refused)
    return outcome.error


# --- what it keeps ----------------------------------------------------------------------------------


async def test_a_server_that_does_not_wait_for_its_disk_is_refused_unless_that_is_wanted(
    url: str, admin: psycopg.Connection
) -> None:
    for setting in ("fsync", "full_page_writes"):
        admin.execute(f"alter system set {setting} = off".encode())
        admin.execute("select pg_reload_conf()")
        await until(admin, f"select 1 where current_setting('{setting}')='off'")
        try:
            assert "power cut" in await refused(url)
            lossy = PostgresWorld(url, durability="lossy-on-power-cut")
            await lossy.open("main", [SCHEMA])
            await lossy.close()
        finally:
            admin.execute(f"alter system reset {setting}".encode())
            admin.execute("select pg_reload_conf()")
        await until(admin, f"select 1 where current_setting('{setting}')='on'")


@pytest.mark.parametrize("weaker", ["off", "local", "remote_write"])
async def test_commits_wait_for_the_disk_whatever_the_database_was_told(
    url: str, admin: psycopg.Connection, weaker: str
) -> None:
    name = admin.info.dbname
    admin.execute(f"alter database {name} set synchronous_commit = {weaker}".encode())
    world = PostgresWorld(url)
    wire = await world.connect()
    assert await setting(wire, "synchronous_commit") == "on"
    wire.drop()
    admin.execute(f"alter database {name} set synchronous_commit = remote_apply".encode())
    wire = await world.connect()
    assert await setting(wire, "synchronous_commit") == "remote_apply"
    wire.drop()


async def test_a_peer_that_is_gone_is_noticed_in_seconds_by_both_sides(url: str) -> None:
    world = PostgresWorld(url, node="n7")
    wire = await world.connect()
    told = [await setting(wire, name) for name in ("idle_in_transaction_session_timeout", "lock_timeout")]
    assert told == ["10s", "2s"]
    assert await setting(wire, "application_name") == "onefold n7"
    params = world._reach.address.params("")
    assert int(params["keepalives_idle"]) + int(params["keepalives_interval"]) * int(params["keepalives_count"]) <= 15
    assert int(params["tcp_user_timeout"]) <= 5000
    assert int(params["connect_timeout"]) <= 5
    wire.drop()


async def setting(wire: Any, name: str) -> str:
    from onefold.store.postgres.wire import Statement

    (result,) = await wire.send([Statement(b"select current_setting($1::text)", [name.encode()])])
    return str(wire.rows(result)[0][0])


async def test_a_database_that_only_reads_is_refused(url: str, admin: psycopg.Connection) -> None:
    admin.execute(f"alter database {admin.info.dbname} set default_transaction_read_only = on".encode())
    assert "only reads" in await refused(url)


async def test_a_database_in_another_encoding_is_refused(hurt: Server, admin: psycopg.Connection) -> None:
    name = f"{admin.info.dbname}_latin"
    admin.execute(f"create database {name} template template0 encoding 'latin1' locale 'C'".encode())
    assert "UTF8" in await refused(hurt.url(name))


# --- which history it has ---------------------------------------------------------------------------


async def test_what_commits_while_a_connection_is_opened_does_not_make_the_server_an_older_copy(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = PostgresWorld(url)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [task(1)]))), Done)
    check = world._history.check

    async def later(*told: Any) -> None:
        """The server has said how far it is."""
        assert isinstance(await space.transact(writing(Append(TASK, [task(2)]))), Done)
        await check(*told)

    monkeypatch.setattr(world._history, "check", later)
    (await world.connect()).drop()
    await world.close()


@pytest.fixture
def own() -> Iterator[Server]:
    with Server(place=in_memory()) as server:
        yield server


async def test_a_replica_is_refused_and_once_promoted_nobody_goes_on_until_somebody_confirmed_it(own: Server) -> None:
    running = PostgresWorld(own.url(), settle_s=0.05)
    space = await running.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [task(1)]))), Done)
    assert running.incarnation == 1
    own.stop("fast")
    (own._folder / "data" / "standby.signal").touch()
    own.start()
    assert "replica" in await refused(own.url())
    assert isinstance(error(await space.transact(writing(Append(TASK, [task(2)])))), StoreUnavailable)
    with psycopg.connect(own.url(), autocommit=True) as admin:
        admin.execute("select pg_promote()")
    assert isinstance(error(await space.transact(writing(Append(TASK, [task(2)])))), StoreReplaced)
    with pytest.raises(StoreReplaced):
        await space.look(Query(TASK))
    assert "timeline 2" in await refused(own.url(), StoreReplaced)
    confirmed = PostgresWorld(own.url(), accept_rollback=True)
    other = await confirmed.open("main", [SCHEMA])
    assert confirmed.incarnation == 2
    assert await other.look(Query(TASK)) == ([task(1)],)
    assert isinstance(await other.transact(writing(Append(TASK, [task(3)]))), Done)
    await confirmed.close()
    later = PostgresWorld(own.url())
    assert await (await later.open("main", [SCHEMA])).look(Query(TASK)) == ([task(1), task(3)],)
    assert later.incarnation == 2
    await later.close()
    told = error(await space.transact(writing(Append(TASK, [task(2)]))))
    assert "start anew" in str(told)
    running.abandon()


async def test_rows_that_were_read_into_another_cluster_are_not_gone_on_with(
    url: str, admin: psycopg.Connection
) -> None:
    first = PostgresWorld(url)
    await first.open("main", [SCHEMA])
    await first.close()
    admin.execute("update onefold._cluster set system = '7'")
    assert "timeline 1 of 7" in await refused(url, StoreReplaced)
    confirmed = PostgresWorld(url, accept_rollback=True)
    await confirmed.open("main", [SCHEMA])
    await confirmed.close()
    assert confirmed.incarnation == 2


READ_BACK = (  # what a dump does to the row: the same values, in a table that was made anew
    "create table onefold.again (like onefold._cluster including all)",
    "insert into onefold.again select * from onefold._cluster",
    "drop table onefold._cluster",
    "alter table onefold.again rename to _cluster",
)


async def test_rows_that_were_read_back_into_the_same_cluster_are_not_gone_on_with(
    url: str, admin: psycopg.Connection
) -> None:
    first = PostgresWorld(url)
    await first.open("main", [SCHEMA])
    await first.close()
    for statement in READ_BACK:
        admin.execute(statement.encode())
    assert "a dump of it" in await refused(url, StoreReplaced)
    confirmed = PostgresWorld(url, accept_rollback=True)
    await confirmed.open("main", [SCHEMA])
    await confirmed.close()
    assert confirmed.incarnation == 2
    later = PostgresWorld(url)
    await later.open("main", [SCHEMA])
    await later.close()
    assert later.incarnation == 2


async def test_a_store_that_older_code_made_learns_where_its_row_is(url: str, admin: psycopg.Connection) -> None:
    first = PostgresWorld(url)
    await first.open("main", [SCHEMA])
    await first.close()
    admin.execute("alter table onefold._cluster drop column place")
    admin.execute("delete from onefold._migration where room = %s and number > 1", (ddl.OWN_ROOM,))
    second = PostgresWorld(url)
    await second.open("main", [SCHEMA])
    await second.close()
    for statement in READ_BACK:
        admin.execute(statement.encode())
    assert "a dump of it" in await refused(url, StoreReplaced)


async def test_an_older_copy_of_the_servers_files_is_noticed_by_who_had_committed_more(
    url: str, admin: psycopg.Connection
) -> None:
    world = PostgresWorld(url, settle_s=0.05)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [task(1)]))), Done)
    world._history.reached(world._history._reached + 1_000_000)  # what it had acknowledged before the copy came back
    admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name='onefold'")
    outcome = await space.transact(writing(Append(TASK, [task(2)])))
    if isinstance(outcome, Unknown) or "ended the connection" in str(error(outcome)):
        # It met the end of its connection: the next one meets the server anew.
        outcome = await space.transact(writing(Append(TASK, [task(3)])))
    assert "older copy" in str(error(outcome))
    world.abandon()


# --- who is told where it is --------------------------------------------------------------------------

WRONG = (
    "postgres://tram-depot:hunter2@moneyhost.invalid/db",
    "postgres://tram-depot:hunter2@127.0.0.1:1/moneyhost",
    "postgres://tram-depot:hunter2@/db?host=/nowhere/moneyhost",
)
UNREADABLE = (
    "postgres://tram-depot:hunter2@[moneyhost",
    "postgres://tram-depot:hunter2@moneyhost/db?nonsense=1",
    "host=moneyhost password=hunter2 user=tram-depot nonsense",
    "postgres://tram-depot:hunter2@moneyhost:port%/db",
)


@pytest.mark.parametrize("address", [*WRONG, *UNREADABLE])
async def test_no_address_user_or_password_is_in_an_error_a_log_or_a_repr(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="onefold")
    shown: list[str] = []

    async def opened() -> None:
        world = PostgresWorld(address, settle_s=0.05)
        shown.extend([repr(world), repr(world._reach), repr(vars(world))])
        await world.open("main", [SCHEMA])

    with pytest.raises(BadArguments if address in UNREADABLE else StoreUnavailable) as met:
        await opened()
    told = met.value
    assert told.__context__ is None or told.__suppress_context__
    shown += ["".join(traceback.format_exception(told)), repr(told), repr(told.fields)]
    shown += [record.getMessage() for record in caplog.records]
    lines = [line for text in shown for line in text.splitlines() if "tests/store" not in line]
    assert not [line for line in lines for secret in SECRETS if secret in line]
