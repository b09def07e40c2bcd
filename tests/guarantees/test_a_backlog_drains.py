"""Promise 9: when faults stop, all that piled up is folded, sent, rung and ended, unasked, and nothing of it twice."""

from __future__ import annotations

import asyncio
import errno
import random

import pytest

from onefold import Run, Step, actuator
from onefold.kernel.tables import ALARM, OWED
from onefold.store.contract import Query
from onefold.terms.errors import OutcomeUnknown, StoreUnavailable
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Deposit, PaidOut, PayOut, Provider, bank

ACTORS = 12


@actuator
async def errand(run: Run) -> str:
    """Step, sleep, step. Its steps are tried five times, for a quarter of a minute."""
    await run.step(step_of_it)("one")
    await run.sleep("10 minutes")
    return await run.step(step_of_it)("two")


CALLS: list[tuple[str, int]] = []
DOWN = [True]


async def step_of_it(step: Step, name: str) -> str:
    CALLS.append((step.key, step.attempt))
    if DOWN[0]:
        raise ConnectionError("down")
    return name


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CALLS.clear()
    DOWN[0] = True


async def told(stage: Stage, event: Deposit | PayOut) -> None:
    for _ in range(200):
        try:
            await stage.host.deliver(bank, event, caller=stage.caller())
            return
        except (OutcomeUnknown, StoreUnavailable):
            continue
    raise AssertionError("never told")


async def test_when_faults_stop_what_piled_up_is_done_and_nothing_twice(stages: Stages, provider: Provider) -> None:
    stage = await stages(bank, errand, provider.dedupes(), settings={"node": {"capacity": 4}})
    chance = random.Random(3)

    def tired(point: str) -> None:
        if point in ("statement", "before-commit", "after-commit") and chance.random() < 0.05:
            raise OSError(errno.EIO, "Input/output error")

    provider.failing = [ConnectionError("down")] * 8
    provider.lose_answers = 8
    stage.failpoint = tired
    for n in range(ACTORS):
        await told(stage, Deposit("d1", f"a{n}", 100))
    await asyncio.gather(
        *(told(stage, PayOut(f"p{m}", f"a{n}", m, minutes=100_000)) for n in range(ACTORS) for m in (1, 2))
    )
    stage.live_on()
    runs = [(await stage.host.start("errand", {}, key=f"k{n}", caller=stage.caller())).receipt.run_id for n in range(4)]
    stage.failpoint = tired
    await stage.advance("5s")
    stage.live_on()
    await stage.crash()

    DOWN[0] = False
    await stage.advance("3 hours")

    for n in range(ACTORS):
        facts = [row.fact for row in await stage.host.history(bank, f"a{n}", caller=stage.caller())]
        assert sorted(fact.key for fact in facts if isinstance(fact, PaidOut)) == ["p1", "p2"]
    assert sorted(provider.paid.values()) == [1] * ACTORS + [2] * ACTORS
    receipts = [await stage.host.receipt(run, caller=stage.caller()) for run in runs]
    assert [receipt.to_json().get("result") for receipt in receipts] == ["two"] * len(runs), receipts
    for name in ("main", "errand"):
        space = await stage.host.space(name)
        assert (await space.look(Query(OWED)))[0] == []
    (alarms,) = await (await stage.host.space("main")).look(Query(ALARM))
    assert all(row[ALARM.at["at"]] > stage.clock.now() for row in alarms)
    assert await stage.host.parked_list(caller=stage.caller()) == []
