"""Several callers want one actor that is not in memory: it is read once, and nobody depends on another's patience."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from onefold.node.resident import Resident
from onefold.terms.ids import ActorId
from onefold.testing import Stage, staged
from tests.guarantees.shop import Deposit, Provider, bank

AT = ActorId("bank", None, "a")


@asynccontextmanager
async def slow(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
    """Inside, the actor is not in memory, and reading it takes until the end of the block. Gives how often it was read."""
    node = stage.host._core.node
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=stage.caller())
    assert node.evict(AT)
    read, gate, reads = node._read_rows, asyncio.Event(), [0]

    async def late(at: ActorId) -> Resident:
        reads[0] += 1
        await gate.wait()
        return await read(at)

    monkeypatch.setattr(node, "_read_rows", late)
    yield reads
    gate.set()


@pytest.mark.parametrize("impatient", range(3))
async def test_whoever_gives_up_takes_nobody_along(monkeypatch: pytest.MonkeyPatch, impatient: int) -> None:
    async with staged(bank, Provider().dedupes()) as stage:
        async with slow(stage, monkeypatch) as reads:
            looks: list[asyncio.Task[Any]] = [
                asyncio.create_task(stage.host.read(bank, "a", caller=stage.caller())) for _ in range(3)
            ]
            await asyncio.sleep(0)
            looks[impatient].cancel()
            await asyncio.sleep(0)
        answers = await asyncio.gather(*looks, return_exceptions=True)
        assert isinstance(answers.pop(impatient), asyncio.CancelledError)
        assert [getattr(answer, "balance", answer) for answer in answers] == [10, 10]
        assert reads[0] == (2 if impatient == 0 else 1)


async def test_the_newest_actor_is_not_the_one_that_makes_room() -> None:
    settings = {"node": {"capacity": 1}}
    async with staged(bank, Provider().dedupes(), settings=settings) as stage:
        caller = stage.caller()
        await stage.host.deliver(bank, Deposit("d1", "busy", 1), caller=caller)
        busy = stage.host._core.node.resident(ActorId("bank", None, "busy"))
        assert busy is not None
        busy.sending += 1
        answer = stage.host.deliver(bank, Deposit("d1", "b", 1), caller=caller)
        assert (await asyncio.wait_for(answer, 60)).balance == 1
        busy.sending -= 1


async def test_an_actor_in_a_turn_does_not_leave_memory_and_one_at_rest_does() -> None:
    async with staged(bank, Provider().dedupes()) as stage:
        node, caller = stage.host._core.node, stage.caller()
        await stage.host.deliver(bank, Deposit("d1", "a", 1), caller=caller)
        turn = asyncio.create_task(stage.host.deliver(bank, Deposit("d2", "a", 1), caller=caller))
        await asyncio.sleep(0)
        resident = node.resident(AT)
        assert resident is not None
        assert resident.pending == 1
        assert not node.evict(AT)
        assert node.resident(AT) is resident
        assert (await turn).balance == 2
        assert node.evict(AT)
        assert node.resident(AT) is None
