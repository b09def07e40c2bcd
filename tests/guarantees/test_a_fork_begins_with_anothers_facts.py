"""AW24 and promise 8: a fork carries a prefix of facts and their digest, and nothing else of its source."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import onefold
from onefold import Module
from onefold.host.audit import audit
from onefold.kernel.tables import TURN
from onefold.store.contract import Query
from onefold.terms.codec import digest
from onefold.terms.errors import BadArguments, KeyConflict, NotFound, TooLarge
from onefold.testing import Stage
from tests.guarantees import shop
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Account, Balance, Deposit, Deposited, PayOut, Provider, Released, Reserved, bank, make


async def grown(stage: Stage, count: int = 4, module: Any = bank) -> None:
    for n in range(count):
        await stage.host.deliver(module, Deposit(f"d{n}", "a", 10), caller=stage.caller())


async def facts(stage: Stage, key: str, module: Any = bank) -> list[Any]:
    return [row.fact for row in await stage.host.history(module, key, caller=stage.caller())]


async def written(stage: Stage, event: str) -> bytes:
    space = await stage.host.space("main")
    (rows,) = await space.look(Query(TURN, where=(("event", "=", event),)))
    return bytes(rows[0][TURN.at["facts"]])


async def test_a_fork_has_the_facts_the_state_and_a_life_of_its_own(stage: Stage) -> None:
    await grown(stage)
    caller = stage.caller()
    told = await stage.host.fork(bank, "a", "b", id="f1", upto=3, caller=caller)
    assert await facts(stage, "b") == [Deposited(10)] * 3
    assert told == digest(await written(stage, "d/f1")).hex()

    await stage.host.deliver(bank, Deposit("d0", "b", 1), caller=caller)
    await stage.crash()
    assert (await stage.host.read(bank, "b", caller=caller)).balance == 31
    assert (await stage.host.read(bank, "a", caller=caller)).balance == 40
    assert await audit(await stage.host.space("main")) == []


async def test_the_digest_is_that_of_the_facts_whoever_carries_them(stage: Stage) -> None:
    await grown(stage)
    caller = stage.caller()
    first = await stage.host.fork(bank, "a", "b", id="f1", upto=2, caller=caller)
    again = await stage.host.fork(bank, "b", "c", id="f2", caller=caller)
    more = await stage.host.fork(bank, "a", "d", id="f3", caller=caller)
    assert first == again != more


async def test_one_id_is_one_fork_whatever_the_source_has_become(stage: Stage) -> None:
    await grown(stage, 2)
    caller = stage.caller()
    both = await asyncio.gather(*(stage.host.fork(bank, "a", "b", id="f1", caller=caller) for _ in range(2)))
    await stage.host.deliver(bank, Deposit("d9", "a", 5), caller=caller)
    await stage.crash()
    assert {*both, await stage.host.fork(bank, "a", "b", id="f1", caller=caller)} == {both[0]}
    assert await facts(stage, "b") == [Deposited(10)] * 2
    with pytest.raises(KeyConflict):
        await stage.host.fork(bank, "a", "b", id="f1", upto=1, caller=caller)
    with pytest.raises(KeyConflict):
        await stage.host.deliver(bank, Deposit("f1", "b", 5), caller=caller)


async def test_a_target_with_a_history_is_refused_and_nothing_is_stored(stage: Stage) -> None:
    await grown(stage, 2)
    caller = stage.caller()
    for to in ("a", "b"):
        await stage.host.deliver(bank, PayOut("p", to, 900), caller=caller)  # a decline is a history, too
        with pytest.raises(BadArguments) as refused:
            await stage.host.fork(bank, "a", to, id="f1", caller=caller)
        assert "Nothing was forked. to: has a history already" in str(refused.value)
    await stage.host.fork(bank, "a", "c", id="f1", caller=caller)
    assert len(await facts(stage, "b")) == 0


async def test_no_fact_crosses_a_principal(stage: Stage) -> None:
    await grown(stage, 2)
    with pytest.raises(NotFound):
        await stage.host.fork(bank, "a", "b", id="f1", caller=stage.caller("other"))
    await stage.host.fork(bank, "a", "b", id="f1", caller=stage.caller())
    assert await stage.host.history(bank, "b", caller=stage.caller("other")) == []


@pytest.mark.parametrize("upto", [0, -1, 5, True])
async def test_facts_that_are_not_there_are_refused(stage: Stage, upto: int) -> None:
    await grown(stage)
    with pytest.raises(BadArguments) as refused:
        await stage.host.fork(bank, "a", "b", id="f1", upto=upto, caller=stage.caller())
    assert "upto: must be from 1 to 4" in str(refused.value)
    with pytest.raises(NotFound):
        await stage.host.fork(bank, "nobody", "b", id="f1", caller=stage.caller())


async def test_what_the_source_owes_is_not_owed_again_and_the_wake_is(stage: Stage, provider: Provider) -> None:
    caller = stage.caller()
    provider.failing = [ConnectionError("down")] * 2
    await grown(stage, 1)
    await stage.host.deliver(bank, PayOut("p1", "a", 4, minutes=60), caller=caller)
    await stage.host.fork(bank, "a", "b", id="f1", caller=caller)
    wake = await stage.host.alarm(bank, "b", caller=caller)
    assert wake == stage.clock.moment + timedelta(minutes=60)
    await stage.advance("59m")
    assert len(provider.paid) == 1
    await stage.crash()
    await stage.advance("2m")
    assert await facts(stage, "b") == [Deposited(10), Reserved("p1", 4, wake), Released("p1", "too late")]
    assert len(provider.paid) == 1


async def test_a_fork_killed_anywhere_is_whole_or_absent(stages: Stages, provider: Provider) -> None:
    stage = await stages(bank, provider.dedupes())
    caller = stage.caller()
    await grown(stage)
    for point in ("before-commit", "after-commit"):
        stage.kill_at(point)
        task = asyncio.create_task(stage.host.fork(bank, "a", f"b-{point}", id="f1", caller=caller))
        await stage.let_die()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        stage.live_on()
        await stage.open()
        assert len(await facts(stage, f"b-{point}")) in (0, 4)
        await stage.host.fork(bank, "a", f"b-{point}", id="f1", caller=caller)
        assert await facts(stage, f"b-{point}") == [Deposited(10)] * 4


async def test_a_prefix_behind_a_prune_is_refused_by_name_and_one_after_it_begins_with_the_snapshot(
    stages: Stages,
) -> None:
    module = make(snapshot_every=4)
    stage = await stages(module)
    caller = stage.caller()
    await grown(stage, 6, module)
    before = await stage.host.fork(module, "a", "b", id="f1", upto=2, caller=caller)
    begins = (await stage.host.prune(module, "a", caller=caller)).begins
    assert begins == 5
    with pytest.raises(BadArguments) as refused:
        await stage.host.fork(module, "a", "c", id="f2", upto=2, caller=caller)
    assert "behind a prune: the first fact that is kept is number 5" in str(refused.value)
    assert await stage.host.fork(module, "a", "b", id="f1", upto=2, caller=caller) == before
    await stage.host.fork(module, "a", "d", id="f3", upto=6, caller=caller)
    kinds = [type(fact) for fact in await facts(stage, "d", module)]
    assert kinds == [Balance, Deposited]
    assert (await stage.host.read(module, "d", caller=caller)).balance == 50


def wordy(snapshots: bool) -> Any:
    base = make(snapshot_every=3)
    return Module(
        "wordy",
        initial=Account(),
        key=lambda event: event.account,
        decide=shop.decide,
        evolve=_evolve,
        view=shop.view,
        snapshot=base.snapshot if snapshots else None,
        snapshot_every=1_000,
    )


def _evolve(account: Account, fact: shop.Fact) -> Account:
    return replace(shop.evolve(account, fact), last="")


async def test_a_prefix_too_large_for_a_row_is_carried_as_a_snapshot_or_refused(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onefold.kernel.fork.MAX_ROW_BYTES", 100)
    with_snapshot, without = wordy(True), wordy(False)
    stage = await stages(with_snapshot)
    await grown(stage, 6, with_snapshot)
    await stage.host.fork(with_snapshot, "a", "b", id="f1", caller=stage.caller())
    (only,) = await facts(stage, "b", with_snapshot)
    assert only.state.balance == 60
    bare = await stages(without, store_name="bare")
    await grown(bare, 6, without)
    with pytest.raises(TooLarge):
        await bare.host.fork(without, "a", "b", id="f1", caller=bare.caller())


async def test_a_fork_of_thousands_of_facts_begins_with_its_latest_snapshot(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onefold.kernel.fork.MAX_ROW_BYTES", 4_000)
    module = make(snapshot_every=50)
    stage = await stages(module)
    caller = stage.caller()
    await asyncio.gather(*(stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=caller) for n in range(620)))
    await stage.host.fork(module, "a", "b", id="f1", upto=600, caller=caller)
    (start, *rest) = await facts(stage, "b", module)
    assert isinstance(start, Balance)
    assert len(rest) < 50
    assert start.state.balance + len(rest) == (await stage.host.read(module, "b", caller=caller)).balance
    await stage.crash()
    for n in range(60):
        await stage.host.deliver(module, Deposit(f"e{n}", "b", 1), caller=caller)
    assert sum(isinstance(fact, Balance) for fact in await facts(stage, "b", module)) >= 2


async def test_app_and_its_blocking_twin_fork_alike() -> None:
    async with onefold.App(bank, store="memory:") as app:
        await app.deliver(bank, Deposit("d1", "a", 3))
        awaited = await app.fork(bank, "a", "b", id="f1")
        assert (await app.read(bank, "b")).balance == 3

    def blocked() -> str:
        with onefold.App(bank, store="memory:") as app:
            app.deliver(bank, Deposit("d1", "a", 3))
            return app.fork(bank, "a", "b", id="f1")

    assert await asyncio.to_thread(blocked) == awaited
