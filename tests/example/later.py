"""A tool that pays a while after it was called."""

from __future__ import annotations

import os
from datetime import datetime

import httpx2
from pydantic import BaseModel

from onefold import Run, Step, actuator


class Due(BaseModel):
    bill: str
    at: datetime


async def pay(step: Step, bill: str) -> str:
    where, body = f"{os.environ['PAY_URL']}/refunds", {"bill": bill, "amount": "1"}
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(where, headers={"Idempotency-Key": step.key}, json=body)
    answer.raise_for_status()
    return str(answer.json()["id"])


@actuator
async def later(run: Run, due: Due) -> str:
    """Pay a bill later."""
    await run.sleep_until(due.at)
    return await run.step(pay)(due.bill)
