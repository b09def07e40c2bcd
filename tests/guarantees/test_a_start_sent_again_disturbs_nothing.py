"""A start that comes again while its run works is answered with that run, whose pass goes on as if nobody had called."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from onefold import Run, actuator
from tests.guarantees.conftest import Stages


class Order(BaseModel):
    order_id: str


async def test_a_repeated_start_leaves_the_pass_of_its_run_alone(stages: Stages) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    passes = 0

    async def pack(order_id: str) -> str:
        begun.set()
        await go_on.wait()
        return f"packed {order_id}"

    @actuator
    async def ship(run: Run, order: Order) -> str:
        """Ship."""
        nonlocal passes
        passes += 1
        return await run.step(pack)(order.order_id)

    stage = await stages(ship)
    caller = stage.caller()
    first = await stage.host.start("ship", {"order_id": "7"}, key="k", caller=caller)
    await begun.wait()
    again = await stage.host.start("ship", {"order_id": "7"}, key="k", caller=caller)
    go_on.set()
    await stage.settle()

    assert again.receipt.run_id == first.receipt.run_id
    assert (await stage.host.receipt(first.receipt.run_id, caller=caller)).status == "done"
    assert passes == 1
