"""Five hundred tasks, four engines that claim and one hand that feeds, in orders drawn by chance.

Serial reflexes and others, attempts that fail once, engines that fall silent with what they had claimed.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.reflex.seams import Task
from onefold.reflex.words import OnSignal, Selection
from tests.reflex.ground import At, reflex
from tests.reflex.stores import OPENINGS

DEEP = bool(os.environ.get("ONEFOLD_DEEP"))
TASKS = {"memory": 500, "sqlite": 500 if DEEP else 200, "postgres": 500 if DEEP else 60}
EXAMPLES = 25 if DEEP else 1
EACH = Selection({"from": {"$": "fact.payload"}}, "each", "id")


class Watched:
    """What the effects saw. `live`: serial tasks in flight, by reflex."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.live: dict[str, str] = {}
        self.order: dict[str, list[str]] = {"one": [], "two": []}
        self.done: Counter[str] = Counter()

    async def act(self, task: Task, unit: Any) -> Any:
        serial = unit.partition("-")[0]
        if serial in self.order:
            assert serial not in self.live, f"{unit} runs beside {self.live[serial]}"
            self.live[serial] = unit
        try:
            for _ in range(self.chance.randrange(4)):
                await asyncio.sleep(0)
            if self.chance.random() < 0.02:
                raise RuntimeError("once in a while")
        finally:
            self.live.pop(serial, None)
        if serial in self.order:
            self.order[serial].append(unit)
        self.done[unit] += 1
        return unit


async def feed(at: At, engine: Any, chance: Random, tables: list[tuple[str, str]]) -> None:
    for signal, table in tables:
        await at.signal(engine, signal, table)
        for _ in range(chance.randrange(40)):
            await asyncio.sleep(0)


async def claim(at: At, engine: Any, chance: Random, fed: asyncio.Task[None]) -> None:
    """Advance by a few tasks at a time while anything moves or is still to come. A life may end in the midst."""
    idle = 0
    while idle < 3 or not fed.done():
        advancing = asyncio.create_task(engine.advance(at.now, chance.randrange(1, 30)))
        if chance.random() < 0.03:
            for _ in range(chance.randrange(60)):
                await asyncio.sleep(0)
            advancing.cancel()
        try:
            idle = 0 if (await advancing).moved else idle + 1
        except asyncio.CancelledError:
            idle = 0
        await asyncio.sleep(0)


async def play(store: str, seed: int) -> None:
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        opening = OPENINGS[store](Path(folder))
        at = At(lambda failpoint: opening(failpoint=failpoint))
        watched = Watched(chance)
        at.act.does = watched.act
        tables: list[tuple[str, str]] = []
        for n in range(20):
            kind = chance.choice(["one", "two", "any"])
            at.rows.tables[f"t{n}"] = [{"id": f"{kind}-{n:02}-{i:02}"} for i in range(TASKS[store] // 20)]
            tables.append((kind, f"t{n}"))
        policy: dict[str, Any] = {
            "select": EACH,
            "input": {"$": "row.id"},
            "retry_max": 50,
            "base_ms": 1_000,
            "backoff": "fixed",
        }
        reflexes = [
            reflex("one", OnSignal("one"), order="serial", **policy),
            reflex("two", OnSignal("two"), order="serial", **policy),
            reflex("any", OnSignal("any"), **policy),
        ]
        engines = [await at.engine() for _ in range(4)]
        await at.load(engines[0], reflexes)
        for engine in engines[1:]:
            await engine.reload()
        fed = asyncio.create_task(feed(at, engines[0], chance, tables))
        while not fed.done() or any(run["state"] != "settled" for run in await at.runs()):
            await asyncio.gather(*(claim(at, engine, chance, fed) for engine in engines))
            at.now += timedelta(seconds=61)
        assert len(watched.done) == TASKS[store]
        for name, order in watched.order.items():
            assert list(dict.fromkeys(order)) == sorted(set(order)), f"{name} ran out of order"
        tasks = await at.tasks()
        assert [task["state"] for task in tasks] == ["done"] * TASKS[store]
        assert {task["baton"] for task in tasks} == {task["queue"] for task in tasks} == {None}
        assert len(await at.facts(kind="run")) == len(await at.runs()) == 20
        await at.world.close()


@pytest.mark.parametrize("store", TASKS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=EXAMPLES)
def test_no_task_is_lost_doubled_or_out_of_order(store: str, seed: int) -> None:
    asyncio.run(play(store, seed))
