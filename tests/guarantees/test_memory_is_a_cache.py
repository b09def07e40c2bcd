"""Residency, snapshots, bounds: what is in memory is read again from the rows, and never without end."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from onefold.kernel.tables import TURN
from onefold.store.contract import Append, AuthorSpace, Done, Last, Query, Row, Table
from onefold.terms.errors import Busy, WaitsForCode
from onefold.terms.limits import MAX_ROW_BYTES, QUEUE_PER_ACTOR
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Account, Balance, Deposit, Provider, bank, make


async def test_an_evicted_actor_comes_back_with_its_state(stages: Stages, provider: Provider) -> None:
    stage = await stages(bank, provider.dedupes(), settings={"node": {"capacity": 3}})
    caller = stage.caller()
    for round_ in range(4):
        for n in range(10):
            await stage.host.deliver(bank, Deposit(f"d{round_}", f"a{n}", 1), caller=caller)
    assert stage.host.resident_count <= 4
    assert [(await stage.host.read(bank, f"a{n}", caller=caller)).balance for n in range(10)] == [4] * 10


async def test_a_snapshot_is_written_when_due_and_a_rebuild_starts_there(stages: Stages) -> None:
    module = make(snapshot_every=10)
    stage = await stages(module)
    caller = stage.caller()
    for n in range(35):
        await stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=caller)
    history = await stage.host.history(module, "a", caller=caller)
    assert sum(isinstance(row.fact, Balance) for row in history) == 3
    assert [row.seq for row in history] == list(range(1, len(history) + 1))

    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 35
    for n in range(35, 60):
        assert await stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=caller) == Accepted(n + 1)
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 60


async def test_a_history_longer_than_a_page_is_read_whole(stages: Stages) -> None:
    module = make(snapshot_every=100_000)
    stage = await stages(module)
    caller = stage.caller()
    await asyncio.gather(*(stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=caller) for n in range(900)))
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 900
    page = await stage.host.facts("bank", "a", after=890, limit=5, caller=caller)
    assert ([item["seq"] for item in page.items], page.next) == ([891, 892, 893, 894, 895], "895")


async def test_a_full_queue_refuses_before_anything_exists(stages: Stages) -> None:
    stage = await stages(bank)
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("first", "a", 0), caller=caller)
    answers = await asyncio.gather(
        *(stage.host.deliver(bank, Deposit(f"d{n}", "a", 1), caller=caller) for n in range(QUEUE_PER_ACTOR + 50)),
        return_exceptions=True,
    )
    refused = [answer for answer in answers if isinstance(answer, Busy)]
    assert len(refused) == 50
    assert (await stage.host.read(bank, "a", caller=caller)).balance == QUEUE_PER_ACTOR
    assert await stage.host.deliver(bank, Deposit(f"d{QUEUE_PER_ACTOR}", "a", 1), caller=caller)


async def test_an_actor_with_a_fact_this_code_does_not_know_is_left_alone(stages: Stages) -> None:
    stage = await stages(bank)
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 1), caller=caller)
    space = await stage.host.space("main")
    (rows,) = await space.look(Query(TURN))
    before = rows[0]
    unknown = b'[{"type":"OfTomorrow","x":1}]'
    turn = (space.mint(TURN), before[1], 2, before[0], "d/d2", b"", b"null", unknown, None, before[9], 1, None)
    await append(space, TURN, [turn])
    await stage.crash()

    for _ in range(2):
        with pytest.raises(WaitsForCode) as waits:
            await stage.host.deliver(bank, Deposit("d3", "a", 1), caller=caller)
        assert waits.value.fact == "OfTomorrow"
    assert await stage.host.deliver(bank, Deposit("d1", "b", 1), caller=caller) == Accepted(1)


async def append(space: AuthorSpace, table: Table, rows: list[Row]) -> None:
    def body() -> Generator[Any, Any, Last[None]]:
        yield ()
        return Last((Append(table, rows),), None)

    assert isinstance(await space.transact(body), Done)


async def test_a_state_that_outgrew_a_row_still_decides_and_wakes_without_its_snapshot(
    stages: Stages, caplog: pytest.LogCaptureFixture
) -> None:
    module = make(snapshot_every=3)
    module.snapshot = huge
    stage = await stages(module)
    caller = stage.caller()
    for n in range(9):
        assert await stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=caller) == Accepted(n + 1)
    told = [one for one in caplog.records if "too large" in one.getMessage()]
    assert len(told) == 3  # tried when it is due, not at each fold
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 9
    assert not any(isinstance(row.fact, Balance) for row in await stage.host.history(module, "a", caller=caller))


def huge(account: Account) -> Balance:
    return Balance(replace(account, last="x" * MAX_ROW_BYTES))
