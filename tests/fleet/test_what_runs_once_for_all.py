"""What one process would do for the whole store is done in a fleet by one node, for its own actors, or through their owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onefold.host.abandoned import freed
from onefold.host.sweep import RunSweep
from onefold.reflex import Reflexes
from onefold.store.contract import Query
from onefold.terms.errors import NotFound
from onefold.terms.ids import ActorId
from tests.fleet.nodes import SECRET, Fleet, Node, a_key, fleet_of, until
from tests.fleet.shared import PARTS, Ask, Fed, hears, work
from tests.host.automated import Effect, Sell, reflex, till


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)


# --- sweeps -----------------------------------------------------------------------------------------


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    async with fleet_of(*PARTS) as fleet:
        yield fleet


async def done(node: Node, count: int, of: str) -> list[str]:
    receipts = [await node.app.start(work, Ask(n=n), key=f"{of}{n}") for n in range(count)]
    for receipt in receipts:
        await receipt.result()
    return [receipt.run_id for receipt in receipts]


async def test_ended_runs_are_swept_wherever_they_are_and_their_owner_has_them_in_memory_no_more(fleet: Fleet) -> None:
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    runs = await done(a, 12, "s")
    assert {b.owns("work", run) for run in runs} == {True, False}
    assert all([(await b.app.receipt(run)).status == "done" for run in runs])
    waits = await a.app.start(hears, Ask(n=1))
    assert (await b.app.sweep(runs="0s", dry_run=True)).runs == len(runs)
    assert (await b.app.sweep(runs="0s")).runs == len(runs)
    for node in (a, b):
        for run in runs:
            with pytest.raises(NotFound):
                await node.app.receipt(run)
            assert node.host._core.node.resident(ActorId("work", None, run)) is None
    await waits.send(Fed(n=1))
    assert await waits.result() == 2


async def test_a_sweep_takes_no_run_that_was_seized_meanwhile(fleet: Fleet) -> None:
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    runs = await done(a, 4, "z")
    mine = [run for run in runs if a.owns("work", run)]
    core = a.host._core
    sweep = RunSweep(core, "work", lambda run: None)
    guard = core.node.guard(*(ActorId("work", None, run) for run in mine))
    seizes = [await b.app.fleet.seize(f"slot/{slot}") for slot in core.standing.held_slots()]  # type: ignore[union-attr]
    assert seizes
    upto = a.host.clock.now()
    numbers = [int(row[0] or 0) for row in await core.at["work"].look(_ended())]  # type: ignore[call-overload]
    assert await sweep._commit(await core.space("work"), numbers, guard, upto) == []
    for run in mine:
        assert (await b.app.receipt(run)).status == "done"


def _ended() -> Query:
    from onefold.actuators.tables import RUN

    return Query(RUN, where=(("status", "=", "done"),))


async def test_one_node_of_a_fleet_sweeps(fleet: Fleet) -> None:
    sweeping = []
    for node in fleet.nodes.values():
        slots = node.host._core.shared_slots()
        assert slots is not None
        sweeping.append(0 in slots)
    assert sorted(sweeping) == [False, True]


# --- reflexes ---------------------------------------------------------------------------------------


def holds(engine: Any, reflex: str) -> bool:
    return engine.loaded is not None and reflex in engine.loaded.by_id


def has(seen: list[Any], count: int) -> bool:
    return len(seen) == count


async def test_a_set_that_one_node_loaded_is_taken_up_by_the_others() -> None:
    effect = Effect()
    async with fleet_of(till, Reflexes([], effects=[effect])) as fleet:
        a, b = fleet.nodes["a"], fleet.nodes["b"]
        for n, (loads, other) in enumerate(((a, b), (b, a), (a, b)), 1):
            await loads.app.reflexes.load([reflex(id=f"thanks.n{n}")])
            engine = await other.host._reflexing.engine()
            await until(partial(holds, engine, f"thanks.n{n}"))
            await other.app.deliver(till, Sell(f"s{n}", a_key(other, "till"), n))
            await until(partial(has, effect.seen, n))
    assert [row[3] for row in effect.seen] == [{"cents": 1}, {"cents": 2}, {"cents": 3}]


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
async def test_a_node_that_starts_lets_go_of_no_claim_of_one_that_lives(kind: str, tmp_path: Path) -> None:
    began, ends = asyncio.Event(), asyncio.Event()

    class Slow(Effect):
        async def run(self, task: Any, input: Any, /) -> Any:
            self.seen.append((task.key, task.principal, task.attempt, input))
            began.set()
            await ends.wait()
            return {}

    slowly, store = Slow(), None if kind == "postgres" else str(tmp_path / "store")
    async with fleet_of(till, Reflexes([reflex()], effects=[slowly]), names="a", store=store) as fleet:
        a = fleet.nodes["a"]
        await a.app.deliver(till, Sell("s", "north", 1))
        await began.wait()
        b = await fleet.start("b", till, Reflexes([reflex()], effects=[slowly]))
        await fleet.settled()
        for _ in range(3):
            b.host._reflexing.wake()
            await until(lambda: b.host._reflexing.quiet)
        assert len(slowly.seen) == 1
        ends.set()

        async def settled() -> bool:
            (run,) = (await b.app.reflexes.runs("shop.thank")).items
            return run.state == "settled"

        await until(settled)
    assert len(slowly.seen) == 1


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
async def test_what_a_killed_node_had_claimed_goes_on_once_its_life_is_over(kind: str, tmp_path: Path) -> None:
    """Long before the claim would lapse; and what a node has in hand that lives is left to it."""
    store = None if kind == "postgres" else str(tmp_path / "store")

    class Held(Effect):
        """Takes until it is let go on."""

        def __init__(self) -> None:
            super().__init__()
            self.began, self.ends = asyncio.Event(), asyncio.Event()

        async def run(self, task: Any, input: Any, /) -> Any:
            self.seen.append((task.key, task.principal, task.attempt, input))
            self.began.set()
            await self.ends.wait()
            return {}

    killed, lives, quick = Held(), Held(), Effect()
    async with fleet_of(till, Reflexes([reflex()], effects=[killed]), names="a", store=store) as fleet:
        a = fleet.nodes["a"]
        await a.app.deliver(till, Sell("s", "north", 1))
        await killed.began.wait()
        a.host._reflexing.rest()  # it claims nothing more
        b = await fleet.start("b", till, Reflexes([reflex()], effects=[lives]))
        await b.app.deliver(till, Sell("s", "south", 2))
        await lives.began.wait()
        b.host._reflexing.rest()
        c = await fleet.start("c", till, Reflexes([reflex()], effects=[quick]))
        await fleet.settled()
        assert await freed(await c.host._core.space("main"), c.part.membership.standing, c.host.clock.now()) == 0
        await a.kill()
        await until(partial(has, quick.seen, 1), 25)  # a claim lasts for a minute
        assert (quick.seen[0][0], quick.seen[0][2]) == (killed.seen[0][0], 2)
        lives.ends.set()

        async def settled() -> bool:
            runs = (await c.app.reflexes.runs("shop.thank")).items
            return [run.state for run in runs] == ["settled", "settled"]

        await until(settled)
        assert (len(killed.seen), len(lives.seen), len(quick.seen)) == (1, 1, 1)
