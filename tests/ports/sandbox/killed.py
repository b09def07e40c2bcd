"""A host that is killed while a deployed file is at work. It prints the pids of the box."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.ports.sandbox.home import only

SLOW = """
@actuator
async def slow(run: Run) -> str:
    return await run.step(act)()
def act() -> str:
    while True: time.sleep(0.1)
"""


def family(pid: int) -> list[int]:
    below = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [pid, *(found for one in below for found in family(one))]


async def main() -> None:
    async with only(SLOW) as (deployment, world):
        going = asyncio.create_task(world.one_pass())
        while not (deployment._worker and deployment._worker._serving):  # noqa: ASYNC110 - its first pass has no event
            await asyncio.sleep(0.01)
        sys.stdout.write(f"{' '.join(map(str, family(deployment._worker._process.pid)))}\n")
        sys.stdout.flush()
        await going


if __name__ == "__main__":
    asyncio.run(main())
