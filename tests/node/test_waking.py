"""An actor wakes from its latest snapshot: what is read does not grow with its history."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from onefold.kernel.rebuild import GROWTH, PAGE
from onefold.kernel.tables import TURN
from onefold.store.contract import Query
from onefold.terms.ids import ActorId
from onefold.testing import Stage, staged
from tests.contracts.backends import store_of
from tests.guarantees.shop import Declined, Deposit, PayOut, make

AT = ActorId("bank", None, "a")


async def turns_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many turns are read from the store to wake the actor."""
    node = stage.host._core.node
    node.evict(AT)
    space = await stage.host.space("main")
    look, read = space.look, [0]

    async def counted(*queries: Query) -> Any:
        answers = await look(*queries)
        read[0] += sum(len(rows) for query, rows in zip(queries, answers, strict=True) if query.table is TURN)
        return answers

    with monkeypatch.context() as patch:
        patch.setattr(space, "look", counted)
        await node.activate(AT)
    return read[0]


async def grow(stage: Stage, module: Any, name: str, turns: int) -> None:
    for part in range(0, turns, 500):
        some = [Deposit(f"{name}{n}", "a", 1) for n in range(part, min(part + 500, turns))]
        await asyncio.gather(*(stage.host.deliver(module, one, caller=stage.caller()) for one in some))


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_wake_reads_no_more_of_a_long_history_than_of_a_short_one(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = make(snapshot_every=100)
    async with staged(module, store=store_of(kind, tmp_path)) as stage:
        read = []
        for round_ in range(3):
            await grow(stage, module, f"r{round_}-", 1_000)
            read.append(await turns_read(stage, monkeypatch))
        assert max(read) <= PAGE
        assert (await stage.host.read(module, "a", caller=stage.caller())).balance == 3_000


async def test_a_history_without_a_snapshot_is_read_once_and_not_again_at_each_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = make(snapshot_every=100_000)
    async with staged(module) as stage:
        await grow(stage, module, "d", 2_500)
        assert PAGE * (1 + GROWTH) < 2_500  # three looks
        assert await turns_read(stage, monkeypatch) == 2_500


async def test_an_actor_that_mostly_declines_wakes_from_a_snapshot_too(monkeypatch: pytest.MonkeyPatch) -> None:
    module = make(snapshot_every=50)
    async with staged(module) as stage:
        caller = stage.caller()
        for name in ("before", "after"):
            asked = [PayOut(f"{name}{n}", "a", 100) for n in range(900)]
            assert await stage.host.deliver(module, asked[0], caller=caller) == Declined(
                100 if name == "before" else 99
            )
            await asyncio.gather(*(stage.host.deliver(module, one, caller=caller) for one in asked))
            assert await turns_read(stage, monkeypatch) <= PAGE
            await stage.host.deliver(module, Deposit(name, "a", 1), caller=caller)
        assert (await stage.host.read(module, "a", caller=caller)).balance == 2
        assert await stage.host.deliver(module, PayOut("before5", "a", 100), caller=caller) == Declined(100)


async def test_a_fold_runs_no_more_statements_for_a_window_a_snapshot_or_a_long_history(tmp_path: Path) -> None:
    told: dict[str, list[int]] = {}
    for name, module in (("plain", make(10_000)), ("snapshots", make(50)), ("window", make(10_000))):
        module.ids_for = 86_400_000 if name == "window" else None
        async with staged(module, store=tmp_path / name) as stage:
            run = [0]

            def count(point: str, run: list[int] = run) -> None:
                run[0] += point == "statement"

            for turns in (3, 400):
                await grow(stage, module, f"d{turns}-", turns)
                stage.failpoint = count
                for repeat in (False, True):
                    run[0] = 0
                    id = f"d{turns}-1" if repeat else f"last-{turns}"
                    await stage.host.deliver(module, Deposit(id, "a", 1), caller=stage.caller())
                    told.setdefault(name, []).append(run[0])
                stage.live_on()
    assert told["plain"] == told["window"] == told["snapshots"]
    assert told["plain"][:2] == told["plain"][2:]
