"""Programs that the app under test is tried on."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from pydantic import BaseModel

from onefold import Expired, Retry, Run, Step, actuator, port
from tests.guarantees.shop import Sent, Transfer
from tests.testing.refund import Refund

BIG = Refund(order_id="8", bill_id="b8", amount=Decimal(150))
SMALL = Refund(order_id="7", bill_id="b7", amount=Decimal(40))
START = datetime(2026, 1, 1, tzinfo=UTC)


class Go(BaseModel):
    how: str = ""


async def fetch(step: Step, name: str) -> str:
    raise AssertionError("the world was reached")


def count(name: str) -> int:
    return len(name)


@actuator
async def waiting(run: Run) -> str:
    """Waits for time, then for a word."""
    await run.sleep("3 days")
    match await run.wait_for_event(Go, timeout="1 day"):
        case Expired():
            return "too late"
        case Go(how=how):
            return how


@actuator
async def trying(run: Run) -> int:
    """Fetches and counts."""
    return await run.step(count)(await run.step(fetch, retry=Retry(attempts=3))("a"))


@port.dedupes("transfer")
async def transfer(step: Step, body: Transfer) -> Sent:
    raise AssertionError("the world was reached")
