"""`at_once`, `rate`, `debounce`, `per`: never more than they say, whatever crashes; who waits begins by priority, then by turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import App, Run, actuator
from onefold.errors import BadArguments, Failed, LoadRefused, RunCancelled
from onefold.testing import Durable, Stage
from tests.guarantees.conftest import Stages


class Job(BaseModel):
    name: str
    customer: str = "c"


began: list[str] = []


async def begin(name: str) -> str:
    began.append(name)
    return name


@pytest.fixture(autouse=True)
def nothing_began() -> None:
    began.clear()


@actuator(at_once=2)
async def pair(run: Run, job: Job) -> str:
    """Two at a time, an hour each."""
    await run.step(begin)(job.name)
    await run.sleep("1h")
    return job.name


@actuator(at_once=1, per=["customer"])
async def single(run: Run, job: Job) -> str:
    """One of each customer at a time, an hour each."""
    await run.step(begin)(job.name)
    await run.sleep("1h")
    if job.name == "bad":
        raise ValueError(job.name)
    return job.name


@actuator(rate="3 per minute")
async def rated(run: Run, job: Job) -> str:
    """Three may begin within a minute."""
    return await run.step(begin)(job.name)


@actuator(debounce="10 seconds", per=["customer"])
async def last(run: Run, job: Job) -> str:
    """The last of several."""
    return await run.step(begin)(job.name)


@actuator(at_once=1)
async def short(run: Run, job: Job) -> str:
    """Ends without an act."""
    began.append(job.name)
    return job.name


async def start(stage: Stage, of: Any, name: str, customer: str = "c", **more: Any) -> str:
    job = Job(name=name, customer=customer)
    return (
        await stage.host.start_checked(of, job, caller=stage.caller(more.pop("principal", None)), **more)
    ).receipt.run_id


async def status(stage: Stage, run: str) -> str:
    return (await stage.host.receipt(run, caller=stage.caller())).status


async def test_no_more_go_at_once_and_each_end_lets_one_in(stages: Stages) -> None:
    stage = await stages(pair)
    runs = [await start(stage, pair, f"j{n}") for n in range(5)]
    await stage.settle()
    assert began == ["j0", "j1"]
    assert [await status(stage, run) for run in runs] == ["waiting", "waiting", "running", "running", "running"]
    await stage.advance("61m")
    assert began == ["j0", "j1", "j2", "j3"]
    await stage.advance("3h")
    assert began == ["j0", "j1", "j2", "j3", "j4"]
    assert [await status(stage, run) for run in runs] == ["done"] * 5


async def test_higher_priorities_first_then_in_the_order_they_came_also_after_a_restart(stages: Stages) -> None:
    stage = await stages(single)
    await start(stage, single, "first")
    await stage.settle()
    for name, priority in (("low", -1), ("a", 0), ("urgent", 9), ("b", 0), ("urgent too", 9)):
        await start(stage, single, name, priority=priority)
        await stage.settle()
    await stage.crash()
    await stage.advance("3h")
    await stage.restart()
    await stage.advance("9h")
    assert began == ["first", "urgent", "urgent too", "a", "b", "low"]


async def test_a_limit_is_over_all_principals_and_of_those_that_agree(stages: Stages) -> None:
    stage = await stages(single)
    await start(stage, single, "a1", "a", principal="p")
    await start(stage, single, "a2", "a", principal="q")
    await start(stage, single, "b1", "b", principal="p")
    await stage.settle()
    assert sorted(began) == ["a1", "b1"]
    await stage.advance("61m")
    assert sorted(began) == ["a1", "a2", "b1"]


async def test_a_rate_is_of_any_such_while(stages: Stages) -> None:
    stage = await stages(rated)
    for n in range(7):
        await start(stage, rated, f"j{n}")
    await stage.settle()
    assert len(began) == 3
    await stage.advance("59s")
    assert len(began) == 3
    await stage.crash()
    await stage.advance("2s")
    assert len(began) == 6
    await stage.advance("1m")
    assert (set(began[:3]), set(began[3:6]), began[6]) == ({"j0", "j1", "j2"}, {"j3", "j4", "j5"}, "j6")


async def test_debounce_lets_the_last_begin_and_cancels_those_it_stands_for(stages: Stages) -> None:
    stage = await stages(last)
    first = await start(stage, last, "one")
    await stage.advance("9s")
    second = await start(stage, last, "two")
    other = await start(stage, last, "other", "d")
    await stage.advance("9s")
    await stage.crash()
    assert began == []
    await stage.advance("3s")
    assert sorted(began) == ["other", "two"]
    assert [await status(stage, run) for run in (first, second, other)] == ["cancelled", "done", "done"]
    reason = await stage.host.ended(first, caller=stage.caller())
    assert reason.reason is not None
    assert second in reason.reason
    await start(stage, last, "three")
    await stage.advance("11s")
    assert began[-1] == "three"


async def test_who_is_cancelled_fails_or_is_parked_leaves_its_place(stages: Stages) -> None:
    stage = await stages(single)
    going = await start(stage, single, "going")
    waits = await start(stage, single, "waits")
    bad = await start(stage, single, "bad")
    await start(stage, single, "after")
    await stage.settle()
    await stage.host.run_cancel(waits, caller=stage.caller())
    await stage.host.run_cancel(going, caller=stage.caller())
    await stage.settle()
    assert began == ["going", "bad"]
    await stage.advance("61m")
    assert began == ["going", "bad", "after"]
    assert await status(stage, bad) == "failed"
    await stage.host.run_retry(bad, caller=stage.caller())
    await stage.settle()
    assert await status(stage, bad) == "running"  # it asks for a place again, and there is none
    await stage.advance("61m")
    assert await status(stage, bad) == "failed"
    assert await stage.host.parked_list(caller=stage.caller()) == []


@pytest.mark.parametrize("point", ["after-send", "before-send", "before-commit"])
@pytest.mark.parametrize("hit", [1, 2, 3, 4, 5])
async def test_killed_anywhere_it_is_kept_and_nobody_waits_for_ever(stages: Stages, point: str, hit: int) -> None:
    stage = await stages(single)
    await start(stage, single, "a")
    await stage.settle()
    stage.kill_at(point, hit=hit)
    starting = [asyncio.ensure_future(start(stage, single, name, key=name)) for name in ("b", "c")]
    await stage.let_die()
    for one in starting:
        one.cancel()
    await asyncio.gather(*starting, return_exceptions=True)
    stage.live_on()
    await stage.open()
    for name in ("b", "c"):
        await start(stage, single, name, key=name)
    await stage.advance("59m")
    assert began == ["a"]
    await stage.advance("30m")
    assert len(set(began)) == 2
    await stage.advance("2h 10m")
    assert set(began) == {"a", "b", "c"}


async def test_what_would_end_at_once_waits_for_its_place_too(stages: Stages) -> None:
    stage = await stages(short)
    runs = [await start(stage, short, f"j{n}") for n in range(3)]
    await stage.settle()
    assert [await status(stage, run) for run in runs] == ["done"] * 3
    assert began == ["j0", "j1", "j2"]


@actuator(at_once=1, per=["customer"])
async def nests(run: Run, job: Job) -> str:
    """Begins one of its own kind: of its own customer, of another, or of its own and not waited for."""
    if job.name == "leaf":
        return job.customer
    try:
        if job.name == "detached":
            return (await run.start(nests, Job(name="leaf"), detached=True)).run_id
        return await run.call(nests, Job(name="leaf", customer=job.name))
    except Failed as fault:
        return str(fault)


async def test_a_child_that_would_wait_for_its_parents_place_is_refused(stages: Stages) -> None:
    stage = await stages(nests)
    told = {name: await start(stage, nests, name) for name in ("c", "d", "detached")}
    await stage.settle()
    results = {n: (await stage.host.receipt(run, caller=stage.caller())).to_json()["result"] for n, run in told.items()}
    assert "lets one run of nests go at a time, which is this one" in str(results["c"])
    assert results["d"] == "d"
    assert await status(stage, str(results["detached"])) == "done"


async def test_a_fork_of_a_limited_run_goes_on_at_once_and_is_told_to_nobody(stages: Stages) -> None:
    stage = await stages(single)
    run = await start(stage, single, "a", callback="https://tools.example.com/ended")
    await stage.settle()
    fork = await stage.host.run_fork(run, "begin", caller=stage.caller())
    assert fork.status == "running"
    await stage.advance("61m")
    assert await status(stage, fork.run_id) == "done"
    assert began == ["a", "a"]


@pytest.mark.parametrize("limit", [{"at_once": 3}, {}], ids=["wider", "none"])
async def test_a_limit_that_is_lifted_lets_everybody_in(stages: Stages, limit: dict[str, Any]) -> None:
    stage = await stages(single)
    for n in range(4):
        await start(stage, single, f"j{n}")
    await stage.settle()

    @actuator(name="single", **limit)
    async def wider(run: Run, job: Job) -> str:
        return await single.function(run, job)  # type: ignore[no-any-return]

    stage.parts = (wider,)
    await stage.restart()
    await stage.advance("1h 2m")
    assert (began[0], set(began)) == ("j0", {"j0", "j1", "j2", "j3"})


def test_a_priority_is_a_whole_number_and_no_part_of_what_a_key_stands_for(durable: Durable) -> None:
    app = durable(single)
    for priority in (1.5, True, "high", 10**7):
        with pytest.raises(BadArguments, match="priority"):
            app.start(single, Job(name="a"), priority=priority)  # type: ignore[arg-type]
    first = app.start(single, Job(name="a"), key="k", priority=3)
    assert app.start(single, Job(name="a"), key="k").run_id == first.run_id
    assert app.start(single, Job(name="a"), key="k", priority=-3).run_id == first.run_id
    waits = app.start(single, Job(name="b"), delay="1 day", priority=1)
    app.clock.advance("1 day")
    assert first.result() == "a"
    waits.cancel()
    with pytest.raises(RunCancelled):
        waits.result()


@pytest.mark.parametrize(
    "options",
    [
        {"at_once": 0},
        {"at_once": True},
        {"at_once": "2"},
        {"rate": "fast"},
        {"rate": "0 per minute"},
        {"rate": "5 per fortnight"},
        {"rate": 5},
        {"debounce": "soon"},
        {"debounce": 5},
        {"per": ["name"]},
        {"at_once": 1, "per": ["nam"]},
        {"at_once": 1, "per": "name"},
    ],
)
def test_a_limit_that_is_none_is_refused_at_load(options: dict[str, Any]) -> None:
    async def f(run: Run, job: Job) -> str:
        return job.name

    with pytest.raises(LoadRefused):
        App(actuator(**options)(f))
