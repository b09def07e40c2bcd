"""Promises 1, 6 and 9: a wait ends when its run does, an approval is found, and a fault of any kind is counted."""

from __future__ import annotations

import asyncio
import errno
from datetime import datetime

import pytest
from pydantic import BaseModel

from onefold import Approved, Decision, Expired, Module, Rejected, Run, Step, actuator, port
from onefold.host.approvals import PAGE
from onefold.kernel.drain import LIMIT
from onefold.kernel.tables import OWED
from onefold.store.contract import Query
from onefold.terms.errors import DecideFailed
from tests.guarantees import shop
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Account, Deposit, Fact, PayOut, Reply, Sent, Transfer, bank

COMMITS = 8  # of the run below, and some more


async def look(step: Step) -> str:
    return "seen"


@actuator
async def looks(run: Run) -> str:
    """Look, sleep, look."""
    await run.step(look)()
    await run.sleep("5 seconds")
    return "done"


@pytest.mark.parametrize("hit", range(1, COMMITS))
async def test_a_wait_ends_with_its_run_though_the_answer_of_a_commit_was_lost(stages: Stages, hit: int) -> None:
    stage = await stages(looks)
    left = hit

    def fail(name: str) -> None:
        nonlocal left
        if name == "after-commit":
            left -= 1
            if left == 0:
                raise OSError(errno.EIO, "Input/output error")

    stage.failpoint = fail
    caller = stage.caller()
    run = (await stage.host.start("looks", {}, key="k", caller=caller)).receipt.run_id
    waiting = asyncio.create_task(stage.host.ended(run, caller=caller))
    await stage.advance("1 minute")
    stage.live_on()
    assert waiting.done(), (await stage.host.receipt(run, caller=caller)).status
    assert waiting.result().status == "done"


class Number(BaseModel):
    n: int


async def test_an_approval_behind_many_sleepers_is_in_the_list(stages: Stages) -> None:
    sleepers = PAGE + 3

    @actuator
    async def mixed(run: Run, number: Number) -> str:
        """Sleep, or ask."""
        if number.n < sleepers:
            await run.sleep("10 days")
            return "slept"
        match await run.wait_for_approval("boss", "ok?", notify="boss", timeout="10 days"):
            case Approved():
                return "yes"
            case Rejected() | Expired():
                return "no"

    stage = await stages(mixed)
    caller = stage.caller()
    for n in range(sleepers + 1):
        await stage.host.start("mixed", {"n": n}, caller=caller)
    await stage.settle()
    assert [one.name for one in await stage.host.approvals_list(caller=caller)] == ["boss"]


def nothing_there(step: Step) -> str:
    return str(next(iter(())))


async def test_a_plain_step_that_raises_stop_iteration_fails_like_any_other(stages: Stages) -> None:
    @actuator
    async def stops(run: Run) -> str:
        """Take the first of nothing."""
        return await run.step(nothing_there)()

    stage = await stages(stops)
    caller = stage.caller()
    run = (await stage.host.start("stops", {}, caller=caller)).receipt.run_id
    await stage.advance("1 hour")
    receipt = await stage.host.receipt(run, caller=caller)
    assert receipt.status == "failed"
    assert receipt.error is not None
    assert "StopIteration" in receipt.error.message


@pytest.mark.parametrize("kind", [asyncio.CancelledError, StopIteration])
async def test_a_send_that_ends_oddly_is_counted_and_backs_off(stages: Stages, kind: type[BaseException]) -> None:
    sent = 0

    def end() -> Sent:
        nonlocal sent
        sent += 1
        raise kind

    def plain(step: Step, body: Transfer) -> Sent:
        return end()

    async def soon(step: Step, body: Transfer) -> Sent:
        return end()

    transfer: port.Port[Transfer, Sent] = port.Port("transfer", "dedupes", plain if kind is StopIteration else soon)
    stage = await stages(bank, transfer)
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    await stage.host.deliver(bank, PayOut("p1", "a", 5, minutes=100_000), caller=caller)
    await stage.advance("1 hour")
    space = await stage.host.space("main")
    ((row,),) = await space.look(Query(OWED))
    assert row[OWED.at["tries"]] == sent < 20
    await stage.advance("4 hours")
    assert [item.kind for item in await stage.host.parked_list(caller=caller)] == ["owed"]


class Gone(BaseException):
    """What a library may raise, though it is no Exception: a test's own failure is such a one."""


STRANGE = pytest.mark.parametrize("strange", [Gone, asyncio.CancelledError, pytest.fail.Exception])


@STRANGE
async def test_who_sent_an_event_is_told_whatever_the_module_raises(
    stages: Stages, strange: type[BaseException]
) -> None:
    def decide(account: Account, event: Deposit, now: datetime) -> Decision[Fact, Reply]:
        if event.amount < 0:
            raise strange("no")
        return shop.decide(account, event, now)

    module = Module(
        "bank", initial=Account(), key=lambda event: event.account, decide=decide, evolve=shop.evolve, view=shop.view
    )
    stage = await stages(module)
    caller = stage.caller()
    sent = [
        stage.host.deliver(module, Deposit("d1", "a", -1), caller=caller),
        stage.host.deliver(module, Deposit("d2", "a", 1), caller=caller),
        stage.host.deliver(module, Deposit("d3", "b", 1), caller=caller),
    ]
    refused, *taken = await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), 60)
    assert isinstance(refused, DecideFailed)
    assert taken == [Accepted(1), Accepted(1)]


@STRANGE
@pytest.mark.parametrize("threaded", [False, True])
async def test_a_try_is_counted_whatever_the_port_raises(
    stages: Stages, strange: type[BaseException], threaded: bool
) -> None:
    """Uncounted it was sent again each second for ever, and nobody was told."""
    calls: list[str] = []

    @port.dedupes("transfer")  # type: ignore[arg-type]
    def plain(step: Step, body: Transfer) -> Sent:
        calls.append(step.key)
        raise strange("no")

    @port.dedupes("transfer")
    async def awaited(step: Step, body: Transfer) -> Sent:
        calls.append(step.key)
        raise strange("no")

    stage = await stages(bank, plain if threaded else awaited)
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    await stage.host.deliver(bank, PayOut("p1", "a", 5, minutes=100_000), caller=caller)
    await stage.advance("6 hours")
    (item,) = await stage.host.parked_list(caller=caller)
    assert item.kind == "owed"
    assert len(calls) == LIMIT
