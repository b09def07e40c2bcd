"""api.bank - a module that owes to a port, as the page of the public API prints it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from onefold import Answer, Decision, Module, Owed, Step, port


@dataclass(frozen=True)
class Deposit:
    id: str
    account: str
    amount: Decimal


@dataclass(frozen=True)
class PayOut:
    id: str
    account: str
    iban: str
    amount: Decimal


@dataclass(frozen=True)
class Deposited:
    amount: Decimal


@dataclass(frozen=True)
class Reserved:
    id: str
    amount: Decimal
    until: datetime


@dataclass(frozen=True)
class PaidOut:
    id: str
    reference: str


@dataclass(frozen=True)
class Released:
    id: str
    why: str


@dataclass(frozen=True)
class Accepted:
    balance: Decimal


@dataclass(frozen=True)
class Declined:
    short_by: Decimal


@dataclass(frozen=True)
class Transfer:
    iban: str
    amount: Decimal


@dataclass(frozen=True)
class Confirmed:
    reference: str


@dataclass(frozen=True)
class Bounced:
    why: str


@dataclass(frozen=True)
class Account:
    balance: Decimal = Decimal(0)
    held: dict[str, Reserved] = field(default_factory=dict)


Event = Deposit | PayOut  # frozen dataclasses, each with id and account
Fact = Deposited | Reserved | PaidOut | Released
Reply = Accepted | Declined


def decide(account: Account, event: Event, now: datetime) -> Decision[Fact, Reply]:
    match event:
        case Deposit(amount=amount):
            return Decision(facts=[Deposited(amount)], reply=Accepted(account.balance + amount))
        case PayOut(amount=amount) if amount > account.balance:
            return Decision(reply=Declined(short_by=amount - account.balance))
        case PayOut(id=id, iban=iban, amount=amount):
            return Decision(
                facts=[Reserved(id, amount, until=now + timedelta(days=3))],
                reply=Accepted(account.balance - amount),
                owed=[Owed("transfer", key=id, body=Transfer(iban, amount))],
            )


def on_answer(account: Account, answer: Answer[Confirmed | Bounced], now: datetime) -> Decision[Fact, None]:
    match answer.body:
        case Confirmed(reference=reference):
            return Decision(facts=[PaidOut(answer.key, reference)])
        case Bounced(why=why):
            return Decision(facts=[Released(answer.key, why)])


def evolve(account: Account, fact: Fact) -> Account:
    match fact:
        case Deposited(amount=amount):
            return replace(account, balance=account.balance + amount)
        case Reserved(id=id, amount=amount):
            return replace(account, balance=account.balance - amount, held={**account.held, id: fact})
        case PaidOut(id=id):
            return replace(account, held={key: one for key, one in account.held.items() if key != id})
        case Released(id=id) if id not in account.held:
            return account  # nobody answered in time, and then somebody did
        case Released(id=id):
            back = account.held[id].amount
            return replace(
                account,
                balance=account.balance + back,
                held={key: one for key, one in account.held.items() if key != id},
            )


def view(account: Account) -> Decimal:
    return account.balance


def wake(account: Account) -> datetime | None:
    return min((one.until for one in account.held.values()), default=None)


def on_alarm(account: Account, now: datetime) -> Decision[Fact, None]:
    late = [id for id, one in account.held.items() if one.until <= now]
    return Decision(facts=[Released(id, "nobody answered") for id in late])


bank = Module(
    "bank",
    initial=Account(),
    key=lambda event: event.account,
    decide=decide,
    evolve=evolve,
    view=view,
    on_answer=on_answer,
    on_alarm=on_alarm,
    wake=wake,
)


@port.dedupes("transfer")  # modules owe to its name; actuators may use it: run.step(transfer)(Transfer(…))
async def transfer(step: Step, body: Transfer) -> Confirmed | Bounced:
    return Confirmed(step.key)
