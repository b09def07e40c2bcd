"""bench.contenders.adding - the tool that is called over MCP: two numbers in, their sum out, durably.

For: a run without steps: its start and its result are committed before the answer.
Never: does more than the tool of the protocol's own package beside which it is measured.
"""

from __future__ import annotations

from pydantic import BaseModel

import onefold
from onefold import Run, actuator


class Numbers(BaseModel):
    a: int
    b: int


class Sum(BaseModel):
    sum: int


@actuator(name="add")
async def add(run: Run, numbers: Numbers) -> Sum:
    """Add two numbers."""
    return Sum(sum=numbers.a + numbers.b)


app = onefold.App(add)
