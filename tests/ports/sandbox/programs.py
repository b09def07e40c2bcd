"""Programs that are run twice: in this process, and as a deployed file. Each names the same steps."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from pydantic import BaseModel, Field

from onefold import Approved, Expired, Failed, Rejected, Retry, Run, Step, actuator, blocking, port
from onefold.errors import StepFailed


class Refund(BaseModel):
    order_id: str
    amount: Decimal = Field(gt=0, le=500)
    note: str = "none"


class Refunded(BaseModel):
    refund_id: str


class Declined(BaseModel):
    reason: str


class Ready(BaseModel):
    what: str


class Offer(BaseModel):
    amount: Decimal = Field(gt=0, le=100)
    days: int = 3


class Count(BaseModel):
    n: int


async def pay_back(step: Step, order: str, amount: Decimal) -> str:
    return f"re_{order}_{amount}/{step.key}/{step.attempt}/{step.now.isoformat()}"


async def double(n: int) -> int:
    return 2 * n


def plain(n: int) -> int:
    return n + 1


async def shaky(step: Step, until: int) -> str:
    if step.attempt < until:
        raise ValueError(f"attempt {step.attempt}")
    return "at last"


async def broken() -> None:
    raise LookupError("never")


async def nothing(step: Step, body: str) -> str | None:
    return None


@port.lookup("finds", find=nothing)
async def finds(step: Step, body: str) -> str:
    return f"{body} by {step.key}"


@port.neither("blind")
async def blind(step: Step, body: str) -> str:
    raise ConnectionError("gone")


TABLE = "CREATE TABLE refunds (order_id TEXT PRIMARY KEY, refund_id TEXT, amount TEXT, raw BLOB)"


@actuator(dedupe_by=["order_id"], migrations=[TABLE])
async def refund_order(run: Run, order: Refund) -> Refunded | Declined:
    """Pay an order back. Above 100 a manager must agree."""
    if earlier := await run.db.fetch_one("SELECT refund_id FROM refunds WHERE order_id = :id", id=order.order_id):
        return Refunded(refund_id=earlier["refund_id"])
    if order.amount > 100:
        match await run.wait_for_approval("manager", f"Pay back {order.amount}?", notify="boss", timeout="24 hours"):
            case Rejected(reason=reason):
                return Declined(reason=reason)
            case Expired():
                return Declined(reason="nobody decided")
            case Approved():
                pass
    twice = run.step(double)
    found = await asyncio.gather(*(twice(n) for n in range(5)))
    refund = await run.step(pay_back)(order.order_id, order.amount + sum(found))
    await run.db.execute(
        "INSERT INTO refunds VALUES (:order, :refund, :amount, :raw)",
        order=order.order_id, refund=refund, amount=order.amount, raw=b"\0\xff",
    )  # fmt: skip
    return Refunded(refund_id=refund)


@actuator
async def tells(run: Run, count: Count) -> str:
    """Sleeps, chances, progress, versions, an event."""
    run.progress("begun", 1, of=count.n)
    await run.sleep("1 hour")
    new = run.version("newer")
    got = await run.wait_for_event(Ready, timeout="2 hours")
    said = "late" if isinstance(got, Expired) else got.what
    return f"{run.now().isoformat()} {run.uuid()} {run.random.random()} {said} {new} {run.id} {run.key} {run.principal}"


@actuator
async def tries(run: Run, count: Count) -> str:
    """Steps that fail, one of them for good, and are taken back."""
    await run.step(double, undo=double)(count.n)
    first = await run.step(shaky, retry=Retry(attempts=4, first="1 minute"))(3)
    try:
        await run.step(broken, retry=Retry(attempts=2, first="1 second"))()
    except Failed as failed:
        await run.undo()
        return f"{first} {failed}"
    return "no"


@actuator
async def joins(run: Run, count: Count) -> list[int]:
    """Every way of waiting for many."""
    found: list[int] = []
    for coming in asyncio.as_completed([run.step(double)(n) for n in range(count.n)]):
        found.append(await coming)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run.step(double, limit=2)(n)) for n in range(count.n)]
    return [*found, *(task.result() for task in tasks)]


@actuator
async def races(run: Run, count: Count) -> str:
    """The first of two, and a timeout."""
    place, value = await run.first(run.step(double)(count.n), asyncio.sleep(3_600, 7))
    try:
        async with asyncio.timeout(60):
            await run.wait_for_event(Ready)
    except TimeoutError:
        return f"{place} {value}"
    return "no"


@actuator
def waits(run: blocking.Run, count: Count) -> str:
    """A plain function."""
    first = run.step(plain)(count.n)
    run.sleep("10 minutes")
    return f"{first} {run.step(double)(first)} {run.uuid()}"


@actuator(migrations=["CREATE TABLE counts (name TEXT PRIMARY KEY, n INTEGER NOT NULL)"])
async def counts(run: Run, count: Count) -> list[str]:
    """Database steps: one that commits, one that raises in the middle, a statement that is none."""

    def add(tx, name: str, n: int) -> int:
        tx.execute("INSERT INTO counts VALUES (:name, :n)", name=name, n=n)
        if n > 1:
            raise ArithmeticError("too many")
        found = tx.fetch("SELECT count(*) AS all_of_them FROM counts")
        return int(found[0]["all_of_them"])

    told = [str(await run.db.step(add)("a", 1))]
    for name, n in (("b", 2), ("a", 1)):
        try:
            await run.db.step(add)(name, n)
        except Failed as failed:
            told.append(str(failed))
    try:
        await run.db.execute("SELEKT 1")
    except StepFailed as failed:
        told.append(failed.kind)
    return [*told, str(await run.db.fetch("SELECT * FROM counts"))]


@actuator(capabilities=[finds, blind])
async def sends(run: Run, count: Count) -> str:
    """Ports of its own."""
    found = await run.step(finds)("x")
    return found + await run.step(blind)("y")


@actuator
async def offers(run: Run, count: Count) -> str:
    """An offer that the approver may edit."""
    asked = run.wait_for_approval("boss", "How much?", notify=["boss"], timeout=None, offer=Offer(amount=Decimal(5)))
    match await asked:
        case Approved(value=Offer(amount=amount, days=days)):
            return f"{amount} in {days}"
        case _:
            return "no"


@actuator
async def fails(run: Run, count: Count) -> int:
    """Ends by an exception."""
    await run.step(double)(1)
    raise RuntimeError(f"no {count.n}")


@actuator
async def unfit(run: Run, count: Count) -> int:
    """Gives what its annotation does not say."""
    return "text"  # type: ignore[return-value]


@actuator
async def stuck(run: Run, count: Count) -> int:
    """Waits for itself."""
    await asyncio.get_running_loop().create_future()
    return 1
