"""api.nightly - a run that waits, fans out and begins others, as the page of the public API prints it."""

from __future__ import annotations

import asyncio
from datetime import date, datetime, time
from decimal import Decimal
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from onefold import Failed, Retry, Run, actuator


class Night(BaseModel):
    day: date


class Customer(BaseModel):
    id: str


class Statement(BaseModel):
    customer: Customer
    total: Decimal


class Summary(BaseModel):
    sent: int
    failed: list[str]


EVERYBODY = [f"c{n}" for n in range(25)]
at_once: list[str] = []
most: list[int] = []


async def customers(day: date) -> list[Customer]:
    return [Customer(id=id) for id in EVERYBODY]


async def total_of(customer: Customer, day: date) -> Decimal:
    at_once.append(customer.id)
    most.append(len(at_once))
    await asyncio.sleep(0)
    at_once.remove(customer.id)
    if customer.id == "c7":
        raise ValueError("no account")
    return Decimal(day.day)


@actuator(tool=False)
async def send_statement(run: Run, statement: Statement) -> bool:
    """Send one customer the day's statement."""
    if statement.customer.id == "c9":
        raise ValueError("no address")
    return True


@actuator(tool=False)
async def nightly_report(run: Run, night: Night) -> Summary:
    """Send every customer the day's statement."""
    await run.sleep_until(datetime.combine(night.day, time(6), ZoneInfo("Europe/Vienna")))
    everyone = await run.step(customers)(night.day)
    total = run.step(total_of, retry=Retry(attempts=6, first="2 seconds"), timeout="30 seconds", limit=10)

    async def serve(customer: Customer) -> bool:
        try:
            amount = await total(customer, night.day)
            return await run.call(send_statement, Statement(customer=customer, total=amount))
        except Failed:
            return False

    sent = await asyncio.gather(*map(serve, everyone))
    return Summary(sent=sum(sent), failed=[c.id for c, ok in zip(everyone, sent, strict=True) if not ok])
