"""Where a question is a trip over a network, an event that is new costs one trip, and a known one is known all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from onefold.store.postgres.wire import Statement, Wire
from onefold.testing import Stage, staged
from tests.guarantees.shop import Accepted, Deposit, Provider, bank


@pytest.fixture
async def stage(postgres: str) -> AsyncIterator[Stage]:
    async with staged(bank, Provider().dedupes(), store=postgres) as stage:
        yield stage


async def sent(stage: Stage, monkeypatch: pytest.MonkeyPatch, *events: Deposit) -> list[Any]:
    """The last text of each trip that these events took at once, and that each was accepted."""
    trips: list[bytes] = []
    send = Wire.send

    async def counted(wire: Wire, statements: Sequence[Statement]) -> list[Any]:
        trips.append(statements[-1].text)
        return await send(wire, statements)

    monkeypatch.setattr(Wire, "send", counted)
    deliveries = [stage.host.deliver(bank, event, caller=stage.caller()) for event in events]
    assert all(isinstance(reply, Accepted) for reply in await asyncio.gather(*deliveries))
    monkeypatch.undo()
    return trips


async def test_events_of_actors_in_memory_are_one_trip_until_one_is_known(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in "abc":
        await sent(stage, monkeypatch, Deposit("d1", key, 1))
    assert await sent(stage, monkeypatch, *(Deposit("d2", key, 1) for key in "abc")) == [b"commit"]

    await sent(stage, monkeypatch, Deposit("d2", "a", 1), Deposit("d3", "b", 1))
    assert len(await sent(stage, monkeypatch, Deposit("d2", "a", 1))) == 1  # asked first: nothing is written
    asked = await sent(stage, monkeypatch, Deposit("d4", "b", 1))
    assert len(asked) == 2
    assert asked[-1] == b"commit"
