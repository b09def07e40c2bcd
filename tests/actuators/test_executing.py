"""A pass and the world: drains, cancels, folds that fail, ports that cannot dedupe."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from onefold.actuators import Retry, Run, actuator
from onefold.actuators.carried import Rested, Returned
from onefold.actuators.executing import run_pass
from onefold.actuators.journal import rows
from onefold.terms.errors import StepFailed, StoreUnavailable
from tests.actuators.home import Failing, World, until

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


def stopped() -> tuple[Callable[[], Any], asyncio.Event]:
    """A step that begins and then waits for ever, and the event of its beginning."""
    begun = asyncio.Event()

    async def never() -> str:
        SEEN.append("begun")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            SEEN.append("cut")
        return "?"

    return never, begun


async def test_a_drained_pass_abandons_its_steps_and_journals_nothing() -> None:
    never, begun = stopped()

    async def main(run: Run) -> str:
        try:
            return str(await run.step(never)())
        finally:
            SEEN.append("finally")

    world = World(actuator(main))
    commits = world.rows.commits
    passing = asyncio.create_task(run_pass(world.life, world.actuator))
    await begun.wait()
    passing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passing
    await asyncio.sleep(0)
    assert sorted(SEEN) == ["begun", "cut", "finally"]
    assert world.rows.commits == commits
    assert not world.life.watchers
    assert len(asyncio.all_tasks()) == 1


async def test_a_run_cancelled_under_a_running_step_stops_at_once() -> None:
    never, begun = stopped()

    async def main(run: Run) -> str:
        return str(await run.step(never)())

    world = World(actuator(main))
    playing = asyncio.create_task(world.one_pass())
    await begun.wait()
    assert world.cancel("no longer needed").changed
    await playing
    assert SEEN == ["begun", "cut"]
    assert world.ended == [Rested(0)]
    assert (world.state.status, world.state.reason) == ("cancelled", "no longer needed")
    assert not world.cancel("again").changed
    assert world.state.reason == "no longer needed"


async def test_cancel_reaches_a_run_in_any_state() -> None:
    async def sleeps(run: Run) -> str:
        await run.sleep("1 hour")
        return "x"

    world = World(actuator(sleeps))
    await world.play(until=lambda w: w.state.status == "waiting")
    assert world.cancel().changed
    await world.play()
    assert world.state.status == "cancelled"
    assert world.life.module.wake(world.state) is None
    assert not world.reopen().changed
    assert world.send("Any", b"1").outcome == "over"

    fresh = World(actuator(sleeps))
    assert fresh.cancel().changed
    await fresh.play()
    assert fresh.state.status == "cancelled"
    assert fresh.ended == [] or fresh.ended[0] == Rested(0)

    done = World(actuator(sleeps))
    await done.play()
    assert not done.cancel().changed
    assert done.result == "x"


async def test_a_step_that_swallows_its_cut_or_a_drain_stops_neither() -> None:
    begun = asyncio.Event()

    async def stubborn(n: int) -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            SEEN.append(n)
        return n

    async def main(run: Run) -> int:
        try:
            async with asyncio.timeout(5):
                await run.step(stubborn)(1)
        except TimeoutError:
            SEEN.append("late")
        return await run.step(stubborn)(2)

    world = World(actuator(main))
    passing = asyncio.create_task(run_pass(world.life, world.actuator))
    await until(lambda: world.state.agenda)
    begun.clear()
    world.ring()
    await begun.wait()
    assert SEEN == ["late", 1] or SEEN == [1, "late"]
    passing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passing
    await asyncio.sleep(0)
    assert SEEN[-1] == 2
    assert [row.kind for row in rows(world.state)] == ["due"]


async def act(what: str) -> str:
    SEEN.append(what)
    return what


async def test_a_fold_that_fails_ends_the_pass_as_a_fault_and_it_may_be_run_again() -> None:
    async def main(run: Run) -> str:
        return "".join([await run.step(act)(what) for what in "abc"])

    world = World(actuator(main))
    with pytest.raises(StoreUnavailable):
        await run_pass(Failing(world, 2), world.actuator)
    assert len(world.state.journal) == 1
    await world.play()
    assert world.result == "abc"
    assert SEEN == ["a", "b", "b", "c"]


async def test_a_store_that_fails_under_a_database_step_is_no_outcome_of_it() -> None:
    async def main(run: Run) -> int:
        return await run.db.execute("SELECT 1")

    world = World(actuator(main))
    with pytest.raises(StoreUnavailable):
        await run_pass(Failing(world, 1), world.actuator)
    assert not len(world.state.journal)


async def test_a_wait_that_cannot_be_committed_ends_the_pass_as_a_fault() -> None:
    never, _ = stopped()

    async def main(run: Run) -> str:
        return await asyncio.wait_for(run.step(never)(), 10)

    world = World(actuator(main))
    with pytest.raises(StoreUnavailable):
        await run_pass(Failing(world, 1), world.actuator)
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


class Beyond(BaseException):
    """What a library raises that wants nobody to catch it."""


@pytest.mark.parametrize("fault", [SystemExit, Beyond, GeneratorExit], ids=lambda fault: fault.__name__)
async def test_a_step_that_raises_what_nobody_catches_fails_instead(fault: type[BaseException]) -> None:
    async def leaves() -> None:
        raise fault("all")  # made here: one that outlives the test would keep its frames, and a pass in them

    async def main(run: Run) -> str:
        try:
            await run.step(leaves, retry=Retry(attempts=1))()
        except StepFailed as failed:
            return failed.kind
        return "?"

    world = World(actuator(main))
    await world.play()
    assert world.result == fault.__name__


async def test_a_function_that_exits_the_process_fails_its_run_instead() -> None:
    async def main(run: Run) -> str:
        async def inner() -> None:
            raise SystemExit(3)

        await asyncio.create_task(inner())
        return "?"

    world = World(actuator(main))
    await world.play()
    assert world.state.status == "failed"
    assert world.state.trouble is not None
    assert world.state.trouble.kind == "SystemExit"


async def test_a_function_that_cancels_itself_fails_by_name() -> None:
    async def main(run: Run) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await run.sleep("1 hour")
        return "?"

    world = World(actuator(main))
    await world.play()
    assert world.state.status == "failed"
    assert world.state.trouble is not None
    assert world.state.trouble.kind == "CancelledError"


async def test_a_step_that_raises_cancelled_is_a_failed_attempt() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    async def main(run: Run) -> str:
        try:
            await run.step(odd, retry=Retry(attempts=1))()
        except StepFailed as failed:
            return failed.kind
        return "?"

    world = World(actuator(main))
    await world.play()
    assert world.result == "CancelledError"


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="none")


async def test_a_step_sees_the_context_of_its_call_and_leaks_none() -> None:
    async def look() -> str:
        found = VARIABLE.get()
        VARIABLE.set("from the step")
        return found

    async def main(run: Run) -> list[str]:
        told = [await run.step(look)()]
        VARIABLE.set("from the run")
        told.append(await run.step(look)())
        return [*told, VARIABLE.get()]

    VARIABLE.set("from outside")
    world = World(actuator(main))
    await world.play()
    assert world.result == ["from outside", "from the run", "from the run"]
    assert VARIABLE.get() == "from outside"


async def test_a_group_that_fails_names_its_step() -> None:
    async def broken() -> None:
        raise ConnectionError("down")

    async def main(run: Run) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run.step(broken, retry=Retry(attempts=1))())
            group.create_task(run.step(act)("x"))

    world = World(actuator(main))
    await world.play()
    assert world.state.trouble is not None
    assert (world.state.trouble.kind, world.state.trouble.step) == ("ConnectionError", "broken")


@pytest.mark.parametrize("make", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_any_host_loop_will_do(make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    def plain(x: int) -> int:
        return x + 1

    async def main(run: Run) -> int:
        async with asyncio.timeout(60):
            one, two = await asyncio.gather(run.step(plain)(1), run.step(plain)(2))
        await asyncio.sleep(1)
        return one + two

    async def whole() -> None:
        world = World(actuator(main))
        await world.play()
        assert world.result == 5
        assert isinstance(world.ended[-1], Returned)

    host = make()
    try:
        host.run_until_complete(whole())
        host.run_until_complete(host.shutdown_default_executor())
    finally:
        host.close()


async def test_a_step_cut_while_the_one_before_it_still_unwinds_ends_nothing_else() -> None:
    async def slow(n: int) -> None:
        SEEN.append(f"begun {n}")
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            SEEN.append(f"unwound {n}")

    async def main(run: Run) -> int:
        late = 0
        for n in range(2):
            try:
                await asyncio.wait_for(run.step(slow)(n), 5)
            except TimeoutError:
                late += 1
        return late

    world = World(actuator(main))
    playing = asyncio.create_task(world.play(until=lambda w: w.state.status == "done"))
    for _ in range(2):
        await until(lambda: world.state.agenda)
        world.ring()
    await playing
    assert world.result == 2
    await until(lambda: "begun 1" not in SEEN or "unwound 1" in SEEN)
    assert SEEN[0] == "begun 0"
    assert "unwound 0" in SEEN
