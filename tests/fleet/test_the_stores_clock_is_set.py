"""The clock of the database is set back and ahead by minutes: nobody who lives is taken for dead, and no actor has two owners."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

import psycopg
import pytest

from onefold.fleet.ownership import NODE, OWNER, Me
from onefold.fleet.words import Claimed
from onefold.host import membership
from onefold.host.lease import Lease, Transact
from onefold.store.contract import Query
from onefold.store.postgres import plan
from tests.fleet.nodes import SECRET, Fleet, Node, a_key, fleet_of, until
from tests.guarantees.shop import Accepted, Deposit, bank
from tests.postgres import fresh_database

MINUTES = 120_000
LOOKS = 6  # of each node: a lease and a half
READ = (
    b"select set_config('onefold.now', (floor(extract(epoch from clock_timestamp()) * 1000)::int8"
    b" + (select ms from public.set_by))::text, true)"
)


class Skewed:
    """A fleet over a database whose clock is set."""

    def __init__(self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fleet = fleet
        self.looks: Counter[str] = Counter()
        self.told: dict[str, list[int]] = {}
        for node in fleet.nodes.values():
            part = node.part.membership
            monkeypatch.setattr(part, "_look", partial(self._counted, node.name, part._look))

    async def _counted(self, name: str, look: object, grace_ms: int) -> None:
        await look(grace_ms)  # type: ignore[operator]
        self.looks[name] += 1

    def set(self, ms: int) -> None:
        with psycopg.connect(self.fleet.store, autocommit=True) as conn:
            conn.execute("update public.set_by set ms = %s", (ms,))

    async def beats(self, nodes: list[Node], count: int = LOOKS) -> None:
        """Until each of them looked so often."""
        self.looks.clear()
        await until(lambda: all(self.looks[node.name] >= count for node in nodes))

    async def rows(self, node: Node) -> tuple[dict[str, tuple[int, str]], dict[str, tuple[str, int, int]]]:
        """The lives, and who owns what."""
        nodes, owners = await (await node.host._core.space("main")).look(Query(NODE), Query(OWNER))
        lives = {str(row[0]): (int(row[1]), str(row[3])) for row in nodes}
        return lives, {str(row[0]): (str(row[1]), int(row[2]), int(row[3])) for row in owners}

    async def calls(self, nodes: list[Node], keys: list[str], ends: asyncio.Event, of: str) -> None:
        """Deposits of one at any node, one after the other for each key."""

        async def one(at: int, key: str) -> None:
            told, n = self.told.setdefault(key, []), 0
            while not ends.is_set():
                reply = await nodes[(at + n) % len(nodes)].app.deliver(bank, Deposit(f"{of}{n}", key, 1))
                assert isinstance(reply, Accepted)
                told.append(reply.balance)
                n += 1

        await asyncio.gather(*(one(at, key) for at, key in enumerate(keys)))


@pytest.fixture
async def skewed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Skewed]:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    store = fresh_database()
    with psycopg.connect(store, autocommit=True) as conn:
        conn.execute("create table public.set_by (ms int8)")
        conn.execute("insert into public.set_by values (0)")
    monkeypatch.setattr(plan, "CLOCK", READ)
    async with fleet_of(bank, names="abc", store=store) as fleet:
        yield Skewed(fleet, monkeypatch)


async def test_nobody_who_lives_is_taken_for_dead_and_nothing_counts_twice(skewed: Skewed) -> None:
    nodes = list(skewed.fleet.nodes.values())
    keys = [a_key(node, "bank", of=f"{n}k") for n in range(2) for node in nodes]
    assert isinstance(await nodes[1].app.fleet.claim(f"bank/{keys[0]}"), Claimed)
    before, ends = await skewed.rows(nodes[0]), asyncio.Event()
    calling = asyncio.create_task(skewed.calls(nodes, keys, ends, "d"))
    for ms in (-MINUTES, 0, MINUTES, -MINUTES, MINUTES, 0):
        skewed.set(ms)
        await skewed.beats(nodes)
        assert await skewed.rows(nodes[0]) == before, f"the clock was set to {ms}"
        assert not calling.done()
    ends.set()
    await calling
    for key, told in skewed.told.items():
        assert told == list(range(1, len(told) + 1)), key
        assert [(await node.app.read(bank, key)).balance for node in nodes] == [len(told)] * 3


async def test_who_died_before_the_clock_was_set_back_is_replaced_once_it_is_right(skewed: Skewed) -> None:
    a, b, c = skewed.fleet.nodes.values()
    key = a_key(c, "bank")
    assert await a.app.deliver(bank, Deposit("d", key, 1)) == Accepted(1)
    lives, _ = await skewed.rows(a)
    skewed.set(-MINUTES)
    await skewed.beats([a, b, c], 2)
    await skewed.fleet.nodes.pop("c").kill()
    skewed.set(0)
    await until(lambda: a.owns("bank", key) or b.owns("bank", key))
    assert await b.app.deliver(bank, Deposit("e", key, 1)) == Accepted(2)
    after, _ = await skewed.rows(a)
    assert after == {**lives, "c": (lives["c"][0], "closed")}


async def closed_by(skewed: Skewed, monkeypatch: pytest.MonkeyPatch, steps: int = 1) -> bool:
    """Whether one node closes the others when the clock goes ahead, and it alone has renewed its lease since. steps: of the
    clock; a renewal of another may be on its way at the first.
    """
    renew = Lease.renew

    async def held(lease: Lease, me: Me, transact: Transact) -> int:
        return lease.ms

    node = next(iter(skewed.fleet.nodes.values()))
    part = node.part.membership
    before, _ = await skewed.rows(node)
    monkeypatch.setattr(Lease, "renew", held)
    await part._look(0)
    for n in range(1, steps + 1):
        skewed.set(n * MINUTES)
        await renew(part.lease, part.standing.me, (await node.host._core.space("main")).transact)
        await part._look(0)
    return (await skewed.rows(node))[0] != before


async def test_the_clock_alone_ends_nobody(skewed: Skewed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not await closed_by(skewed, monkeypatch)


async def test_that_the_clock_alone_would_end_them_is_noticed(skewed: Skewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "SILENT_PART", 1 << 40)
    assert await closed_by(skewed, monkeypatch, steps=3)
