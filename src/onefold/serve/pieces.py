"""serve.pieces - a file that was made to be sent, and goes with its answer.

For: answers that are larger than memory should hold: an export, a whole table as CSV.
Never: begins an answer that it may not be able to finish; keeps the file open once the client is gone.
Was wrong once: an async generator that closed the file at its end. One that was never begun had no end.
"""

from __future__ import annotations

import asyncio
import os
from typing import BinaryIO, Final, Self

from onefold.serve.routes import NO_STORE, Answer

PIECE: Final = 1 << 18


class Pieces:
    """The file from its beginning, piece by piece."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await asyncio.to_thread(self._file.read, PIECE)
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        self._file.close()


def file_answer(file: BinaryIO, media: bytes, name: str | None = None) -> Answer:
    """The file as an answer, under a name if it is one to keep. `name` is an actuator's: no quote is in it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    headers = [(b"content-type", media), (b"content-length", b"%d" % size), NO_STORE]
    if name is not None:
        headers.append((b"content-disposition", f'attachment; filename="{name}"'.encode("ascii")))
    return Answer(200, headers=headers, stream=Pieces(file))
