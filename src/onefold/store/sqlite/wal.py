"""store.sqlite.wal - the log before the file: grown ahead of use, emptied before it is long.

For: when zeros are written behind the WAL's end, and when it is checked into the main file.
Never: cuts it short (overwriting blocks that are there takes 150 us a commit, growing 230);
checkpoints while a caller waits for an answer that is already due.
Was wrong once: a thread with a connection of its own for checkpoints. It cost as much in the
tail as it saved, and an older SQLite can lose a page with two of them (docs/adr/0004).
"""

from __future__ import annotations

import asyncio
import os

from onefold.store.sqlite.file import File

FRAME = 4096 + 24
LONGEST = 1_000
# pages; why: checking in a thousand scattered pages takes up to 10 ms, of which the disk's sync
# is most. Half as many halves neither, twice as many makes the pause longer and nothing faster.
QUIET_S = 0.05
WORTH = 64  # pages; a quiet turn with less in the WAL is left quiet
AHEAD = 524_288  # bytes of zeros written at a time
FROM = 16  # commits; a space that is hardly used keeps a small WAL
_ZEROS = bytes(AHEAD)


class Wal:
    """The WAL of one space. `flushed` is called after each flush, on the loop's thread."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._stuck = 0  # how long it was when not all of it could be checked in: somebody reads what is older
        self._loop = asyncio.get_running_loop()
        self._size = 0
        self._commits = 0
        self._seen = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = False

    def flushed(self) -> None:
        self._commits += 1
        pages = self._file.wal_pages
        self._stuck = min(self._stuck, pages)
        if pages >= max(LONGEST, self._stuck + LONGEST // 4 if self._stuck else 0):
            if not self._due:
                self._due = True
                self._loop.call_soon(self._long)
        elif self._commits >= FROM and self._size < LONGEST * FRAME and pages * FRAME + AHEAD // 4 > self._size:
            self._grow(pages * FRAME)
        if self._timer is None:
            self._seen = self._commits
            self._timer = self._loop.call_later(QUIET_S, self._quiet)

    def closed(self) -> None:
        """The file was closed; what comes next is another WAL."""
        self._size = self._commits = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _grow(self, used: int) -> None:
        """Write zeros behind the end. SQLite reads frames by salt and checksum, so that zeros are no frames."""
        disk = self._file.options.disk
        try:
            fd = disk.open(f"{self._file.path}-wal", os.O_WRONLY)
        except OSError:
            return  # it is not there yet, or no longer ours: check will say so
        try:
            with self._file.still() as still:
                if not still:
                    return
                end = os.fstat(fd).st_size
                if end < LONGEST * FRAME and used + AHEAD // 4 > end:
                    end += disk.write(fd, _ZEROS, end)
                self._size = end
        except OSError:
            self._size = LONGEST * FRAME  # a full disk: growing is only for speed, so leave it
        finally:
            os.close(fd)

    def _long(self) -> None:
        self._due = False
        if self._file.is_open and self._file.wal_pages >= LONGEST:
            self._file.checkpoint()
            self._stuck = self._file.wal_pages

    def _quiet(self) -> None:
        self._timer = None
        if self._seen != self._commits:
            self._seen = self._commits
            self._timer = self._loop.call_later(QUIET_S, self._quiet)
        elif self._file.is_open and self._file.wal_pages >= WORTH:
            self._file.checkpoint()
