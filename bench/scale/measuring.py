"""bench.scale.measuring - the constants of the model, taken from a Postgres of its own on this machine's disk.

For: `python -m bench.scale --measure`: a minute; what it prints is written by hand into `constants`, with its date.
Never: touches a server that was there; guesses a part that it did not run.
Was wrong once: rates alone. Client and server share the cores here, so the server's own time is read from the kernel.
"""

from __future__ import annotations

import asyncio
import os
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import psycopg

import onefold
from bench.contenders.counting import counter, event_bytes, notice
from bench.measures import by_tasks
from bench.scale.constants import LOOK_TAKES
from onefold.fleet.ownership import (
    FLEET,
    LIVE,
    NODE,
    OWNER,
    Me,
    NodeRow,
    OwnerRow,
    guarded,
    handing,
    looked,
    renewing,
    slot_name,
)
from onefold.host.driver import due, soonest
from onefold.kernel.tables import ALARM
from onefold.store.contract import (
    Append,
    Body,
    Column,
    Create,
    Done,
    Each,
    Last,
    Migration,
    Put,
    Query,
    Row,
    Schema,
    Space,
    Table,
    Write,
)
from onefold.store.postgres import PostgresWorld
from tests.postgres import Server

BY_SLOT = Table("alarm_by_slot", ALARM.columns, ("actor",), index=(("kind", "slot", "at"),))
BY_KIND = Table("alarm_by_kind", ALARM.columns, ("actor",), index=ALARM.index)
LOG = Table("log", (Column("n", "int"), Column("said", "text")), ("n",), serial=True)
SEEN = (BY_SLOT, BY_KIND, LOG)
SCHEMA = Schema("scale", SEEN, (Migration(1, oldest=1, steps=tuple(Create(table) for table in SEEN)),))

ALARMS = 1_000_000
SLOTS = 1_024
BACKLOG = 0.1  # of the alarms: what is due after a night's outage
KINDS = ("session", "order")
CHUNK = 20_000
ACTORS = 20_000
TIMES = 40
LEASE_MS = 5_000
SHOWN = {"listen_addresses": "", "max_connections": "100", "shared_buffers": "512MB", "max_wal_size": "4GB"}


@dataclass(slots=True)
class Spent:
    """What a stretch took: seconds, the server's processor seconds, bytes of WAL."""

    seconds: float = 0.0
    server_s: float = 0.0
    wal: int = 0


class Meter:
    """What the server spends, from the kernel's books and its own."""

    def __init__(self, url: str) -> None:
        self.conn = psycopg.connect(url, autocommit=True)
        (data,) = self.conn.execute("select setting from pg_settings where name='data_directory'").fetchone() or ("",)
        self._postmaster = int((Path(data) / "postmaster.pid").read_text(encoding="ascii").split()[0])

    @contextmanager
    def stretch(self) -> Iterator[Spent]:
        spent, begun, before, wal = Spent(), time.perf_counter(), self._server(), self._wal()
        yield spent
        spent.seconds = time.perf_counter() - begun
        after = self._server()
        spent.server_s = sum(ns - before.get(pid, 0) for pid, ns in after.items()) / 1e9
        spent.wal = self._wal() - wal

    def quiet(self) -> None:
        """Write out what is dirty, and let the planner know the tables."""
        self.conn.execute("vacuum analyze")
        self.conn.execute("checkpoint")

    def size(self, table: str) -> int:
        (found,) = self.conn.execute("select pg_total_relation_size(%s)", [table]).fetchone() or (0,)
        return int(found)

    def _server(self) -> dict[int, int]:
        """Processor time of each of its processes but the one of this meter, in ns."""
        mine = self.conn.info.backend_pid
        children = Path(f"/proc/{self._postmaster}/task/{self._postmaster}/children").read_text(encoding="ascii")
        found = {}
        for pid in map(int, children.split()):
            try:
                told = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii")
            except OSError:
                continue  # it has just ended
            if pid != mine:
                found[pid] = int(told.split()[0])
        return found

    def _wal(self) -> int:
        (found,) = self.conn.execute("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(),'0/0')").fetchone() or (0,)
        return int(found)


def told(what: str, spent: Spent, done: int, more: str = "") -> None:
    each_us, server_us = spent.seconds / done * 1e6, spent.server_s / done * 1e6
    print(
        f"{what:<58} {each_us:9.0f} us  server {server_us:8.0f} us  WAL {spent.wal / done:8.0f} B  {more}", flush=True
    )


