"""A prune takes facts behind the latest snapshot, and nothing else: ids, replies, conflicts, owed keys, numbers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onefold import Module
from onefold.host.modules import History
from onefold.kernel.tables import SENT, TURN
from onefold.node import sweeping, waking
from onefold.node.owning import Guard
from onefold.store.contract import Query, Row
from onefold.terms.errors import KeyConflict, Undeclared
from onefold.testing import Stage
from tests.guarantees import shop
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Account, Balance, Declined, Deposit, PayOut, Provider, make

EVERY = 5
AnyModule = Module[Any, Any, Any, Any, Any]


async def filled(stage: Stage, module: AnyModule, deposits: int = 13, key: str = "a") -> list[Any]:
    """Deposits of 1 under d0, d1, …; their replies."""
    caller = stage.caller()
    return [await stage.host.deliver(module, Deposit(f"d{n}", key, 1), caller=caller) for n in range(deposits)]


async def turns(stage: Stage) -> list[Row]:
    (rows,) = await (await stage.host.space("main")).look(Query(TURN, order=("n",)))
    return list(rows)


def without_facts(rows: list[Row]) -> list[Row]:
    at = TURN.at["facts"]
    return [(*row[:at], *row[at + 1 :]) for row in rows]


async def history(stage: Stage, module: AnyModule, key: str = "a") -> History:
    return await stage.host.history(module, key, caller=stage.caller())


async def test_facts_behind_the_latest_snapshot_go_and_the_state_stays(stages: Stages) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    await filled(stage, module)
    before = await history(stage, module)
    taken = await stage.host.prune(module, "a", caller=stage.caller())

    snapshots = [row.seq for row in before if isinstance(row.fact, Balance)]
    assert (taken.facts, taken.begins) == (snapshots[-1] - 1, snapshots[-1])
    kept = await history(stage, module)
    assert kept == before[snapshots[-1] - 1 :]
    assert kept.begins == snapshots[-1]
    assert isinstance(kept[0].fact, Balance)
    assert (await stage.host.read(module, "a", caller=stage.caller())).balance == 13
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=stage.caller())).balance == 13
    assert await stage.host.deliver(module, Deposit("next", "a", 1), caller=stage.caller()) == Accepted(14)


async def test_nothing_of_a_turn_goes_but_its_facts(stages: Stages) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    await filled(stage, module)
    before = await turns(stage)
    await stage.host.prune(module, "a", caller=stage.caller())
    after = await turns(stage)
    assert after != before
    assert without_facts(after) == without_facts(before)


async def test_every_repeat_after_a_prune_gets_the_first_reply_and_folds_nothing(stages: Stages) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    caller = stage.caller()
    declined = await stage.host.deliver(module, PayOut("p0", "a", 50), caller=caller)
    replies = await filled(stage, module)
    await stage.host.prune(module, "a", caller=caller)
    for restart in (False, True):
        if restart:
            await stage.crash()
        assert await filled(stage, module) == replies
        assert await stage.host.deliver(module, PayOut("p0", "a", 50), caller=caller) == declined == Declined(50)
        with pytest.raises(KeyConflict):
            await stage.host.deliver(module, Deposit("d0", "a", 2), caller=caller)
        assert (await stage.host.read(module, "a", caller=caller)).balance == 13


async def test_an_owed_key_that_a_module_named_is_never_used_for_other_bytes(
    stages: Stages, provider: Provider
) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module, provider.dedupes())
    caller = stage.caller()
    await filled(stage, module)
    await stage.host.deliver(module, PayOut("p1", "a", 2, key="rent"), caller=caller)
    await stage.settle()
    for n in range(13, 20):
        await stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=caller)
    await stage.host.prune(module, "a", caller=caller)
    await stage.crash()
    with pytest.raises(KeyConflict):
        await stage.host.deliver(module, PayOut("p2", "a", 3, key="rent"), caller=caller)
    (sent,) = await (await stage.host.space("main")).look(Query(SENT))
    assert [row[1] for row in sent] == ["k/rent"]
    assert len(provider.calls) == 1


async def test_a_second_prune_takes_only_what_came_since(stages: Stages) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    caller = stage.caller()
    await filled(stage, module, 13)
    first = await stage.host.prune(module, "a", caller=caller)
    assert (await stage.host.prune(module, "a", caller=caller)).facts == 0
    await filled(stage, module, 31)
    second = await stage.host.prune(module, "a", caller=caller)
    assert second.facts == second.begins - first.begins > 0
    assert (await history(stage, module))[0].seq == second.begins
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 31


async def test_a_history_of_thousands_is_pruned_whole(stages: Stages) -> None:
    module = make(snapshot_every=2_500)
    stage = await stages(module)
    caller = stage.caller()
    for part in range(0, 3_000, 500):
        some = [Deposit(f"d{n}", "a", 1) for n in range(part, part + 500)]
        await asyncio.gather(*(stage.host.deliver(module, one, caller=caller) for one in some))
    taken = await stage.host.prune(module, "a", caller=caller)
    assert (taken.facts, taken.begins) == (2_500, 2_501)
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 3_000
    assert await stage.host.deliver(module, Deposit("d0", "a", 1), caller=caller) == Accepted(1)


@pytest.mark.parametrize("hit", range(1, 5))
async def test_a_prune_cut_off_anywhere_leaves_a_whole_state_and_is_finished_by_the_next(
    stages: Stages, hit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onefold.node.waking.SLICE", 3)
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    caller = stage.caller()
    await filled(stage, module)
    stage.kill_at("before-commit", hit=hit)
    pruning = asyncio.create_task(stage.host.prune(module, "a", caller=caller))
    await stage.let_die()
    assert stage.killed
    assert not pruning.done()
    pruning.cancel()
    stage.live_on()
    await stage.open()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 13
    left = await history(stage, module)
    assert [row.seq for row in left] == list(range(left.begins, left.begins + len(left)))  # no fact is missing inside
    assert left.begins == 1 or isinstance(left[0].fact, Balance)
    page = await stage.host.facts("bank", "a", after=2, limit=100, caller=caller)
    assert [item["seq"] for item in page.items] == [row.seq for row in left if row.seq > 2]
    await filled(stage, module, 20)
    taken = await stage.host.prune(module, "a", caller=caller)
    assert (await history(stage, module))[0].seq == taken.begins
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 20


async def test_folds_beside_a_prune_lose_nothing(stages: Stages) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    caller = stage.caller()
    await filled(stage, module)
    both = await asyncio.gather(
        stage.host.prune(module, "a", caller=caller),
        *(stage.host.deliver(module, Deposit(f"e{n}", "a", 1), caller=caller) for n in range(40)),
        stage.host.prune(module, "a", caller=caller),
    )
    assert sorted(one.balance for one in both[1:-1]) == list(range(14, 54))
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 53


async def test_what_a_prune_left_is_read_by_code_that_makes_no_snapshots(stages: Stages) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    caller = stage.caller()
    await filled(stage, module)
    await stage.host.prune(module, "a", caller=caller)
    plain: AnyModule = Module(
        "bank",
        initial=Account(),
        key=lambda event: event.account,
        decide=shop.decide,
        evolve=shop.evolve,
        view=shop.view,
    )
    await stage.close()
    stage.parts = (plain,)
    await stage.open()
    assert (await stage.host.read(plain, "a", caller=caller)).balance == 13
    with pytest.raises(Undeclared):
        await stage.host.prune(plain, "a", caller=caller)


async def test_an_actor_without_a_snapshot_yet_loses_nothing(stages: Stages) -> None:
    module = make()
    stage = await stages(module)
    caller = stage.caller()
    await filled(stage, module)
    assert (await stage.host.prune(module, "a", caller=caller)).facts == 0
    assert (await stage.host.prune(module, "nobody", caller=caller)).facts == 0
    assert len(await history(stage, module)) == 13


async def test_a_prune_reaches_only_the_callers_own_actor(stages: Stages) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    for who in ("anna", "bert"):
        for n in range(13):
            await stage.host.deliver(module, Deposit(f"d{n}", "a", 1), caller=stage.caller(who))
    await stage.host.prune(module, "a", caller=stage.caller("anna"))
    lengths = [len(await stage.host.history(module, "a", caller=stage.caller(who))) for who in ("anna", "bert")]
    assert lengths[0] < lengths[1] == 13 + 2


async def test_a_prune_that_was_overtaken_by_another_brings_nothing_back(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    caller = stage.caller()
    await filled(stage, module, 8)
    slow, met = sweeping.committed, asyncio.Event()
    gate = asyncio.Event()

    async def late(space: Any, guard: Guard, writes: Any, what: str) -> None:
        if not met.is_set():
            met.set()
            await gate.wait()
        await slow(space, guard, writes, what)

    monkeypatch.setattr(waking, "committed", late)
    first = asyncio.ensure_future(stage.host.prune(module, "a", caller=caller))
    await met.wait()
    await filled(stage, module, 20)
    second = await stage.host.prune(module, "a", caller=caller)
    gate.set()
    await first
    kept = await history(stage, module)
    assert kept.begins == second.begins
    assert [row.seq for row in kept] == list(range(kept.begins, kept.begins + len(kept)))
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=caller)).balance == 20


async def test_a_history_is_read_from_where_it_begins_and_in_pages(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onefold.host.modules.HISTORY", 4)
    module = make(snapshot_every=EVERY)
    stage = await stages(module)
    caller = stage.caller()
    await filled(stage, module, 30)
    whole = await history(stage, module)
    for after in range(len(whole) + 2):
        told = await stage.host.history(module, "a", after=after, caller=caller)
        assert list(told) == whole[after:]
    await stage.host.prune(module, "a", caller=caller)
    space = await stage.host.space("main")
    look, read = space.look, [0]

    async def counted(*queries: Query) -> Any:
        answers = await look(*queries)
        read[0] += sum(len(rows) for query, rows in zip(queries, answers, strict=True) if query.table is TURN)
        return answers

    monkeypatch.setattr(space, "look", counted)
    assert len(await history(stage, module)) <= EVERY + 1
    assert read[0] <= 3 * 4
