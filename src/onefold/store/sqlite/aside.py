"""store.sqlite.aside - the author's tables of a space that is no file: SQLite, in memory.

For: connections to one database that lives as long as this object does.
Never: touches a disk; holds a row of ours.
Was wrong once: authors' tables in a memory store as dictionaries. SQL ran in production that no test had run.
"""

from __future__ import annotations

from itertools import count

import apsw

_NUMBERS = count()


class Aside:
    """One database in memory. Its first connection is an anchor: without it the tables would go with the last."""

    def __init__(self) -> None:
        self._number = next(_NUMBERS)
        self._anchor: apsw.Connection | None = None

    def connect(self) -> apsw.Connection:
        if self._anchor is None:
            self._anchor = self._open()
        return self._open()

    @property
    def uri(self) -> str:
        """The database as a connection attaches it."""
        if self._anchor is None:
            self._anchor = self._open()
        return f"file:/onefold-{self._number}?vfs=memdb"

    def _open(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:/onefold-{self._number}?vfs=memdb", flags=flags)
