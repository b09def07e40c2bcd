"""Several engines over one store, and one engine several times at once, in every order of their awaits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.reflex.engine import Engine
from onefold.reflex.tables import LEDGER
from onefold.reflex.words import ByHand, OnSignal, Selection
from onefold.testing.store_suite.ground import turns
from tests.reflex.flow import REFLEXES, check, send, stub
from tests.reflex.ground import DEEP, STORES, T0, At, ground, reflex

END = T0 + timedelta(hours=6)
TURNS = 12  # of the loop: what can go on without being let go on, has gone on
EXAMPLES = 200 if DEEP else 10


class Order:
    """One thing at a time goes on: which of those that wait, the given numbers say."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = list(choices)
        self._waiting: list[asyncio.Future[None]] = []

    async def turn(self) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        await mine

    async def all(self, *acts: Any) -> list[Any]:
        tasks = [asyncio.create_task(act) for act in acts]
        while not all(task.done() for task in tasks):
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if self._waiting:
                choice = self._choices.pop(0) if self._choices else 0
                self._waiting.pop(choice % len(self._waiting)).set_result(None)
        return [task.result() for task in tasks]


class Gated:
    """A space that lets nobody past before and after each of its awaits."""

    def __init__(self, space: Any, order: Order) -> None:
        self._space, self._order = space, order
        self.name, self.mint, self.join, self.far = space.name, space.mint, space.join, space.far

    async def look(self, *queries: Any) -> Any:
        await self._order.turn()
        found = await self._space.look(*queries)
        await self._order.turn()
        return found

    async def transact(self, body: Any) -> Any:
        await self._order.turn()
        outcome = await self._space.transact(body)
        await self._order.turn()
        return outcome


async def gated(at: At, order: Order, like: Engine | None = None, **given: Any) -> Engine:
    """An engine whose every await is one of the order's turns, with the set of another."""
    engine = Engine(
        Gated(await at.space(), order),
        **{"transform": at.transform, "select": at.rows, "effects": at.acts, **given},
    )
    if like is not None and like.loaded is not None:
        await engine.adopt(like.loaded)
    return engine


async def together(at: At, order: Order, engines: Sequence[Engine], skew: timedelta) -> None:
    """All advance at once, from one due instant to the next, until the end; the last one's clock is behind by `skew`."""
    while True:
        for _ in range(50):
            nows = [at.now] * (len(engines) - 1) + [at.now - skew]
            reports = await order.all(*(e.advance(now) for e, now in zip(engines, nows, strict=True)))
            if not any(report.moved for report in reports):
                break
        (due,) = await order.all(engines[0].next_due(at.now))
        if due is None or due > END:
            break
        assert due > at.now
        at.now = due


async def scene(store: str, choices: Sequence[int], same: bool, skew: timedelta) -> None:
    async with ground(store) as at:
        calls = stub(at)
        order = Order(choices)
        sound = await at.engine()
        await at.load(sound, REFLEXES)
        await send(sound, at.now)
        first = await gated(at, order, sound)
        second = first if same else await gated(at, order, sound)
        await together(at, order, [first, second], skew)
        await at.settle(sound, max(at.now, END))
        await check(at)
        assert {name: len(called) for name, called in calls.items()} == {
            "charge": 3, "digest": 1, "receipt": 3, "idle": 0, "echo": 2,
        }  # fmt: skip


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("same", [False, True], ids=["two engines", "one engine twice"])
@given(choices=st.lists(st.integers(0, 20), max_size=300), skew=st.sampled_from([0, 1, 3_600, 90_000]))
@settings(max_examples=EXAMPLES)
def test_advancing_at_once_does_everything_once(store: str, same: bool, choices: list[int], skew: int) -> None:
    asyncio.run(scene(store, choices, same, timedelta(seconds=skew)))


@pytest.mark.parametrize("store", STORES)
@given(choices=st.lists(st.integers(0, 5), max_size=60))
@settings(max_examples=EXAMPLES)
def test_a_repeat_that_two_engines_see_at_once_starts_once(store: str, choices: list[int]) -> None:
    async def pressed() -> None:
        async with ground(store) as at:
            order = Order(choices)
            sound = await at.engine()
            await at.load(sound, [reflex("a", ByHand())])
            engines = [await gated(at, order, sound, effects={}) for _ in range(2)]
            for _ in range(2):
                await order.all(*(engine.fire("a", now=at.now) for engine in engines))
                await order.all(*(engine.advance(at.now) for engine in engines))
            assert [run["state"] for run in await at.runs()] == ["fanned", "skipped", "skipped", "skipped"]

    asyncio.run(pressed())


