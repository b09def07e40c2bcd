"""bench.contenders.disk - what SQLite itself allows here, in the WAL mode that Onefold uses.

For: `rows N seconds`: one-row records of a log, N of them to a commit, synced, the WAL grown before
and used again.
Never: times the checkpoint that makes the WAL usable again: this is the limit, not a system.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import apsw

from bench.answering import answer
from bench.measures import Sample, sample

ROW = os.urandom(400)  # bytes: event, fact, owed and reply of a usual fold
GROWN = 4_000  # pages that the WAL holds before it is used again
INSERT = "INSERT INTO log (bytes) VALUES (?)"


def opened(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    for pragma in ("journal_mode=wal", "synchronous=full", "wal_autocheckpoint=0", "journal_size_limit=-1"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("CREATE TABLE log (seq INTEGER PRIMARY KEY, bytes BLOB NOT NULL)")
    with db:
        db.executemany(INSERT, [(os.urandom(3_500),) for _ in range(GROWN)])
    db.execute("DELETE FROM log")
    restart(db)
    return db


def restart(db: apsw.Connection) -> None:
    """The next commit writes to the WAL's first page again."""
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)


def main(folder: Path) -> None:
    db = opened(folder / "limit.db")
    pages = 0

    def wrote(_: apsw.Connection, __: str, number: int) -> int:
        nonlocal pages
        pages = number
        return apsw.SQLITE_OK

    db.set_wal_hook(wrote)

    def rows(each: int, seconds: float) -> Sample:
        latencies: list[float] = []
        given = [(ROW,)] * each
        clock, elapsed = time.perf_counter, 0.0
        while elapsed < seconds:
            restart(db)
            start = before = clock()
            pages_left = True
            while pages_left and elapsed + before - start < seconds:
                if each == 1:
                    db.execute(INSERT, given[0])
                else:
                    db.execute("BEGIN IMMEDIATE")
                    db.executemany(INSERT, given)
                    db.execute("COMMIT")
                after = clock()
                latencies.append(after - before)
                before = after
                pages_left = pages < GROWN - 100
            elapsed += before - start
        taken = sample(latencies, elapsed)
        return Sample(taken.rate * each, taken.p50, taken.p99, taken.count * each)

    answer({"rows": rows})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
