"""store.sqlite.world - a folder of files, of which few are open.

For: opening spaces by name, closing the least recently used, asking one thing of a space at rest.
Never: lets a name reach outside its folder; closes a space that has work.
"""

from __future__ import annotations

import os
import re
import resource
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import apsw

from onefold.store.contract import Answer, Query, Schema
from onefold.store.sqlite.connect import OLDEST_LIBRARY, Failpoint
from onefold.store.sqlite.disk import Disk
from onefold.store.sqlite.engine import SqliteEngine
from onefold.store.sqlite.file import Options
from onefold.store.sqlite.glances import Glances
from onefold.store.sqlite.shared import SharedEngine
from onefold.store.sqlite.space import SqliteSpace
from onefold.terms.errors import Finding, LoadRefused, StoreUnavailable

OPEN_AT_MOST = 256
HANDLES = 6  # file handles of one open space: file, WAL and mark, their author's file and WAL, the shared index
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class SqliteWorld:
    """Spaces as files in `folder`.

    clock: milliseconds since 1970. node: named in the lock. durability: "full", or
    "lossy-on-power-cut", which survives only a crash of the process. accept_rollback: open
    files that end before what was acknowledged. shared: other processes of this machine may have `main` too; every other
    space is its opener's alone. failpoint: called with "statement",
    "before-commit" and "after-commit"; an OSError it raises is a disk that failed there.
    disk: through which every file is reached; for tests.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        clock: Callable[[], int],
        node: str = "",
        durability: str = "full",
        accept_rollback: bool = False,
        shared: bool = False,
        open_at_most: int = OPEN_AT_MOST,
        failpoint: Failpoint | None = None,
        disk: Disk | None = None,
    ) -> None:
        if durability not in ("full", "lossy-on-power-cut"):
            raise ValueError(f"durability is 'full' or 'lossy-on-power-cut', not {durability!r}")
        library = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
        if library < OLDEST_LIBRARY:
            raise StoreUnavailable("main", f"SQLite {apsw.sqlite_lib_version()} can corrupt a WAL; 3.51.3 is needed")
        self.folder = os.path.abspath(os.fspath(folder))
        self._disk = disk or Disk()
        self._options = Options(clock, node, durability != "full", accept_rollback, failpoint, disk=self._disk)
        self._shared = shared
        self._spaces: OrderedDict[str, SqliteSpace] = OrderedDict()
        self._glances = Glances(self._disk.vfs)
        self._first = ""  # the space that stays open: whoever holds it keeps other processes out of the folder
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._room = max(8, min(open_at_most, (soft - 128) // HANDLES))

    async def open(self, name: str, schemas: Sequence[Schema]) -> SqliteSpace:
        """Raises: StoreLocked, StoreRolledBack, StoreTooNew, LoadRefused, StoreUnavailable."""
        space = self._spaces.get(name)
        if space is None:
            path = self._path(name)
            _check_own(name, schemas)
            try:
                self._disk.make_folder(self.folder)
            except OSError as error:
                raise StoreUnavailable(name, f"its folder cannot be made ({error.strerror})") from error
            engine = self._engine(name, path, schemas)
            engine.open()
            space = self._spaces[name] = SqliteSpace(engine, self._used)
            self._first = self._first or name
        return space

    async def soonest(self, name: str, query: Query) -> tuple[Answer, ...]:
        space = self._spaces.get(name)
        if space is not None and space.engine.is_open:
            return space.engine.look((query,))
        return self._glances.ask(self._path(name), name, query)

    def let_go(self, name: str) -> None:
        """Close one space: another process may have its file from now on."""
        space = self._spaces.pop(name, None)
        if space is not None:
            space.close()

    async def close(self) -> None:
        with ExitStack() as every:  # one that cannot be closed well keeps no other open
            for space in self._spaces.values():
                every.callback(space.close)
            self._spaces.clear()

    def abandon(self) -> None:
        """Let go of every file as a kill would leave it. For tests."""
        for space in self._spaces.values():
            space.abandon()
        self._spaces.clear()

    def _engine(self, name: str, path: str, schemas: Sequence[Schema]) -> SqliteEngine:
        if self._shared and name == "main":
            return SharedEngine(name, path, schemas, replace(self._options, shared=True), self._make_room)
        return SqliteEngine(name, path, schemas, self._options, self._make_room)

    def _path(self, name: str) -> str:
        if not _NAME.fullmatch(name) or ".." in name:
            raise LoadRefused([Finding(f"space {name!r}", "a space's name is lower-case letters, digits, _ . and -")])
        return os.path.join(self.folder, f"{name}.db")

    def _used(self, name: str) -> None:
        if name in self._spaces:
            self._spaces.move_to_end(name)

    def _make_room(self, wanted: str) -> None:
        """Close the least recently used spaces that are idle until there is room for one more."""
        self._glances.forget(wanted)
        opened = [s for s in self._spaces.values() if s.engine.is_open and s.name != wanted]
        for space in [s for s in opened if s.name != self._first][: max(0, len(opened) + 1 - self._room)]:
            if space.idle:
                space.rest()


def _check_own(name: str, schemas: Sequence[Schema]) -> None:
    """Raises: LoadRefused for a table of the whole world anywhere but in `main`: no commit spans two files."""
    for table in [t for s in schemas for t in s.tables if t.everywhere and name != "main"]:
        raise LoadRefused([Finding(f"space {name!r}", f"its own file cannot have {table.name!r}, which is main's")])
