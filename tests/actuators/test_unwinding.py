"""A pass that ends lets its tasks go: `finally` blocks run, nothing is journaled, nobody is warned."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import warnings
from typing import Any

import pytest

from onefold.actuators import Run, actuator
from onefold.actuators.passloop import PassLoop
from onefold.terms.errors import Suspended
from tests.actuators.home import World

SEEN: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


async def act(what: str) -> str:
    SEEN.append(f"did {what}")
    return what


async def quiet(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Play a pass, collect, and see that nothing was said."""
    with warnings.catch_warnings(record=True) as told, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        await world.one_pass()
        await asyncio.sleep(0)
        gc.collect()
    assert not [str(warning.message) for warning in told]
    assert not [record.message for record in caplog.records if "asyncio" in record.name or "onefold" in record.name]


async def test_finally_blocks_run_and_every_call_in_them_is_suspended(caplog: pytest.LogCaptureFixture) -> None:
    async def main(run: Run) -> str:
        try:
            await run.sleep("1 hour")
        except Exception:  # noqa: BLE001 - what must not catch it
            SEEN.append("caught")
        finally:
            if not SEEN:
                late(run)
                with pytest.raises(Suspended):
                    await asyncio.sleep(1)
        return "x"

    def late(run: Run) -> None:
        SEEN.append("finally")
        for verb in (
            lambda: run.step(act)("late"),
            lambda: run.sleep("1 s"),
            lambda: run.db.execute("SELECT 1"),
            lambda: run.wait_for_event(int),
            lambda: run.wait_for_approval("m", "?", notify="m", timeout=None),
            run.uuid,
        ):
            try:
                verb()
            except Suspended:
                SEEN.append("suspended")

    world = World(actuator(main))
    await quiet(world, caplog)
    assert world.state.status == "waiting"
    assert SEEN == ["finally"] + ["suspended"] * 6
    assert not len(world.state.journal)
    await world.play()
    assert world.result == "x"


async def _gathered(run: Run) -> str:
    async def one(n: int) -> str:
        try:
            await run.sleep(f"{n} hours")
            return await run.step(act)(str(n))
        finally:
            SEEN.append(f"finally {n}")

    return ",".join(await asyncio.gather(*(one(n) for n in range(1, 4))))


async def _grouped(run: Run) -> str:
    async def one(n: int) -> None:
        try:
            await run.sleep(f"{n} hours")
        finally:
            SEEN.append(f"finally {n}")

    async with asyncio.TaskGroup() as group:
        for n in range(1, 4):
            group.create_task(one(n))
    return "x"


async def _queued(run: Run) -> str:
    queue: asyncio.Queue[int] = asyncio.Queue()
    lock = asyncio.Lock()

    async def reader(n: int) -> int:
        try:
            async with lock:
                return await queue.get()
        finally:
            SEEN.append(f"finally {n}")

    async def writer() -> None:
        await run.sleep("1 hour")
        for n in range(3):
            queue.put_nowait(n)

    return str(len(await asyncio.gather(reader(1), reader(2), reader(3), writer())))


async def _never_awaited(run: Run) -> str:
    async def one(n: int) -> str:
        await run.sleep("1 hour")
        return str(n)

    coming = [one(1), one(2)]
    last = one(3)
    told = [await each for each in coming]
    for n in range(1, 4):
        SEEN.append(f"finally {n}")
    return ",".join([*told, await last])


async def _shielded(run: Run) -> str:
    async def one() -> None:
        await asyncio.wait_for(asyncio.shield(run.sleep("1 hour")), 7200)

    try:
        await one()
    finally:
        SEEN.extend(["finally 1", "finally 2", "finally 3"])
    return "x"


@pytest.mark.parametrize("main", [_gathered, _grouped, _queued, _never_awaited, _shielded])
async def test_whatever_the_tasks_wait_for_nothing_leaks(main: Any, caplog: pytest.LogCaptureFixture) -> None:
    world = World(actuator(name="program")(main))
    await quiet(world, caplog)
    assert world.state.status == "waiting", world.state.trouble
    if main is not _never_awaited:
        assert sorted(SEEN) == ["finally 1", "finally 2", "finally 3"]
    await world.play()
    assert world.state.status == "done", world.state.trouble


async def test_code_that_swallows_suspended_is_closed_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    async def main(run: Run) -> str:
        while True:
            try:
                await run.sleep("1 hour")
                return "x"
            except BaseException:  # noqa: BLE001 - the worst that code can do
                SEEN.append("swallowed")

    world = World(actuator(main))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hook, sys.unraisablehook = sys.unraisablehook, lambda told: None
        try:
            await world.one_pass()
            gc.collect()
        finally:
            sys.unraisablehook = hook
    assert world.state.status == "waiting"
    assert "does not let Suspended pass" in caplog.text
    assert 0 < len(SEEN) < 2_000
    await world.play()
    assert world.result == "x"


async def test_code_that_spins_on_suspended_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    async def main(run: Run) -> str:
        try:
            await run.sleep("1 hour")
        except Suspended:
            while True:  # noqa: ASYNC110 - the worst that code can do
                await asyncio.sleep(0)
        return "x"

    world = World(actuator(main))
    await world.one_pass()
    assert world.state.status == "waiting"
    assert "does not let Suspended pass" in caplog.text


async def test_a_function_that_spins_fails_by_name() -> None:
    async def main(run: Run) -> str:
        while True:  # noqa: ASYNC110 - the worst that code can do
            await asyncio.sleep(0)

    from onefold.actuators import passloop

    world = World(actuator(main))
    kept, passloop.BUDGET = passloop.BUDGET, 5_000
    try:
        await world.play()
    finally:
        passloop.BUDGET = kept
    assert world.state.status == "failed"
    assert world.state.trouble is not None
    assert world.state.trouble.kind == "Spinning"


async def test_a_pass_leaves_nothing_for_the_collector() -> None:
    async def main(run: Run) -> int:
        for n in range(3):
            await run.step(act)(str(n))
        return 1

    world = World(actuator(main))
    gc.collect()
    gc.disable()
    try:
        await world.play()
        await asyncio.sleep(0)
        alive = [found for found in gc.get_objects() if isinstance(found, PassLoop)]
    finally:
        gc.enable()
    assert not alive