def writes(*verbs: Write) -> Body[None]:
    def body() -> Any:
        yield ()
        return Last(verbs, None)

    return body


async def landed(space: Space, body: Body[Any]) -> None:
    outcome = await space.transact(body)
    assert isinstance(outcome, Done), outcome


async def asked(space: Space, *queries: Query | int) -> None:
    """The last argument is which time it is."""
    await space.look(*[query for query in queries if isinstance(query, Query)])


async def times(meter: Meter, what: str, call: Callable[[int], Awaitable[Any]]) -> None:
    await call(0)  # the statement is prepared, the pages are there
    with meter.stretch() as spent:
        for number in range(TIMES):
            await call(number)
    told(what, spent, TIMES)


# --- parts ------------------------------------------------------------------------------------------


def members(count: int) -> Put:
    url = "http://10.0.0.1:8000"
    return Put(NODE, [NodeRow(f"node-{place}", 1, 0, LIVE, url, 0).row for place in range(count)])


def owners(slots: int, nodes: int) -> Put:
    return Put(OWNER, [OwnerRow(slot_name(slot), f"node-{slot % nodes}", 1, 1).row for slot in range(slots)])


async def renewals(meter: Meter, spaces: Sequence[Space]) -> None:
    """Each node renews its own row, in a commit of its own."""
    await landed(spaces[0], writes(members(64)))

    async def renew(who: int, number: int) -> None:
        await landed(spaces[who], renewing(Me(f"node-{who}", 1), LEASE_MS, LIVE))

    for nodes in (1, len(spaces)):
        with meter.stretch() as spent:
            sample = await by_tasks(renew, nodes, 2.0)
        told(f"renewal, {nodes} at once", spent, sample.count, f"{sample.rate:.0f}/s p99 {sample.p99:.1f} ms")


async def looks(meter: Meter, space: Space, slots: int, nodes: int) -> None:
    await landed(space, writes(members(nodes), owners(slots, nodes)))
    await times(meter, f"look at {nodes} nodes and {slots} owners", partial(asked, space, *looked()))
    one = Query(OWNER, on=("name",), keys=[(slot_name(0),)])
    await times(meter, "look at one row instead", partial(asked, space, one))


async def guards(meter: Meter, space: Space) -> None:
    """The same commit with and without 64 owner rows FOR SHARE."""
    names = [slot_name(slot) for slot in range(64)]

    def commit(guarded_by: Sequence[str]) -> Body[None]:
        def body() -> Any:
            if guarded_by:
                yield (guarded(guarded_by),)
            return Last((Append(LOG, [(space.mint(LOG), "x" * 100) for _ in range(64)]),), None)

        return body

    for _ in range(2):
        await times(meter, "commit of 64 rows", lambda n: landed(space, commit([])))
        await times(meter, "commit of 64 rows, 64 owners FOR SHARE", lambda n: landed(space, commit(names)))


async def hand_overs(meter: Meter, space: Space) -> None:
    """Slots back and forth between two nodes."""
    lives = (Me("node-0", 1), Me("node-1", 1))
    for slots in (1, 20):
        await landed(space, writes(owners(slots, 1)))
        epochs = count(1)

        async def hand(number: int, slots: int = slots, epochs: Iterator[int] = epochs) -> None:
            epoch = next(epochs)
            giver, taker = lives[(epoch + 1) % 2], lives[epoch % 2]
            names = {slot_name(slot): (epoch, taker) for slot in range(slots)}
            outcome = await space.transact(handing(giver, names, 1))
            assert isinstance(outcome, Done), outcome
            assert len(outcome.value) == slots

        await times(meter, f"hand-over of {slots} slots", hand)


