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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, takewhile
from pathlib import Path

import msgspec

from onefold.store.sqlite.disk import Disk
from onefold.terms.errors import StoreLocked

HEAD = 512  # bytes that name the holder
BLANK = b" " * (HEAD - 1) + b"\n"
_BODY = struct.Struct("<8s16s16sqqqII")  # magic, store id, boot, top, commits, checkpoint's page, flags
WHOLE = _BODY.size + 4
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
    """The lock and the mark of one space that this process has alone. Keep it open for as long as the space is."""

    alone = True

    def __init__(self, path: str, space: str, node: str, now_ms: int, disk: Disk) -> None:
        """Take the lock. Raises: StoreLocked, naming the holder; OSError."""
        self.path = path
        self._disk = disk
        fd = disk.open(path, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreLocked(space, _holders(path, os.pread(fd, HEAD, 0))) from None
            self._left = seats(path)
            disk.write(fd, described(node, now_ms), 0)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._front = self._top = self._commits = 0

    def marks(self) -> list[Mark]:
        """What it says and, where several had the file before, what their seats say."""
        return marks(self._fd, self.path)

    def settle(self, id: bytes, boot: bytes, *, anew: bool) -> None:
        """From now on the mark is written for this store, during this start of the machine."""
        self._id, self._boot = id, boot

    def write(self, top: int, commits: int) -> None:
        """Note how far was committed. Before the answer, and cheap: no sync, one write of 84 bytes."""
        self._top, self._commits = top, commits
        self._write(False)
        while self._left:  # the seats of a fleet that had the file before: this mark says as much
            with suppress(OSError):
                os.unlink(self._left.pop())

    def front(self, checksum: int) -> None:
        """Note what the main file's first page is like."""
        self._front = checksum
        self._write(False)

    def end(self) -> None:
        """Everything is in the main file, which is closed."""
        self._write(True)

    def _write(self, clean: bool) -> None:
        mark = Mark(self._id, self._boot, self._top, self._commits, self._front, clean)
        self._disk.write(self._fd, written(mark), HEAD)

    @contextmanager
    def turn(self, *, wait: bool) -> Iterator[bool]:
        """It is always ours."""
        yield True

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
                self._disk.write(self._fd, BLANK, 0)
            os.close(self._fd)


def boot() -> bytes:
    """Which start of the machine this is, 16 bytes; zeros where the system does not say."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)


# --- who ----------------------------------------------------------------------------------------


def described(node: str, now_ms: int) -> bytes:
    """This process, as the first bytes of a mark or a seat."""
    started = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    who = {"pid": os.getpid(), "host": os.uname().nodename, "since": started, "node": node}
    return msgspec.json.encode(who).ljust(HEAD - 1)[: HEAD - 1] + b"\n"


def holder_of(head: bytes) -> str:
    """Who holds a space, in words, by the first bytes of its mark."""
    try:
        who = msgspec.json.decode(head)
        node = f"node {who['node']!r}, " if who["node"] else ""
        return f"process {int(who['pid'])} on {who['host']} ({node}since {who['since']})"
    except (ValueError, KeyError, TypeError):  # msgspec's errors are ValueErrors
        return "another process"


def seats(path: str) -> list[str]:
    """The seats beside a mark, taken or not. They are numbered without a gap."""
    return list(takewhile(os.path.exists, (f"{path}-{number}" for number in count())))


def seated(path: str, *, but: str = "") -> list[str]:
    """The heads of the seats that somebody has, other than one. No lock is kept."""
    out = []
    for seat in seats(path):
        if seat == but:
            continue
        with suppress(FileNotFoundError):
            fd = os.open(seat, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                out.append(holder_of(os.pread(fd, HEAD, 0)))
            finally:
                os.close(fd)
    return list(dict.fromkeys(out))  # a node of a fleet has two, of one head


def _holders(path: str, head: bytes) -> str:
    """Who keeps a space from who wants it alone."""
    return "; ".join(seated(path)) or holder_of(head)


# --- how far --------------------------------------------------------------------------------------


def written(mark: Mark) -> bytes:
    flags = _CLEAN if mark.clean else 0
    body = _BODY.pack(_MAGIC, mark.id, mark.boot, mark.top, mark.commits, mark.front, flags, 0)
    return body + zlib.crc32(body).to_bytes(4, "little")


def read(fd: int) -> Mark | None:
    """The mark, or None when there is none or it was torn."""
    return _read(os.pread(fd, WHOLE, HEAD))


def marks(fd: int, path: str) -> list[Mark]:
    """What the mark says, first, and each of the seats beside it."""
    return [mark for mark in (read(fd), *map(read_at, seats(path))) if mark is not None]


def highest(said: Sequence[Mark]) -> Mark | None:
    """What all of them say together: the first one's page, the most that any acknowledged."""
    if not said:
        return None
    same = [mark for mark in said if mark.id == said[0].id]
    return replace(said[0], top=max(mark.top for mark in same), commits=max(mark.commits for mark in same))


def read_at(path: str) -> Mark | None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read(fd)
    finally:
        os.close(fd)


def _read(raw: bytes) -> Mark | None:
    body, seal = raw[: _BODY.size], raw[_BODY.size :]
    if len(body) < _BODY.size or zlib.crc32(body).to_bytes(4, "little") != seal:
        return None
    magic, id, start, top, commits, front, flags, _ = _BODY.unpack(body)
    return None if magic != _MAGIC else Mark(id, start, top, commits, front, bool(flags & _CLEAN))
