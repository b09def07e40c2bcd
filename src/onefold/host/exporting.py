"""host.exporting - an actuator's own database, for a person to take along.

For: `export_of`: the file, made whole and open for reading, which is gone when it is closed.
Never: leaves a file; gives the beginning of one that could not be finished.
Was wrong once: the rows sent as they were read. A client that read slowly held the snapshot, and with it the log, for
hours; and one that got the half of it had been told 200.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import BinaryIO

from onefold.store.contract import AuthorSpace


async def export_of(space: AuthorSpace, *, sql: bool) -> BinaryIO:
    """In the system's folder for such files (TMPDIR). Raises: StoreUnavailable, OwnedElsewhere."""
    path = await asyncio.to_thread(_made)
    try:
        await space.author_export(path, sql=sql)
        return await asyncio.to_thread(open, path, "rb")
    finally:
        os.unlink(path)


def _made() -> str:
    handle, path = tempfile.mkstemp(prefix="onefold-export-")
    os.close(handle)
    return path
