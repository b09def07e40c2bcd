"""store.folder - bytes by name as files, durable when `write` returns.

For: one space's blobs where they are kept beside the database: written, read, removed, listed.
Never: knows what a file means; overwrites one that somebody may be reading.
Was wrong once: a file written where it is read. A power cut left half of it under its full name.

A file stands in one of 256 folders, by the first two letters of its name, so that a look at one is short.
Its time is the instant it was written at, by the clock that was handed in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from onefold.terms.errors import StoreUnavailable

SHARDS = 256
_PART = ".part"
_TRIES = count(1)


class Folder:
    """`point` is called by name where a crash must lose nothing: blob-written, blob-named."""

    def __init__(self, path: Path, point: Callable[[str], None] = lambda name: None) -> None:
        self._path = path
        self._point = point

    def write(self, name: str, data: bytes, at: int) -> None:
        """Make it durable under its name, as of `at` (ms). Raises: StoreUnavailable, with nothing under the name."""
        with self._told():
            shard = self._shard(name)
            part = shard / f"{name}.{next(_TRIES)}{_PART}"  # its own: two who write one name must not meet halfway
            try:
                _fill(part, data, at)
            except OSError:
                part.unlink(missing_ok=True)  # a full disk must not be filled by what it had no room for
                raise
            self._point("blob-written")
            os.rename(part, shard / name)
            _sync(shard)
        self._point("blob-named")

    def _shard(self, name: str) -> Path:
        """The folder that this name stands in, made durable where it is new. Nobody else may look into it."""
        shard = self._path / name[:2]
        if not shard.is_dir():
            for folder in (self._path.parent, self._path, shard):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _sync(folder.parent)
        return shard

    def read(self, name: str) -> bytes | None:
        """The bytes; None where there is no such file. Raises: StoreUnavailable."""
        with self._told():
            try:
                return (self._path / name[:2] / name).read_bytes()
            except FileNotFoundError:
                return None

    def remove(self, name: str) -> None:
        """Take it away, if it is there. Raises: StoreUnavailable."""
        with self._told():
            (self._path / name[:2] / name).unlink(missing_ok=True)

    def older(self, shard: int, than: int) -> list[str]:
        """The names in one of the SHARDS folders that were written before `than` (ms), halves of them too."""
        folder = self._path / f"{shard:02x}"
        with self._told():
            if not folder.is_dir():
                return []
            with os.scandir(folder) as found:
                return sorted(one.name for one in found if one.stat().st_mtime_ns < than * 1_000_000)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnavailable("blobs", f"its folder fails ({error.strerror})") from error


def _fill(part: Path, data: bytes, at: int) -> None:
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        os.utime(handle, ns=(at * 1_000_000, at * 1_000_000))
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
