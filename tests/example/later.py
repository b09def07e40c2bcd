"""A tool that pays a while after it was called."""

from __future__ import annotations

import os
from datetime import datetime

import httpx2
from pydantic import BaseModel

from onefold import Run, Step, actuator

PAY_URL = os.environ["PAY_URL"]


class Due(BaseModel):
    bill: str
    at: datetime


async def pay(step: Step, bill: str) -> str:
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(f"{PAY_URL}/refunds", headers={"Idempotency-Key": step.key}, json={"bill": bill})
    answer.raise_for_status()
    return str(answer.json()["id"])


@actuator
async def later(run: Run, due: Due) -> str:
    """Pay a bill later."""
    await run.sleep_until(due.at)
    return await run.step(pay)(due.bill)
