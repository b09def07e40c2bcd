"""api.billing - an automation beside the code it calls, as the page of the public API prints it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from onefold.reflex import Query, Reflexes, Row, Task, Write, effect, select


@dataclass(frozen=True)
class Charge:
    subscription: str
    amount: Decimal


@dataclass(frozen=True)
class Charged:
    reference: str


@dataclass(frozen=True)
class CardDeclined:
    why: str


@effect("payments.charge", writes=["charge_attempts"])
async def charge(task: Task, order: Charge) -> Charged | CardDeclined:
    task.emit(Write("charge_attempts", "insert", {"subscription": order.subscription}))
    return Charged(reference=task.key)


@charge.preview
def show(order: Charge) -> str:
    return f"charge {order.amount} for {order.subscription}"


@select("subscriptions.overdue")
async def overdue(query: Query) -> AsyncIterator[Row]:
    yield {"subscription_id": "s1", "days": query.params["graceDays"]}


due = select.sql(
    "subscriptions.due",
    "SELECT subscription_id, amount FROM due WHERE tenant = :principal AND month = :month",
    on="env:SHOP_DB",
)
billing = Reflexes(Path(__file__).with_name("billing.json"), effects=[charge], selects=[due, overdue])
