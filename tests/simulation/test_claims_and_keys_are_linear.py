"""Whoever claims a row or takes a name in the store sees one queue and one holder; a store that is broken is seen to be."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onefold.store.contract import Append, Claim, Done, Put, Space, Unknown
from onefold.testing.broken.stores import BROKEN_STORES
from onefold.testing.linear import Call, Recorder, judged
from onefold.testing.store_suite.ground import OpenWorld, asking, done, writing
from onefold.testing.store_suite.tables import SCHEMA, TASK, task
from tests.contracts.backends import BACKENDS, Memory

SEEDS = 200 if os.environ.get("ONEFOLD_DEEP") else 5
SOON = 20
TASKS = 12
NAMES = ("x", "y", "z")


def queue(state: tuple[int, ...], what: Any) -> tuple[tuple[int, ...], Any]:
    """What is not claimed yet, in order. ("claim", k): the first k of it."""
    return state[what[1] :], state[: what[1]]


def holder(state: int | None, what: Any) -> tuple[int | None, Any]:
    """Who holds a name. ("take", who): who holds it after that; the first one keeps it."""
    kept = what[1] if state is None else state
    return kept, kept


class Disk:
    """Fails now and then, by its seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.sound = True

    def __call__(self, point: str) -> None:
        if not self.sound and self._chance.random() < 0.02:
            raise OSError(5, f"the test's disk is tired at {point}")


async def claim(space: Space, what: tuple[str, int]) -> Any:
    return await space.transact(asking(Claim(TASK, (("ready", "null", False),), ("id",), what[1], {"ready": None})))


async def take(space: Space, name: str, what: tuple[str, int]) -> Any:
    """Append a row whose baton is the name."""
    return await space.transact(asking(Append(TASK, [task(1_000 + what[1], baton=name, ready=None)])))


async def seen(open_world: OpenWorld, seed: int) -> dict[str, tuple[Call, ...]]:
    """What callers saw of the queue, and of each name."""
    chance = random.Random(seed)
    disk = Disk(chance)
    world = open_world(failpoint=disk)
    space = await world.open("main", [SCHEMA])
    done(await space.transact(writing(Put(TASK, [task(n) for n in range(TASKS)]))))
    disk.sound = False
    recorders = {what: Recorder() for what in ("queue", *NAMES)}
    who = iter(range(1_000))

    async def tried(of: str, what: tuple[str, int], act: Callable[[], Awaitable[Any]]) -> None:
        call = recorders[of].made(what)
        outcome = await act()
        if isinstance(outcome, Done):
            (answer,) = outcome.value
            call.ok(tuple(row[0] for row in answer) if of == "queue" else met(answer, what))
        elif not isinstance(outcome, Unknown):
            call.refused()

    async def caller() -> None:
        for _ in range(6):
            if chance.random() < 0.5:
                what = ("claim", chance.randrange(1, 3))
                await tried("queue", what, partial(claim, space, what))
            else:
                name, what = chance.choice(NAMES), ("take", next(who))
                await tried(name, what, partial(take, space, name, what))

    await asyncio.gather(*(caller() for _ in range(4)))
    world.abandon()
    return {what: recorder.history for what, recorder in recorders.items()}


def met(answer: Any, what: tuple[str, int]) -> int:
    """Who holds the name, by what Append answered: whoever was met, or who took it."""
    (row,) = answer
    return what[1] if row is None else int(row[0]) - 1_000


def not_linear(calls: dict[str, tuple[Call, ...]]) -> str | None:
    queued = judged(calls["queue"], tuple(range(TASKS)), queue)
    if not queued:
        return f"the queue: {queued}"
    for name in NAMES:
        held = judged(calls[name], None, holder)
        if not held:
            return f"{name}: {held}"
    return None


@pytest.mark.parametrize("store", BACKENDS)
async def test_what_callers_see_of_rows_is_linear(store: str, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        calls = await seen(BACKENDS[store](tmp_path / str(seed)), seed)
        assert not_linear(calls) is None, f"seed {seed}: {not_linear(calls)}"
        assert calls["queue"]


@pytest.mark.parametrize("twin", ["claims twice", "forgets a unique key", "calls an unknown commit refused"])
async def test_what_callers_see_of_a_broken_store_is_not(twin: str) -> None:
    (store,) = [one for one in BROKEN_STORES if one.name == twin]
    for seed in range(SOON):
        if not_linear(await seen(Memory(store.world), seed)) is not None:
            return
    raise AssertionError(f"{SOON} histories, and {twin} was not seen")
