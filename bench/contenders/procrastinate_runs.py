"""bench.contenders.procrastinate_runs - Procrastinate on a Postgres of our own: a batch of tasks on one worker.

For: `fan TASKS seconds`: from deferring so many tasks in one statement until the last of them has run, once.
Runs in the peers' environment.
Never: weakens Postgres; waits for a poll: its worker listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

import procrastinate  # type: ignore[import-not-found]

from bench.answering import answer_async
from bench.measures import Sample, sample
from bench.postgres import postgres

AT_ONCE = 16  # its fastest here, of 1, 4, 16 and 64


async def main(folder: Path) -> None:
    with postgres(folder) as dsn:
        app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn, min_size=4, max_size=24))
        ended: list[float] = []
        wanted = [0]
        full = asyncio.Event()

        @app.task(name="one")  # type: ignore[untyped-decorator]
        async def one(n: int) -> None:
            ended.append(time.perf_counter())
            if len(ended) == wanted[0]:
                full.set()

        async def fan(tasks: int, seconds: float) -> Sample:
            ended.clear()
            full.clear()
            wanted[0] = tasks
            start = time.perf_counter()
            await one.batch_defer_async(*[{"n": n} for n in range(tasks)])
            await full.wait()
            return sample([at - start for at in ended], max(ended) - start)

        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            working = asyncio.create_task(
                app.run_worker_async(concurrency=AT_ONCE, wait=True, install_signal_handlers=False, listen_notify=True)
            )
            await answer_async({"fan": fan})
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
    os._exit(0)  # its pool's threads would be waited for


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
