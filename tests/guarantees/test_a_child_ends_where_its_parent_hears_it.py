"""`run.call` and `run.start`: a child is begun once, its end reaches its parent, and it goes no longer than its parent does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import Run, actuator, blocking
from onefold.errors import RunCancelled, RunFailed, StepFailed
from onefold.testing import Durable, Stage, Stuck
from tests.guarantees.conftest import Stages


class Job(BaseModel):
    name: str
    long: int = 0
    key: str | None = None
    detached: bool = False


class Said(BaseModel):
    text: str


acted: list[str] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    acted.clear()


async def act(name: str) -> str:
    acted.append(name)
    return name


@actuator(tool=False)
async def child(run: Run, job: Job) -> str:
    """Works for an hour."""
    done = await run.step(act)(job.name)
    await run.sleep("1h")
    if job.name == "bad":
        raise ValueError("the provider is closed")
    return done + "x" * job.long


@actuator(tool=False)
async def quick(run: Run, job: Job) -> str:
    """Ends in the commit that starts it."""
    return job.name + "x" * job.long


@actuator(tool=False)
async def listens(run: Run, job: Job) -> str:
    """Waits to be told."""
    return (await run.wait_for_event(Said)).text


@actuator
async def parent(run: Run, job: Job) -> list[str]:
    """Calls both, one beside the other."""
    return list(await asyncio.gather(run.call(child, job, key=job.key), run.call(quick, job)))


@actuator
async def careful(run: Run, job: Job) -> str:
    """Goes on when its child fails."""
    try:
        return await run.call(child, job)
    except RunFailed as failed:
        return f"{failed.kind}: {failed.message}"


@actuator
async def starts(run: Run, job: Job) -> str:
    """Begins one and does not wait for it."""
    begun = await run.start(child, job, detached=job.detached)
    return begun.run_id


@actuator
async def talks(run: Run, job: Job) -> list[str]:
    """Every verb of what it began."""
    begun = await run.start(listens, job)
    with contextlib.suppress(TimeoutError):
        return [await begun.result(timeout="5 minutes")]  # nobody has told it yet
    shown = await begun.refresh()
    await begun.send(Said(text="go"))
    said = await begun.result()
    other = await run.start(child, job)
    ended = await other.cancel("no longer wanted")
    try:
        await other.result()
    except RunCancelled:
        return [shown.status, said, ended.status, "cancelled"]
    return []


@actuator
def plainly(run: blocking.Run, job: Job) -> list[str]:
    """The same without await."""
    begun = run.start(listens, job)
    begun.send(Said(text="go"))
    return [run.call(child, job), begun.result(), begun.refresh().status]


async def start(stage: Stage, of: Any, name: str = "a", **more: Any) -> str:
    return (await stage.host.start_checked(of, Job(name=name, **more), caller=stage.caller())).receipt.run_id


async def result(stage: Stage, run: str) -> Any:
    return (await stage.host.receipt(run, caller=stage.caller())).to_json().get("result")


async def statuses(stage: Stage, program: str) -> list[str]:
    return [one.status for one in (await stage.host.runs_list(program=program, caller=stage.caller())).items]


@pytest.mark.parametrize("long", [0, 20_000])
async def test_it_gives_what_its_child_gives(stages: Stages, long: int) -> None:
    stage = await stages(parent, child, quick)
    run = await start(stage, parent, long=long)
    await stage.settle()
    waiting = (await stage.host.receipt(run, caller=stage.caller())).to_json()
    assert waiting["status"] == "waiting"
    assert [wait["kind"] for wait in waiting["waits"]] == ["child"]
    await stage.crash()
    await stage.advance("2h")
    assert await result(stage, run) == ["a" + "x" * long] * 2
    assert acted == ["a"]
    assert await stage.host.parked_list(caller=stage.caller()) == []


@pytest.mark.parametrize("point", ["before-send", "after-send", "step-returned", "before-commit", "after-commit"])
@pytest.mark.parametrize("hit", [1, 2, 4, 6])
async def test_killed_anywhere_there_is_one_child(stages: Stages, point: str, hit: int) -> None:
    stage = await stages(parent, child, quick)
    stage.kill_at(point, hit=hit)
    starting = asyncio.ensure_future(stage.host.start("parent", {"name": "a"}, key="k", caller=stage.caller()))
    await stage.let_die()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    stage.live_on()
    await stage.open()
    run = (await stage.host.start("parent", {"name": "a"}, key="k", caller=stage.caller())).receipt.run_id
    await stage.advance("2h")
    assert await result(stage, run) == ["a", "a"]
    assert await statuses(stage, "child") == ["done"]
    assert await statuses(stage, "quick") == ["done"]


async def test_a_child_that_fails_is_an_error_to_catch(stages: Stages) -> None:
    stage = await stages(careful, parent, child, quick)
    caught, thrown = await start(stage, careful, "bad"), await start(stage, parent, "bad")
    await stage.advance("2h")
    assert await result(stage, caught) == "ValueError: the provider is closed"
    failed = (await stage.host.receipt(thrown, caller=stage.caller())).to_json()
    assert failed["status"] == "failed"
    assert "RunFailed" in failed["error"]["message"]


async def test_a_child_goes_no_longer_than_its_parent_unless_it_is_detached(stages: Stages) -> None:
    stage = await stages(starts, parent, child, quick)
    await start(stage, starts, "left")
    await stage.settle()
    assert await statuses(stage, "child") == ["cancelled"]
    cancelled = await start(stage, parent, "cut")
    await stage.settle()
    await stage.host.run_cancel(cancelled, caller=stage.caller())
    await stage.settle()
    assert await statuses(stage, "child") == ["cancelled"] * 2
    free = await start(stage, starts, "free", detached=True)
    await stage.advance("2h")
    assert sorted(await statuses(stage, "child")) == ["cancelled", "cancelled", "done"]
    assert str(await result(stage, free)).startswith("run_")


async def test_one_key_is_one_child_for_two_parents_too(stages: Stages) -> None:
    stage = await stages(parent, child, quick)
    runs = [await start(stage, parent, "a", key="same") for _ in range(2)]
    await stage.advance("2h")
    assert [await result(stage, run) for run in runs] == [["a", "a"], ["a", "a"]]
    assert acted == ["a"]


@pytest.mark.parametrize("of", ["talks", "plainly"])
async def test_what_was_begun_can_be_asked_told_and_ended(stages: Stages, of: str) -> None:
    stage = await stages(talks, plainly, listens, child)
    run = (await stage.host.start(of, {"name": "a"}, caller=stage.caller())).receipt.run_id
    await stage.advance("2h")
    told = ["waiting", "go", "cancelled", "cancelled"] if of == "talks" else ["a", "go", "done"]
    assert await result(stage, run) == told


async def test_nobody_can_send_what_a_child_would_tell(stages: Stages) -> None:
    stage = await stages(parent, child, quick)
    run = await start(stage, parent)
    await stage.settle()
    (wait,) = (await stage.host.receipt(run, caller=stage.caller())).waits
    with pytest.raises(Exception, match="no event that anybody sends"):
        await stage.host.run_send(run, wait.name, {"status": "done"}, caller=stage.caller())


def test_every_replay_is_the_same(durable: Durable) -> None:
    app = durable(parent, child, quick, replay="every-await")
    receipt = app.start(parent, Job(name="a"))
    app.clock.advance("2h")
    assert receipt.result() == ["a", "a"]


def test_what_is_refused_of_a_child_is_not_tried_again(durable: Durable) -> None:
    @actuator
    async def twice(run: Run, job: Job) -> str:
        await run.call(quick, job, key="k")
        try:
            return await run.call(quick, Job(name="other"), key="k")
        except StepFailed as failed:
            return f"{failed.kind} after {failed.attempts}"

    app = durable(twice, quick)
    assert app.call(twice, Job(name="a")) == "KeyConflict after 1"


def test_a_test_that_is_stuck_is_told_what_the_child_waits_for(durable: Durable) -> None:
    @actuator
    async def over(run: Run, job: Job) -> str:
        return await run.call(listens, job)

    app = durable(over, listens)
    receipt = app.start(over, Job(name="a"))
    with pytest.raises(Stuck, match=r"child 'listens/run_.*listens \(run_.*event 'Said'"):
        receipt.result()
    (child_run,) = app.runs.list(program="listens").items
    child_run.send(Said(text="go"))
    assert receipt.result() == "go"
