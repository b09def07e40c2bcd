"""bench.contenders.counting - the application that is measured: a counter that owes a notice and sets a wake.

For: a whole fold: an event decoded and validated, a fact, an owed row on a port that confirms, a wake.
Never: sends anything anywhere; wakes while a bench lasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import onefold
from onefold import Decision, Module, Owed, Step, port

ACTORS = 64
LATER = timedelta(days=3)
NOTE = "two boxes of the small ones, leave them at the back door"


@dataclass(frozen=True, slots=True)
class Total:
    count: int = 0
    amount: int = 0
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Add:
    id: str
    counter: str
    by: int
    order: str
    note: str


@dataclass(frozen=True, slots=True)
class Added:
    by: int
    order: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Restored:
    count: int
    amount: int
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Notice:
    order: str
    by: int


@dataclass(frozen=True, slots=True)
class Counted:
    count: int
    amount: int


def decide(total: Total, event: Add, now: datetime) -> Decision[Added | Restored, Counted]:
    fact = Added(event.by, event.order, now + LATER)
    owed = Owed("notice", key=event.id, body=Notice(event.order, event.by))
    return Decision(facts=[fact], owed=[owed], reply=Counted(total.count + 1, total.amount + event.by))


def evolve(total: Total, fact: Added | Restored) -> Total:
    if isinstance(fact, Restored):
        return Total(fact.count, fact.amount, fact.until)
    return Total(total.count + 1, total.amount + fact.by, fact.until)


def view(total: Total) -> Total:
    return total


def wake(total: Total) -> datetime | None:
    return total.until


def on_alarm(total: Total, now: datetime) -> Decision[Added | Restored, None]:
    return Decision(facts=[Added(0, "alarm", now + LATER)])


def snapshot(total: Total) -> Restored:
    return Restored(total.count, total.amount, total.until)


counter = Module(
    "counter",
    initial=Total(),
    key=lambda event: event.counter,
    decide=decide,
    evolve=evolve,
    view=view,
    on_alarm=on_alarm,
    wake=wake,
    snapshot=snapshot,
)


@port.dedupes("notice")
async def notice(step: Step, body: Notice) -> None:
    """Confirms at once."""


app = onefold.App(counter, notice)


def event_bytes(tag: str, who: int, number: int) -> bytes:
    """One event as it would arrive, about 200 bytes, for actor `who`."""
    return (
        f'{{"type":"Add","id":"{tag}-{who}-{number}","counter":"c{who}","by":3,'
        f'"order":"A-{number:08d}","note":"{NOTE}"}}'
    ).encode()
