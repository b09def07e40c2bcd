"""testing.faulty_disk.disk - a disk that keeps a tape, and fails when it is told to.

For: SQLite's own files through a VFS and the store's own calls beside it, counted as one row of operations;
an error at the k-th of them, once or from there on; the power off.
Never: loses what it was given by itself: the files are there as the system's cache has them, and what a power cut
would leave is for the tape to say.
Was wrong once: errors at the k-th statement only. A commit is a dozen operations, and each of them can fail.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Container
from typing import Any, Literal, TypeAlias

import apsw

from onefold.store.sqlite.disk import Disk
from onefold.testing.faulty_disk.tape import Cut, NamesSynced, Note, Platter, Synced, SyncFailed, Tape, Wrote

Kind: TypeAlias = Literal["open", "read", "write", "cut", "sync", "gone", "folder"]
Error: TypeAlias = Literal["io", "full", "read-only", "short"]

CHANGES: frozenset[Kind] = frozenset(("open", "write", "cut", "sync", "gone", "folder"))
EVERYTHING: frozenset[Kind] = CHANGES | {"read"}
_MEANT: dict[Error, frozenset[Kind]] = {
    "io": EVERYTHING,
    "full": frozenset(("open", "write")),
    "read-only": CHANGES - {"sync"},
    "short": frozenset(("read",)),
}
_IO: dict[Kind, int] = {
    "open": apsw.SQLITE_CANTOPEN,
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "cut": apsw.SQLITE_IOERR_TRUNCATE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "gone": apsw.SQLITE_IOERR_DELETE,
}
_NUMBER: dict[Error, int] = {"io": errno.EIO, "full": errno.ENOSPC, "read-only": errno.EROFS}
_SYNCED_WITH_ITS_NAME = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
_NUMBERS = itertools.count()


class FaultyDisk(Disk):
    """Give it to `SqliteWorld(disk=...)`. `tape`: what was done. `opened`: how often each name was opened. `met`: how
    many operations came since `fail` that it was about; `struck`: how many of them failed; `hit`: which.
    """

    def __init__(self, behind: Platter | None = None) -> None:
        """`behind`: the disk as the process before left it; its files are where the store will look for them."""
        self.tape = Tape(behind)
        self.opened: dict[str, int] = {}
        self.hit: list[tuple[Kind, str]] = []
        self.met = self.struck = 0
        self.lies = False  # whether it says that it synced, and does not
        self._fails: Callable[[Kind, str], Error | None] = lambda kind, name: None
        self._handles: dict[int, str] = {}
        self.vfs = f"onefold-faulty-{next(_NUMBERS)}"
        self._vfs = _Vfs(self, self.vfs)

    def close(self) -> None:
        self._vfs.unregister()

    # --- what a test tells it -------------------------------------------------------------------

    def fail(
        self,
        error: Error,
        *,
        at: int = 1,
        lasting: bool = False,
        kinds: Container[Kind] = CHANGES,
        on: str | tuple[str, ...] = "",
    ) -> None:
        """Fail the `at`-th operation of these kinds on files whose names end with `on`, or all from there on."""
        self.met = self.struck = 0
        meant = _MEANT[error]

        def fails(kind: Kind, name: str) -> Error | None:
            if kind not in kinds or kind not in meant or not name.endswith(on):
                return None
            self.met += 1
            return error if self.met == at or (lasting and self.met > at) else None

        self._fails = fails

    def heal(self) -> None:
        """Nothing fails any more."""
        self._fails = lambda kind, name: None

    def power_off(self, *, at: int = 1) -> None:
        """At the `at`-th change from now on the power goes: it does not happen, and nothing after it."""
        self.met = self.struck = 0

        def off(kind: Kind, name: str) -> Error | None:
            self.met += kind in CHANGES
            self.tape.stopped = self.tape.stopped or self.met >= at
            return "io" if self.tape.stopped else None

        self._fails = off

    def note(self, said: Any) -> None:
        self.tape.record(Note(said))

    # --- what the store asks of it ----------------------------------------------------------------

    def make_folder(self, path: str) -> None:
        self.ask("folder", path)
        super().make_folder(path)

    def sync_folder(self, path: str) -> None:
        self.ask("folder", path)
        if not self.lies:
            super().sync_folder(path)
            self.tape.record(NamesSynced())

    def open(self, path: str, flags: int) -> int:
        self.ask("open", path)
        made = not os.path.exists(path)
        handle = super().open(path, flags)
        self._handles[handle] = path
        self.file(path, new=made)
        return handle

    def write(self, handle: int, data: bytes, at: int) -> int:
        path = self._handles[handle]
        self.ask("write", path)
        done = super().write(handle, data, at)
        self.wrote(path, data[:done], at)
        return done

    def sync(self, handle: int) -> None:
        path = self._handles[handle]
        self.ask("sync", path)
        if not self.lies:
            super().sync(handle)
            self.tape.record(Synced(self.file(path)))

    # --- for its VFS --------------------------------------------------------------------------------

    def ask(self, kind: Kind, path: str) -> None:
        """Raises: OSError, when this operation is to fail."""
        error = self.judge(kind, path)
        if error is not None:
            raise OSError(_NUMBER[error], os.strerror(_NUMBER[error]), path)

    def judge(self, kind: Kind, path: str) -> Error | None:
        name = os.path.basename(path)
        if kind == "open":
            self.opened[name] = self.opened.get(name, 0) + 1
        error = self._fails(kind, name)
        if error is not None:
            self.struck += 1
            self.hit.append((kind, name))
            if kind == "sync" and not self.tape.stopped:
                self.tape.record(SyncFailed(self.file(path)))
        return error

    def file(self, path: str, *, new: bool = False) -> int:
        return self.tape.file(os.path.basename(path), new=new)

    def wrote(self, path: str, data: bytes, at: int) -> None:
        self.tape.record(Wrote(self.file(path), at, data))


def _raised(kind: Kind, error: Error) -> Exception:
    code = apsw.SQLITE_FULL if error == "full" and kind == "write" else _IO[kind]
    return apsw.exception_for(code)


class _Vfs(apsw.VFS):
    """SQLite's own VFS, asked for nothing that the disk has not been asked for first."""

    def __init__(self, disk: FaultyDisk, name: str) -> None:
        self._disk = disk
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None:
            return apsw.VFSFile("", None, flags)
        error = self._disk.judge("open", path)
        if error is not None and (error == "io" or flags[0] & apsw.SQLITE_OPEN_READWRITE):
            raise _raised("open", error)
        return _Opened(self._disk, name, path, flags)

    def xDelete(self, path: str, syncs: bool) -> None:
        error = self._disk.judge("gone", path)
        if error is not None:
            raise _raised("gone", error)
        super().xDelete(path, syncs and not self._disk.lies)
        self._disk.tape.gone(os.path.basename(path))
        if syncs and not self._disk.lies:
            self._disk.tape.record(NamesSynced())

    def excepthook(self, kind: Any, fault: Any, trace: Any) -> Any:
        """SQLite passes over some errors, as it does over those of the real disk."""


