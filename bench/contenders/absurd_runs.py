"""bench.contenders.absurd_runs - Absurd on a Postgres of our own: tasks of ten steps.

For: `ten callers seconds`: one at a time from the call to its result; many at once as a batch on two
workers. `fan TASKS seconds`: from spawning so many tasks of one step until the last has ended.
Runs in the peers' environment.
Never: weakens Postgres; counts a task before its worker returned.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg  # type: ignore[import-not-found]
from absurd_sdk import Absurd  # type: ignore[import-not-found]

from bench.answering import answer
from bench.measures import Sample, sample
from bench.postgres import postgres

QUEUE = "bench"
POLL_S = 0.005
A_SECOND = 60  # tasks of a batch for each second asked for


class Bench:
    """One queue, its workers, and the instants at which tasks ended."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._workers: list[Absurd] = []
        self.ended: list[float] = []
        self.client = self._app()
        self.client.create_queue()
        self._register(self.client)

    def _app(self) -> Absurd:
        return Absurd(psycopg.connect(self._dsn, autocommit=True), queue_name=QUEUE)

    def _register(self, app: Absurd) -> None:
        @app.register_task("ten")
        def ten(params, ctx):  # type: ignore[no-untyped-def]
            n = params["n"]
            for number in range(10):
                n = ctx.step(f"plus_one {number}", lambda n=n: n + 1)
            self.ended.append(time.perf_counter())
            return n

        @app.register_task("one")
        def one(params, ctx):  # type: ignore[no-untyped-def]
            n = ctx.step("plus_one", lambda: params["n"] + 1)
            self.ended.append(time.perf_counter())
            return n

    def work(self, workers: int) -> None:
        for _ in range(workers):
            app = self._app()
            self._register(app)
            self._workers.append(app)
            options = {"concurrency": 1, "batch_size": 10, "poll_interval": POLL_S}
            threading.Thread(target=app.start_worker, kwargs=options, daemon=True).start()

    def rest(self) -> None:
        for app in self._workers:
            app.stop_worker()
        self._workers.clear()
        time.sleep(0.2)

    def one_by_one(self, seconds: float) -> Sample:
        latencies: list[float] = []
        start = time.perf_counter()
        while (before := time.perf_counter()) - start < seconds:
            self.ended.clear()
            self.client.spawn("ten", {"n": 1})
            while not self.ended:
                time.sleep(0.0005)
            latencies.append(self.ended[0] - before)
        return sample(latencies, time.perf_counter() - start)

    def batch(self, name: str, count: int) -> Sample:
        self.ended.clear()
        start = time.perf_counter()
        for _ in range(count):
            self.client.spawn(name, {"n": 1})
        while len(self.ended) < count:
            time.sleep(0.002)
        return sample([at - start for at in self.ended], max(self.ended) - start)


def main(folder: Path) -> None:
    with postgres(folder) as dsn:
        control = str(Path(sys.executable).with_name("absurdctl"))
        subprocess.run([control, "init", "-d", dsn], check=True, stdout=subprocess.DEVNULL)
        bench = Bench(dsn)

        def ten(callers: int, seconds: float) -> Sample:
            bench.work(1 if callers == 1 else 2)
            try:
                return (
                    bench.one_by_one(seconds) if callers == 1 else bench.batch("ten", max(20, int(A_SECOND * seconds)))
                )
            finally:
                bench.rest()

        def fan(tasks: int, seconds: float) -> Sample:
            bench.work(4)
            try:
                return bench.batch("one", tasks)
            finally:
                bench.rest()

        answer({"ten": ten, "fan": fan})
    os._exit(0)  # its workers' threads would be waited for


if __name__ == "__main__":
    main(Path(sys.argv[1]))
