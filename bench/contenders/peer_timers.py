"""bench.contenders.peer_timers - durable timers of APScheduler, Huey and DBOS, each on its own SQLite file.

For: `minute TIMERS SECONDS`: so many timers due within so many seconds. Runs in the peers' environment.
Never: weakens a store: the settings are each package's own, with Huey's fsync switched on.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.answering import answer
from bench.measures import lateness

LEAD_S = 3.0
WARM = 100  # timers that show how long the others take to arm
PATIENCE_S = 120.0
FIRED: defaultdict[int, list[float]] = defaultdict(list)

Arm = Callable[[int, float], Any]


def tick(number: int) -> None:
    if number >= 0:  # the others only warm up
        FIRED[number].append(time.time())


def utc(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def minute(arm: Arm, count: int, seconds: float) -> dict[str, Any]:
    """Lateness in ms of `count` timers, from their instant until their function ran."""
    begun = time.time()
    for number in range(WARM):
        arm(-1 - number, begun + 86_400 + number)
    each = (time.time() - begun) / WARM
    begun = time.time()
    first = begun + LEAD_S + 1.5 * count * each
    dues = {number: first + number * seconds / count for number in range(count)}
    for number, due in dues.items():
        arm(number, due)
    took = time.time() - begun
    if begun + took > first:
        raise RuntimeError(f"{count} timers took {took:.1f} s to arm, longer than the lead")
    end = first + seconds + PATIENCE_S
    time.sleep(max(0.0, first - time.time() - 0.5))
    cpu = time.process_time()
    while len(FIRED) < count and time.time() < end:
        time.sleep(0.2)
    told = lateness([(due, FIRED[number]) for number, due in dues.items()])
    return {**told, "armed_s": took, "cpu_ms": (time.process_time() - cpu) / count * 1e3}


def apscheduler(folder: Path) -> Arm:
    from apscheduler.executors.pool import ThreadPoolExecutor  # type: ignore[import-not-found]
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore  # type: ignore[import-not-found]
    from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import-not-found]

    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=f"sqlite:///{folder}/jobs.db")},
        executors={"default": ThreadPoolExecutor(4)},
        job_defaults={"misfire_grace_time": None},  # however late, it runs
        timezone=dt.UTC,
    )
    scheduler.start()
    return lambda number, due: scheduler.add_job("__main__:tick", "date", run_date=utc(due), args=[number])


def huey(folder: Path) -> Arm:
    from huey import SqliteHuey  # type: ignore[import-not-found]

    queue = SqliteHuey("bench", filename=f"{folder}/huey.db", fsync=True)
    task = queue.task()(tick)
    queue.create_consumer(
        workers=1, worker_type="thread", scheduler_interval=1, initial_delay=0.005, max_delay=0.02
    ).start()
    return lambda number, due: task.schedule((number,), eta=dt.datetime.fromtimestamp(due))  # noqa: DTZ006 - huey's way


def dbos(folder: Path) -> Arm:
    from dbos import DBOS, DBOSConfig  # type: ignore[import-not-found]

    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{folder}/system.db",
        "log_level": "ERROR",
        "application_version": "1",
        "executor_id": "bench",
        "max_executor_threads": 256,
    }
    DBOS(config=config)

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    async def timer(number: int, due: float) -> None:
        await DBOS.sleep_async(max(0.001, due - time.time()))
        tick(number)

    DBOS.launch()
    loop = asyncio.new_event_loop()  # on a loop a sleeping workflow holds no thread
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def arm(number: int, due: float) -> None:
        started = DBOS.start_workflow_async(timer, number, due if number >= 0 else time.time())
        asyncio.run_coroutine_threadsafe(started, loop).result()

    return arm


def main(kind: str, folder: Path) -> None:
    arm = {"apscheduler": apscheduler, "huey": huey, "dbos": dbos}[kind](folder)
    answer({"minute": lambda count, seconds: minute(arm, count, seconds)})
    os._exit(0)  # their threads would be waited for


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
