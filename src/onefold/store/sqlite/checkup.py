"""store.sqlite.checkup - what a folder's files look like from outside, for `onefold doctor`.

For: each file's size, what SQLite's own check says about it, who holds it, how far it was acknowledged.
Never: writes, recovers, migrates; keeps a lock longer than the question takes.
Was wrong once: looking by opening. The look took the lock, and the app that was just starting was
told that somebody held its store.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw

from onefold.store.sqlite.connect import glance, unusable
from onefold.store.sqlite.hold import acknowledged, holder_of

HEAD = 512  # bytes of a mark that name its holder
MOST_FAULTS = 20  # of one file; a damaged one has thousands, and the first tell as much


@dataclass(frozen=True, slots=True)
class File:
    """One space's file. `bytes` and `wal_bytes`: sizes. `turns`: how far it was acknowledged, None without a mark.

    `holder`: the process that holds it, None when nobody does. `faults`: what the check found, in SQLite's words.
    """

    space: str
    bytes: int
    wal_bytes: int
    turns: int | None
    holder: str | None
    faults: tuple[str, ...]


def checkup(folder: Path) -> Iterator[File]:
    """Every space in `folder`, by name. A space whose mark is there and whose file is gone is listed with that fault."""
    spaces = {path.stem for path in folder.glob("*.db")} | {path.stem for path in folder.glob("*.mark")}
    for space in sorted(spaces):
        yield _file(folder, space)


def _file(folder: Path, space: str) -> File:
    path, wal, mark = (folder / f"{space}.{end}" for end in ("db", "db-wal", "mark"))
    faults = tuple(_faults(space, path)) if path.exists() else ("its file is gone, and its mark is still there",)
    return File(space, _size(path), _size(wal), _turns(mark), _holder(mark), faults)


def _faults(space: str, path: Path) -> Iterator[str]:
    db = None
    try:
        db = glance(str(path))
        for (line,) in db.execute(f"pragma quick_check({MOST_FAULTS})"):
            if line != "ok":
                yield str(line)
    except (apsw.Error, OSError) as error:
        told = unusable(space, error)
        if told is None:
            raise
        yield str(told)
    finally:
        if db is not None:
            db.close()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _turns(mark: Path) -> int | None:
    return acknowledged(mark.read_bytes()) if mark.exists() else None


def _holder(mark: Path) -> str | None:
    if not mark.exists():
        return None
    handle = os.open(mark, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return holder_of(os.pread(handle, HEAD, 0))
    finally:
        os.close(handle)
    return None
