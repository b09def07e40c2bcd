"""serve.lifespan - an application that is opened by its server's lifespan, and closed by it.

For: ASGI's lifespan events over anything that opens with `async with`.
Never: leaves a failed start unsaid; closes before the server has said that it stops.
Was wrong once: opened by the first request. Due work then waited for traffic that never came.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any


async def lifespan(app: AbstractAsyncContextManager[Any], scope: Any, receive: Any, send: Any) -> None:
    """Open `app` at startup and close it at shutdown; what it raises is told to the server, which says it and ends."""
    await receive()
    phase = "startup"
    try:
        async with app:
            await send({"type": "lifespan.startup.complete"})
            await receive()
            phase = "shutdown"
    except Exception as fault:  # noqa: BLE001 - the door: the server is told, and tells whoever started it
        await send({"type": f"lifespan.{phase}.failed", "message": f"{type(fault).__name__}: {fault}"})
        return
    await send({"type": "lifespan.shutdown.complete"})
