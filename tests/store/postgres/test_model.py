"""Random batches of random bodies give the same answers and leave the same rows on Postgres as in memory, through clean
closings and kills."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from onefold.store.memory import MemoryWorld
from onefold.store.postgres import PostgresWorld, plan
from tests.postgres import fresh_database
from tests.store.tables import SCHEMA
from tests.store.test_model import run_batch, steps

EXAMPLES = int(os.environ.get("ONEFOLD_MODEL_EXAMPLES", "30"))
NOW = 100


async def compare(steps: Sequence[Any], url: str, name: str) -> None:
    used: tuple[set[int], set[int]] = (set(), set())
    memory = MemoryWorld(clock=lambda: NOW)
    world = PostgresWorld(url)
    try:
        for step in steps:
            one, two = await memory.open(name, [SCHEMA]), await world.open(name, [SCHEMA])
            if isinstance(step, str):
                await memory.close()
                if step == "kill":
                    world.abandon()
                    world = PostgresWorld(url)
                else:
                    await world.close()
                continue
            assert await run_batch(two, step, used[1]) == await run_batch(one, step, used[0])
    finally:
        world.abandon()


@pytest.fixture
def spaces(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[str, str]]:
    """A database, and a new space of it for each example; its clock stands still, as the other's does."""
    monkeypatch.setattr(plan, "CLOCK", f"select set_config('onefold.now','{NOW}',true)".encode())
    url, numbers = fresh_database(), count()
    return lambda: (url, f"e{next(numbers)}")


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of an example that failed, which is to be seen
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_postgres_answers_as_memory_does(spaces: Callable[[], tuple[str, str]], steps: Sequence[Any]) -> None:
    asyncio.run(compare(steps, *spaces()))
