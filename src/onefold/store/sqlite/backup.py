"""store.sqlite.backup - a folder's files as they all were at one instant, in another folder.

For: `Snapshot`: taken beside an app that goes on, or of a folder at rest; the copy is a store by itself.
Never: takes a lock that an app may want; copies a mark (the copy ends where it ends, and that is right).
Was wrong once: one file after another. A call that one space had sent and struck off was in no other: the run that it
began was never heard of again.

The instant: every file's version is read, then every file's reader begins, then the versions are read again. Where none
has changed, all readers stand at the moment between. A file at rest has no reader; its size and times stand for it until
it is copied.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import apsw

from onefold.store.sqlite.connect import BUSY_MS, pauses
from onefold.store.sqlite.export import told, uri

TRIES = 6_000  # half a millisecond each, and what the looks take
AGAIN = 5  # whole copies, should a file at rest be opened meanwhile


class Moving(Exception):
    """No instant was found at which nothing was being written."""


def backup(folder: Path, into: Path, *, failpoint: Callable[[], None] = lambda: None) -> list[str]:
    """Copy every space's file, and whatever else lies in the folder but marks and logs. Gives the names of the spaces.

    `into` is made, and holds the beginning of a copy when this raises. Raises: Moving, StoreUnavailable, OSError.
    """
    spaces = sorted(path.stem for path in folder.glob("*.db"))
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(AGAIN):
        if _copied(folder, spaces, into, failpoint):
            break
    else:
        raise Moving
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            shutil.copytree(path, into / path.name, dirs_exist_ok=True)
        elif path.suffix not in (".db", ".mark") and not path.name.endswith(("-wal", "-shm")):
            shutil.copy2(path, into / path.name)
    for path in (*into.rglob("*"), into):
        _sync(path)
    return spaces


def _copied(folder: Path, spaces: list[str], into: Path, failpoint: Callable[[], None]) -> bool:
    """Whether all of it is of one instant."""
    for tried in range(TRIES):
        with ExitStack() as stack:
            files = [File(folder / f"{space}.db", stack) for space in spaces]
            failpoint()
            for file in files:
                file.begin()
            if all(file.is_as_it_was() for file in files):
                for file in files:
                    file.copy(into / file.path.name)
                return all(file.rests_still() for file in files)
        if not pauses(tried, TRIES):
            break
    raise Moving


class File:
    """One space's file, looked at from when this is made."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self._wal = Path(f"{path}-wal")
        self._stat = self._seen()
        self._db: apsw.Connection | None = None
        if self._stat is None:
            with told(path.stem):
                self._db = apsw.Connection(uri(str(path)), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
                stack.callback(self._db.close, True)
                self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                self._db.set_busy_timeout(BUSY_MS)
                self._version = self._db.pragma("data_version")

    def begin(self) -> None:
        if self._db is not None:
            with told(self.path.stem):
                self._db.execute("begin")
                self._db.execute("select count(*) from sqlite_schema").fetchall()

    def is_as_it_was(self) -> bool:
        if self._db is None:
            return self.rests_still()
        return bool(self._db.pragma("data_version") == self._version)

    def rests_still(self) -> bool:
        return self._db is not None or self._seen() == self._stat

    def copy(self, to: Path) -> None:
        """Raises: StoreUnavailable, OSError."""
        to.unlink(missing_ok=True)
        os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if self._db is None:
            shutil.copyfile(self.path, to)
            return
        with told(self.path.stem):
            made = apsw.Connection(str(to))
            try:
                made.execute("pragma synchronous=off")
                with made.backup("main", self._db, "main") as copying:
                    while not copying.done:
                        copying.step(10_000)
            finally:
                made.close(True)

    def _seen(self) -> tuple[int, int, int] | None:
        """What a file at rest is known by; None for one with a log, which somebody may be writing."""
        if self._wal.exists() and self._wal.stat().st_size:
            return None
        stat = self.path.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
