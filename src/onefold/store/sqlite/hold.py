"""store.sqlite.hold - the file beside the file: who holds the space, and how far was acknowledged.

For: `<space>.mark`. Its first 512 bytes name the holder and carry the lock; behind them stands
the high-water mark, written after each commit and before its answer, not synced.
Never: locks the database file itself (closing any handle of it would drop that lock); decides
whether a file may be used (engine does).
Was wrong once: a lock file of its own, ending in `.lock`. People remove those.

The mark is never ahead of the file after a power cut under FULL, and exact after a kill: what
was answered is in the file, so a file that ends before its mark has lost something.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from onefold.store.sqlite.disk import Disk
from onefold.terms.errors import StoreLocked

_HEAD = 512
_BODY = struct.Struct("<8s16s16sqqqII")  # magic, store id, boot, top, commits, checkpoint's page, flags
_MAGIC = b"onefold1"
_CLEAN = 1


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a space was acknowledged.

    top: the highest number of its chains. commits: commits that wrote to no chain. front: a
    checksum of the main file's first page since the last checkpoint, 0 for not known: one was
    under way, or the file was closed. boot: which start of the machine wrote it. clean: closed,
    with everything in the main file.
    """

    id: bytes
    boot: bytes
    top: int
    commits: int
    front: int
    clean: bool


class Sidecar:
    """The lock and the mark of one space. Keep it open for as long as the space is."""

    def __init__(self, path: str, space: str, node: str, now_ms: int, disk: Disk) -> None:
        """Take the lock. Raises: StoreLocked, naming the holder; OSError."""
        self.path = path
        self._disk = disk
        fd = disk.open(path, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreLocked(space, holder_of(os.pread(fd, _HEAD, 0))) from None
            self.before = _read(os.pread(fd, _BODY.size + 4, _HEAD))
            started = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            who = {"pid": os.getpid(), "host": os.uname().nodename, "since": started, "node": node}
            disk.write(fd, msgspec.json.encode(who).ljust(_HEAD - 1)[: _HEAD - 1] + b"\n", 0)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._front = self._top = self._commits = 0

    def settle(self, id: bytes, boot: bytes) -> None:
        """From now on the mark is written for this store, during this start of the machine."""
        self._id, self._boot = id, boot

    def write(self, top: int, commits: int, *, clean: bool = False) -> None:
        """Note how far was committed. Before the answer, and cheap: no sync, one write of 84 bytes."""
        self._top, self._commits = top, commits
        body = _BODY.pack(_MAGIC, self._id, self._boot, top, commits, self._front, _CLEAN if clean else 0, 0)
        self._disk.write(self._fd, body + zlib.crc32(body).to_bytes(4, "little"), _HEAD)

    def front(self, checksum: int) -> None:
        """Note what the main file's first page is like."""
        self._front = checksum
        self.write(self._top, self._commits)

    def moved(self) -> bool:
        """Whether the file was removed or replaced, and the lock with it."""
        return os.fstat(self._fd).st_nlink == 0

    def close(self, *, sync: bool) -> None:
        """Let go of the lock, whatever the disk says. Raises: OSError when `sync` was wanted and failed."""
        try:
            if sync:
                self._disk.sync(self._fd)
        finally:
            with suppress(OSError):  # a name that stays names nobody who holds the lock
                self._disk.write(self._fd, b" " * (_HEAD - 1) + b"\n", 0)
            os.close(self._fd)


def boot() -> bytes:
    """Which start of the machine this is, 16 bytes; zeros where the system does not say."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)


def holder_of(head: bytes) -> str:
    """Who holds a space, in words, by the first bytes of its mark."""
    try:
        who = msgspec.json.decode(head)
        node = f"node {who['node']!r}, " if who["node"] else ""
        return f"process {int(who['pid'])} on {who['host']} ({node}since {who['since']})"
    except (ValueError, KeyError, TypeError):  # msgspec's errors are ValueErrors
        return "another process"


def _read(raw: bytes) -> Mark | None:
    """The mark, or None when there is none or it was torn."""
    body, seal = raw[: _BODY.size], raw[_BODY.size :]
    if len(body) < _BODY.size or zlib.crc32(body).to_bytes(4, "little") != seal:
        return None
    magic, id, start, top, commits, front, flags, _ = _BODY.unpack(body)
    return None if magic != _MAGIC else Mark(id, start, top, commits, front, bool(flags & _CLEAN))
