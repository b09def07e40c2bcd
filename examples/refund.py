"""Pay an order back: at most 500, above 100 a manager must agree, and once per order whatever happens."""

import os
from decimal import Decimal

import httpx2
from pydantic import BaseModel, Field

from onefold import Approved, Expired, Rejected, Run, Step, actuator

PAY_URL = os.environ["PAY_URL"]


class Refund(BaseModel):
    order_id: str = Field(min_length=1, max_length=64)
    bill_id: str = Field(min_length=1, max_length=64)
    amount: Decimal = Field(gt=0, le=500, decimal_places=2)


class Refunded(BaseModel):
    refund_id: str


class Declined(BaseModel):
    reason: str


async def pay_back(step: Step, bill_id: str, amount: Decimal) -> str:
    async with httpx2.AsyncClient() as http:
        answer = await http.post(
            f"{PAY_URL}/refunds",
            headers={"Idempotency-Key": step.key},  # the same on every attempt: the provider pays once
            json={"bill": bill_id, "amount": str(amount)},
        )
    answer.raise_for_status()  # raise: tried again, under the same key
    return str(answer.json()["id"])


async def earlier(run: Run, order: Refund) -> Refunded | Declined | None:
    found = await run.db.fetch_one("SELECT run_id, refund_id FROM refunds WHERE order_id = :id", id=order.order_id)
    if found is None:
        return None
    if found["refund_id"] is None:
        return Declined(reason=f"run {found['run_id']} has taken this order and is not finished; look at it first")
    return Refunded(refund_id=str(found["refund_id"]))


REFUNDS = """CREATE TABLE refunds (
    order_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, amount TEXT NOT NULL, agreed_by TEXT, taken_at TEXT NOT NULL,
    refund_id TEXT)"""


@actuator(capabilities=["env:PAY_URL"], dedupe_by=["order_id"], migrations=[REFUNDS])
async def refund_order(run: Run, order: Refund) -> Refunded | Declined:
    """Pay an order back. Above 100 a manager must agree. An order is only ever paid back once."""
    if known := await earlier(run, order):
        return known
    agreed_by = None
    if order.amount > 100:
        question = f"Pay back {order.amount} for order {order.order_id}?"
        match await run.wait_for_approval("manager", question, notify="shop_manager", timeout="24 hours"):
            case Rejected(reason=reason):
                return Declined(reason=reason)
            case Expired():
                return Declined(reason="nobody decided within a day")
            case Approved(by=by):
                agreed_by = ", ".join(by)
    taken = await run.db.execute(  # before anything is paid: of two runs for one order, one gets it
        "INSERT INTO refunds VALUES (:order, :run, :amount, :by, :at, NULL) ON CONFLICT DO NOTHING",
        order=order.order_id,
        run=run.id,
        amount=order.amount,
        by=agreed_by,
        at=run.now(),
    )
    if not taken:
        return await earlier(run, order) or Declined(reason="another run took this order")
    refund_id = await run.step(pay_back)(order.bill_id, order.amount)
    await run.db.execute(
        "UPDATE refunds SET refund_id = :refund WHERE order_id = :order", refund=refund_id, order=order.order_id
    )
    return Refunded(refund_id=refund_id)
