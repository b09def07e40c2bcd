"""A forked run has what the steps before gave, and does the step and all after it anew, under keys of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

import onefold
from onefold import Approved, Expired, Rejected, Retry, Run, Step, actuator
from onefold.host.audit import audit
from onefold.terms.errors import BadArguments, KeyConflict, NotFound
from onefold.testing import Stage
from tests.guarantees.conftest import Stages

ACTS: list[tuple[str, str]] = []
FAILING: list[str] = []


class Order(BaseModel):
    order_id: str


class Signed(BaseModel):
    by: str


async def look_up(step: Step, order_id: str, mark: str) -> str:
    ACTS.append(("look_up", step.key))
    return f"{order_id}/{mark[:4]}"


async def pay(step: Step, what: str) -> str:
    ACTS.append(("pay", step.key))
    if FAILING:
        raise ConnectionError(FAILING.pop())
    return f"paid {what}"


async def count(step: Step, n: int) -> int:
    ACTS.append((f"count {n}", step.key))
    return n


@actuator(dedupe_by=["order_id"])
async def ship(run: Run, order: Order) -> list[Any]:
    """All kinds of acts."""
    found = await run.step(look_up)(order.order_id, str(run.uuid()) + str(run.random.random()) + str(run.now()))
    numbers = await asyncio.gather(*(run.step(count)(n) for n in range(3)))
    await run.sleep("1 minute")
    signed = await run.wait_for_event(Signed)
    said = ""
    match await run.wait_for_approval("boss", "pay?", notify="mailto:b@example.com", timeout="1 day"):
        case Approved(by=by):
            said = by[0]
        case Rejected() | Expired():
            return ["no"]
    paid = await run.step(pay, retry=Retry(attempts=2, first="1 second"))(found)
    last = await run.step(count)(9)
    return [found, list(numbers), signed.by, said, paid, last]


@actuator
async def nod(run: Run, order: Order) -> str:
    """No act at all."""
    return order.order_id


@pytest.fixture(autouse=True)
def clean() -> None:
    ACTS.clear()
    FAILING.clear()


@pytest.fixture
async def shop(stages: Stages) -> Stage:
    return await stages(ship, nod)


async def decide(stage: Stage, run: str, by: str) -> None:
    await stage.host.approvals_decide(run, "boss", approve=True, by=by, caller=stage.caller())
    await stage.advance("1m")


async def whole(stage: Stage) -> str:
    """A run that went to its end."""
    caller = stage.caller()
    run = (await stage.host.start("ship", {"order_id": "7"}, caller=caller)).receipt.run_id
    await stage.advance("2m")
    await stage.host.run_send(run, "Signed", {"by": "anna"}, caller=caller)
    await stage.settle()
    await decide(stage, run, "bert")
    assert (await stage.host.receipt(run, caller=caller)).status == "done"
    return run


async def result(stage: Stage, run: str) -> Any:
    return (await stage.host.receipt(run, caller=stage.caller())).to_json()["result"]


async def test_what_came_before_is_kept_and_the_step_runs_anew_under_a_new_key(shop: Stage) -> None:
    run = await whole(shop)
    before = await result(shop, run)
    keys = {key for _, key in ACTS}
    ACTS.clear()
    fork = (await shop.host.run_fork(run, "pay", caller=shop.caller())).run_id
    await shop.crash()
    await shop.advance("1m")
    assert await result(shop, fork) == before
    acts = list(dict.fromkeys(ACTS))  # one that the crash met half done is tried again, under its key
    assert [name for name, _ in acts] == ["pay", "count 9"]
    assert not keys & {key for _, key in ACTS}
    assert await result(shop, run) == before
    assert await audit(await shop.host.space("ship")) == []


async def test_waits_after_the_step_are_opened_and_asked_anew(shop: Stage) -> None:
    run = await whole(shop)
    ACTS.clear()
    caller = shop.caller()
    fork = (await shop.host.run_fork(run, "look_up", caller=caller)).run_id
    await shop.advance("2m")
    assert [name for name, _ in ACTS] == ["look_up", "count 0", "count 1", "count 2"]
    waits = (await shop.host.receipt(fork, caller=caller)).to_json()["waits"]
    assert [wait["kind"] for wait in waits] == ["event"]  # what the other run was sent is the other's
    await shop.host.run_send(fork, "Signed", {"by": "carl"}, caller=caller)
    await shop.settle()
    assert len(shop.said) == 2  # one for each run
    (open_one,) = await shop.host.approvals_list(caller=caller)
    assert open_one.run_id == fork
    await decide(shop, fork, "dora")
    assert (await result(shop, fork))[2:4] == ["carl", "dora"]
    third = (await shop.host.run_fork(fork, "pay", caller=caller)).run_id
    await shop.advance("1m")
    assert (await result(shop, third))[2:4] == ["carl", "dora"]


async def test_one_of_several_calls_is_named_by_its_path(shop: Stage) -> None:
    run = await whole(shop)
    caller = shop.caller()
    with pytest.raises(BadArguments) as refused:
        await shop.host.run_fork(run, "count", caller=caller)
    assert "was called 4 times; name one of" in str(refused.value)
    rows = await shop.host.run_journal(run, caller=caller)
    path = [row.path for row in rows if row.step == "count"][1]
    ACTS.clear()
    await shop.host.run_fork(run, path, caller=caller)
    await shop.advance("1m")
    assert sorted(name for name, _ in ACTS) == ["count 1", "count 2"]
    with pytest.raises(BadArguments) as refused:
        await shop.host.run_fork(run, "weigh", caller=caller)
    assert "is no step of this run; it has look_up, count" in str(refused.value)


async def test_a_run_without_a_step_says_so(shop: Stage) -> None:
    caller = shop.caller()
    run = (await shop.host.start("nod", {"order_id": "7"}, caller=caller, wait_ms=1000)).receipt.run_id
    with pytest.raises(BadArguments, match="is no step of this run; it has none yet"):
        await shop.host.run_fork(run, "weigh", caller=caller)


async def test_a_run_that_failed_goes_on_from_what_failed(shop: Stage) -> None:
    caller = shop.caller()
    FAILING.extend(["down"] * 4)
    run = (await shop.host.start("ship", {"order_id": "7"}, caller=caller)).receipt.run_id
    await shop.advance("2m")
    await shop.host.run_send(run, "Signed", {"by": "anna"}, caller=caller)
    await shop.settle()
    await decide(shop, run, "bert")
    assert (await shop.host.receipt(run, caller=caller)).status == "failed"
    await shop.host.run_retry(run, caller=caller)
    await shop.advance("1m")
    assert (await shop.host.receipt(run, caller=caller)).status == "failed"
    fork = (await shop.host.run_fork(run, "pay", caller=caller)).run_id
    await shop.advance("1m")
    assert (await result(shop, fork))[4] == "paid " + (await result(shop, fork))[0]
    later = (
        await shop.host.run_fork(
            fork, [r.path for r in await shop.host.run_journal(fork, caller=caller)][-1], caller=caller
        )
    ).run_id
    await shop.advance("1m")
    assert await result(shop, later) == await result(shop, fork)


async def test_one_key_is_one_fork_and_an_agreeing_run_that_goes_on_is_in_its_way(shop: Stage) -> None:
    run = await whole(shop)
    caller = shop.caller()
    both = await asyncio.gather(*(shop.host.run_fork(run, "pay", key="k", caller=caller) for _ in range(2)))
    assert both[0].run_id == both[1].run_id
    with pytest.raises(KeyConflict):
        await shop.host.run_fork(run, "look_up", key="k", caller=caller)
    with pytest.raises(KeyConflict):
        await shop.host.start("ship", {"order_id": "8"}, key="k", caller=caller)
    await shop.settle()
    await shop.host.run_fork(run, "look_up", caller=caller)
    with pytest.raises(BadArguments) as refused:
        await shop.host.run_fork(run, "look_up", caller=caller)
    assert "an unfinished run agrees with it in order_id; end that one first" in str(refused.value)


async def test_nobody_forks_the_run_of_another(shop: Stage) -> None:
    run = await whole(shop)
    for who in (shop.caller("other"), shop.caller("other", rights=("call",))):
        with pytest.raises(NotFound):
            await shop.host.run_fork(run, "pay", caller=who)
    with pytest.raises(NotFound):
        await shop.host.run_fork("run_nothing", "pay", caller=shop.caller())


@actuator
async def short(run: Run, order: Order) -> str:
    """One step."""
    return await run.step(pay)(order.order_id)


async def test_app_and_its_blocking_twin_fork_runs_alike() -> None:
    async with onefold.App(short, store="memory:") as app:
        receipt = await app.start(short, Order(order_id="1"))
        await receipt.result()
        fork = await app.runs.fork(receipt.run_id, "pay")
        assert await (await app.receipt(fork.run_id)).result() == "paid 1"

    def blocked() -> Any:
        with onefold.App(short, store="memory:") as app:
            receipt = app.start(short, Order(order_id="1"))
            receipt.result()
            return app.receipt(app.runs.fork(receipt.run_id, from_step="pay").run_id).result()

    assert await asyncio.to_thread(blocked) == "paid 1"
    assert len(ACTS) == 4
