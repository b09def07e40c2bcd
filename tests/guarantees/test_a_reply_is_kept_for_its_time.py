"""Replies have a retention of their own: after it a repeat is told that it was done, and folds nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onefold.host.driver import BEAT_MS
from onefold.host.sweep import Swept
from onefold.kernel.tables import SWEPT, TURN
from onefold.store.contract import Query
from onefold.terms.errors import AlreadyDone, BadArguments, Forbidden, KeyConflict
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Declined, Deposit, PayOut, Provider, bank

DAY_MS = 86_400_000


async def passes(stage: Stage, ms: int) -> None:
    """Let time pass while nothing is open."""
    await stage.close()
    stage.clock.step_to(stage.clock.now() + ms)
    await stage.open()
    await stage.settle()


async def put(stage: Stage, id: str, amount: int = 1) -> Any:
    return await stage.host.deliver(bank, Deposit(id, "a", amount), caller=stage.caller())


async def replies(stage: Stage) -> int:
    (rows,) = await (await stage.host.space("main")).look(Query(TURN))
    return sum(row[TURN.at["reply"]] is not None for row in rows)


async def test_a_late_repeat_is_told_that_it_was_done(stages: Stages) -> None:
    stage = await stages(bank)
    caller = stage.caller()
    await put(stage, "d1", 5)
    assert await stage.host.deliver(bank, PayOut("p1", "a", 50), caller=caller) == Declined(45)
    await passes(stage, DAY_MS)
    await put(stage, "d2", 5)
    assert await stage.host.sweep(replies=DAY_MS, caller=caller) == Swept(replies=2)
    for restart in (False, True):
        if restart:
            await stage.crash()
        for event in (Deposit("d1", "a", 5), PayOut("p1", "a", 50)):
            with pytest.raises(AlreadyDone) as told:
                await stage.host.deliver(bank, event, caller=caller)
            assert told.value.id == event.id
        with pytest.raises(KeyConflict):
            await put(stage, "d1", 6)
        assert await put(stage, "d2", 5) == Accepted(10)
        assert (await stage.host.read(bank, "a", caller=caller)).balance == 10
    raw = b'{"type":"Deposit","id":"d1","account":"a","amount":5}'
    with pytest.raises(AlreadyDone):
        await stage.host.deliver_raw("bank", raw, caller=caller)


async def test_a_dry_run_counts_and_takes_nothing(stages: Stages) -> None:
    stage = await stages(bank)
    await asyncio.gather(*(put(stage, f"d{n}") for n in range(800)))
    await passes(stage, DAY_MS)
    caller = stage.caller()
    assert await stage.host.sweep(replies=DAY_MS, dry_run=True, caller=caller) == Swept(replies=800)
    assert await replies(stage) == 800
    assert await stage.host.sweep(replies=DAY_MS + 1, caller=caller) == Swept()
    assert await stage.host.sweep(replies=DAY_MS, caller=caller) == Swept(replies=800)
    assert await replies(stage) == 0
    assert await stage.host.sweep(replies=DAY_MS, dry_run=True, caller=caller) == Swept()


async def test_the_settings_sweep_at_the_beat_and_without_them_nothing_is_swept(stages: Stages) -> None:
    stage = await stages(bank, settings={"retention": {"replies": "1 day"}})
    kept = await stages(bank, store_name="other")
    for one in (stage, kept):
        await put(one, "d1")
        await passes(one, DAY_MS)
        await put(one, "d2")
        await one.advance(f"{2 * BEAT_MS} ms")
    assert (await replies(stage), await replies(kept)) == (1, 2)
    with pytest.raises(BadArguments):
        await kept.host.sweep(caller=kept.caller())
    assert await stage.host.sweep(caller=stage.caller()) == Swept()


async def test_folds_and_answers_beside_a_sweep_are_what_they_are_without_one(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank, provider.dedupes())
    await asyncio.gather(*(put(stage, f"d{n}") for n in range(600)))
    await passes(stage, DAY_MS)
    caller = stage.caller()
    pays = [stage.host.deliver(bank, PayOut(f"p{n}", "a", 1), caller=caller) for n in range(40)]
    swept, *replies_ = await asyncio.gather(stage.host.sweep(replies=DAY_MS, caller=caller), *pays)
    await stage.settle()
    assert swept == Swept(replies=600)
    assert sorted(reply.balance for reply in replies_) == list(range(560, 600))
    assert len(provider.calls) == 40
    assert await stage.host.deliver(bank, PayOut("p0", "a", 1), caller=caller) == replies_[0]


async def test_only_who_operates_may_sweep(stages: Stages) -> None:
    stage = await stages(bank)
    with pytest.raises(Forbidden):
        await stage.host.sweep(replies=DAY_MS, caller=stage.caller(rights=("call", "read")))


async def test_two_sweeps_at_once_take_the_same_and_neither_moves_the_other_back(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onefold.node.sweeping.LOOK", 8)
    stage = await stages(bank)
    await asyncio.gather(*(put(stage, f"d{n}") for n in range(60)))
    await passes(stage, DAY_MS)
    caller = stage.caller()
    both = await asyncio.gather(*(stage.host.sweep(replies=DAY_MS, caller=caller) for _ in range(3)))
    assert 60 <= sum(one.replies for one in both) <= 180
    assert await replies(stage) == 0
    (swept,) = await (await stage.host.space("main")).look(Query(SWEPT))
    assert [row[0] for row in swept] == ["replies"]
    assert await stage.host.sweep(replies=DAY_MS, dry_run=True, caller=caller) == Swept()
    await put(stage, "last")
    await passes(stage, DAY_MS)
    assert await stage.host.sweep(replies=DAY_MS, caller=caller) == Swept(replies=1)
