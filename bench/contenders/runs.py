"""bench.contenders.runs - Onefold in process: runs of ten steps, from the call to the committed result.

For: `ten callers seconds`.
Never: gives the peers more to do, or itself less: ten journaled steps, each a function that adds one.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop
from pydantic import BaseModel

import onefold
from bench.answering import answer_async
from bench.measures import Sample, by_tasks
from onefold import Run, Step, actuator


class Number(BaseModel):
    n: int


async def plus_one(step: Step, n: int) -> int:
    return n + 1


@actuator(tool=False)
async def ten(run: Run, start: Number) -> int:
    """Ten steps, one after the other."""
    n = start.n
    for _ in range(10):
        n = await run.step(plus_one)(n)
    return n


async def main(folder: Path) -> None:
    async with onefold.App(ten, store=folder / "store") as app:

        async def one(who: int, number: int) -> None:
            result = await app.call(ten, Number(n=number))
            if result != number + 10:
                raise ValueError(f"ten steps after {number} came {result}")

        async def runs(callers: int, seconds: float) -> Sample:
            return await by_tasks(one, callers, seconds)

        await answer_async({"ten": runs})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1])))
