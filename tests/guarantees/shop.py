"""A small module that uses all of the kernel: money in, money out through a port, a deadline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from onefold import Answer, Decision, Module, Owed, Step, port
from onefold.kernel.words import Dropped


@dataclass(frozen=True)
class Account:
    balance: int = 0
    held: dict[str, int] | None = None
    until: datetime | None = None
    last: str = ""


@dataclass(frozen=True)
class Deposit:
    id: str
    account: str
    amount: int
    note: str = ""


@dataclass(frozen=True)
class PayOut:
    id: str
    account: str
    amount: int
    key: str = ""  # the owed key, when it is not the event's id
    minutes: int = 60


@dataclass(frozen=True)
class Break:
    id: str
    account: str


@dataclass(frozen=True)
class Deposited:
    amount: int


@dataclass(frozen=True)
class Reserved:
    key: str
    amount: int
    until: datetime


@dataclass(frozen=True)
class PaidOut:
    key: str
    reference: str


@dataclass(frozen=True)
class Released:
    key: str
    why: str


@dataclass(frozen=True)
class Balance:
    state: Account


@dataclass(frozen=True)
class Accepted:
    balance: int


@dataclass(frozen=True)
class Declined:
    short_by: int


@dataclass(frozen=True)
class Transfer:
    amount: int


@dataclass(frozen=True)
class Sent:
    reference: str


Event = Deposit | PayOut | Break
Fact = Deposited | Reserved | PaidOut | Released | Balance
Reply = Accepted | Declined


def decide(account: Account, event: Event, now: datetime) -> Decision[Fact, Reply]:
    match event:
        case Deposit(amount=amount):
            return Decision(facts=[Deposited(amount)], reply=Accepted(account.balance + amount))
        case PayOut(amount=amount) if amount > account.balance:
            return Decision(reply=Declined(amount - account.balance))
        case PayOut(id=id, amount=amount, key=key, minutes=minutes):
            name = key or id
            return Decision(
                facts=[Reserved(name, amount, now + timedelta(minutes=minutes))],
                owed=[Owed("transfer", name, Transfer(amount))],
                reply=Accepted(account.balance - amount),
            )
        case Break():
            raise RuntimeError("the module is broken")


def on_answer(account: Account, answer: Answer[Sent | Dropped], now: datetime) -> Decision[Fact, None]:
    match answer.body:
        case Sent(reference=reference):
            return Decision(facts=[PaidOut(answer.key, reference)])
        case Dropped(reason=reason):
            return Decision(facts=[Released(answer.key, reason)])


def on_alarm(account: Account, now: datetime) -> Decision[Fact, None]:
    return Decision(facts=[Released(key, "too late") for key in sorted(account.held or {})])


def evolve(account: Account, fact: Fact) -> Account:
    held = dict(account.held or {})
    match fact:
        case Deposited(amount):
            return replace(account, balance=account.balance + amount)
        case Reserved(key, amount, until):
            held[key] = amount
            return replace(account, balance=account.balance - amount, held=held, until=until)
        case PaidOut(key, reference):
            held.pop(key, None)
            return replace(account, held=held, until=account.until if held else None, last=reference)
        case Released(key, why):
            back = held.pop(key, 0)
            return replace(
                account, balance=account.balance + back, held=held, until=account.until if held else None, last=why
            )
        case Balance(state):
            return state


def view(account: Account) -> Account:
    return account


def wake(account: Account) -> datetime | None:
    return account.until


def snapshot(account: Account) -> Balance:
    return Balance(account)


def make(snapshot_every: int = 500) -> Module[Account, Event, Fact, Reply, Account]:
    return Module(
        "bank",
        initial=Account(),
        key=lambda event: event.account,
        decide=decide,
        evolve=evolve,
        view=view,
        on_answer=on_answer,
        on_alarm=on_alarm,
        wake=wake,
        snapshot=snapshot,
        snapshot_every=snapshot_every,
    )


bank = make()


class Provider:
    """The other side of a port: it counts, honours keys, and fails when told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Transfer, int]] = []
        self.paid: dict[str, int] = {}
        self.failing: list[Exception] = []
        self.lose_answers = 0

    def take(self, step: Step, body: Transfer) -> Sent:
        self.calls.append((step.key, body, step.attempt))
        if self.failing:
            raise self.failing.pop(0)
        self.paid.setdefault(step.key, body.amount)
        if self.lose_answers:
            self.lose_answers -= 1
            raise TimeoutError("the answer was lost")
        return Sent(f"ref {len(self.paid)}")

    def dedupes(self) -> port.Port[Transfer, Sent]:
        @port.dedupes("transfer")
        async def transfer(step: Step, body: Transfer) -> Sent:
            return self.take(step, body)

        return transfer

    def lookup(self) -> port.Port[Transfer, Sent]:
        async def find(step: Step, body: Transfer) -> Sent | None:
            return Sent("found") if step.key in self.paid else None

        @port.lookup("transfer", find=find)
        async def transfer(step: Step, body: Transfer) -> Sent:
            return self.take(step, body)

        return transfer

    def neither(self) -> port.Port[Transfer, Sent]:
        @port.neither("transfer")
        async def transfer(step: Step, body: Transfer) -> Sent:
            return self.take(step, body)

        return transfer
