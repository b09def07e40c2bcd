"""A thousand tools, each with a space of its own."""

from __future__ import annotations

import onefold
from onefold import Actuator, Run, actuator
from tests.example.later import Due, pay

COUNT = 1_000


def tool(number: int) -> Actuator[Due, str]:
    @actuator(name=f"tool_{number}")
    async def tool(run: Run, due: Due) -> str:
        """Pay a bill at its time."""
        await run.sleep_until(due.at)
        return await run.step(pay)(due.bill)

    return tool


app = onefold.App(*map(tool, range(COUNT)))
