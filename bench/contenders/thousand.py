"""bench.contenders.thousand - a thousand tools, each with a space of its own, of which most are at rest.

For: a start that must not open, read or lock what has nothing to do.
Never: has a class of its own for each tool: a thousand of those would be pydantic's start, not ours.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

import onefold
from onefold import Actuator, Run, actuator

TOOLS = 1_000


class Nap(BaseModel):
    minutes: int


def tool(number: int) -> Actuator[Nap, str]:
    @actuator(name=f"tool_{number}")
    async def tool(run: Run, nap: Nap) -> str:
        """Sleep, then answer."""
        await run.sleep(timedelta(minutes=nap.minutes))
        return "awake"

    return tool


app = onefold.App(*map(tool, range(TOOLS)))
