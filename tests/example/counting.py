"""An app of two parts: the example's tool, and a counter that keeps the id of each event it counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import onefold
from examples.refund import refund_order
from onefold import Decision, Module


@dataclass(frozen=True)
class Add:
    id: str
    counter: str


@dataclass(frozen=True)
class Added:
    id: str


@dataclass(frozen=True)
class Kept:
    total: int


@dataclass(frozen=True)
class Counted:
    total: int


@dataclass(frozen=True)
class Count:
    total: int = 0


def decide(count: Count, event: Add, now: datetime) -> Decision[Added | Kept, Counted]:
    return Decision(facts=[Added(event.id)], reply=Counted(count.total + 1))


def evolve(count: Count, fact: Added | Kept) -> Count:
    match fact:
        case Added():
            return replace(count, total=count.total + 1)
        case Kept(total):
            return Count(total)


def view(count: Count) -> Count:
    return count


def snapshot(count: Count) -> Kept:
    return Kept(count.total)


counter = Module(
    "counter",
    initial=Count(),
    key=lambda event: event.counter,
    decide=decide,
    evolve=evolve,
    view=view,
    snapshot=snapshot,
    snapshot_every=50,
)
app = onefold.App(counter, refund_order)
