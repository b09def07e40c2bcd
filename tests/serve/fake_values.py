"""The values that the fake host gives and takes, and the actuators it serves. Schemas and checks are real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, Field

from onefold.actuators.declare import Actuator, actuator
from onefold.actuators.receipt import Receipt, Trouble, WaitShown
from onefold.actuators.run import Run
from onefold.host.config import Hook, Incoming
from onefold.host.settings import Key
from onefold.terms.errors import LoadRefused

NOW = 1_780_000_000_000  # 2026-05-28T20:26:40Z
DAY = 86_400_000


class Refund(BaseModel):
    order_id: str = Field(description="The shop's number of the order.")
    amount: Decimal = Field(gt=0, le=500)
    note: str | None = None


class Refunded(BaseModel):
    refund_id: str


class Declined(BaseModel):
    reason: str


@actuator(dedupe_by=["order_id"], webhook="standard")
async def refund_order(run: Run, order: Refund) -> Refunded | Declined:
    """Pay an order back. Above 100 a manager must agree."""
    raise AssertionError("the fake host runs nothing")


@actuator(long_wait="task", hints={"read_only": True, "destructive": False})
async def slow_report(run: Run) -> str:
    """Make the long report."""
    raise AssertionError("the fake host runs nothing")


@actuator(tool=False)
async def nightly(run: Run) -> None:
    """Not for agents."""
    raise AssertionError("the fake host runs nothing")


@actuator(webhook="stripe", tool=False)
async def paid(run: Run, event: Refund) -> None:
    """A payment came in."""
    raise AssertionError("the fake host runs nothing")


RESULTS = {"refund_order": {"type": "Refunded", "refund_id": "re_1"}, "slow_report": "the report"}


@dataclass(frozen=True)
class Outcome:
    """What a run comes to when it is started."""

    status: Literal["running", "waiting", "done", "failed", "cancelled", "parked"] = "done"
    result: Any = None
    waits: tuple[WaitShown, ...] = ()
    error: Trouble | None = None


def waiting_for_manager(now: int = NOW) -> Outcome:
    wait = WaitShown("approval", "manager", now, "call-1", now + DAY, "Pay back 150 for order 8?")
    return Outcome("waiting", waits=(wait,))


@dataclass
class Started:
    receipt: Receipt
    replayed: bool


@dataclass
class Page:
    items: list[Any]
    next: str | None = None
    begins: int | None = None


@dataclass
class JournalRow:
    seq: int
    path: str
    step: str
    kind: str
    attempt: int
    at: datetime
    result: Any = None
    error: Any = None


@dataclass(frozen=True)
class OpenApproval:
    run_id: str
    program: str
    name: str
    message: str
    since: datetime
    until: datetime | None
    shown: Any


@dataclass(frozen=True)
class Verdict:
    outcome: Literal["decided", "already_decided", "expired", "cancelled"]
    by: str | None = None
    at: datetime | None = None
    way: Literal["approved", "rejected"] | None = None


@dataclass(frozen=True)
class LinkPage:
    state: Literal["open", "decided", "expired", "cancelled", "unknown", "changed"]
    choice: Literal["approve", "reject"] = "approve"
    run_id: str = ""
    program: str = ""
    name: str = ""
    message: str = ""
    shown: Any = None
    since: datetime | None = None
    until: datetime | None = None
    by: str | None = None
    at: datetime | None = None
    outcome: str | None = None


@dataclass(frozen=True)
class ParkedItem:
    id: str
    kind: str
    program: str
    cause: str
    since: datetime


@dataclass(frozen=True)
class Happening:
    at: datetime
    what: str
    run_id: str | None
    program: str | None
    text: str


@dataclass
class Clock:
    at: int = NOW

    def now(self) -> int:
        return self.at


@dataclass
class Config:
    listen: tuple[str, int] = ("127.0.0.1", 8600)
    public_url: str = "https://tools.example.com"
    loopback: bool = True
    keys: tuple[Key, ...] = ()
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    signals: Mapping[str, Incoming] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)

    def secret(self, name: str, asks: str) -> str:
        if name not in self.environ:
            raise LoadRefused([])
        return self.environ[name]


@dataclass
class Catalog:
    title: str
    actuators: dict[str, Actuator[Any, Any]]
    modules: dict[str, Any]
    cells: dict[str, Any] = field(default_factory=dict)
    generation: int = 0


@dataclass
class Version:
    """One version of a deployed file."""

    file: str
    version: int = 1
    generation: int = 1
    digest: str = "sha256:00"
    tools: tuple[str, ...] = ("refund_order",)
    back_to: int | None = None
    by: str = "anna"
    at: int = NOW
