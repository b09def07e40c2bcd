"""Nodes that come, go and are replaced by newer code, one after another, under callers who notice nothing of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from tests.simulation.fleet_callers import KEYS, RETRYABLE, Load
from tests.simulation.fleets import PATIENCE_S, TARGET, Fleet, client, within

SEEDS = range(8) if os.environ.get("ONEFOLD_DEEP") else range(1)
pytestmark = pytest.mark.parametrize("seed", SEEDS)

MORE = """

def more(count: int, event: Set, now: datetime) -> Decision[Rang, int]:
    return Decision(facts=[Rang(event.id)], reply=count + 1)


def grown(count: int, fact: Rang) -> int:
    return count + 1


def counted(count: int) -> int:
    return count


counter = Module("counter", initial=0, key=lambda event: event.clock, decide=more, evolve=grown, view=counted)
app = App(Tally, clock, ring, reminders, tick, sell, counter)
"""

COUNTER = "/modules/counter/events"


def event(key: str, id: str) -> dict[str, object]:
    return {"type": "Set", "id": id, "clock": key, "after_ms": 0}


@pytest.fixture
async def fleet(postgres: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet(postgres, tmp_path) as fleet:
        yield fleet


def newer(folder: Path) -> Path:
    """The same program with one more field of its cell, and one more module."""
    text = TARGET.read_text()
    for old, new in (
        ("    total: int = 0\n", "    total: int = 0\n    asked: int = 0\n"),
        ("        self.total += by\n", "        self.total += by\n        self.asked += 1\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = folder / "counting.py"
    path.write_text(text.replace("\napp = App(Tally, clock, ring, reminders, tick, sell)\n", MORE))
    return path


async def test_a_rolling_restart_with_newer_code_is_noticed_by_nobody(fleet: Fleet, seed: int, tmp_path: Path) -> None:
    next_one = newer(tmp_path)
    await fleet.nodes("abc")
    await fleet.settled("abc")
    fleet.watch()
    load = Load(fleet, seed)
    async with load, client(20.0) as http:
        await load.some(60)
        for name in "abc":
            await fleet.members.pop(name).stop()
            renewed = await fleet.node(name, target=next_one)
            if name == "a":  # what the newer code alone has may have to wait, and is not refused
                asked = (http.post(f"{renewed.url}{COUNTER}", json=event(key, "first")) for key in KEYS)
                for answer in await asyncio.gather(*asked):
                    assert answer.status_code in (200, *RETRYABLE), answer.text
            await load.some(40)
        await fleet.settled("abc")
        await load.some(60)

        async def answers(url: str, key: str) -> bool:
            return (await http.post(f"{url}{COUNTER}", json=event(key, "last"))).status_code == 200

        for key in KEYS:
            for url in fleet.urls:
                await within(PATIENCE_S, "the new module answers", partial(answers, url, key))
    assert await load.judge() == []


async def test_shares_move_to_who_comes_and_from_who_goes_and_each_slot_has_one_owner(fleet: Fleet, seed: int) -> None:
    await fleet.nodes("ab")
    await fleet.settled("ab")
    fleet.watch()
    load = Load(fleet, seed)
    async with load:
        await load.some(60)
        for comes, goes, stay in (("c", "a", "bc"), ("d", "c", "bd")):
            await fleet.node(comes)
            await fleet.settled("".join(sorted(fleet.members)))
            await load.some(60)
            await fleet.members.pop(goes).stop()
            await fleet.settled(stay)
            await load.some(60)
    assert await load.judge() == []
