"""`retention.runs`: an ended run goes with its rows; its key is told that it was done, and never runs again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import Retry, Run, Step, actuator
from onefold.actuators.tables import RUN
from onefold.host.driver import BEAT_MS
from onefold.host.sweep import Swept
from onefold.kernel.tables import ACTOR, ALARM, OWED, SENT, TURN
from onefold.store.contract import Query
from onefold.terms.errors import AlreadyDone, KeyConflict, NotFound
from onefold.testing import Stage
from tests.guarantees.conftest import Stages

DAY_MS = 86_400_000


class Ask(BaseModel):
    n: int
    fail: bool = False


class Signed(BaseModel):
    by: str


done: list[str] = []


async def act(step: Step, n: int) -> int:
    done.append(step.key)
    if n < 0:
        raise ValueError("below zero")
    return n + 1


@actuator
async def count(run: Run, ask: Ask) -> int:
    """Count by one."""
    return await run.step(act, retry=Retry(attempts=1))(ask.n)


@actuator
async def sign(run: Run, ask: Ask) -> str:
    """Wait for a signature."""
    return (await run.wait_for_event(Signed)).by


@pytest.fixture(autouse=True)
def _nothing_was_done() -> None:
    done.clear()


async def start(stage: Stage, name: str = "count", key: str | None = None, n: int = 1) -> str:
    started = await stage.host.start(name, {"n": n}, key=key, caller=stage.caller())
    await stage.settle()
    return started.receipt.run_id


async def passes(stage: Stage, ms: int) -> None:
    """Let time pass while nothing is open."""
    await stage.close()
    stage.clock.step_to(stage.clock.now() + ms)
    await stage.open()
    await stage.settle()


async def rows(stage: Stage, name: str = "count") -> dict[str, int]:
    space = await stage.host.space(name)
    tables = (ACTOR, TURN, OWED, SENT, ALARM, RUN)
    answers = await space.look(*(Query(table) for table in tables))
    return {table.name: len(found) for table, found in zip(tables, answers, strict=True)}


async def sweep(stage: Stage, ms: int = DAY_MS, **more: Any) -> int:
    swept: Swept = await stage.host.sweep(runs=ms, caller=stage.caller(), **more)
    return swept.runs


async def test_a_run_without_a_key_leaves_nothing(stages: Stages) -> None:
    stage = await stages(count)
    run = await start(stage)
    failed = await start(stage, n=-1)
    await passes(stage, DAY_MS)
    assert await sweep(stage) == 2
    assert set((await rows(stage)).values()) == {0}
    for gone in (run, failed):
        with pytest.raises(NotFound):
            await stage.host.receipt(gone, caller=stage.caller())
    assert (await stage.host.runs_list(caller=stage.caller())).items == []
    assert await start(stage) != run


async def test_a_key_whose_run_is_gone_is_told_that_it_was_done(stages: Stages) -> None:
    stage = await stages(count)
    run = await start(stage, key="k")
    await passes(stage, DAY_MS)
    assert await sweep(stage) == 1
    assert await rows(stage) == {"actor": 1, "turn": 1, "owed": 0, "sent": 0, "alarm": 0, "run": 0}
    for restart in (False, True):
        if restart:
            await stage.crash()
        with pytest.raises(AlreadyDone) as told:
            await start(stage, key="k")
        assert told.value.id == "k"
        with pytest.raises(KeyConflict):
            await start(stage, key="k", n=2)
        with pytest.raises(NotFound):
            await stage.host.receipt(run, caller=stage.caller())
        with pytest.raises(NotFound):
            await stage.host.run_retry(run, caller=stage.caller())
    assert len(done) == 1
    assert await sweep(stage) == 0


async def test_only_what_ended_long_enough_ago_goes(stages: Stages) -> None:
    stage = await stages(count, sign)
    waiting = await start(stage, "sign", key="w")
    late = await start(stage, "sign", key="l")
    old = await start(stage)
    await passes(stage, DAY_MS - 1)
    await stage.host.run_send(late, "Signed", {"by": "anna"}, caller=stage.caller())
    await stage.settle()
    assert await sweep(stage) == 0
    await passes(stage, 1)
    assert await sweep(stage, dry_run=True) == 1
    assert await sweep(stage) == 1
    with pytest.raises(NotFound):
        await stage.host.receipt(old, caller=stage.caller())
    await passes(stage, 20 * DAY_MS)
    assert await sweep(stage) == 1
    await stage.host.run_send(waiting, "Signed", {"by": "bert"}, caller=stage.caller())
    await stage.settle()
    assert (await stage.host.receipt(waiting, caller=stage.caller())).status == "done"


async def test_the_beat_takes_them_a_few_at_a_time_and_comes_to_all(stages: Stages) -> None:
    stage = await stages(count, settings={"retention": {"runs": "1 day"}})
    for n in range(70):
        await start(stage, key=f"k{n}" if n % 2 else None, n=n)
    await passes(stage, DAY_MS)
    for _ in range(4):
        await stage.advance(f"{BEAT_MS} ms")
    found = await rows(stage)
    assert (found["run"], found["actor"], found["turn"]) == (0, 35, 35)


async def test_a_repeat_at_the_moment_of_the_sweep_is_the_old_run_or_is_told_so(stages: Stages) -> None:
    stage = await stages(count)
    runs = {f"k{n}": await start(stage, key=f"k{n}", n=n) for n in range(10)}
    await passes(stage, DAY_MS)
    caller = stage.caller()
    again = [stage.host.start("count", {"n": n}, key=f"k{n}", caller=caller) for n in range(10)]
    both: list[Any] = await asyncio.gather(sweep(stage), *again, return_exceptions=True)
    await stage.settle()
    for key, answer in zip(runs, both[1:], strict=True):
        assert isinstance(answer, AlreadyDone) or answer.receipt.run_id == runs[key]
    assert len(done) == 10
    await stage.crash()
    assert len(done) == 10
    for n, key in enumerate(runs):
        try:
            started = await stage.host.start("count", {"n": n}, key=key, caller=caller)
            assert started.receipt.run_id == runs[key]
        except AlreadyDone:
            continue
    await stage.settle()
    assert len(done) == 10
