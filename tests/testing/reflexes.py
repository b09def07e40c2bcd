"""Automations of a shop, for tests of the kit: they charge on a clock, thank for a sale, and tell of a settled run."""

from __future__ import annotations

from pydantic import BaseModel

from onefold.reflex import Reflexes, Task, Write, effect


class Order(BaseModel):
    order: str
    cents: int


class Charged(BaseModel):
    reference: str


class Day(BaseModel):
    day: str


@effect("pay.charge", writes=["charges"])
async def charge(task: Task, order: Order) -> Charged:
    task.emit(Write("charges", "insert", {"order": order.order, "cents": order.cents}))
    return Charged(reference=task.key)


@effect("mail.receipt", writes=[])
def receipt(task: Task, order: Order) -> str:
    return f"mailed {order.order}"


@effect("mail.report", writes=[])
def report(task: Task, day: Day) -> str:
    return day.day


CHARGE = {
    "id": "shop.charge",
    "intent": "Charge every order.",
    "on": {"fact": {"entity": "orders", "op": "insert"}},
    "effect": {"name": "pay.charge", "input": {"order": {"$": "fact.row.order"}, "cents": {"$": "fact.row.cents"}}},
    "policy": {"retry": {"max": 2, "backoff": "fixed", "baseMs": 60_000}},
}
RECEIPT = {
    "id": "shop.receipt",
    "intent": "Send a receipt for every charge.",
    "on": {"fact": {"entity": "charges"}},
    "effect": {"name": "mail.receipt", "input": {"order": {"$": "fact.row.order"}, "cents": {"$": "fact.row.cents"}}},
}
REPORT = {
    "id": "shop.report",
    "intent": "Report every evening.",
    "on": {"clock": {"every": "day", "at": "18:00", "tz": "Europe/Vienna"}},
    "effect": {"name": "mail.report", "input": {"day": {"$": "occurrence.key"}}},
}
shop = Reflexes([CHARGE, RECEIPT, REPORT], effects=[charge, receipt, report])
ORDER = Write("orders", "insert", {"order": "7", "cents": 900}, dedupe_key="order-7")