@pytest.mark.parametrize("store", STORES)
@given(choices=st.lists(st.integers(0, 5), max_size=60))
@settings(max_examples=EXAMPLES)
def test_the_baton_of_a_serial_reflex_is_held_once(store: str, choices: list[int]) -> None:
    async def fanned() -> None:
        async with ground(store) as at:
            at.rows.tables["due"] = [{"id": n} for n in range(3)]
            order = Order(choices)
            sound = await at.engine()
            due = Selection({"from": "due"}, "each", "id")
            await at.load(sound, [reflex("a", OnSignal("ping"), select=due, order="serial")])
            for _ in range(3):
                await at.signal(sound)
            engines = [await gated(at, order, sound, effects={}) for _ in range(2)]
            await order.all(*(engine.advance(at.now, limit=n + 1) for n, engine in enumerate(engines)))
            await order.all(*(engine.advance(at.now) for engine in engines))
            tasks = await at.tasks()
            assert sorted(task["state"] for task in tasks) == ["queued"] * 8 + ["ready"]
            assert [task["unit"] for task in tasks if task["baton"] == "a"] == ["0"]

    asyncio.run(fanned())


async def test_one_advance_asks_a_selection_that_another_of_its_engine_waits_for(at: At) -> None:
    """A slow database is not asked again for each look at what is due."""
    let, asked = asyncio.Event(), []

    async def slow(query: Any, principal: Any, now: Any) -> Any:
        asked.append(query)
        await let.wait()
        yield {"id": 1}

    engine = await at.engine(select=slow)
    due = Selection({"from": "due"}, "each", "id")
    await at.load(engine, [reflex("a", OnSignal("ping"), select=due), reflex("b", OnSignal("pong"))])
    await at.signal(engine)
    first = asyncio.create_task(engine.advance(at.now))
    await turns()
    assert asked
    await at.signal(engine, "pong")
    await at.settle(engine)
    assert [run["state"] for run in await at.runs(reflex="b")] == ["settled"]
    let.set()
    await first
    assert len(asked) == 1
    assert [run["state"] for run in await at.runs(reflex="a")] == ["settled"]


async def test_two_processes_on_one_server_do_everything_once() -> None:
    """Each has connections of its own: whatever they lock, they lock against each other."""
    async with ground("postgres") as at, ground_of(at) as other:
        calls = stub(at)
        first = await at.engine()
        second = Engine(other, transform=at.transform, select=at.rows, effects=at.acts)
        await at.load(first, REFLEXES)
        assert await second.reload()
        await send(first, at.now)
        while True:
            for _ in range(30):
                reports = await asyncio.gather(*(one.advance(at.now) for one in (first, second, first, second)))
                if not any(report.moved for report in reports):
                    break
            due = await second.next_due(at.now)
            if due is None or due > END:
                break
            at.now = due
        await check(at)
        assert {name: len(called) for name, called in calls.items()} == {
            "charge": 3, "digest": 1, "receipt": 3, "idle": 0, "echo": 2,
        }  # fmt: skip


async def test_two_processes_fan_out_and_record_a_serial_queue_in_its_order() -> None:
    """Batons, counts and the intake are locked in one order by everybody: nobody waits for who waits for them."""
    async with ground("postgres") as at, ground_of(at) as other:
        ran: list[Any] = []
        at.act.does = lambda task, input: ran.append(input)
        own = [reflex(f"r{n}", OnSignal("ping"), order="serial", input={"$": "fact.payload"}) for n in range(3)]
        first = await at.engine()
        second = Engine(other, transform=at.transform, select=at.rows, effects=at.acts)
        await at.load(first, own)
        assert await second.reload()
        for n in range(12):
            await at.signal((first, second)[n % 2], payload=n)
        for _ in range(60):
            await asyncio.gather(first.advance(at.now, limit=4), second.advance(at.now, limit=4))
        assert sorted(ran) == sorted([*range(12)] * 3)
        assert {run["state"] for run in await at.runs()} == {"settled"}
        assert [task["n"] for task in await at.tasks() if task["state"] != "done"] == []


@asynccontextmanager
async def ground_of(at: At) -> AsyncIterator[Any]:
    """The same rows, in another process's hands."""
    world = at.another_world()
    try:
        yield await world.open("main", [LEDGER])
    finally:
        world.abandon()
