"""A cable between a client and a server that the test may cut, hold, or let answer nothing. On a thread of its own.

For: `Cable(to)`, a TCP port on this machine that leads to another, or to a server's socket file.
Never: changes a byte; drops one that it passed on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit


def database(url: str) -> tuple[tuple[str, int] | str, str]:
    """Where a Postgres of this URL listens, and the URL of the same through port {port} of this machine."""
    parts = urlsplit(url)
    folder = dict(parse_qsl(parts.query)).get("host")
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    to: tuple[str, int] | str = (parts.hostname or "127.0.0.1", parts.port or 5432)
    if folder is not None and folder.startswith("/"):
        to = f"{folder}/.s.PGSQL.{parts.port or 5432}"
    return to, f"postgres://{user}127.0.0.1:{{port}}{parts.path}"


class Cable:
    """`to`: (host, port), or a path; None, nowhere yet. `port`: where it begins, at the address `at`."""

    def __init__(self, to: tuple[str, int] | str | None, at: str = "127.0.0.1") -> None:
        self.at = at
        self.port = 0
        self.swallowed = 0
        self._to = to
        self._whole = True
        self._flows = {"there": asyncio.Event(), "back": asyncio.Event()}
        self._swallows = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    async def __aenter__(self) -> Cable:
        self._thread.start()
        await self._there(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._there(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    def leads_to(self, host: str, port: int) -> None:
        """From now on. Whoever came before was turned away."""
        self._to = host, port

    # --- what befalls it --------------------------------------------------------------------------

    async def cut(self) -> None:
        """Everything on it ends at once, and nobody gets through."""
        await self._there(self._sever)

    async def hold(self, *ways: str) -> None:
        """Nothing arrives any more, `there` or `back` or both; nobody is told."""
        await self._there(lambda: self._set(ways or ("there", "back"), flows=False))

    async def swallow(self) -> None:
        """What is asked arrives; in place of each answer the connection ends."""
        await self._there(lambda: self._answers(nothing=True))

    async def mend(self) -> None:
        """It is whole again; what was held arrives now."""
        await self._there(lambda: self._answers(nothing=False))
        await self._there(lambda: self._set(("there", "back"), flows=True))

    # --- inside -------------------------------------------------------------------------------------

    async def _there(self, act: Callable[[], Any]) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        here = asyncio.get_running_loop()

        async def acting() -> None:
            told = act()
            if told is not None:
                await told
            here.call_soon_threadsafe(done.set_result, None)

        asyncio.run_coroutine_threadsafe(acting(), self._loop)
        await done

    async def _open(self) -> None:
        self._set(("there", "back"), flows=True)
        self._server = await asyncio.start_server(self._connected, self.at, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        self._sever()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _sever(self) -> None:
        self._whole = False
        for writer in self._writers:
            writer.transport.abort()

    def _set(self, ways: tuple[str, ...], *, flows: bool) -> None:
        for way in ways:
            (self._flows[way].set if flows else self._flows[way].clear)()
        self._whole = self._whole or flows

    def _answers(self, *, nothing: bool) -> None:
        self._swallows = nothing

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole or self._to is None:
            writer.transport.abort()
            return
        path = self._to if isinstance(self._to, str) else None
        try:
            if path is not None:
                far, onward = await asyncio.open_unix_connection(path)
            else:
                far, onward = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            return
        for end in (writer, onward):
            self._writers.add(end)
        for way, source, sink in (("there", reader, onward), ("back", far, writer)):
            task = self._loop.create_task(self._pass(way, source, sink, (writer, onward)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(
        self, way: str, source: asyncio.StreamReader, sink: asyncio.StreamWriter, ends: tuple[asyncio.StreamWriter, ...]
    ) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                await self._flows[way].wait()
                if way == "back" and self._swallows:
                    self.swallowed += 1
                    break
                sink.write(data)
                await sink.drain()
        await self._flows[way].wait()
        for end in ends:
            self._writers.discard(end)
            if self._swallows:
                end.transport.abort()
            else:
                end.close()
