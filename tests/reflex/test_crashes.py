"""The process may end at any statement of any stage: nothing is lost, nothing counts twice, and no order is broken."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from onefold.reflex.tables import INTAKE, LEDGER, REFLEX_RUN, TASK
from onefold.reflex.words import Signal
from onefold.store.contract import Cas, World
from onefold.testing.broken.reflexes import Stages
from onefold.testing.store_suite.ground import Disk, Kill, OpenWorld, quietly, turns
from tests.reflex.ledger import RAISED, START, STORES, Ledger, unit_of
from tests.reflex.stores import OPENINGS

POINTS = ("statement", "before-commit", "after-commit")
PATIENCE = 200_000  # ms; longer than any lease here
DEEP = bool(os.environ.get("ONEFOLD_DEEP"))
STRIDE = {"memory": 1, "sqlite": 1 if DEEP else 3, "postgres": 1 if DEEP else 29}
"""Every statement of the reference; of those that take their time every so many, and each time a run is deep all."""
TURNS = 1_000  # rounds of the loop after which an act will never end


@dataclass
class Life:
    """One store through several processes. `started`: each effect as it was begun, over all of them."""

    opening: OpenWorld
    stages: Stages
    started: list[str] = field(default_factory=list)
    now: int = START
    world: World | None = None

    async def open(self, disk: Disk | None = None) -> Ledger:
        if self.world is not None:
            self.world.abandon()
        self.world = self.opening(failpoint=disk)
        return Ledger(await self.world.open("main", [LEDGER]), self.stages, self.now)

    async def drive(self, ledger: Ledger) -> None:
        """Claim two at a time, act, record, until nothing is due."""
        while True:
            claimed = await ledger.claim(2)
            if not claimed.run:
                return
            self.started += [unit_of(task) for task in claimed.run]
            emitted = [Signal("done", unit_of(task)) for task in claimed.run]
            landings = [ledger.landing(t, None, e) for t, e in zip(claimed.run, emitted, strict=True)]
            await ledger.record(*landings)

    async def recover(self) -> Ledger:
        """Whoever comes next: leases lapse, and the work goes on to its end."""
        ledger = await self.open()
        for _ in range(3):
            self.now = ledger.now = self.now + PATIENCE
            await self.drive(ledger)
        return ledger


async def killed(disk: Disk, act: Coroutine[Any, Any, Any]) -> None:
    """Let it go on until the process ends or it has. What the process waited for never comes."""
    async with quietly():
        acting = asyncio.get_running_loop().create_task(act)
        for _ in range(TURNS):
            await turns(20)
            if acting.done() or disk.struck:
                break
        acting.cancel()
        with suppress(asyncio.CancelledError, Kill):
            await acting


async def every_crash(
    stages: Stages,
    before: Callable[[Life, Ledger], Awaitable[None]],
    act: Callable[[Life, Ledger], Coroutine[Any, Any, Any]],
    after: Callable[[Life, Ledger], Awaitable[None]],
) -> int:
    """`act`, killed at each statement and around each commit it makes, on every store; `after` looks at what came of
    it. Gives how many crashes there were."""
    crashes = 0
    for store in STORES:
        for point in POINTS:
            stride = STRIDE[store] if point == "statement" else 1 + (store == "postgres")
            struck, hit = True, 1 - stride
            while struck:
                hit += stride
                with tempfile.TemporaryDirectory(dir=_roomy()) as folder:
                    struck = await one_crash(
                        Life(OPENINGS[store](Path(folder)), stages), point, hit, before, act, after
                    )
                crashes += struck
    return crashes


async def one_crash(life: Life, point: str, hit: int, before: Any, act: Any, after: Any) -> bool:
    ledger = await life.open()
    await ledger.arm("r", "s")
    await before(life, ledger)
    life.now = ledger.now
    disk = Disk()
    ledger = await life.open(disk)
    disk.kill_at(point, hit)
    await killed(disk, act(life, ledger))
    await after(life, await life.recover())
    assert life.world is not None
    life.world.abandon()
    return disk.struck


def _roomy() -> str | None:
    memory = Path("/dev/shm")  # noqa: S108 - many short-lived stores; nothing is asked of the disk itself
    return str(memory) if memory.is_dir() else None


@pytest.fixture
def stages() -> Stages:
    return Stages()


async def check_settled(life: Life, ledger: Ledger, units: str) -> None:
    """Each unit ran and counts once; the run is settled and was announced once."""
    assert set(life.started) == set(units)
    tasks = await ledger.rows(TASK)
    assert [task["state"] for task in tasks] == ["done"] * len(units)
    (run,) = await ledger.rows(REFLEX_RUN)
    assert (run["state"], run["done"], run["failed"], run["open"]) == ("settled", len(units), 0, None)
    facts = await ledger.rows(INTAKE)
    assert [fact["kind"] for fact in facts].count("run") == 1
    assert [fact["kind"] for fact in facts].count("signal") == len(units)


async def test_a_crash_at_any_statement_leaves_a_settled_run_announced(stages: Stages) -> None:
    async def before(life: Life, ledger: Ledger) -> None:
        await ledger.fan("abcde")

    async def after(life: Life, ledger: Ledger) -> None:
        await check_settled(life, ledger, "abcde")
        assert len(life.started) <= 5 + 2  # only what was in flight ran twice

    assert await every_crash(stages, before, Life.drive, after) > 40


async def test_a_crash_at_any_statement_keeps_serial_order(stages: Stages) -> None:
    async def before(life: Life, ledger: Ledger) -> None:
        await ledger.fan("abc", serial=True)

    async def after(life: Life, ledger: Ledger) -> None:
        await check_settled(life, ledger, "abc")
        assert life.started == sorted(life.started)

    assert await every_crash(stages, before, Life.drive, after) > 40


async def test_a_crash_at_any_statement_of_a_retry_leaves_true_counts(stages: Stages) -> None:
    async def before(life: Life, ledger: Ledger) -> None:
        ledger.policy = ledger.policy.__class__(retry_max=0)
        await ledger.fan("ab")
        await ledger.work(ending=RAISED)

    async def act(life: Life, ledger: Ledger) -> None:
        await ledger.retry(1)

    async def after(life: Life, ledger: Ledger) -> None:
        tasks = await ledger.rows(TASK)
        (run,) = await ledger.rows(REFLEX_RUN)
        ended = [task["state"] for task in tasks]
        assert (run["state"], run["done"], run["failed"]) == ("settled", ended.count("done"), ended.count("failed"))
        assert life.started in ([], ["a"])
        assert len(await ledger.facts(kind="run")) == 1

    assert await every_crash(stages, before, act, after) > 12


async def test_a_crash_at_any_statement_of_a_sweep_takes_whole_runs(stages: Stages) -> None:
    async def before(life: Life, ledger: Ledger) -> None:
        for _ in range(3):
            await ledger.fan("ab", cause=f"occurrence:2026-0{ledger.space.mint(INTAKE)}")
            await ledger.work()
        for fact in await ledger.facts():
            await ledger.write(_delivered(fact["n"]))

    async def act(life: Life, ledger: Ledger) -> None:
        await ledger.sweep_runs(START + 1, limit=1)
        await ledger.sweep_facts(START + 1, limit=1)

    async def after(life: Life, ledger: Ledger) -> None:
        runs = {run["n"] for run in await ledger.rows(REFLEX_RUN)}
        assert {task["run"] for task in await ledger.rows(TASK)} == runs
        assert await ledger.claim() == await ledger.claim()
        await act(life, ledger)
        left = (await ledger.rows(REFLEX_RUN), await ledger.rows(TASK), await ledger.rows(INTAKE))
        assert left == ([], [], [])

    assert await every_crash(stages, before, act, after) > 30


def _delivered(n: int) -> Any:
    return Cas(INTAKE, [((n,), {}, {"state": "delivered", "due_at": None})])
