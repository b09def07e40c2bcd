"""The refund of the public API, as its page prints it."""

from __future__ import annotations

from decimal import Decimal

import httpx2
from pydantic import BaseModel, Field

from onefold import Approved, Expired, Rejected, Run, Step, actuator


class Refund(BaseModel):
    order_id: str
    bill_id: str
    amount: Decimal = Field(gt=0, le=500)


class Refunded(BaseModel):
    refund_id: str


class Declined(BaseModel):
    reason: str


async def pay_back(step: Step, bill_id: str, amount: Decimal) -> str:
    async with httpx2.AsyncClient() as http:
        answer = await http.post(
            "https://pay.example.com/refunds",
            headers={"Idempotency-Key": step.key},
            json={"bill": bill_id, "amount": str(amount)},
        )
    answer.raise_for_status()
    return str(answer.json()["id"])


@actuator(
    capabilities=["https://pay.example.com"],
    dedupe_by=["order_id"],
    migrations=["CREATE TABLE refunds (order_id TEXT PRIMARY KEY, refund_id TEXT, amount TEXT, at TEXT)"],
)
async def refund_order(run: Run, order: Refund) -> Refunded | Declined:
    """Pay an order back. Above 100 a manager must agree."""
    if earlier := await run.db.fetch_one("SELECT refund_id FROM refunds WHERE order_id = :id", id=order.order_id):
        return Refunded(refund_id=earlier["refund_id"])
    if order.amount > 100:
        match await run.wait_for_approval(
            "manager",
            f"Pay back {order.amount} for order {order.order_id}?",
            notify="shop_manager",
            timeout="24 hours",
        ):
            case Rejected(reason=reason):
                return Declined(reason=reason)
            case Expired():
                return Declined(reason="nobody decided within a day")
            case Approved():
                pass
    refund_id = await run.step(pay_back)(order.bill_id, order.amount)
    await run.db.execute(
        "INSERT INTO refunds VALUES (:order, :refund, :amount, :at)",
        order=order.order_id,
        refund=refund_id,
        amount=order.amount,
        at=run.now(),
    )
    return Refunded(refund_id=refund_id)
