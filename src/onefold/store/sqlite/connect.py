"""store.sqlite.connect - how a file is opened, and what its errors mean to a caller.

For: pragmas with their reasons, the seam for failpoints, driver errors as ours.
Never: keeps a connection.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import apsw

from onefold.terms.errors import OnefoldError, StoreUnavailable

OLDEST_LIBRARY = (3, 51, 3)  # why: below it a WAL reset beside a second connection can corrupt the file
BUSY_TRIES = 25
BUSY_MS = 20  # why: Python handles no signal while SQLite waits; 25 times 20 ms is half a second in all
CACHE_KIB = 16_384
PAUSE_S = 0.0005  # why: SQLite's own waits grow to 25 ms, in which a neighbour that commits all the time is not met
PAUSES = 4_000  # two seconds in all, or somewhat more


def pauses(tried: int, most: int = 0) -> bool:
    """Wait a moment for another process; False when it was waited long enough."""
    if tried >= (most or PAUSES):
        return False
    time.sleep(PAUSE_S)  # noqa: TID251 - the writer's lock is another process's, and commits run on the loop's thread
    return True


Failpoint = Callable[[str], None]

# The driver's errors that say "the world failed", with the sentence for people. Others are faults of ours.
_WORLD: tuple[tuple[type[apsw.Error], str], ...] = (
    (apsw.FullError, "the disk is full; free some room, nothing needs a restart"),
    (apsw.ReadOnlyError, "its file or its disk is read-only; make it writable"),
    (apsw.CantOpenError, "its file cannot be opened; check the folder's rights and whether its disk is read-only"),
    (apsw.BusyError, "another program is writing to its file; close that program"),
    (apsw.LockedError, "another program is writing to its file; close that program"),
    (apsw.CorruptError, "its file is damaged; restore a backup"),
    (apsw.NotADBError, "its file is not a database; restore a backup"),
    (apsw.NoMemError, "there is no memory left for it"),
    (apsw.ProtocolError, "the locks of its file do not answer; is it on a network filesystem?"),
    (apsw.IOError, "its disk reported an error; look at the system's log"),
    (apsw.InterruptError, "the statement was interrupted"),
)


def connect(
    path: str, *, vfs: str | None = None, lossy: bool = False, cache_kib: int = CACHE_KIB, shared: bool = False
) -> apsw.Connection:
    """Open `path` for reading and writing, creating it. `lossy` may lose the last commits to a power cut. `shared`:
    other processes write to it too, and are waited for.

    WAL with synchronous=FULL: an answered commit survives a power cut (NORMAL lost 109 and 144
    commits in two of four cuts, silently). The WAL is never cut short, so that commits overwrite
    blocks that are there already, and is checkpointed by us alone.
    """
    db = apsw.Connection(path, vfs=vfs, statementcachesize=512)
    try:
        # A file that is refused must stay as it is, and so must one of which a pragma failed: nothing is checked in
        # when its connection closes, since the mark would not know.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if shared:
            db.set_busy_handler(pauses)
        else:
            db.set_busy_timeout(BUSY_MS)
        for pragma in (
            "pragma page_size=4096",
            "pragma journal_mode=wal",
            f"pragma synchronous={'normal' if lossy else 'full'}",
            "pragma wal_autocheckpoint=0",
            "pragma journal_size_limit=-1",
            f"pragma cache_size=-{cache_kib}",
            "pragma temp_store=memory",
            "pragma trusted_schema=off",
            "pragma foreign_keys=off",
        ):
            db.execute(pragma).fetchall()
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        if db.pragma("journal_mode") != "wal":
            raise apsw.CantOpenError("the file is not in WAL mode")
    except BaseException:
        db.close()
        raise
    return db


def glance(path: str, vfs: str | None = None) -> apsw.Connection:
    """Open a file at rest for reading alone: no lock is taken, nothing is created or recovered where that is not needed.

    Without a WAL beside it the file is complete and nobody's: `immutable` skips locks and the shared index.
    """
    wal = path + "-wal"
    quiet = not os.path.exists(wal) or os.path.getsize(wal) == 0
    uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(uri + ("?immutable=1" if quiet else ""), flags=flags, vfs=vfs)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # the last one out would try to check in, and this one may not
    db.set_busy_timeout(BUSY_MS)
    return db


def unusable(space: str, error: BaseException) -> OnefoldError | None:
    """What a caller is told about a driver's error, or None when it is a fault of ours."""
    for kind, why in _WORLD:
        if isinstance(error, kind):
            return StoreUnavailable(space, why)
    if isinstance(error, OSError):
        return StoreUnavailable(space, f"its disk reported an error ({error.strerror or error})")
    return None


class Watched:
    """A connection that calls the failpoint with "statement" before each statement. Only made where one is set."""

    def __init__(self, db: apsw.Connection, failpoint: Failpoint) -> None:
        self._db = db
        self._failpoint = failpoint

    def execute(self, sql: str, values: Any = None) -> apsw.Cursor:
        self._failpoint("statement")
        return self._db.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Any]) -> apsw.Cursor:
        self._failpoint("statement")
        return self._db.executemany(sql, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)
