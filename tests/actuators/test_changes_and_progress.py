"""`run.version`: new code for new runs, the old for those that had passed. `run.progress`: told once, whatever is replayed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import Run, actuator, blocking
from onefold.errors import BadArguments
from onefold.testing import Durable, Stage, every_crash
from tests.guarantees.conftest import Stages
from tests.guarantees.conftest import stages as stages


class Job(BaseModel):
    name: str = "a"


acted: list[str] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    acted.clear()


async def act(what: str) -> str:
    acted.append(what)
    return what


@actuator(name="job")
async def before(run: Run, job: Job) -> list[str]:
    """As it was."""
    first = await run.step(act)("first")
    await run.sleep("1h")
    return [first, await run.step(act)("old")]


@actuator(name="job")
async def after(run: Run, job: Job) -> list[str]:
    """With a check before the first step, and another one at its end."""
    told = []
    if run.version("check first"):
        told.append(await run.step(act)("check"))
    told.append(await run.step(act)("first"))
    await run.sleep("1h")
    if run.version("new end"):
        told.append(await run.step(act)("new"))
    else:
        told.append(await run.step(act)("old"))
    return [*told, str(run.version("check first"))]


@actuator(name="each")
async def each(run: Run, job: Job) -> list[bool]:
    """Asks in tasks, and in a loop."""

    async def one(n: int) -> bool:
        await run.sleep(f"{n + 1}h")
        new = run.version("each")
        await run.step(act)(str(n))
        return new

    return list(await asyncio.gather(*map(one, range(3))))


@actuator
def plainly(run: blocking.Run, job: Job) -> bool:
    """The same without await."""
    run.progress("half", 1, 2)
    new = run.version("it")
    run.sleep("1h")
    return new and run.version("it")


@actuator
async def tells(run: Run, job: Job) -> str:
    """How far it is."""
    run.progress("begun")
    for n in range(3):
        await run.step(act)(str(n))
        run.progress(f"did {n}", done=n + 1, of=3)
        await run.sleep("1h")
    return "done"


async def begin(stage: Stage, name: str = "job") -> str:
    return (await stage.host.start(name, {}, caller=stage.caller())).receipt.run_id


async def shown(stage: Stage, run: str) -> dict[str, Any]:
    return (await stage.host.receipt(run, caller=stage.caller())).to_json()


async def test_who_had_passed_goes_by_the_old_and_everybody_else_by_the_new(stages: Stages) -> None:
    stage = await stages(before)
    waits, ended = await begin(stage), await begin(stage)
    await stage.settle()
    stage.parts = (after,)
    await stage.restart()
    new = await begin(stage)
    await stage.settle()
    await stage.crash()
    await stage.advance("2h")
    for run in (waits, ended):
        assert (await shown(stage, run))["result"] == ["first", "new", "True"]
    assert (await shown(stage, new))["result"] == ["check", "first", "new", "True"]
    assert await stage.host.parked_list(caller=stage.caller()) == []


async def test_each_place_is_asked_by_itself(stages: Stages) -> None:
    stage = await stages(each)
    run = await begin(stage, "each")
    await stage.advance("90m")
    await stage.crash()
    await stage.advance("2h")
    assert (await shown(stage, run))["result"] == [True, True, True]


def test_every_replay_is_the_same(durable: Durable) -> None:
    app = durable(after, each, tells, plainly, replay="every-await")
    assert app.start(after, Job()).run_id
    receipts = [app.start(one, Job()) for one in (each, tells, plainly)]
    app.clock.advance("4h")
    assert [receipt.refresh().status for receipt in receipts] == ["done"] * 3


def test_killed_anywhere_it_stays_with_what_it_said() -> None:
    for app in every_crash(after):
        receipt = app.start(after, Job(), key="k")
        app.clock.advance("2h")
        assert receipt.result() == ["check", "first", "new", "True"]


async def test_the_receipt_shows_the_last_that_was_told(stages: Stages) -> None:
    stage = await stages(tells)
    run = await begin(stage, "tells")
    await stage.settle()
    told = await shown(stage, run)
    assert {**told["progress"], "at": ""} == {"message": "did 0", "done": 1, "of": 3, "at": ""}
    await stage.crash()
    await stage.advance("61m")
    told = await shown(stage, run)
    assert told["progress"]["message"] == "did 1"
    await stage.advance("3h")
    assert "progress" not in await shown(stage, run)


def test_a_progress_that_is_none_is_refused(durable: Durable) -> None:
    wrong: list[tuple[Any, ...]] = [("",), ("x" * 501,), (5,), ("a", "b"), ("a", float("nan")), ("a", True), ("a\0",)]

    @actuator
    async def tries(run: Run) -> int:
        for arguments in wrong:
            with pytest.raises(BadArguments):
                run.progress(*arguments)
        return len(wrong)

    assert durable(tries).call(tries) == len(wrong)