class _Opened(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, path: str, flags: list[int]) -> None:
        self._disk = disk
        self._path = path
        made = not os.path.exists(path)
        super().__init__("", name, flags)
        self._file = disk.file(path, new=made)
        self._names = made and bool(flags[0] & _SYNCED_WITH_ITS_NAME)

    def xRead(self, amount: int, at: int) -> bytes:
        error = self._disk.judge("read", self._path)
        if error == "short":
            return super().xRead(amount // 2, at)
        if error is not None:
            raise _raised("read", error)
        return super().xRead(amount, at)

    def xWrite(self, data: Any, at: int) -> None:
        error = self._disk.judge("write", self._path)
        if error is None or error == "full":  # where there is no room for all of it, there may be for some
            some = bytes(data) if error is None else bytes(data[: len(data) // 2])
            super().xWrite(some, at)
            self._disk.tape.record(Wrote(self._file, at, some))
        if error is not None:
            raise _raised("write", error)

    def xTruncate(self, size: int) -> None:
        error = self._disk.judge("cut", self._path)
        if error is not None:
            raise _raised("cut", error)
        super().xTruncate(size)
        self._disk.tape.record(Cut(self._file, size))

    def xSync(self, flags: int) -> None:
        error = self._disk.judge("sync", self._path)
        if error is not None:
            raise _raised("sync", error)
        if not self._disk.lies:
            super().xSync(flags)
            self._disk.tape.record(Synced(self._file, self._names))
            self._names = False

    def excepthook(self, kind: Any, fault: Any, trace: Any) -> Any:
        """As of the VFS."""
