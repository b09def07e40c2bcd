"""bench.contenders.fold - Onefold in process: whole folds, each answered after its commit.

For: `fold callers seconds`; after a kill, `read` tells each counter.
Never: calls an answer acknowledged before it was given: the tally beside the store is written after.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

import onefold
from bench.answering import answer_async
from bench.contenders.counting import ACTORS, counter, event_bytes, notice
from bench.measures import Sample, by_tasks

TALLY = "acknowledged"


def tally(folder: Path) -> memoryview:
    """One number for each actor, in a file that outlives a kill of this process."""
    path = folder / TALLY
    if not path.exists():
        path.write_bytes(bytes(8 * ACTORS))
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 8 * ACTORS)).cast("Q")


async def main(folder: Path) -> None:
    acknowledged = tally(folder)
    async with onefold.App(counter, notice, store=folder / "store") as app:
        deliver, caller = app.host.deliver_raw, app.caller

        async def fold(callers: int, seconds: float) -> Sample:
            tag = f"{os.getpid()}-{time.time_ns():x}"

            async def one(who: int, number: int) -> None:
                actor = (who * 7 + number) % ACTORS
                await deliver("counter", event_bytes(f"{tag}-{who}", actor, number), caller=caller)
                acknowledged[actor] += 1

            return await by_tasks(one, callers, seconds)

        async def read(callers: int, seconds: float) -> dict[str, Any]:
            views = [await app.read(counter, f"c{who}") for who in range(ACTORS)]
            return {"counts": [view.count for view in views], "acknowledged": list(acknowledged)}

        await answer_async({"fold": fold, "read": read})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1])))
