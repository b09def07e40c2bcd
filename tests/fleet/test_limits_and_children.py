"""A limit is one for the whole fleet, and a child's end reaches its parent, wherever the two live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from onefold import App, Run, actuator
from tests.contracts.backends import store_of
from tests.fleet.served import SECRET, nodes


class Job(BaseModel):
    name: str


going: list[str] = []
most: list[int] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    going.clear()
    most.clear()


async def work(name: str) -> str:
    going.append(name)
    most.append(len(going))
    for _ in range(20):
        await asyncio.sleep(0.001)
    going.remove(name)
    return name


@actuator(at_once=2)
async def limited(run: Run, job: Job) -> str:
    """Two at a time, on all nodes together."""
    return await run.step(work)(job.name)


@actuator
async def parent(run: Run, job: Job) -> list[str]:
    """Calls several."""
    return list(await asyncio.gather(*(run.call(child, Job(name=f"{job.name}{n}")) for n in range(6))))


@actuator(tool=False)
async def child(run: Run, job: Job) -> str:
    """Works a little."""
    return await run.step(work)(job.name)


@pytest.fixture(params=["sqlite", "postgres"])
async def pair(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[App, App]]:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    async with nodes(store_of(request.param, tmp_path), limited, parent, child) as (a, b):
        yield a, b


async def test_a_limit_is_one_for_all_nodes(pair: tuple[App, App]) -> None:
    calls = [pair[n % 2].call(limited, Job(name=f"j{n}")) for n in range(12)]
    assert await asyncio.wait_for(asyncio.gather(*calls), 60) == [f"j{n}" for n in range(12)]
    assert max(most) <= 2


async def test_children_end_where_their_parent_hears_it(pair: tuple[App, App]) -> None:
    calls = [pair[n % 2].call(parent, Job(name=f"p{n}-")) for n in range(4)]
    told = await asyncio.wait_for(asyncio.gather(*calls), 60)
    assert told == [[f"p{n}-{m}" for m in range(6)] for n in range(4)]