async def alarms(meter: Meter, space: Space) -> None:
    """A million of them, a tenth due, looked at by who owns half the slots, and by who owns one in fifty."""
    chance = Random(5)  # noqa: S311 - made-up alarms, the same in every run
    for at in range(0, ALARMS, CHUNK):
        rows: list[Row] = []
        for actor in range(at, min(at + CHUNK, ALARMS)):
            due_at = int(chance.random() * ALARMS)
            rows.append((actor, KINDS[actor % 2], chance.randrange(SLOTS), due_at, 0, None))
        await landed(space, writes(*(Append(table, rows) for table in (BY_KIND, BY_SLOT))))
    meter.quiet()
    by_kind, by_slot = (meter.size(f"scale.{table.name}") / ALARMS for table in (BY_KIND, BY_SLOT))
    print(f"alarms: {by_kind:.0f} B each by kind, {by_slot:.0f} by slot")
    now = int(ALARMS * BACKLOG)
    some = f"{now} due, first {LOOK_TAKES}"
    for share in (2, 50, 1_000):
        mine = tuple(range(max(1, SLOTS // share)))
        of = f"1/{share} of slots"
        for what, found in (("none due", due(KINDS, -1)), ("soonest", soonest(KINDS)), (some, due(KINDS, now))):
            query = Query(BY_KIND, where=(*found.where, ("slot", "in", mine)), each=found.each, order=found.order)
            await times(meter, f"alarms by kind, {of}, {what}", partial(asked, space, query))
        each = Each("slot", mine, -(-LOOK_TAKES // len(mine)))
        for what, until in (("none due", -1), (some, now)):
            queries = [by_slot_due(kind, until, each) for kind in KINDS]
            await times(meter, f"alarms by slot, {of}, {what}", partial(asked, space, *queries))


def by_slot_due(kind: str, until: int, each: Each) -> Query:
    return Query(BY_SLOT, where=(("kind", "=", kind), ("at", "<=", until)), each=each, order=("at",))


async def folds(meter: Meter, url: str) -> None:
    """Whole turns of an app: an event checked, a fact, an owed row sent and confirmed, a wake."""
    async with onefold.App(counter, notice, store=url) as app:
        deliver, caller = app.host.deliver_raw, app.caller

        async def first(who: int, number: int) -> None:
            await deliver("counter", event_bytes("first", who + 64 * number, 0), caller=caller)

        async def every(actors: int) -> None:
            async def some(who: int) -> None:
                for number in range(actors // 64):
                    await first(who, number)

            await asyncio.gather(*map(some, range(64)))

        with meter.stretch() as spent:
            await every(ACTORS)
        told("first turn of an actor, 64 at once", spent, ACTORS)
        meter.quiet()
        with meter.stretch() as spent:
            for start in (0, 1):
                far = range(start * 64, ACTORS - 200, ACTORS // 64)
                await asyncio.gather(*(deliver("counter", event_bytes("cold", at, 0), caller=caller) for at in far))
        told("turn behind a checkpoint, actors far apart", spent, 2 * 64)

        async def warm(who: int, number: int) -> None:
            await deliver("counter", event_bytes(f"warm-{number}", who, number), caller=caller)

        for callers in (1, 8, 64):
            with meter.stretch() as spent:
                sample = await by_tasks(warm, callers, 2.0)
            told(f"turn, {callers} at once", spent, sample.count, f"{sample.rate:.0f}/s p50 {sample.p50:.1f} ms")
    for table in ("turn", "actor", "alarm"):
        (rows,) = meter.conn.execute(f"select count(*) from onefold.{table}").fetchone() or (0,)  # noqa: S608 - three names
        size = meter.size(f"onefold.{table}")
        print(f"{table}: {rows} rows, {size / max(1, rows):.0f} B each")


async def readings(meter: Meter, url: str) -> None:
    """Actors read back by a process that has none: what a hand-over costs when they are next wanted."""
    async with onefold.App(counter, notice, store=url) as app:
        await app.read(counter, "c0")
        for at_once, at in ((1, range(64, 564)), (64, range(1_000, 6_000)), (8, range(6_000, 8_000))):
            actors = iter(at)
            if at_once == 8:
                tracemalloc.start()

            async def one(who: int, ahead: Iterator[int] = actors) -> None:
                for actor in ahead:
                    await app.read(counter, f"c{actor}")

            with meter.stretch() as spent:
                await asyncio.gather(*map(one, range(at_once)))
            if not tracemalloc.is_tracing():
                told(f"actor read back, {at_once} at once", spent, len(at))
        print(f"resident actor: {tracemalloc.get_traced_memory()[0] / 2_000:.0f} B")
        tracemalloc.stop()


async def measure() -> None:
    os.environ.setdefault("ONEFOLD_SECRET", "nothing is signed here")
    with Server(SHOWN) as server:
        url = server.url()
        worlds = [PostgresWorld(url, within="scale") for _ in range(8)]
        spaces: list[Space] = []
        for world in worlds:
            spaces.append(await world.open("main", (SCHEMA, FLEET)))
        meter = Meter(url)
        await renewals(meter, spaces)
        await looks(meter, spaces[0], 1_024, 50)
        await guards(meter, spaces[0])
        await hand_overs(meter, spaces[0])
        await alarms(meter, spaces[0])
        await looks(meter, spaces[0], 16_384, 1_000)
        for world in worlds:
            await world.close()
        await folds(meter, url)
        await readings(meter, url)
        meter.conn.close()
