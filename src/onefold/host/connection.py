"""host.connection - one connection to another node: a request at a time, answered line by line.

For: turns of one request handed on as they are answered; whatever is left when it breaks is known to be unknown.
Never: sends anything twice; reads more than an answer may hold.
Was wrong once: a general client. It spent half a millisecond a turn on what a connection between two nodes never needs,
more than the turn itself.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httptools
import msgspec

from onefold.fleet.wire import SIGNED, Answer, line_of
from onefold.terms.errors import OnefoldError

CONNECT_S = 1.0  # a node of the same fleet that takes no connection within this is gone, or cut off
MOST = 64 << 20  # bytes of an answer
_REFUSED = frozenset({400, 401, 403, 404, 413, 421, 429, 503})  # said before anything of the request was read as turns


@dataclass(frozen=True, slots=True)
class NotReached:
    """It certainly did not arrive."""


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """It may have arrived."""


Told = Answer | OnefoldError | NotReached | Ambiguous
Heard = Callable[[int, Told], None]


class Connection(asyncio.Protocol):
    """`open` it, `send` a request, and await that; then it is free for the next, unless it is `over`."""

    def __init__(self) -> None:
        self.over = False
        self.status = 0  # of the answer to the last request; 0 where there was none
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._heard: Heard = lambda n, told: None
        self._left: set[int] = set()
        self._rest = b""
        self._size = 0
        self._ended: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, url: str) -> Connection:
        """Raises: OSError, ValueError for what is no address."""
        parts = urlsplit(url)
        secure = ssl.create_default_context() if parts.scheme == "https" else None
        port = parts.port or (443 if secure else 80)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_S):
            _, made = await loop.create_connection(cls, parts.hostname or "", port, ssl=secure)
        return made

    async def send(self, head: bytes, body: bytes, count: int, heard: Heard, within_s: float) -> None:
        """Send a request of so many turns, and tell `heard` of each once. Returns when all were told of."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._heard, self._left, self._rest, self._size, self.status = heard, set(range(count)), b"", 0, 0
        self._ended = loop.create_future()
        late = loop.call_later(within_s, self.drop)
        self._transport.write(head + body)
        try:
            await self._ended
        finally:
            late.cancel()
            if not self._ended.done():
                self.drop()  # whoever waited went away: what comes is nobody's

    def drop(self) -> None:
        """Give it up; whoever still waits is told that nobody knows."""
        self.over = True
        if self._transport is not None:
            self._transport.abort()
        self._end(Ambiguous())

    # --- told by the loop ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # the server's loop has a class of its own

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop()

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        if self._parser is None or self._size > MOST:
            self.drop()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.drop()

    # --- told by the parser -------------------------------------------------------------------------

    def on_body(self, body: bytes) -> None:
        assert self._parser is not None
        if self._parser.get_status_code() != 200:
            return
        *lines, self._rest = (self._rest + body).split(b"\n")
        for raw in lines:
            try:
                line = line_of(raw)
                told = line.told
            except (msgspec.MsgspecError, OnefoldError):
                self.drop()
                return
            if line.n in self._left:
                self._left.discard(line.n)
                self._heard(line.n, told)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        status = self.status = self._parser.get_status_code()
        if not self._parser.should_keep_alive():
            self.over = True
            assert self._transport is not None
            self._transport.close()
        self._parser = None
        self._end(NotReached() if status in _REFUSED else Ambiguous())

    def _end(self, told: Told) -> None:
        left, self._left = self._left, set()
        for n in left:
            self._heard(n, told)
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)


def request(url: str, path: str, signed: str, body: bytes) -> bytes:
    """The head of a request."""
    parts = urlsplit(url)
    below = parts.path.rstrip("/")
    return (
        f"POST {below}{path} HTTP/1.1\r\nhost: {parts.netloc.rpartition('@')[2]}\r\ncontent-type: application/json\r\n"
        f"{SIGNED}: {signed}\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode("ascii")
