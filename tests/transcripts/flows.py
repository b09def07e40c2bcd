"""The flows that a newcomer asks about. Each plays on the real app; its docstring opens the transcript."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from onefold import Answer, Decision, Module, Owed, Retry, Run, Step, actuator, port
from onefold.testing.clock import VirtualClock
from onefold.timers import Ack, At, Create, Tick, timers
from tests.testing.refund import Refund, pay_back, refund_order
from tests.transcripts.telling import Telling, telling

Flow = Callable[[], Awaitable[str]]
BIG = Refund(order_id="8", bill_id="b8", amount=Decimal(150))
SMALL = Refund(order_id="7", bill_id="b7", amount=Decimal(40))


# --- a bank ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Account:
    balance: int = 0


@dataclass(frozen=True)
class Deposit:
    id: str
    account: str
    amount: int


@dataclass(frozen=True)
class PayOut:
    id: str
    account: str
    amount: int


@dataclass(frozen=True)
class Deposited:
    amount: int


@dataclass(frozen=True)
class Reserved:
    amount: int


@dataclass(frozen=True)
class PaidOut:
    reference: str


@dataclass(frozen=True)
class Transfer:
    amount: int


@dataclass(frozen=True)
class Confirmed:
    reference: str


@dataclass(frozen=True)
class Balance:
    now: int


@dataclass(frozen=True)
class Short:
    by: int


Event = Deposit | PayOut
Fact = Deposited | Reserved | PaidOut


def decide(account: Account, event: Event, now: datetime) -> Decision[Fact, Balance | Short]:
    match event:
        case Deposit(amount=amount):
            return Decision(facts=[Deposited(amount)], reply=Balance(account.balance + amount))
        case PayOut(amount=amount) if amount > account.balance:
            return Decision(reply=Short(amount - account.balance))
        case PayOut(id=id, amount=amount):
            owed = Owed("transfer", key=id, body=Transfer(amount))
            return Decision(facts=[Reserved(amount)], owed=[owed], reply=Balance(account.balance - amount))


def on_answer(account: Account, answer: Answer[Confirmed], now: datetime) -> Decision[Fact, None]:
    return Decision(facts=[PaidOut(answer.body.reference)])


def evolve(account: Account, fact: Fact) -> Account:
    match fact:
        case Deposited(amount):
            return replace(account, balance=account.balance + amount)
        case Reserved(amount):
            return replace(account, balance=account.balance - amount)
        case PaidOut():
            return account


def view(account: Account) -> int:
    return account.balance


def which(event: Event) -> str:
    return event.account


bank = Module("bank", initial=Account(), key=which, decide=decide, evolve=evolve, view=view, on_answer=on_answer)


async def pay(step: Step, body: Transfer) -> Confirmed:
    return Confirmed("ref 1")


dedupes = port.dedupes("transfer")(pay)
neither = port.neither("transfer")(pay)


# --- programs ----------------------------------------------------------------------------------------------


class Sample(BaseModel):
    result: str


async def ask_the_lab(step: Step) -> str:
    return "taken"


@actuator
async def sample_water(run: Run) -> str:
    """Hand a sample in, sleep, and wait for what the lab found."""
    await run.step(ask_the_lab, retry=Retry(attempts=3, first="1 minute"))()
    await run.sleep("3 days")
    found = await run.wait_for_event(Sample)
    return found.result


async def remind(step: Step, tick: Tick) -> None:
    """Rings somebody."""


reminders = timers("reminders", to=port.dedupes("ring")(remind))


# --- flows -------------------------------------------------------------------------------------------------


async def the_same_call_twice(t: Telling) -> None:
    """A caller who got no answer sends the same again, under the same key. It is the same run: its answer is given
    again, and nothing is paid a second time."""
    t.app.stub(pay_back, returns="re_1")
    await t.to_the_end(
        'call refund_order, order 7, amount 40, key "order-7"', t.app.call(refund_order, SMALL, key="order-7")
    )
    await t.to_the_end('the same call, key "order-7"', t.app.call(refund_order, SMALL, key="order-7"))


async def a_duplicate_with_other_content(t: Telling) -> None:
    """A key, or an event's id, stands for one content. With another it is refused, and nothing is changed: the
    first is what counts."""
    await t.act("deliver Deposit d1 of 100 to account a", t.app.deliver(bank, Deposit("d1", "a", 100)))
    await t.act("deliver Deposit d1 of 100 again", t.app.deliver(bank, Deposit("d1", "a", 100)))
    await t.act("deliver Deposit d1 of 900", t.app.deliver(bank, Deposit("d1", "a", 900)))
    await t.act("read account a", t.app.read(bank, "a"))


async def a_crash_between_send_and_answer(t: Telling) -> None:
    """The transfer left, the bank made it, and the process died before it heard so. What is owed stays owed until
    the port confirmed: it is sent again under the same key, and a port that dedupes acts once."""
    await t.act("deliver Deposit d1 of 100 to account a", t.app.deliver(bank, Deposit("d1", "a", 100)))
    t.app.crash_at("after-send")
    await t.to_the_end("deliver PayOut p1 of 30", t.app.deliver(bank, PayOut("p1", "a", 30)))
    await t.wait("10 seconds")
    await t.act("read account a", t.app.read(bank, "a"))


async def a_crash_where_nobody_can_know(t: Telling) -> None:
    """The same with a port that can neither dedupe nor be asked. Before the bytes leave, the attempt is committed.
    Found so after the crash, it is not sent again: whether it left is for a person to find out."""
    await t.act("deliver Deposit d1 of 100 to account a", t.app.deliver(bank, Deposit("d1", "a", 100)))
    t.app.crash_at("after-send")
    await t.to_the_end("deliver PayOut p1 of 30", t.app.deliver(bank, PayOut("p1", "a", 30)))
    await t.wait("10 seconds")
    (item,) = await t.app.parked.list()
    t.note(f"The list of what is parked: {item.kind}, {item.cause}")
    await t.act("a person found out that nothing was paid, and retries", t.app.parked.retry(item.id))


async def an_approval(t: Telling) -> None:
    """A run waits for a person as a row, not as a process. The first decision counts; whoever comes later is told
    what was decided and by whom."""
    t.app.stub(pay_back, returns="re_1")
    receipt = await t.act("start refund_order, order 8, amount 150", t.app.start(refund_order, BIG))
    await t.wait("3 hours")
    await t.act("anna approves", t.app.approve(receipt, "manager", by="anna"))
    await t.act("ben rejects, too late", t.app.reject(receipt, "manager", by="ben"))
    await t.to_the_end("ask for the result", receipt.result())


async def an_approval_that_expires(t: Telling) -> None:
    """Nobody decides. The deadline is the run's alarm: it rings at its instant, the program hears Expired, and a
    decision after it changes nothing."""
    receipt = await t.act("start refund_order, order 8, amount 150", t.app.start(refund_order, BIG))
    await t.wait("23 hours")
    await t.wait("1 hour")
    await t.act("anna approves, too late", t.app.approve(receipt, "manager", by="anna"))
    await t.to_the_end("ask for the result", receipt.result())


async def a_step_that_fails_and_is_retried_by_a_person(t: Telling) -> None:
    """A step that raises is tried again, under the same key, after waits that grow. After its last attempt the run
    fails by name. A person retries it: what succeeded is kept, and only what failed is done anew."""
    t.app.stub(ask_the_lab, raises=TimeoutError("no answer"))
    receipt = await t.act("start sample_water", t.app.start(sample_water))
    await t.wait("10 minutes")
    await t.to_the_end("ask for the result", receipt.result())
    t.app.stub(ask_the_lab, returns="taken")
    await t.act("the lab answers again; a person retries the run", t.app.runs.retry(receipt.run_id))


async def what_is_owed_and_cannot_be_sent(t: Telling) -> None:
    """A port that fails for hours. The row stays, its tries and its last error with it, and each try is later than
    the one before. After the twentieth it is parked: no longer tried, and never forgotten."""
    t.app.stub(dedupes, raises=ConnectionError("the bank is closed"))
    await t.act("deliver Deposit d1 of 100 to account a", t.app.deliver(bank, Deposit("d1", "a", 100)))
    await t.act("deliver PayOut p1 of 30", t.app.deliver(bank, PayOut("p1", "a", 30)))
    await t.wait("4 hours")
    t.app.stub(dedupes, returns=Confirmed("ref 1"))
    (item,) = await t.app.parked.list()
    await t.act("the bank opens; a person retries what is parked", t.app.parked.retry(item.id))


async def a_cancelled_run(t: Telling) -> None:
    """Cancelling ends a run where it stands, once. Its wait is gone; the alarm that was set for it may ring once more,
    finds nothing due and is taken away. Whoever asks for the result is told why there is none."""
    receipt = await t.act("start sample_water", t.app.start(sample_water))
    await t.wait("1 day")
    await t.act("cancel it", receipt.cancel("the sample was spilled"))
    await t.act("cancel it again", receipt.cancel("once more"))
    await t.wait("3 days")
    await t.to_the_end("ask for the result", receipt.result())


async def an_event_before_its_wait(t: Telling) -> None:
    """The lab is quicker than the program. What is sent to a run before it waits for it is kept, and taken by the
    first wait of its name."""
    receipt = await t.act("start sample_water", t.app.start(sample_water))
    await t.act("the lab sends Sample: clean", receipt.send(Sample(result="clean"), key="lab-1"))
    await t.act("the lab sends the same again", receipt.send(Sample(result="clean"), key="lab-1"))
    await t.wait("3 days")
    await t.to_the_end("ask for the result", receipt.result())


async def a_timer_across_a_restart(t: Telling) -> None:
    """A timer is an actor, and its instant a row. The process that is up when it is due rings it, whichever made
    it; the tick is held until its owner acknowledged it."""
    at = VirtualClock().moment + timedelta(hours=9)
    made = Create("c1", owner="agent-7", key="standup", trigger=At(at), payload={"say": "hi"})
    await t.act('create the timer "standup" of agent-7 at 09:00', t.app.deliver(reminders, made))
    await t.again("a new version is deployed: the process stops and starts", t.app.restart())
    await t.wait("10 hours")
    (schedule,) = [row["key"] for row in await t.app.actors(reminders)]
    timer = await t.app.read(reminders, schedule)
    assert timer is not None
    assert timer.held is not None
    await t.act("agent-7 acknowledges the tick", t.app.deliver(reminders, Ack("a1", tick=timer.held)))


async def two_principals(t: Telling) -> None:
    """Keys, actors and runs belong to a principal. The same account and the same event id of two of them never
    meet, and None is a principal of its own."""
    one, other = t.app.acting_as("studio_1"), t.app.acting_as("studio_2")
    await t.act("studio_1 delivers Deposit d1 of 100 to account a", one.deliver(bank, Deposit("d1", "a", 100)))
    await t.act("studio_2 delivers PayOut d1 of 30 from account a", other.deliver(bank, PayOut("d1", "a", 30)))
    await t.act("studio_2 reads account a", other.read(bank, "a"))
    await t.act("studio_1 reads account a", one.read(bank, "a"))
    await t.act("nobody in particular reads account a", t.app.read(bank, "a"))


async def code_that_knows_no_such_fact(t: Telling) -> None:
    """An older version is started again. It meets a fact that it does not know: it leaves that actor alone, guesses
    nothing and loses nothing, and serves the others. The version that knows it goes on where it was."""
    await t.act("deliver Deposit d1 of 100 to account a", t.app.deliver(bank, Deposit("d1", "a", 100)))
    await t.act("deliver PayOut p1 of 30", t.app.deliver(bank, PayOut("p1", "a", 30)))
    t.app._stage.parts = (older,)
    await t.again("the older version is started, which knows deposits only", t.app.restart())
    await t.act("read account a", t.app.read(older, "a"))
    await t.act("deliver Deposit d2 of 5 to account a", t.app.deliver(older, Deposit("d2", "a", 5)))
    await t.act("deliver Deposit d3 of 5 to account b", t.app.deliver(older, Deposit("d3", "b", 5)))
    t.app._stage.parts = (bank, dedupes)
    await t.again("the newer version is started again", t.app.restart())
    await t.act("read account a", t.app.read(bank, "a"))
    await t.act("deliver Deposit d2 of 5 to account a, as was refused", t.app.deliver(bank, Deposit("d2", "a", 5)))


async def killed_while_sleeping(t: Telling) -> None:
    """Nothing of a sleep lives in the process. Killed in the middle, the run wakes at the same instant, in whatever
    process is up by then, and no step runs again."""
    receipt = await t.act('start sample_water, key "well-3"', t.app.start(sample_water, key="well-3"))
    await t.wait("1 day")
    await t.again("the process is killed without warning, and started again", t.app.crash())
    await t.wait("2 days")
    await t.act("the lab sends Sample: clean", receipt.send(Sample(result="clean"), key="lab-1"))
    await t.to_the_end("ask for the result", receipt.result())


def older_decide(account: Account, event: Deposit, now: datetime) -> Decision[Deposited, Balance]:
    return Decision(facts=[Deposited(event.amount)], reply=Balance(account.balance + event.amount))


def older_evolve(account: Account, fact: Deposited) -> Account:
    return replace(account, balance=account.balance + fact.amount)


def older_which(event: Deposit) -> str:
    return event.account


older = Module("bank", initial=Account(), key=older_which, decide=older_decide, evolve=older_evolve, view=view)

FLOWS: dict[str, tuple[Callable[[Telling], Awaitable[None]], tuple[Any, ...]]] = {
    flow.__name__.replace("_", "-"): (flow, parts)
    for flow, parts in [
        (the_same_call_twice, (refund_order,)),
        (a_duplicate_with_other_content, (bank, dedupes)),
        (a_crash_between_send_and_answer, (bank, dedupes)),
        (a_crash_where_nobody_can_know, (bank, neither)),
        (an_approval, (refund_order,)),
        (an_approval_that_expires, (refund_order,)),
        (a_step_that_fails_and_is_retried_by_a_person, (sample_water,)),
        (what_is_owed_and_cannot_be_sent, (bank, dedupes)),
        (a_cancelled_run, (sample_water,)),
        (an_event_before_its_wait, (sample_water,)),
        (a_timer_across_a_restart, (reminders,)),
        (two_principals, (bank, dedupes)),
        (code_that_knows_no_such_fact, (bank, dedupes)),
        (killed_while_sleeping, (sample_water,)),
    ]
}


async def told(name: str) -> str:
    """The transcript of a flow, played now."""
    flow, parts = FLOWS[name]
    async with telling(*parts) as t:
        await flow(t)
        title = name.replace("-", " ").capitalize()
        intro = " ".join((flow.__doc__ or "").split())
        return t.whole(title, intro)
