"""One request spoken to an ASGI application by hand: pieces of a body, a client that leaves, what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

HOST = (b"host", b"127.0.0.1:8600")


class Asgi:
    """A request under way. The application runs in a task of its own."""

    def __init__(
        self,
        app: Any,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        headers: Sequence[tuple[bytes, bytes]] = (),
        pieces: Sequence[bytes] | None = None,
        whole: bool = True,
        host: tuple[bytes, bytes] | None = HOST,
        client: tuple[str, int] | None = ("127.0.0.1", 50000),
        root_path: str = "",
    ) -> None:
        bare, _, query = path.partition("?")
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": bare,
            "raw_path": bare.encode(),
            "query_string": query.encode(),
            "root_path": root_path,
            "headers": [*((host,) if host else ()), *headers],
            "client": client,
            "server": ("127.0.0.1", 8600),
        }
        self.sent: list[dict[str, Any]] = []
        self.received = 0
        self._pieces = list(pieces if pieces is not None else [body])
        self._whole = whole
        self._left = asyncio.Event()
        self._task = asyncio.create_task(app(self.scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._pieces:
            self.received += 1
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces) or not self._whole}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def leave(self) -> None:
        """The client closes."""
        self._left.set()

    async def until(self, true: Callable[[], bool]) -> None:
        """Let the application go on until something is true."""
        while not true():
            assert not self._task.done(), self.sent
            await asyncio.sleep(0)

    async def ended(self) -> Asgi:
        await asyncio.wait_for(self._task, 60)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])
