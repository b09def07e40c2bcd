"""What the fleets of tests serve: a cell that counts and lists, a module with an alarm, a timer, a run with two steps.

For: `onefold serve tests/simulation/counting.py --node NAME`, several of it over one store.
Never: keeps anything outside its actors but the ledger: one line for each effect, in the file that LEDGER names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import BaseModel

from onefold import App, Cell, Decision, Module, Owed, Run, Step, actuator, port
from onefold.timers import Tick, timers


def entered(what: str, key: str) -> None:
    """One line of the ledger, written at once. Who reads it sees each effect as often as it was done."""
    handle = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, f"{what} {key}\n".encode())
    finally:
        os.close(handle)


class Tally(Cell, on_demand=True):
    total: int = 0
    items: list[str] = []  # noqa: RUF012 - a shape's defaults are copied for each cell

    def add(self, by: int) -> int:
        self.total += by
        return self.total

    def append(self, item: str) -> int:
        self.items.append(item)
        return len(self.items)


@dataclass(frozen=True)
class Set:
    id: str
    clock: str
    after_ms: int


@dataclass(frozen=True)
class Due:
    name: str
    at: datetime


@dataclass(frozen=True)
class Rang:
    name: str


@dataclass(frozen=True)
class Until:
    at: datetime


@dataclass(frozen=True)
class Clock:
    """due: what is to ring next, each by its name. rang: what has, and when."""

    due: tuple[tuple[str, datetime], ...] = ()
    rang: tuple[str, ...] = ()


def decide(clock: Clock, event: Set, now: datetime) -> Decision[Due | Rang, Until]:
    at = now + timedelta(milliseconds=event.after_ms)
    return Decision(facts=[Due(event.id, at)], reply=Until(at))


def on_alarm(clock: Clock, now: datetime) -> Decision[Due | Rang, None]:
    names = [name for name, at in clock.due if at <= now]
    return Decision(facts=[Rang(name) for name in names], owed=[Owed("ring", f"ring-{name}", name) for name in names])


def evolve(clock: Clock, fact: Due | Rang) -> Clock:
    match fact:
        case Due(name, at):
            return Clock((*clock.due, (name, at)), clock.rang)
        case Rang(name):
            return Clock(tuple(one for one in clock.due if one[0] != name), (*clock.rang, name))


def view(clock: Clock) -> list[str]:
    return list(clock.rang)


clock = Module(
    "clock",
    initial=Clock(),
    key=lambda event: event.clock,
    decide=decide,
    evolve=evolve,
    on_alarm=on_alarm,
    wake=lambda state: min((at for _, at in state.due), default=None),
    view=view,
)


@port.dedupes("ring")
async def ring(step: Step, name: str) -> None:
    entered("ring", name)


@port.dedupes("tick")
async def tick(step: Step, tick: Tick) -> None:
    entered("tick", tick.owner)


reminders = timers("reminders", to=tick)


class Order(BaseModel):
    n: int
    pause_ms: int = 0


class Shipped(BaseModel):
    n: int


def pay(step: Step, n: int) -> int:
    entered("pay", step.key)
    return n


def ship(step: Step, n: int) -> int:
    entered("ship", step.key)
    return n


@actuator(dedupe_by=["n"])
async def sell(run: Run, order: Order) -> Shipped:
    """Pay, wait, ship."""
    await run.step(pay)(order.n)
    await run.sleep(timedelta(milliseconds=order.pause_ms))
    await run.step(ship)(order.n)
    return Shipped(n=order.n)


app = App(Tally, clock, ring, reminders, tick, sell)
