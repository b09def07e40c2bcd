"""Invariants 2 and 9: nothing from outside is in a fold, and every id in it comes from what arrived."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onefold.kernel.tables import TURN
from onefold.store.contract import Query
from onefold.terms.instant import moment
from onefold.testing import Stage
from onefold.testing.host_suite.vault import VAULT, Act, Courier, decide, evolve
from tests.guarantees.conftest import Stages

EVENTS = [Act(str(n), add=(n * 7) % 5 - 2, owe=("=", f"k{n}") if n % 4 == 0 else (), wake=500 * n) for n in range(24)]


async def lived(stage: Stage, *, crash: bool = False) -> None:
    for n, event in enumerate(EVENTS):
        await stage.host.deliver(VAULT, event, caller=stage.caller())
        if n % 5 == 4:
            await stage.advance("1s")
        if crash and n % 7 == 6:
            await stage.crash()
    await stage.advance("1m")


async def turns(stage: Stage) -> list[tuple[str, int, list[Any]]]:
    """Event, instant and facts of each turn, in order."""
    (rows,) = await (await stage.host.space("main")).look(Query(TURN, order=("n",)))
    at = TURN.at
    return [
        (str(row[at["event"]]), int(row[at["at"]]), VAULT.codecs.fact.decode_many(row[at["facts"]])) for row in rows
    ]


@pytest.mark.parametrize("crash", [False, True])
async def test_a_fold_decided_again_at_its_instant_decides_the_same(stages: Stages, crash: bool) -> None:
    stage = await stages(VAULT, Courier().dedupes())
    await lived(stage, crash=crash)
    by_id = {f"d/{event.id}": event for event in EVENTS}
    state = VAULT.initial
    for event, at, facts in await turns(stage):
        if event in by_id:
            assert list(decide(state, by_id[event], moment(at)).facts) == facts
        for fact in facts:
            state = evolve(state, fact)
    assert await stage.host.read(VAULT, "a", caller=stage.caller()) == state


async def test_no_port_is_called_before_the_commit_of_what_owes_it(stages: Stages) -> None:
    courier = Courier()
    stage = await stages(VAULT, courier.dedupes())
    order: list[str] = []
    stage.failpoint = lambda point: order.append(point) if point in ("before-commit", "after-commit") else None
    courier.hook = lambda step: order.append("sent")
    await asyncio.gather(*(stage.host.deliver(VAULT, Act(str(n), owe=("=",)), caller=stage.caller()) for n in range(3)))
    await stage.settle()
    assert order[:3] == ["before-commit", "after-commit", "sent"]  # one commit for all three
    assert order.count("sent") == 3


async def test_the_same_input_gives_the_same_ids_and_keys_whatever_the_chance_and_the_tries(stages: Stages) -> None:
    seen: list[Any] = []
    for seed, failures in ((1, 0), (2, 3)):
        courier = Courier()
        courier.down(failures)
        stage = await stages(VAULT, courier.dedupes(), store_name=f"store {seed}", seed=seed)
        await lived(stage)
        ids = [event for event, _, _ in await turns(stage) if not event.startswith("a/")]
        seen.append((sorted(ids), courier.keys))
        await stage.close()
    assert seen[0] == seen[1]


async def test_the_id_of_an_answer_is_the_key_that_was_owed(stages: Stages) -> None:
    stage = await stages(VAULT, Courier().dedupes())
    await stage.host.deliver(VAULT, Act("1", owe=("=", "rent")), caller=stage.caller())
    await stage.settle()
    assert sorted(event for event, _, _ in await turns(stage)) == ["d/1", "o/e/1", "o/k/rent"]
