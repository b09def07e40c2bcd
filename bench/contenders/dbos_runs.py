"""bench.contenders.dbos_runs - DBOS on SQLite: workflows of ten steps, called in process from threads.

For: `ten callers seconds`. Runs in the peers' environment.
Never: weakens its SQLite: the settings are its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dbos import DBOS, DBOSConfig  # type: ignore[import-not-found]

from bench.answering import answer
from bench.measures import Sample, by_threads

CALLERS_MOST = 64


def main(folder: Path) -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{folder}/system.db",
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

    DBOS.launch()

    def runs(callers: int, seconds: float) -> Sample:
        return by_threads(lambda who, number: ten(number), callers, seconds)

    answer({"ten": runs})
    os._exit(0)  # its threads would be waited for


if __name__ == "__main__":
    main(Path(sys.argv[1]))
