"""serve.run - one process that listens, until it is told to stop.

For: uvicorn with settings of our own, limits on headers and on slow senders, a clean end on SIGTERM.
Never: prints; logs a request; takes a forwarded address for the peer's.
Was wrong once: limits that only one of the server's two parsers knew. The fast one took ten thousand
headers without a word; here the protocol counts them itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

GRACE_MS: Final = 10_000
HEADERS_MOST: Final = 100  # a browser sends 20; Python's own server stops at 100, too
HEADER_BYTES: Final = 32_768  # names, values and the path together
FRAMING_BYTES: Final = 1 << 20  # sizes of chunks and trailers; the body itself is bounded where it is read
HEADER_SECONDS: Final = 10.0  # from the connection, or the end of the last answer, to the end of the headers
BODY_SECONDS: Final = 30.0  # between two pieces of a body
CONNECTIONS_MOST: Final = 10_000
KEEP_ALIVE_S: Final = 75  # longer than the 60 s for which usual proxies keep theirs
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Bounded(HttpToolsProtocol):
    """The server's fast protocol, with a bound on the headers' number, size and time.

    A request that comes in one piece, as nearly all do, costs two comparisons and no timer.
    """

    _size = 0  # bytes of this request that were no body: headers, the frames of chunks, trailers
    _refused = False
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._size += len(data)
        super().data_received(data)
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        if cycle is None or cycle.more_body or cycle.scope["headers"] is not self.headers:
            self._unfinished()
        else:
            self._size = 0
            if self._deadline is not None:
                self._on_time()

    def _unfinished(self) -> None:
        """A request that did not come in one piece: bounded in size, and in time until the next piece."""
        if self._refused or self.transport.is_closing():
            return
        opening = self._opening()
        if self._size > (HEADER_BYTES if opening else FRAMING_BYTES):
            self._refuse(_TOO_LARGE)
        elif opening:
            self._deadline = self._deadline or self.loop.call_later(HEADER_SECONDS, self._too_slow)
        else:
            self._on_time()
            self._deadline = self.loop.call_later(BODY_SECONDS, self._too_slow)

    def _opening(self) -> bool:
        """Whether headers are awaited or under way."""
        cycle: Any = self.cycle
        return cycle is None or cycle.scope["headers"] is not self.headers

    def on_headers_complete(self) -> None:
        if len(self.headers) > HEADERS_MOST or (self._size > HEADER_BYTES and self._weight() > HEADER_BYTES):
            self._refuse(_TOO_LARGE)
            raise _Refused
        self._size = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._size -= len(body)
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """The parser's own refusal; silent where ours has been sent."""
        if not self._refused:
            super().send_400_response(msg)

    def _weight(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _on_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        self._refuse(_TOO_SLOW)

    def _refuse(self, answer: bytes) -> None:
        self._refused = True
        if self._opening() or not self.cycle.response_started:
            self.transport.write(answer)
        self.transport.close()


class _Refused(Exception):
    """Stops the parser where a bound was passed."""


class _Listening(Server):
    """The server, which says where it listens and lets the application end its waits before it closes."""

    def __init__(self, config: Config, app: Any, on_bound: Callable[[str, int], None] | None) -> None:
        super().__init__(config)
        self._told_app = app
        self._on_bound = on_bound

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT ask for the end, a second one for a quick end. They are not raised again: exit is 0."""
        loop = asyncio.get_running_loop()
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and self._on_bound is not None:
            bound = self.servers[0].sockets[0].getsockname()
            self._on_bound(bound[0], bound[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        drain = getattr(self._told_app, "drain", None)
        if drain is not None:
            drain()
        await super().shutdown(sockets=sockets)
        if self.force_exit:  # else the lifespan is cut off where it stands, and its host is not closed
            await self.lifespan.shutdown()


def settings(app: Any, listen: tuple[str, int], grace_ms: int) -> Config:
    """How the server is run. Exposed so that a test can hold it."""
    return Config(
        app,
        host=listen[0],
        port=listen[1],
        loop="auto",
        http=Bounded,
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS_MOST,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, -(-grace_ms // 1000)),
    )


async def serve(
    app: Any,
    listen: tuple[str, int],
    *,
    grace_ms: int = GRACE_MS,
    on_bound: Callable[[str, int], None] | None = None,
) -> None:
    """Serve `app` at `listen` until SIGTERM or SIGINT, then stop accepting, drain and return.

    listen: host and port; port 0 takes a free one, and `on_bound(host, port)` is told which. grace_ms:
    how long answers under way may take before they are cut; the application's own lifespan ends
    after that. Raises: OSError when the address is taken or not ours, RuntimeError when the
    application's lifespan refused to start.
    """
    bound = await _bind(listen)
    server = _Listening(settings(app, listen, grace_ms), app, on_bound)
    try:
        await server.serve(sockets=[bound])
    except SystemExit:
        raise RuntimeError("the application refused to start; its log says why") from None
    finally:
        with contextlib.suppress(OSError):
            bound.close()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fastest loop there is, for `asyncio.Runner(loop_factory=…)`; None where only the standard one is."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


async def _bind(listen: tuple[str, int]) -> socket.socket:
    """The listening socket, so that a taken address is our error and not the server's exit."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(*listen, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, proto, _, address = found[0]
    listening = socket.socket(family, kind, proto)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
