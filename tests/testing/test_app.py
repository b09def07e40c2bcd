"""The app under test is the real one: its clock and its world are in the test's hands."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from onefold import Approved, Expired, Owed, Rejected, Run, Step, actuator, testing
from onefold.errors import KeyConflict, NotFound, RunFailed
from onefold.testing import Durable, Stuck, VirtualClock
from tests.guarantees.shop import Accepted, Declined, Deposit, PayOut, Sent, Transfer, bank
from tests.testing.programs import BIG, SMALL, START, Go, count, fetch, transfer, trying, waiting
from tests.testing.refund import Declined as Refused
from tests.testing.refund import Refunded, pay_back, refund_order

# --- the clock -------------------------------------------------------------------------------------------


def test_three_days_pass_in_milliseconds(durable: Durable, monkeypatch: pytest.MonkeyPatch) -> None:
    app = durable(waiting)
    steps, step_to = [0], VirtualClock.step_to

    def counted(clock: VirtualClock, at: int) -> None:
        steps[0] += 1
        step_to(clock, at)

    monkeypatch.setattr(VirtualClock, "step_to", counted)
    receipt = app.start(waiting)
    assert app.clock.now() == START
    app.clock.advance("3 days")
    assert app.clock.now() == START + timedelta(days=3)
    receipt.send(Go(how="yes"))
    assert receipt.result() == "yes"
    assert 0 < steps[0] < 100, (
        "it stops where something is due; the beats of three days are thousands, and took eight seconds"
    )


def test_advance_to_stops_at_the_instant_and_never_goes_back(durable: Durable) -> None:
    app = durable(waiting)
    receipt = app.start(waiting)
    app.clock.advance_to(START + timedelta(days=3) - timedelta(milliseconds=1))
    assert [wait.kind for wait in receipt.refresh().waits] == ["sleep"]
    app.clock.advance_to(START + timedelta(days=3))
    assert [wait.kind for wait in receipt.refresh().waits] == ["event"]
    app.clock.advance_to(START)
    assert app.clock.now() == START + timedelta(days=3)
    app.clock.advance(timedelta(days=1))
    assert receipt.result() == "too late"


def test_a_modules_wake_rings_at_its_instant(durable: Durable) -> None:
    app = durable(bank, transfer)
    app.stub(transfer, raises=TimeoutError("no answer"))
    assert app.deliver(bank, Deposit("d", "a", 100)) == Accepted(100)
    assert app.deliver(bank, PayOut("p", "a", 30, minutes=60)) == Accepted(70)
    app.clock.advance("59 minutes")
    assert app.read(bank, "a").balance == 70
    app.clock.advance("1 minute")
    assert app.read(bank, "a").balance == 100
    assert [row.at for row in app.history(bank, "a")][-1] == START + timedelta(hours=1)


# --- a call that cannot be finished ------------------------------------------------------------------------


def test_a_call_that_waits_for_a_person_is_stuck_and_says_for_whom(durable: Durable) -> None:
    app = durable(refund_order)
    with pytest.raises(Stuck, match=r"approval 'manager' until 2026-01-02T00:00:00Z \(Pay back 150 for order 8\?\)"):
        app.call(refund_order, BIG, key="k")
    app.stub(pay_back, returns="re_1")
    app.approve(app.start(refund_order, BIG, key="k"), "manager", by="manager")
    assert app.call(refund_order, BIG, key="k") == Refunded(refund_id="re_1")


def test_a_call_that_waits_for_time_is_stuck_and_says_until_when(durable: Durable) -> None:
    app = durable(waiting, trying)
    with pytest.raises(Stuck, match=r"waits for sleep until 2026-01-04T00:00:00Z\. What ends it: app\.clock\.advance"):
        app.call(waiting)
    app.stub(fetch, raises=TimeoutError("no answer"))
    with pytest.raises(Stuck, match=r"retry 'fetch' until .* \(TimeoutError: no answer\)"):
        app.call(trying)


async def test_a_call_is_not_stuck_while_another_task_moves_the_clock() -> None:
    async with testing.open(waiting) as app:
        call = asyncio.create_task(app.call(waiting))
        await app.clock.advance("4 days")
        assert await call == "too late"


# --- the world ---------------------------------------------------------------------------------------------


def test_a_stub_stands_in_and_its_calls_are_told(durable: Durable) -> None:
    app = durable(trying)
    app.stub(fetch, returns="abc")
    receipt = app.start(trying, key="k")
    assert receipt.result() == 3
    (called,) = app.calls(fetch)
    assert (called.name, called.args, called.attempt, called.now) == ("fetch", ("a",), 1, START)
    assert called.key == Owed.join(None, "trying", receipt.run_id, "s/0/fetch")
    assert [call.args for call in app.calls(count)] == [("abc",)], "a step that is not stubbed is told of too"


def test_a_stub_may_raise_and_the_step_is_tried_again(durable: Durable) -> None:
    app = durable(trying)
    app.stub(fetch, raises=TimeoutError("no answer"))
    receipt = app.start(trying)
    app.clock.advance("1 minute")
    with pytest.raises(RunFailed, match="TimeoutError: no answer"):
        receipt.result()
    assert [call.attempt for call in app.calls(fetch)] == [1, 2, 3]
    assert len({call.key for call in app.calls(fetch)}) == 1


@pytest.mark.parametrize("is_async", [True, False])
def test_a_stub_may_call_another_function_with_the_steps_arguments(durable: Durable, is_async: bool) -> None:
    app = durable(trying)

    def plain(step: Step, name: str) -> str:
        return name * step.attempt * 2

    async def awaited(step: Step, name: str) -> str:
        return plain(step, name)

    app.stub(fetch, calls=awaited if is_async else plain)
    assert app.call(trying) == 2


def test_a_stub_takes_exactly_one_of_three(durable: Durable) -> None:
    app = durable(trying)
    for given in ({}, {"returns": 1, "raises": ValueError()}):
        with pytest.raises(TypeError, match="exactly one"):
            app.stub(fetch, **given)


def test_what_a_stub_gives_goes_through_the_steps_annotation(durable: Durable) -> None:
    app = durable(trying)
    app.stub(fetch, returns=7)
    with pytest.raises(RunFailed):
        app.call(trying)


def test_a_port_is_stubbed_for_modules_and_for_steps(durable: Durable) -> None:
    @actuator(capabilities=[transfer])
    async def paying(run: Run) -> str:
        """Pays through the port."""
        return (await run.step(transfer)(Transfer(5))).reference

    app = durable(bank, transfer, paying)
    app.stub(transfer, returns=Sent("ref"))
    app.deliver(bank, Deposit("d", "a", 100))
    app.deliver(bank, PayOut("p", "a", 30))
    assert app.call(paying) == "ref"
    assert [call.args[0] for call in app.calls(transfer)] == [Transfer(30), Transfer(5)]
    assert app.read(bank, "a").last == "ref"


def test_people_are_only_named(durable: Durable) -> None:
    @actuator
    async def asking(run: Run) -> str:
        """Asks somebody far away."""
        notify = ["https://chat.example.com/hook", "mailto:boss@example.com"]
        match await run.wait_for_approval("boss", "May I?", notify=notify, timeout="1 day"):
            case Approved(by=by):
                return by[0]
            case Rejected(reason=reason):
                return reason
            case Expired():
                return "nobody"

    app = durable(asking)
    receipt = app.start(asking)
    app.reject(receipt, "boss", by="boss", reason="no")
    assert receipt.result() == "no"
    assert app.notices == ("asked https://chat.example.com/hook, mailto:boss@example.com: May I?",)


@actuator
async def sleepy(run: Run) -> str:
    """Asks only after a sleep."""
    await run.sleep("3 seconds")
    match await run.wait_for_approval("boss", "May I?", notify="boss", timeout=None):
        case Approved(by=by):
            return by[0]
        case Rejected(reason=reason):
            return reason


def test_an_approval_that_is_not_asked_for_yet_says_what_comes_before_it(durable: Durable) -> None:
    app = durable(sleepy)
    receipt = app.start(sleepy)
    early = r"asks for no approval 'boss' now. It waits for sleep until 2026.*What ends it: app.clock.advance\("
    with pytest.raises(Stuck, match=early):
        app.approve(receipt, "boss", by="boss")
    app.clock.advance("3 seconds")
    with pytest.raises(
        Stuck, match=r"no approval 'bos' now. It waits for approval 'boss' .*app.approve\(receipt, 'boss'"
    ):
        app.reject(receipt, "bos", by="boss")
    app.approve(receipt, "boss", by="ada")
    assert receipt.result() == "ada"
    with pytest.raises(NotFound) as over:
        app.approve(receipt, "bos", by="boss")
    assert over.value.__notes__ == [f"sleepy ({receipt.run_id}) is done, and asked for no approval 'bos'."]
    with pytest.raises(NotFound):
        app.approve("run_nobody", "boss", by="boss")


# --- what else it is -----------------------------------------------------------------------------------------


def test_two_principals_do_not_meet(durable: Durable) -> None:
    app = durable(bank, transfer)
    one, other = app.acting_as("one"), app.acting_as("other")
    assert one.deliver(bank, Deposit("d", "a", 100)) == Accepted(100)
    assert other.deliver(bank, PayOut("p", "a", 30)) == Declined(30)
    assert (one.read(bank, "a").balance, other.read(bank, "a").balance, app.read(bank, "a").balance) == (100, 0, 0)


def test_ids_are_seeded(durable: Durable) -> None:
    def ids(seed: int) -> list[str]:
        app = durable(waiting, seed=seed)
        return [app.start(waiting).run_id for _ in range(3)]

    assert ids(1) == ids(1) != ids(2)


def test_a_key_with_other_content_is_a_conflict_here_too(durable: Durable) -> None:
    app = durable(refund_order)
    app.stub(pay_back, returns="re_1")
    app.call(refund_order, SMALL, key="k")
    with pytest.raises(KeyConflict):
        app.start(refund_order, BIG, key="k")


async def test_the_same_is_awaited() -> None:
    async with testing.open(refund_order) as app:
        app.stub(pay_back, returns="re_1")
        receipt = await app.start(refund_order, BIG, key="k")
        await app.reject(receipt, "manager", by="manager", reason="no")
        assert await receipt.result() == Refused(reason="no")
        await app.restart()
        await app.crash()
        assert (await receipt.refresh(wait="20s")).status == "done"


async def test_a_synchronous_app_may_be_used_where_a_loop_runs(durable: Durable) -> None:
    assert durable(bank, transfer).deliver(bank, Deposit("d", "a", 1)) == Accepted(1)


async def test_http_is_answered_over_the_same_clock() -> None:
    import httpx2

    async with testing.open(refund_order) as app:
        app.stub(pay_back, returns="re_1")
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1:8600"
        ) as http:
            async with asyncio.timeout(20):  # a wait of the door's own is 25
                answer = await http.post("/tools/refund_order", json=BIG.model_dump(mode="json"))
            assert answer.json()["status"] == "waiting"
            answer = await http.post("/tools/refund_order", json=SMALL.model_dump(mode="json"))
            assert answer.json()["result"] == {"type": "Refunded", "refund_id": "re_1"}
