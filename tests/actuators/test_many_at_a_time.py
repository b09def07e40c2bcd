"""`run.step(limit=)`, `run.first`, `run.undo`: the same in the first run and in every replay."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from onefold import Retry, Run, actuator
from onefold.errors import BadArguments, StepFailed
from onefold.testing import Durable, every_crash


class Many(BaseModel):
    count: int = 9


Every = Literal["every-await"] | None
run_once = Retry(attempts=1)
now: list[int] = []
most: list[int] = []
undone: list[str] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    for told in (now, most, undone):
        told.clear()


async def work(n: int) -> int:
    now.append(n)
    most.append(len(now))
    for _ in range(5):
        await asyncio.sleep(0)
    now.remove(n)
    return n


async def fails(n: int) -> int:
    raise ValueError(n)


async def unwork(n: int) -> None:
    undone.append(f"work {n}")


def unplain(n: int) -> None:
    undone.append(f"plain {n}")


def plain(n: int) -> int:
    return n


@actuator
async def fans(run: Run, many: Many) -> list[int]:
    """Each limit is of a name, wherever it is said."""
    limited = run.step(work, limit=3)
    halves = [limited(n) if n % 2 else run.step(work, limit=3)(n) for n in range(many.count)]
    return list(await asyncio.gather(*halves))


@actuator
async def races(run: Run, many: Many) -> list[int]:
    """What comes first."""
    place, value = await run.first(run.sleep("2h"), run.step(work)(7), run.sleep("1h"))
    assert value == 7
    slow, _ = await run.first(run.sleep("2h"), run.sleep("1h"))
    return [place, slow]


@actuator
async def takes_back(run: Run, many: Many) -> str:
    """Latest first, and only what was done."""
    for n in range(2):
        await run.step(work, undo=unwork)(n)
        await run.step(plain, undo=unplain)(n)
    await run.step(work)(5)
    try:
        await run.step(fails, undo=unwork, retry=run_once)(6)
    except StepFailed as fault:
        await run.undo()
        await run.undo()
        return type(fault).__name__
    return "done"


BACK = ["plain 1", "work 1", "plain 0", "work 0"]


@pytest.mark.parametrize("replay", [None, "every-await"])
def test_no_more_of_a_name_run_at_a_time(durable: Durable, replay: Every) -> None:
    app = durable(fans, replay=replay)
    assert app.call(fans, Many()) == list(range(9))
    assert max(most) == 3
    assert app.call(fans, Many(count=0)) == []


def test_a_limit_is_a_whole_number(durable: Durable) -> None:
    @actuator
    async def wrong(run: Run) -> str:
        problems = []
        limits: list[Any] = [0, -1, True, 1.5, "3"]
        for limit in limits:
            with pytest.raises(BadArguments, match="limit"):
                run.step(work, limit=limit)
            problems.append(limit)
        return str(len(problems))

    assert durable(wrong).call(wrong) == "5"


@pytest.mark.parametrize("replay", [None, "every-await"])
def test_the_first_has_its_place_and_the_others_are_let_go(durable: Durable, replay: Every) -> None:
    app = durable(races, replay=replay)
    receipt = app.start(races, Many())
    app.clock.advance("61 minutes")
    assert receipt.result() == [1, 1]
    assert [row.step for row in app.runs.journal(receipt.run_id)] == ["work", "sleep"]


@pytest.mark.parametrize("replay", [None, "every-await"])
def test_what_was_done_is_taken_back_latest_first_and_once(durable: Durable, replay: Every) -> None:
    app = durable(takes_back, replay=replay)
    assert app.call(takes_back, Many()) == "StepFailed"
    assert undone == BACK


def test_killed_anywhere_all_of_it_is_taken_back() -> None:
    for app in every_crash(takes_back):
        undone.clear()
        assert app.call(takes_back, Many(), key="k") == "StepFailed"
        assert list(dict.fromkeys(undone)) == BACK[len(BACK) - len(set(undone)) :]
