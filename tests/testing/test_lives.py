"""A test kills its app wherever it likes, and what was accepted is still there."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from onefold import Run, actuator, blocking, testing
from onefold.errors import OutcomeUnknown
from onefold.testing import Durable
from tests.guarantees.shop import Accepted, Deposit, PayOut, Sent, bank
from tests.testing.programs import BIG, SMALL, START, count, fetch, transfer, trying
from tests.testing.refund import Refunded, pay_back, refund_order


def test_a_restart_loses_nothing(durable: Durable, tmp_path: Path) -> None:
    for app in (durable(refund_order), durable(refund_order, store=tmp_path)):
        app.stub(pay_back, returns="re_1")
        receipt = app.start(refund_order, BIG)
        app.restart()
        app.approve(receipt, "manager", by="manager")
        assert receipt.result() == Refunded(refund_id="re_1")
        app.restart()
        assert receipt.refresh().status == "done"


@pytest.mark.parametrize(
    "point, calls",
    [("step-started", 2), ("step-returned", 2), ("before-commit", 1), ("after-commit", 1), ("before-send", 1),
     ("after-send", 1), ("before-reply", 1)],
)  # fmt: skip
def test_it_can_be_killed_at_each_point(durable: Durable, point: str, calls: int) -> None:
    app = durable(refund_order)
    app.stub(pay_back, returns="re_1")
    app.crash_at(point)
    assert app.call(refund_order, SMALL, key="k") == Refunded(refund_id="re_1")
    assert [name.partition(" ")[0] for name in app.crashed] == [point]
    assert len(app.calls(pay_back)) == calls
    assert app.clock.now() == START + timedelta(seconds=5), "a process that is killed is away for five seconds"


def test_it_can_be_killed_in_one_step_of_several(durable: Durable) -> None:
    app = durable(trying)
    app.stub(fetch, returns="abc")
    app.crash_at("step-returned", step="count")
    assert app.call(trying, key="k") == 3
    assert app.crashed == ("step-returned of count",)
    assert (len(app.calls(fetch)), len(app.calls(count))) == (1, 2)


def test_a_point_that_there_is_not_is_refused(durable: Durable) -> None:
    app = durable(trying)
    with pytest.raises(ValueError, match="did you mean 'after-send'"):
        app.crash_at("after-sent")
    with pytest.raises(ValueError, match="of one step"):
        app.crash_at("after-send", step="fetch")


def test_a_cut_call_without_a_key_is_unknown(durable: Durable) -> None:
    app = durable(refund_order)
    app.crash_at("after-commit")
    with pytest.raises(OutcomeUnknown):
        app.start(refund_order, SMALL)
    assert len(app.runs.list().items) == 1


def test_a_cut_delivery_is_sent_again_and_counts_once(durable: Durable) -> None:
    app = durable(bank, transfer)
    app.crash_at("after-commit")
    assert app.deliver(bank, Deposit("d", "a", 100)) == Accepted(100)
    assert len(app.crashed) == 1
    assert app.read(bank, "a").balance == 100


def test_a_plain_function_is_killed_and_goes_on(durable: Durable) -> None:
    @actuator
    def plainly(run: blocking.Run) -> int:
        """The same without await."""
        name = run.step(fetch)("a")
        run.sleep("1 day")
        return run.step(count)(name)

    for replay in (None, "every-await"):
        app = durable(plainly, replay=replay)
        app.stub(fetch, returns="abc")
        app.crash_at("step-returned", step="fetch")
        receipt = app.start(plainly, key="k")
        app.clock.advance("2 days")
        assert receipt.result() == 3


def test_every_crash_dies_at_each_failpoint_once() -> None:
    died: list[tuple[str, ...]] = []
    for app in testing.every_crash(refund_order):
        app.stub(pay_back, returns="re_1")
        assert app.call(refund_order, SMALL, key="k") == Refunded(refund_id="re_1")
        app.settle()
        died.append(app.crashed)
    assert died[-1] == ()
    assert {len(one) for one in died[:-1]} == {1}
    points = {one[0].partition(" ")[0] for one in died[:-1]}
    assert points == {
        "step-started", "step-returned", "before-commit", "after-commit", "before-send", "after-send", "before-reply",
    }  # fmt: skip
    assert len(died) > 12


async def test_every_crash_works_in_a_folder_too(tmp_path: Path) -> None:
    passes = 0
    async for app in testing.every_crash(bank, store=tmp_path):
        passes += 1
        await app.deliver(bank, Deposit("d", "a", 100))
        assert (await app.read(bank, "a")).balance == 100
    assert passes == 4


async def test_every_crash_is_awaited_too() -> None:
    passes = 0
    async for app in testing.every_crash(bank, transfer):
        passes += 1
        app.stub(transfer, returns=Sent("ref"))
        await app.deliver(bank, Deposit("d", "a", 100))
        assert await app.deliver(bank, PayOut("p", "a", 30)) == Accepted(70)
        await app.settle()
        assert len({call.key for call in app.calls(transfer)}) == 1
        await app.clock.advance("10 seconds")
        assert (await app.read(bank, "a")).last == "ref"
    assert passes > 6


def refunded_once() -> None:
    for app in testing.every_crash(refund_order):
        paid: list[Decimal] = []
        app.stub(pay_back, calls=lambda step, bill, amount, paid=paid: f"re_{paid.append(amount)}")
        app.call(refund_order, SMALL, key="k")
        assert len(paid) == 1, "paid twice"


def test_a_provider_that_ignores_keys_is_caught_by_every_crash() -> None:
    """The lines that a refund's test needs find the fault they are for."""
    with pytest.raises(AssertionError, match="paid twice"):
        refunded_once()


def test_steps_side_by_side_and_a_plain_function_survive_every_crash() -> None:
    """Each step's effect under one key, the same answer, and a sleep that no crash makes longer."""

    @actuator
    async def aside(run: Run) -> list[int]:
        """Three steps at once, then an hour."""
        found = await asyncio.gather(*(run.step(count)("a" * n) for n in range(3)))
        await run.sleep("1 hour")
        return found

    @actuator
    def plainly(run: blocking.Run) -> list[int]:
        """The same, one after another, without await."""
        found = [run.step(count)("a" * n) for n in range(3)]
        run.sleep("1 hour")
        return found

    for program in (aside, plainly):
        for app in testing.every_crash(program):
            receipt = app.start(program, key="k")
            app.clock.advance("61 minutes")
            assert receipt.result() == [0, 1, 2]
            assert len({call.key for call in app.calls(count)}) == 3
            assert len(app.calls(count)) <= 3 + 3 * len(app.crashed)
