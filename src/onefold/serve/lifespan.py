"""serve.lifespan - an application that is opened by its server's lifespan, and closed by it.

For: `opening(opens)`: an ASGI application over a host that its lifespan opens.
Never: leaves a failed start unsaid; closes before the server has said that it stops.
Was wrong once: opened by the first request. Due work then waited for traffic that never came.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from onefold.serve.door import Host
from onefold.serve.front import Front
from onefold.serve.http import asgi_app
from onefold.terms.errors import NotOpen


class Opening:
    """An ASGI application whose host is open from the server's startup to its shutdown."""

    def __init__(self, opens: Callable[[], AbstractAsyncContextManager[Host]]) -> None:
        self._opens = opens
        self._front: Front | None = None

    def drain(self) -> None:
        """The process is about to leave: answer whoever waits with what there is."""
        if self._front is not None:
            self._front.drain()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._front is None:
            raise NotOpen("The application")
        else:
            await self._front(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        """Open at startup, close at shutdown; what that raises is told to the server, which says it and ends."""
        await receive()
        phase = "startup"
        try:
            async with self._opens() as host:
                self._front = asgi_app(host)
                await send({"type": "lifespan.startup.complete"})
                await receive()
                phase = "shutdown"
                self._front.drain()
                await self._front.aclose()
                self._front = None
        except Exception as fault:  # noqa: BLE001 - the door: the server is told, and tells whoever started it
            self._front = None
            await send({"type": f"lifespan.{phase}.failed", "message": f"{type(fault).__name__}: {fault}"})
            return
        await send({"type": "lifespan.shutdown.complete"})


def opening(opens: Callable[[], AbstractAsyncContextManager[Host]]) -> Opening:
    """An ASGI application that opens the host with its lifespan and closes it with it."""
    return Opening(opens)
