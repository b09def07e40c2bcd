"""store.sqlite.checkup - what a folder's files look like from outside, for `onefold doctor`.

For: each file's size, what SQLite's own check says about it, who holds it, how many rows a table has.
Never: writes, recovers, migrates; keeps a lock longer than the question takes.
Was wrong once: looking by opening. The look took the lock, and the app that was just starting was
told that somebody held its store. And the highest number acknowledged, shown as a count: numbers skip.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw

from onefold.store.contract import Table
from onefold.store.sqlite.connect import glance, unusable
from onefold.store.sqlite.hold import HEAD, holder_of, seated
from onefold.store.sqlite.sql import RESERVED

MOST_FAULTS = 20  # of one file; a damaged one has thousands, and the first tell as much


@dataclass(frozen=True, slots=True)
class File:
    """One space's file. `bytes` and `wal_bytes`: sizes. `turns`: rows of the counted table, None where it cannot be read.

    `holder`: the process that holds it, None when nobody does. `faults`: what the check found, in SQLite's words.
    """

    space: str
    bytes: int
    wal_bytes: int
    turns: int | None
    holder: str | None
    faults: tuple[str, ...]


def checkup(folder: Path, counted: Table) -> Iterator[File]:
    """Every space in `folder`, by name. A space whose mark is there and whose file is gone is listed with that fault."""
    spaces = {path.stem for path in folder.glob("*.db")} | {path.stem for path in folder.glob("*.mark")}
    for space in sorted(spaces):
        yield _file(folder, space, counted)


def _file(folder: Path, space: str, counted: Table) -> File:
    path, wal, mark = (folder / f"{space}.{end}" for end in ("db", "db-wal", "mark"))
    turns = None
    faults: tuple[str, ...] = ("its file is gone, and its mark is still there",)
    if path.exists():
        turns, faults = _look(space, path, counted)
    return File(space, _size(path), _size(wal), turns, _holder(mark), faults)


def _look(space: str, path: Path, counted: Table) -> tuple[int | None, tuple[str, ...]]:
    """How many rows the counted table has, and what is wrong with the file."""
    db = None
    turns: int | None = None
    try:
        db = glance(str(path))
        faults = tuple(str(line) for (line,) in db.execute(f"pragma quick_check({MOST_FAULTS})") if line != "ok")
        if not faults and db.table_exists("main", name := f"{RESERVED}{counted.name}"):
            ((turns,),) = db.execute(f'select count(*) from "{name}"')
    except (apsw.Error, OSError) as error:
        told = unusable(space, error)
        if told is None:
            raise
        faults = (str(told),)
    finally:
        if db is not None:
            db.close()
    return turns, faults


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


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
    return "; ".join(seated(str(mark))) or None
