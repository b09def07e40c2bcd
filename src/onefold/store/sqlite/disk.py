"""store.sqlite.disk - the calls by which the store reaches a disk, in one place.

For: the VFS that SQLite's own files go through, and the few writes and syncs of ours beside it: the
mark, zeros behind the WAL's end, the WAL written once more, the folder and its names.
Never: caches; decides what an error means (connect does).
Was wrong once: a folder that was made, and whose own name no sync ever followed. A power cut may take
it along with every commit inside.
"""

from __future__ import annotations

import os


class Disk:
    """The machine's own disk. For tests another stands in, with the same calls. All of them raise OSError."""

    vfs: str | None = None  # by its registered name; None is SQLite's own

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, and sync the name of each where it was made."""
        made = []
        above = path = os.path.abspath(path)
        while not os.path.isdir(above):
            made.append(above)
            above = os.path.dirname(above)
        os.makedirs(path, exist_ok=True)
        for folder in reversed(made):
            self.sync_folder(os.path.dirname(folder))

    def sync_folder(self, path: str) -> None:
        """From now on the names in `path` survive a power cut. One that may not be read is passed over, as SQLite does."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except PermissionError:
            return
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    def write(self, handle: int, data: bytes, at: int) -> int:
        """Returns: how many bytes were written, fewer where there was no room for all."""
        return os.pwrite(handle, data, at)

    def sync(self, handle: int) -> None:
        os.fdatasync(handle)
