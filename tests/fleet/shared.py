"""What the fleets of tests run: a room, a bank, an order, a till that tells the bank.

For: actors of every sort, whose effects are counted where every node can see them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import BaseModel

from onefold import Answer, Decision, Module, Owed, Retry, Run, actuator
from onefold.cell import Cell
from tests.guarantees.shop import Accepted, Declined, Deposit, Provider, bank


class Room(Cell):
    visits: int = 0
    names: list[str] = []  # noqa: RUF012 - fields with defaults are the shape of a cell

    def greet(self, name: str) -> str:
        self.visits += 1
        self.names.append(name)
        return f"hello {name} {self.visits}"

    def fail(self) -> None:
        raise ValueError("no such luck")


class Ask(BaseModel):
    n: int
    after: str = "0s"
    fails: bool = False


class Fed(BaseModel):
    n: int


steps: list[int] = []
"""Which steps were taken, on whatever node."""
failing: set[int] = set()
held: dict[int, asyncio.Event] = {}
"""Steps that wait until they are let go on."""


async def counted(n: int) -> int:
    steps.append(n)
    if n in held:
        await held[n].wait()
    if n in failing:
        raise LookupError(f"{n} is not there")
    return n * 2


@actuator
async def work(run: Run, input: Ask) -> int:
    """Sleep, and double."""
    if input.after != "0s":
        await run.sleep(input.after)
    return await run.step(counted, retry=Retry(attempts=1))(input.n)


@actuator
async def hears(run: Run, input: Ask) -> int:
    """Wait for an event."""
    fed = await run.wait_for_event(Fed, timeout=None)
    return fed.n + input.n


@actuator
async def asks(run: Run, input: Ask) -> str:
    """Ask a person."""
    decision = await run.wait_for_approval("go", f"May {input.n} go?", notify="ann", timeout=None)
    return type(decision).__name__


@actuator(dedupe_by=["n"])
async def once(run: Run, input: Ask) -> int:
    """One unfinished run for each number."""
    await run.wait_for_event(Fed, timeout=None)
    return input.n


@dataclass(frozen=True)
class Sale:
    id: str
    till: str
    account: str
    amount: int


@dataclass(frozen=True)
class Sold:
    amount: int


@dataclass(frozen=True)
class Banked:
    balance: int


@dataclass(frozen=True)
class Till:
    sold: int = 0
    banked: tuple[int, ...] = ()


def sells(till: Till, sale: Sale, now: datetime) -> Decision[Sold | Banked, int]:
    deposit = Deposit(sale.id, sale.account, sale.amount)
    return Decision(
        facts=[Sold(sale.amount)], owed=[Owed("deliver.bank", sale.id, deposit)], reply=till.sold + sale.amount
    )


def banks(till: Till, answer: Answer[Accepted | Declined], now: datetime) -> Decision[Sold | Banked, None]:
    assert isinstance(answer.body, Accepted)
    return Decision(facts=[Banked(answer.body.balance)])


def counts(till: Till, fact: Sold | Banked) -> Till:
    if isinstance(fact, Sold):
        return replace(till, sold=till.sold + fact.amount)
    return replace(till, banked=(*till.banked, fact.balance))


def seen(till: Till) -> Till:
    return till


till: Module[Till, Sale, Sold | Banked, int, Till] = Module(
    "till",
    initial=Till(),
    key=lambda sale: sale.till,
    decide=sells,
    evolve=counts,
    view=seen,
    on_answer=banks,
)
provider = Provider()
PARTS = (Room, work, hears, asks, once, bank, till, provider.dedupes())
