"""bench.contenders.dbos_runs - DBOS on SQLite or Postgres: workflows of ten steps, called in process from threads.

For: `ten callers seconds`; `fan TASKS seconds`: one workflow that queues so many and waits for all of them;
`count callers seconds`: a workflow of one transaction on the application's own database, its exactly-once form, over
64 counters, and `read` tells each of them. Runs in the peers' environment.
Never: weakens its database: the settings are its own.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa  # type: ignore[import-not-found]
from dbos import DBOS, DBOSConfig, SQLAlchemyDatasource  # type: ignore[import-not-found]

from bench.answering import answer
from bench.measures import Sample, by_threads, sample
from bench.postgres import postgres

CALLERS_MOST = 64
ACTORS = 64
TABLE = "CREATE TABLE IF NOT EXISTS tally (key TEXT PRIMARY KEY, count BIGINT NOT NULL)"
BUMP = """INSERT INTO tally VALUES (:key, 1) ON CONFLICT (key) DO UPDATE SET count = tally.count + 1 RETURNING count"""


def main(folder: Path, database: str = "sqlite") -> None:
    if database == "postgres":
        with postgres(folder) as dsn:
            serve(dsn, dsn.replace("postgresql:", "postgresql+psycopg:"))
    serve(f"sqlite:///{folder}/system.db", f"sqlite:///{folder}/application.db")


def counting(url: str) -> dict[str, Any]:
    """The workloads of the counter. To be made before the launch."""
    postgres = url.startswith("postgresql")
    source = SQLAlchemyDatasource.create(url, **({"engine_kwargs": {"pool_size": CALLERS_MOST}} if postgres else {}))

    def bump(key: str) -> int:
        return int(source.sql_session().execute(sa.text(BUMP), {"key": key}).scalar_one())

    bumped = source.transaction(isolation_level="READ COMMITTED")(bump) if postgres else source.transaction(bump)

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    def add(key: str) -> int:
        return bumped(key)  # type: ignore[no-any-return]

    def count(callers: int, seconds: float) -> Sample:
        return by_threads(lambda who, number: add(f"c{(who * 7 + number) % ACTORS}"), callers, seconds)

    def read(callers: int, seconds: float) -> dict[str, Any]:
        with source.engine.begin() as db:
            return {"counts": [each for (each,) in db.execute(sa.text("SELECT count FROM tally"))]}

    with source.engine.begin() as db:
        db.execute(sa.text(TABLE))
    return {"count": count, "read": read}


def serve(url: str, application: str) -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": url,
        "log_level": "ERROR",
        "application_version": "1",
        "executor_id": "bench",
        "max_executor_threads": 4 * CALLERS_MOST,
    }
    DBOS(config=config)

    @DBOS.step()  # type: ignore[untyped-decorator]
    def plus_one(n: int) -> int:
        return n + 1

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    def ten(n: int) -> int:
        for _ in range(10):
            n = plus_one(n)
        return n

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    def one(n: int) -> float:
        plus_one(n)
        return time.perf_counter()

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    def all_of(tasks: int) -> list[float]:
        started = [DBOS.enqueue_workflow("bench", one, n) for n in range(tasks)]
        return [each.get_result() for each in started]

    counter = counting(application)
    DBOS.launch()
    DBOS.register_queue("bench", polling_interval_sec=0.01)

    def fan(tasks: int, seconds: float) -> Sample:
        start = time.perf_counter()
        ended = all_of(tasks)
        return sample([at - start for at in ended], time.perf_counter() - start)

    def runs(callers: int, seconds: float) -> Sample:
        return by_threads(lambda who, number: ten(number), callers, seconds)

    answer({"ten": runs, "fan": fan, **counter})
    os._exit(0)  # its threads would be waited for


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
