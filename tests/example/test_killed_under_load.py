"""Killed at random under the load of many callers, nothing acknowledged is lost and nothing counts twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.example.caller import Order, alive, whole
from tests.example.ledger import Ledger
from tests.example.shop import ROOT, SEED, Died, Shop, shop

CALLERS = 16
KILLS = 8
ANSWERS = (40, 400)  # between two kills
COUNTERS = 3
AMOUNTS = ("20", "30", "40", "150")


@dataclass
class Tally:
    """What the callers know of the counters: ids sent, replies that came, the highest total that was seen."""

    sent: dict[str, set[str]] = field(default_factory=dict)
    replies: dict[tuple[str, str], int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def told(self, counter: str, id: str, total: int) -> None:
        assert self.replies.setdefault((counter, id), total) == total
        self.seen[counter] = max(self.seen.get(counter, 0), total)


class Load:
    """Callers who never give up: what broke is sent again, under the same id, to whatever process serves next."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.ledger = Ledger()
        self.tally = Tally()
        self.over = False
        self._left = 0
        self._enough = asyncio.Event()

    async def call(self, number: int) -> None:
        chance = random.Random(f"{SEED} {number}")
        done = 0
        while not self.over:
            done += 1
            act = self._act(chance, f"{number}.{done}")
            while True:
                app = self.shop.app
                try:
                    await act()
                    break
                except Died:
                    await self.shop.opened_after(app)
            self._answered()

    def _act(self, chance: random.Random, name: str) -> Callable[[], Awaitable[Any]]:
        what = chance.random()
        counter = f"c{chance.randrange(COUNTERS)}"
        if what < 0.15:
            order = Order(name, chance.choice(AMOUNTS))
            return lambda: whole(self.shop, self.ledger, order)
        if what < 0.3:
            return lambda: self._read(counter)
        return lambda: add(self.shop, self.tally, counter, name)

    async def _read(self, counter: str) -> None:
        before = self.tally.seen.get(counter, 0)
        total = await total_of(self.shop, counter)
        assert total >= before
        self.tally.seen[counter] = max(self.tally.seen.get(counter, 0), total)

    def _answered(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._enough.set()

    async def answers(self, count: int) -> None:
        """Returns after so many more."""
        self._left = count
        self._enough.clear()
        await self._enough.wait()


async def add(shop: Shop, tally: Tally, counter: str, id: str) -> None:
    tally.sent.setdefault(counter, set()).add(id)
    answer = await alive(shop, "POST", "/modules/counter/events", json={"type": "Add", "id": id, "counter": counter})
    assert answer.status_code == 200, answer.text
    tally.told(counter, id, answer.json()["reply"]["total"])


async def total_of(shop: Shop, counter: str) -> int:
    answer = await alive(shop, "GET", f"/modules/counter/{counter}")
    assert answer.status_code == 200, answer.text
    total: int = answer.json()["view"]["total"]
    return total


async def counted(shop: Shop, counter: str) -> list[str]:
    """The ids that a counter counted, in order, from its facts."""
    found: list[str] = []
    after = "0"
    while after:
        where = f"/modules/counter/{counter}/facts"
        page = (await alive(shop, "GET", where, params={"after": after, "limit": "500"})).json()
        found += [row["fact"]["id"] for row in page["items"] if row["fact"]["type"] == "Added"]
        after = page["next"]
    return found


async def agrees(shop: Shop, tally: Tally) -> None:
    """Acknowledged is there, once, where its reply says; nothing is there that nobody sent."""
    for counter, sent in tally.sent.items():
        ids = await counted(shop, counter)
        assert len(set(ids)) == len(ids)
        assert set(ids) <= sent
        places = {id: place for place, id in enumerate(ids, 1)}
        told = {id: total for (where, id), total in tally.replies.items() if where == counter}
        assert told.items() <= places.items()
        assert await total_of(shop, counter) == len(ids) >= tally.seen.get(counter, 0)


@pytest.fixture
async def load(tmp_path: Path) -> AsyncIterator[Load]:
    async with shop(tmp_path, target=str(ROOT / "tests" / "example" / "counting.py")) as one:
        await one.opens()
        yield Load(one)


async def test_killed_at_random_under_load_nothing_is_lost_or_doubled(load: Load) -> None:
    chance = random.Random(SEED)
    async with asyncio.TaskGroup() as tasks:
        callers = [tasks.create_task(load.call(number)) for number in range(CALLERS)]
        for _ in range(KILLS):
            await load.answers(chance.randint(*ANSWERS))
            await load.shop.app.kill()
            await load.shop.opens()
        await load.answers(CALLERS)
        load.over = True
    assert all(caller.done() for caller in callers)
    assert sum(map(len, load.tally.sent.values())) == len(load.tally.replies) > KILLS * ANSWERS[0] // 2
    await agrees(load.shop, load.tally)
    await load.ledger.agrees(load.shop)
    for (counter, id), total in list(load.tally.replies.items())[::10]:
        await add(load.shop, load.tally, counter, id)
        assert load.tally.replies[counter, id] == total
    await agrees(load.shop, load.tally)


async def add_and_rest(shop: Shop, tally: Tally, id: str) -> None:
    """An event and its answer, which may leave before the process dies of it. Raises: Died."""
    await add(shop, tally, "c", id)
    await shop.app.met()


EVENT_POINTS = ("before-commit", "before-reply", "after-answer")  # absent, whole and untold, whole and told


async def test_killed_at_any_point_of_an_event_it_counts_once_and_tells_the_same(load: Load) -> None:
    """The second of three events dies at the point; whoever sent it sends it again, and hears what it first came to."""
    one, tally = load.shop, load.tally
    for nth, point in enumerate(EVENT_POINTS):
        await add(one, tally, "c", f"{nth} first")
        await one.app.arm(point, 1)
        with pytest.raises(Died):
            await add_and_rest(one, tally, f"{nth} second")
        assert await one.app.ended() == -9, one.app.said
        await one.opens()
        before = await counted(one, "c")
        assert len(before) - 3 * nth in ((1,) if point == "before-commit" else (2,)), point
        await add(one, tally, "c", f"{nth} second")
        await add(one, tally, "c", f"{nth} third")
        await agrees(one, tally)
    names = ("first", "second", "third")
    assert await counted(one, "c") == [f"{nth} {name}" for nth in range(len(EVENT_POINTS)) for name in names]
