"""A line between a store and its server that is cut where a test says.

For: `Line`, a socket in front of the server's: it passes everything on until it meets the answer to a COMMIT.
Never: reads what is said, but for the name of that answer.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, quote, urlsplit

from tests.postgres import at

_DONE = b"COMMIT\x00"
_HEAD = 5  # bytes of a message before its text

Cut = Literal["answer", "everything", "silence"]


class Line:
    """`cut`: at the next COMMIT its answer is lost, or all that the server said in that trip, or it never comes. `dead`:
    nobody gets through."""

    def __init__(self, url: str, folder: Path) -> None:
        parts = urlsplit(url)
        self._server = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"
        self._folder = folder
        self.url = at(f"postgres://postgres@/?host={quote(str(folder), safe='')}", parts.path[1:])
        self.cut: Cut | None = None
        self.dead = False
        self.dies = False  # with the next cut
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Line:
        self._door = await asyncio.start_unix_server(self._come, f"{self._folder}/.s.PGSQL.5432")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._door.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _come(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        if self.dead:
            back.close()
            return
        server, on = await asyncio.open_unix_connection(self._server)
        for coming, going, answers in ((client, on, False), (server, back, True)):
            task = asyncio.create_task(self._pass_on(coming, going, (back, on), answers=answers))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(
        self,
        coming: asyncio.StreamReader,
        going: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, ...],
        *,
        answers: bool,
    ) -> None:
        try:
            while data := await coming.read(1 << 16):
                if answers and self.cut == "everything":
                    self._over()
                    return
                if answers and self.cut == "answer" and _DONE in data:
                    going.write(data[: data.index(_DONE) - _HEAD])
                    await going.drain()
                    self._over()
                    return
                if answers and self.cut == "silence" and _DONE in data:
                    self.cut = None
                    going.write(data[: data.index(_DONE) - _HEAD])
                    await coming.read()  # until the client hangs up
                    return
                going.write(data)
                await going.drain()
        except OSError:
            pass
        finally:
            for one in both:
                one.close()

    def _over(self) -> None:
        self.cut = None
        self.dead = self.dies
