"""From a fact or an occurrence to the tasks that come of it, on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from onefold.reflex.words import OnSignal, OnWrite, Selection
from tests.reflex.ground import EVERY_STORE, At, ground, reflex


@pytest.fixture(params=EVERY_STORE)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        yield found


async def test_a_fact_wakes_every_reflex_that_watches_it(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", OnSignal("ping")), reflex("b", OnSignal("ping")), reflex("c", OnSignal("pong"))])
    await at.signal(engine, "ping", {"n": 1})
    await at.settle(engine)
    assert [run["reflex"] for run in await at.runs()] == ["a", "b"]
    assert [task["unit"] for task in await at.tasks()] == ["itself", "itself"]


async def test_each_selected_row_is_a_task(at: At) -> None:
    engine = await at.engine()
    at.rows.tables["due"] = [{"id": "x"}, {"id": "y"}]
    query = Selection({"from": "due"}, "each", "id")
    await at.load(engine, [reflex("a", OnWrite("orders"), select=query)])
    await at.write(engine, "orders", {"id": 7})
    await at.settle(engine)
    assert [task["unit"] for task in await at.tasks()] == ["x", "y"]


async def test_the_row_of_a_write_is_the_unit_where_nothing_is_selected(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", OnWrite("orders"))])
    await at.write(engine, "orders", {"id": 7})
    await at.settle(engine)
    (task,) = await at.tasks()
    assert task["row"] == b'{"id":7}'


async def test_a_clock_that_came_round_makes_a_run_with_a_local_key(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", {"every": "day", "at": "03:00", "tz": "Europe/Vienna"})])
    at.later(days=1)
    await at.settle(engine)
    assert [run["cause"] for run in await at.runs()] == ["occurrence:2026-03-01"]
    assert (await at.state("a"))["watermark"] == "2026-03-01"
