"""A run killed anywhere goes on where it was: each effect once, each row once, the same answer for the same key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import Actuator, Approved, Expired, Rejected, Run, Step, actuator
from onefold.testing import Stage
from tests.guarantees.conftest import Stages


class Order(BaseModel):
    order_id: str
    amount: int


class Paid(BaseModel):
    reference: str
    rows: int


class Bank:
    """A provider that honours keys and counts."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.paid: dict[str, int] = {}

    def actuator(self) -> Actuator[Order, Paid | str]:
        async def pay(step: Step, amount: int) -> str:
            self.calls.append(step.key)
            self.paid.setdefault(step.key, amount)
            return f"ref {amount}"

        async def greet(name: str) -> str:
            return f"hello {name}"

        @actuator(migrations=["CREATE TABLE paid (order_id TEXT PRIMARY KEY, reference TEXT)"])
        async def refund(run: Run, order: Order) -> Paid | str:
            """Pay back."""
            first, second = await asyncio.gather(run.step(greet)("a"), run.step(greet)("b"))
            assert (first, second) == ("hello a", "hello b")
            match await run.wait_for_approval("boss", "ok?", notify="boss", timeout="1 day"):
                case Rejected(reason=reason):
                    return reason
                case Expired():
                    return "nobody decided"
                case Approved():
                    pass
            reference = await run.step(pay)(order.amount)
            await run.sleep("1 minute")
            await run.db.execute("INSERT INTO paid VALUES (:id, :ref)", id=order.order_id, ref=reference)
            rows = await run.db.fetch("SELECT * FROM paid")
            return Paid(reference=reference, rows=len(rows))

        return refund


@pytest.fixture
def provider() -> Bank:
    return Bank()


ORDER = {"order_id": "7", "amount": 40}


async def whole(stage: Stage, key: str = "k") -> dict[str, Any]:
    """Start the run (again), approve it if it waits, and let it end."""
    caller = stage.caller()
    started = await stage.host.start("refund", ORDER, key=key, caller=caller)
    run = started.receipt.run_id
    await stage.advance("1s")
    if (await stage.host.receipt(run, caller=caller)).status == "waiting":
        await stage.host.approvals_decide(run, "boss", approve=True, by="boss", caller=caller)
    await stage.advance("10m")
    return (await stage.host.receipt(run, caller=caller)).to_json()


async def test_the_whole_of_it(stages: Stages, provider: Bank) -> None:
    stage = await stages(provider.actuator())
    ended = await whole(stage)

    assert ended["status"] == "done"
    assert ended["result"] == {"type": "Paid", "reference": "ref 40", "rows": 1}
    assert (await whole(stage))["result"] == ended["result"]
    assert list(provider.paid.values()) == [40]
    assert len([line for line in stage.said if "asks for approval" in line]) == 1


@pytest.mark.parametrize("point", ["before-commit", "after-commit", "before-send", "after-send", "step-returned"])
async def test_killed_at_any_point_it_pays_once(stages: Stages, point: str) -> None:
    hit = 0
    while True:
        hit += 1
        provider = Bank()
        stage = await stages(provider.actuator(), store_name=f"{point} {hit}")
        met = counting(stage, point, hit)
        attempt = asyncio.ensure_future(whole(stage))
        await dies_or_ends(stage, attempt)
        stage.live_on()
        await stage.open()
        ended = await whole(stage)

        assert ended["status"] == "done"
        assert ended["result"] == {"type": "Paid", "reference": "ref 40", "rows": 1}
        assert list(provider.paid.values()) == [40]
        assert len(set(provider.calls)) == 1
        await stage.close()
        if met() < hit:
            break
    assert hit > 3


async def test_killed_again_and_again_it_still_ends(stages: Stages, provider: Bank) -> None:
    stage = await stages(provider.actuator())
    lives = 0
    while lives < 30:
        lives += 1
        met = counting(stage, "after-commit", 4)
        attempt = asyncio.ensure_future(whole(stage))
        await dies_or_ends(stage, attempt)
        stage.live_on()
        await stage.open()
        if met() < 4:
            break
    ended = await whole(stage)

    assert lives > 2
    assert ended["status"] == "done"
    assert list(provider.paid.values()) == [40]


async def dies_or_ends(stage: Stage, attempt: asyncio.Future[Any]) -> None:
    """Until the attempt ended or a kill was met, then the process is gone."""
    while not (attempt.done() or stage.killed):
        await stage.turns(1)
    attempt.cancel()
    await asyncio.gather(attempt, return_exceptions=True)
    await stage.let_die()


def counting(stage: Stage, point: str, hit: int) -> Callable[[], int]:
    """Kill at the `hit`-th time; how often the point was met."""
    met = 0
    stage.kill_at(point, hit=hit)
    kill = stage.failpoint

    def fail(name: str) -> None:
        nonlocal met
        met += name == point
        kill(name)

    stage.failpoint = fail
    return lambda: met
