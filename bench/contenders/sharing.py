"""bench.contenders.sharing - one of several processes on one Postgres: whole folds in process, as on SQLite.

For: `fold callers seconds` on 64 actors of this process; `read N 0` tells what the store has of the process N.
Never: shares an actor with another process of the run: what is measured is the server, and not who waits for whom.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import uvloop

import onefold
from bench.answering import answer_async
from bench.contenders.counting import ACTORS, counter, event_bytes, notice
from bench.measures import Sample, by_tasks

BETWEEN_NODES = "a secret of all processes of a run"


def block(run: int, process: int) -> int:
    """The first of the actors of one process in one run."""
    return (run * 100 + process) * ACTORS


async def main(store: str, run: int, process: int) -> None:
    first = block(run, process)
    os.environ.setdefault("ONEFOLD_SECRET", BETWEEN_NODES)
    async with onefold.App(counter, notice, store=store) as app:
        deliver, caller = app.host.deliver_raw, app.caller

        async def fold(callers: int, seconds: float) -> Sample:
            tag = f"{process}-{time.time_ns():x}"

            async def one(who: int, number: int) -> None:
                actor = first + (who * 7 + number) % ACTORS
                await deliver("counter", event_bytes(f"{tag}-{who}", actor, number), caller=caller)

            return await by_tasks(one, callers, seconds)

        async def read(which: int, seconds: float) -> dict[str, Any]:
            begins = block(run, which)
            return {"counts": [(await app.read(counter, f"c{begins + n}")).count for n in range(ACTORS)]}

        await answer_async({"fold": fold, "read": read})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
