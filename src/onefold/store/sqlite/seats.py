"""store.sqlite.seats - the mark of a file that several processes have: one for all of them, and a seat for each.

For: `<space>.mark`, held shared, with what the main file's first page was like; `<space>.mark-0`, `-1`, .. of which each
process holds one alone: who it is, and how far it acknowledged. Whose turn it is with the log, by a lock of the folder.
Never: lets in who wants the file alone, or comes in beside them; writes another's seat while they live.
Was wrong once: one mark that all wrote. A commit's was written over by the one before it, and what was acknowledged
last was not missed. And a mark that was read before one's turn: what others checked in meanwhile looked like a loss.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count

from onefold.store.sqlite.connect import pauses
from onefold.store.sqlite.disk import Disk
from onefold.store.sqlite.hold import (
    BLANK,
    HEAD,
    WHOLE,
    Mark,
    described,
    holder_of,
    marks,
    read,
    seated,
    seats,
    written,
)
from onefold.terms.errors import StoreLocked

OPENING_TRIES = 10_000  # of half a millisecond; why: an opening may migrate, and write all of a log once more


class SharedSidecar:
    """A process's seat at one space. Keep it open for as long as the space is. See `hold.Sidecar`."""

    def __init__(self, path: str, space: str, node: str, now_ms: int, disk: Disk) -> None:
        """Take a seat. Raises: StoreLocked, naming who has it alone; OSError."""
        self.path = path
        self._disk = disk
        self._fds: list[int] = []
        try:
            self._all = self._keep(disk.open(path, os.O_RDWR | os.O_CREAT))
            if not _taken(self._all, fcntl.LOCK_SH):
                raise StoreLocked(space, holder_of(os.pread(self._all, HEAD, 0)))
            self._folder = self._keep(os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            self._mine, self.seat = self._sit()
            disk.write(self._all, BLANK, 0)  # whoever had it alone does no more
            disk.write(self._mine, described(node, now_ms), 0)
        except BaseException:
            self._close()
            raise
        self._front = self._top = self._commits = 0
        self._noted = True  # whether the mark of all knows what this seat's does
        self._looked = False

    def marks(self) -> list[Mark]:
        """What it says and what the seats say, ours of before too. In one's turn: whoever checks in changes it."""
        return marks(self._all, self.path)

    def settle(self, id: bytes, boot: bytes, *, anew: bool) -> None:
        """From now on the marks are written for this store, during this start of the machine. `anew`: whatever they
        said before."""
        self._id, self._boot, self._anew = id, boot, anew
        self._front = 0
        self._write(self._all, self._mark(0, 0) if anew else self._together())

    def write(self, top: int, commits: int) -> None:
        """Note how far was committed. Before the answer, and cheap: no sync, one write to a place of our own."""
        self._top, self._commits = top, commits
        self._noted = False
        self._write(self._mine, self._mark(top, commits))
        if not self._looked:
            self._looked = True
            self._clear_the_dead()

    def front(self, checksum: int) -> None:
        """Note what the main file's first page is like, for all. Only in one's turn."""
        self._front = checksum
        self._write(self._all, self._together())
        self._noted = True

    def end(self) -> None:
        """Everything is in the main file, which is closed; `front` has noted the rest."""

    def moved(self) -> bool:
        """Whether one of the files was removed or replaced, and its lock with it."""
        return any(os.fstat(fd).st_nlink == 0 for fd in (self._all, self._mine))

    @contextmanager
    def turn(self, *, wait: bool) -> Iterator[bool]:
        """Whether it is our turn with the log: one process at a time opens, checks in or leaves. Raises: OSError."""
        tries = OPENING_TRIES if wait else 0
        mine = _taken(self._folder, fcntl.LOCK_EX)
        for tried in range(tries):
            if mine or not pauses(tried, tries):
                break
            mine = _taken(self._folder, fcntl.LOCK_EX)
        try:
            yield mine
        finally:
            if mine:
                fcntl.flock(self._folder, fcntl.LOCK_UN)

    @property
    def alone(self) -> bool:
        """Whether nobody else has a seat. In one's turn nobody takes one and writes."""
        return not seated(self.path, but=self.seat)

    def close(self, *, sync: bool) -> None:
        """Leave the seat, whatever the disk says. Raises: OSError when `sync` was wanted and failed."""
        try:
            if sync:
                self._disk.sync(self._all)
        finally:
            with suppress(OSError):  # a name that stays names nobody who holds the lock
                self._disk.write(self._mine, BLANK + bytes(WHOLE) if sync and self._noted else BLANK, 0)
            self._close()

    def _sit(self) -> tuple[int, str]:
        """The first seat that nobody has."""
        for number in count():
            path = f"{self.path}-{number}"
            fd = self._disk.open(path, os.O_RDWR | os.O_CREAT)
            if _taken(fd, fcntl.LOCK_EX):
                return self._keep(fd), path
            os.close(fd)
        raise AssertionError

    def _clear_the_dead(self) -> None:
        """Those who acknowledged no more than our mark says, or who are not to count."""
        for path in seats(self.path):
            if path == self.seat:
                continue
            with suppress(OSError):
                fd = self._disk.open(path, os.O_RDWR)
                try:
                    said = read(fd) if _taken(fd, fcntl.LOCK_EX) else None
                    if said is not None and (self._anew or self._covers(said)):
                        self._disk.write(fd, BLANK + bytes(WHOLE), 0)
                finally:
                    os.close(fd)

    def _covers(self, said: Mark) -> bool:
        return said.top <= self._top and said.commits <= self._commits

    def _together(self) -> Mark:
        """The mark of all, with what we know."""
        now = read(self._all)
        if now is None or now.id != self._id:
            return self._mark(self._top, self._commits)
        return self._mark(max(now.top, self._top), max(now.commits, self._commits))

    def _mark(self, top: int, commits: int) -> Mark:
        return Mark(self._id, self._boot, top, commits, self._front, clean=False)

    def _write(self, fd: int, mark: Mark) -> None:
        self._disk.write(fd, written(mark if fd == self._all else replace(mark, front=0)), HEAD)

    def _keep(self, fd: int) -> int:
        self._fds.append(fd)
        return fd

    def _close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())


def _taken(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
