"""Several processes write to one database at once, while their connections are ended and their locks cross: nothing is lost,
nothing counts twice, and everybody is told the truth."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Generator
from typing import Any

import psycopg

from onefold.store.contract import Append, Body, Cas, Claim, Done, Inc, Last, Outcome, Put, Query, Refused
from onefold.store.postgres import PostgresWorld
from onefold.terms.errors import Contended, StoreUnavailable
from onefold.testing.store_suite.ground import writing
from onefold.testing.store_suite.tables import OWNER, SCHEMA, SENT, TASK, task

NAMES = [f"c{i}" for i in range(5)]
EACH = 60
END_ONE = (
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'onefold%%'"
    " and datname=current_database() order by md5(pid::text || %s) limit 1"
)


def counting(event: int, names: list[str]) -> Body[None]:
    """Counts one event on two counters, in whatever order they come, under locks of both."""

    def run() -> Generator[Any, Any, Last[None]]:
        (first,) = yield (Query(OWNER, on=("name",), keys=[(names[0],)], lock="update"),)
        (second,) = yield (Query(OWNER, on=("name",), keys=[(names[1],)], lock="share"),)
        assert first
        assert second
        counted = Cas(OWNER, [((names[1],), {}, {"epoch": Inc(1)}), ((names[0],), {}, {"epoch": Inc(1)})])
        return Last((counted, Append(SENT, [(event, "+".join(names), b"")])), None)

    return run


async def test_counters_under_crossing_locks_lose_nothing_while_connections_end(
    url: str, admin: psycopg.Connection
) -> None:
    chance = random.Random(5)
    worlds = [PostgresWorld(url, settle_s=5.0, settings={"lock_timeout": "1s"}) for _ in range(4)]
    spaces = [await world.open("main", [SCHEMA]) for world in worlds]
    assert isinstance(await spaces[0].transact(writing(Put(OWNER, [(n, None, 0) for n in NAMES]))), Done)
    told: dict[int, Outcome[Any]] = {}

    async def one(which: int) -> None:
        for number in range(EACH):
            event = which * 1000 + number
            names = chance.sample(NAMES, 2)
            while event not in told or isinstance(told[event], Refused):
                told[event] = await spaces[which].transact(counting(event, names))
                if (outcome := told[event]).__class__ is Refused:
                    assert isinstance(outcome, Refused)
                    assert isinstance(outcome.error, StoreUnavailable | Contended), outcome

    async def ends() -> None:
        for number in range(25):
            await asyncio.sleep(0.02)
            admin.execute(END_ONE, (str(number),))

    await asyncio.gather(*map(one, range(4)), ends())
    owners, sent = await spaces[0].look(Query(OWNER), Query(SENT))
    there = {row[0]: row[1].split("+") for row in sent}
    assert {name: count for name, _, count in owners} == {
        name: sum(name in names for names in there.values()) for name in NAMES
    }
    assert not [event for event, outcome in told.items() if isinstance(outcome, Done) and event not in there]
    assert len(there) >= len([outcome for outcome in told.values() if isinstance(outcome, Done)])
    for world in worlds:
        await world.close()


async def test_claims_of_several_processes_share_no_row_and_leave_none(url: str) -> None:
    worlds = [PostgresWorld(url) for _ in range(4)]
    spaces = [await world.open("main", [SCHEMA]) for world in worlds]
    assert isinstance(await spaces[0].transact(writing(Put(TASK, [task(i, ready=i % 7) for i in range(400)]))), Done)
    held: list[int] = []

    async def one(which: int) -> None:
        claim = Claim(
            TASK,
            (("ready", "<=", 9), ("kind", "in", ("a", "b"))),
            ("ready", "id"),
            9,
            {"ready": None, "kind": f"w{which}", "tries": Inc(1)},
        )

        def run() -> Generator[Any, Any, Last[list[int]]]:
            (taken,) = yield (claim,)
            return Last((), [row[0] for row in taken])

        empty = 0
        while empty < 3:
            outcome = await spaces[which].transact(run)
            assert isinstance(outcome, Done)
            held.extend(outcome.value)
            empty = 0 if outcome.value else empty + 1

    await asyncio.gather(*map(one, range(4)))
    assert sorted(held) == list(range(400))
    (found,) = await spaces[0].look(Query(TASK, where=(("tries", "!=", 1),)))
    assert found == []
    for world in worlds:
        await world.close()
