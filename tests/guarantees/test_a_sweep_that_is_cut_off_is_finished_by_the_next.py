"""A process that dies in the middle of any sweep: what was swept is swept, the rest goes with the next, nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onefold.host.driver import BEAT_MS
from onefold.kernel.tables import TURN
from onefold.store.contract import Query
from onefold.terms.errors import AlreadyDone
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Deposit, Provider
from tests.guarantees.test_an_ended_run_leaves_its_key import count, done, rows, start
from tests.guarantees.test_an_id_counts_for_its_window import bank_for

DAY_MS = 86_400_000
POINTS = {"before-commit": 1, "after-commit": 1, "statement": 9}  # every so many of them: a statement more or less


async def killed(stage: Stage, point: str, hit: int, act: Any) -> bool:
    """Do `act`, killed at the `hit`-th `point`; then open again. False when it got through before."""
    stage.kill_at(point, hit=hit)
    doing = asyncio.ensure_future(act)
    await stage.let_die()
    met = stage.killed
    doing.cancel()
    await asyncio.gather(doing, return_exceptions=True)
    stage.live_on()
    await stage.open()
    await stage.settle()
    return met


async def passes(stage: Stage, ms: int) -> None:
    await stage.close()
    stage.clock.step_to(stage.clock.now() + ms)
    await stage.open()
    await stage.settle()


async def test_a_sweep_of_runs_is_whole_for_each_run(stages: Stages) -> None:
    done.clear()
    for point, every in POINTS.items():
        for hit in range(1, 200, every):
            stage = await stages(count, store_name=f"{point}-{hit}")
            for n in range(4):
                await start(stage, key=f"k{n}" if n % 2 else None, n=n)
            await passes(stage, DAY_MS)
            met = await killed(stage, point, hit, stage.host.sweep(runs=DAY_MS, caller=stage.caller()))
            acted = len(done)
            assert await rows(stage) in (
                {"actor": 4, "turn": 12, "owed": 0, "sent": 0, "alarm": 0, "run": 4},
                {"actor": 2, "turn": 2, "owed": 0, "sent": 0, "alarm": 0, "run": 0},
            )
            await stage.host.sweep(runs=DAY_MS, caller=stage.caller())
            assert (await rows(stage))["run"] == 0
            with pytest.raises(AlreadyDone):
                await start(stage, key="k1")
            assert len(done) == acted
            await stage.close()
            if not met:
                break
        else:
            raise AssertionError(f"there was no end of {point}")


async def test_a_sweep_of_replies_takes_nothing_else(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onefold.node.sweeping.LOOK", 4)
    module = bank_for(None)
    for point, every in POINTS.items():
        for hit in range(1, 200, every):
            stage = await stages(module, store_name=f"{point}-{hit}")
            for n in range(10):
                await stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=stage.caller())
            await passes(stage, DAY_MS)
            met = await killed(stage, point, hit, stage.host.sweep(replies=DAY_MS, caller=stage.caller()))
            gone = 0
            for n in range(10):
                try:
                    assert await stage.host.deliver(
                        module, Deposit(f"d{n}", "a", 1), caller=stage.caller()
                    ) == Accepted(n + 1)
                except AlreadyDone:
                    assert gone == n  # the oldest first
                    gone += 1
            assert gone % 4 == 0 or gone == 10
            await stage.host.sweep(replies=DAY_MS, caller=stage.caller())
            with pytest.raises(AlreadyDone):
                await stage.host.deliver(module, Deposit("d9", "a", 1), caller=stage.caller())
            assert (await stage.host.read(module, "a", caller=stage.caller())).balance == 10
            await stage.close()
            if not met:
                break
        else:
            raise AssertionError(f"there was no end of {point}")


async def test_a_beat_that_frees_ids_is_finished_by_the_next(stages: Stages, provider: Provider) -> None:
    module = bank_for("1 day")
    for hit in range(1, 100, 3):
        stage = await stages(module, provider.dedupes(), store_name=f"{hit}")
        for n in range(3):
            await stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=stage.caller())
        await stage.close()
        stage.clock.step_to(stage.clock.now() + DAY_MS)
        await stage.open()
        met = await killed(stage, "statement", hit, stage.settle())
        await stage.advance(f"{2 * BEAT_MS} ms")
        (turns,) = await (await stage.host.space("main")).look(Query(TURN))
        assert [row[TURN.at["event"]] for row in turns] == [f"f/{row[0]!s}" for row in turns]
        assert await stage.host.deliver(module, Deposit("d0", "a", 1), caller=stage.caller()) == Accepted(4)
        await stage.close()
        if not met:
            return
    raise AssertionError("there was no end of it")
