"""store.sqlite.file - one file as this process holds it: opened, checked, lent, let go.

For: the connection that writes, the sidecar beside it, whether the file is still ours, BEGIN,
checkpoints.
Never: knows tables; decides what a failed commit did (engine does).
Was wrong once: trusting an open handle. A file that was removed, or inherited by a fork, takes
every write and keeps none.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import apsw

from onefold.store.batch import Unusable
from onefold.store.sqlite.connect import BUSY_TRIES, CACHE_KIB, Failpoint, Watched, connect, pauses, unusable
from onefold.store.sqlite.disk import Disk
from onefold.store.sqlite.hold import Mark, Sidecar, boot, highest
from onefold.store.sqlite.seats import SharedSidecar
from onefold.terms.errors import StoreLocked, StoreRolledBack, StoreUnavailable

SHORT = 2  # pauses for another process's commit before the loop goes on; why: docs/adr/0063
BESIDE_EACH = 16
# checks of the file for one of its WAL and mark; why: 2 us each, beside 150 for a commit, and what is
# lost with either is noticed at the next start.
AUTHOR_CACHE_KIB = 2_048
PAGE = 4_096
AGAIN_AT_ONCE = 1 << 20  # bytes of a WAL in memory while it is written again


@dataclass(frozen=True, slots=True)
class Options:
    """clock: milliseconds since 1970. lossy: a power cut may take the last commits along. shared: other processes
    have the file too."""

    clock: Callable[[], int]
    node: str = ""
    lossy: bool = False
    accept_rollback: bool = False
    failpoint: Failpoint | None = None
    shared: bool = False
    disk: Disk = field(default_factory=Disk)


class File:
    """`conn` is the connection that writes now: ours, or the author's while it is lent. `db` sends statements on it."""

    def __init__(self, name: str, path: str, options: Options) -> None:
        self.name = name
        self.path = path
        self.options = options
        self.conn: apsw.Connection | None = None
        self.db: Any = None
        self.wal_pages = 0
        self._own: apsw.Connection | None = None  # ours, while the author's writes
        self._sidecar: Sidecar | SharedSidecar | None = None
        self._pid = os.getpid()
        self._inode: tuple[int, int] | None = None
        self._wal_inode: tuple[int, int] | None = None
        self._beside_gone = False
        self._compares = True  # whether what the file holds is compared with the mark when it is opened
        self._checks = 0
        self._names = False  # whether the names of the file and its WAL are sure to survive

    @property
    def is_open(self) -> bool:
        return self.conn is not None

    # --- opening and closing --------------------------------------------------------------------

    def open(self, fill: Callable[[Mark | None], bytes]) -> None:
        """Take the lock and open; `fill` runs inside the first transaction, is given what the mark says that
        the file must hold (None when that is not asked), and gives the store's id.

        Raises: StoreLocked, StoreRolledBack, StoreUnavailable, and what `fill` raises.
        """
        self._pid = os.getpid()
        try:
            if self._sidecar is None:
                self._compares = not self.options.accept_rollback
                kind = SharedSidecar if self.options.shared else Sidecar
                self._sidecar = kind(
                    f"{self.path[:-3]}.mark", self.name, self.options.node, self.options.clock(), self.options.disk
                )
            with self._turn(wait=True):
                self._connect(self._sidecar, fill)
        except (apsw.Error, OSError) as error:
            self.drop()
            raise self.unusable(error).error from error
        except BaseException:
            self.drop()
            raise

    def close(self, top: int, commits: int) -> None:
        """Let go cleanly: everything in the main file, the mark says so. Raises: apsw.Error, OSError."""
        if self.conn is None or self._sidecar is None:
            return
        with self._turn(wait=True):
            last = self._sidecar.alone
            self._sidecar.write(top, commits)
            self._sidecar.front(0 if last else self._front(self.conn))
            self.conn.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0 if last else 1)
            self.conn.close()
            self.conn = self.db = None
            self._sidecar.end()
        sidecar, self._sidecar = self._sidecar, None
        sidecar.close(sync=True)

    def drop(self) -> None:
        """Let go as a kill would: the WAL stays, the mark says no more than it did."""
        self.reopen_later()
        if self._sidecar is not None:
            sidecar, self._sidecar = self._sidecar, None
            sidecar.close(sync=False)

    def reopen_later(self) -> None:
        """Close the connections and keep the lock. What the file holds then is not compared with the mark."""
        for conn in (self.conn, self._own):
            if conn is not None:
                conn.close(True)
        self.conn = self._own = self.db = None
        if self._sidecar is not None:
            self._compares = False

    def _connect(self, sidecar: Sidecar | SharedSidecar, fill: Callable[[Mark | None], bytes]) -> None:
        marks = sidecar.marks() if self._compares else []
        before = highest(marks)
        if before is not None and not os.path.exists(self.path):
            raise StoreRolledBack(self.name, before.top, 0)
        there, left = _size(self.path), _size(f"{self.path}-wal")
        self.wal_pages, self._names = 0, False
        if not os.path.exists(self.path):  # its owner's alone, whatever the umask; its WAL takes the same rights
            os.close(self.options.disk.open(self.path, os.O_RDWR | os.O_CREAT))
        options = self.options
        conn = self.conn = connect(self.path, vfs=options.disk.vfs, lossy=options.lossy, shared=options.shared)
        conn.set_wal_hook(self._wrote_wal)
        self._use(conn)
        self._inode = _inode(self.path)
        self._wal_inode, self._beside_gone = None, False
        started = boot()
        if before is not None and before.boot == started and before.front not in (0, self._front(conn)):
            raise StoreRolledBack(self.name, before.top, 0)
        self.begin()
        id = fill(highest([mark for mark in marks if not options.lossy or mark.boot == started]))
        if left:
            self._write_wal_again()
        self.db.execute("commit")
        sidecar.settle(id, started, anew=options.accept_rollback)
        if left or (there and self.wal_pages):
            # A new file's first page was synced on the way; one whose making was cut short has it in the cache, perhaps.
            self.sync_names()
            self._check_in(apsw.SQLITE_CHECKPOINT_PASSIVE)
        else:
            sidecar.front(self._front(conn))

    def _write_wal_again(self) -> None:
        """What the system's cache shows of the WAL may never have reached the disk: the process before was killed
        ahead of its sync, or its sync failed, after which the system takes the pages for written. Before anybody
        is told what stands in it, it is written once more and synced. Inside a transaction, so that nobody else writes.
        """
        disk = self.options.disk
        handle = disk.open(f"{self.path}-wal", os.O_RDWR)
        try:
            at = 0
            while some := os.pread(handle, AGAIN_AT_ONCE, at):
                at += disk.write(handle, some, at)
            disk.sync(handle)
        finally:
            os.close(handle)

    def _use(self, conn: apsw.Connection) -> None:
        self.conn = conn
        self.db = conn if self.options.failpoint is None else Watched(conn, self.options.failpoint)

    # --- in use -----------------------------------------------------------------------------------

    def check(self) -> None:
        """That this process may use this file now. Raises: StoreLocked, StoreUnavailable, OSError."""
        if os.getpid() != self._pid:
            raise StoreLocked(self.name, f"process {self._pid}, of which this one is a fork")
        if self.conn is None:
            return
        self._checks += 1
        if self._checks % BESIDE_EACH == 0:
            wal = _inode(f"{self.path}-wal")
            self._wal_inode = self._wal_inode or wal
            self._beside_gone = wal != self._wal_inode or (self._sidecar is not None and self._sidecar.moved())
        if self._beside_gone or _inode(self.path) != self._inode:
            why = "its file was removed or replaced while it was open; restart on the right file"
            raise StoreUnavailable(self.name, why)

    def begin(self) -> None:
        """BEGIN IMMEDIATE, tried for half a second where a foreign program writes; where other processes may, its
        connection waits by itself. Raises: apsw.Error, OSError."""
        for left in range(0 if self.options.shared else BUSY_TRIES, -1, -1):
            try:
                self.db.execute("begin immediate")
                return
            except apsw.BusyError:
                if not left:
                    raise

    def begin_now(self) -> bool:
        """BEGIN IMMEDIATE, tried for a millisecond; False where another process writes. Raises: apsw.Error, OSError."""
        assert self.conn is not None
        self.conn.set_busy_handler(partial(pauses, most=SHORT))
        try:
            self.db.execute("begin immediate")
        except apsw.BusyError:
            return False
        finally:
            self.conn.set_busy_handler(pauses)
        return True

    def sync_names(self) -> None:
        """Before the first commit after an opening. SQLite does so too, and passes over its error. Raises: OSError."""
        if not self._names:
            self.options.disk.sync_folder(os.path.dirname(self.path))
            self._names = True

    def stands(self) -> bool:
        return self.conn is not None and self.conn.in_transaction

    def leave(self) -> None:
        """End a transaction that only read: what was read stands, whatever its end meets. Never raises.

        Was wrong once: an error of this COMMIT left it open, and no question was answered any more.
        """
        try:
            self.db.execute("commit")
        except (apsw.Error, OSError):
            self.undo()

    def undo(self) -> None:
        """Leave the transaction, whatever state it is in. Never raises."""
        if self.stands():
            try:
                self.db.execute("rollback")
            except (apsw.Error, OSError):
                self.reopen_later()

    def note(self, top: int, commits: int) -> None:
        """Tell the mark how far was committed. It may stay behind where it cannot be written: it is never ahead."""
        if self._sidecar is not None:
            with suppress(OSError):
                self._sidecar.write(top, commits)

    def lend(self, conn: apsw.Connection) -> None:
        """From now on `conn`, the author's, is the one that writes."""
        self._own = self.conn
        self._use(conn)

    def take_back(self) -> None:
        """Ours writes again, unless an error closed both."""
        if self._own is not None:
            own, self._own = self._own, None
            self._use(own)

    def author_connection(self) -> apsw.Connection:
        """A second connection to the same file, for the author's door. Never writes at the same time as ours."""
        cache_kib = min(AUTHOR_CACHE_KIB, CACHE_KIB)
        vfs = self.options.disk.vfs
        conn = connect(self.path, vfs=vfs, lossy=self.options.lossy, cache_kib=cache_kib)
        conn.set_wal_hook(self._wrote_wal)
        return conn

    def checkpoint(self) -> None:
        """Check the WAL into the main file; the next commit then begins it anew. An error leaves the WAL as it is."""
        if self.conn is None or self._sidecar is None or self.conn.in_transaction or self._own is not None:
            return
        try:
            with self._sidecar.turn(wait=False) as mine:
                if mine:
                    self._check_in(apsw.SQLITE_CHECKPOINT_PASSIVE)
        except (apsw.Error, OSError):
            return  # nothing is lost: the WAL is still whole, and the next commit meets the same disk

    def empty_wal(self) -> None:
        """Check in everything and cut the WAL off, so that nothing can come back out of it. Raises: apsw.Error, OSError."""
        with self._turn(wait=True):
            self._check_in(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    @contextmanager
    def still(self) -> Iterator[bool]:
        """Whether nobody writes to the WAL meanwhile."""
        if not self.options.shared or self.conn is None:
            yield not self.options.shared
            return
        try:
            self.begin()
        except (apsw.Error, OSError):
            yield False
            return
        try:
            yield True
        finally:
            self.undo()

    @contextmanager
    def _turn(self, *, wait: bool) -> Iterator[None]:
        """Nobody else opens, checks in or leaves meanwhile. Raises: apsw.BusyError."""
        assert self._sidecar is not None
        with self._sidecar.turn(wait=wait) as mine:
            if not mine:
                raise apsw.BusyError("others open it, or check it in")
            yield

    def _check_in(self, mode: int) -> None:
        """Raises: apsw.Error, OSError; the WAL is still whole then."""
        assert self.conn is not None
        assert self._sidecar is not None
        self._sidecar.front(0)
        size, done = self.conn.wal_checkpoint(mode=mode)
        if size == done:
            self.wal_pages = 0
        self._sidecar.front(self._front(self.conn))

    def unusable(self, error: Exception) -> Unusable:
        """A driver's error as ours; one that is a fault of ours is raised as it is."""
        told = unusable(self.name, error)
        if self.options.shared and isinstance(error, apsw.BusyError | apsw.LockedError):
            told = StoreUnavailable(self.name, "other processes kept its file for longer than is waited for; try again")
        if told is None:
            raise error
        return Unusable(told)

    def _front(self, conn: apsw.Connection) -> int:
        """A checksum of the main file's first page, read without the WAL and without another handle of the file.

        Every growth of the file changes that page. An older copy put in its place has another one,
        while a newer WAL beside it would make its end look right.
        """
        _, page = conn.read("main", 0, 0, PAGE)
        return zlib.crc32(page) or 1

    def _wrote_wal(self, conn: apsw.Connection, name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK


def _size(path: str) -> int:
    """How many bytes a file has; 0 for none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _inode(path: str) -> tuple[int, int] | None:
    """Which file is there now; None for none."""
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino
