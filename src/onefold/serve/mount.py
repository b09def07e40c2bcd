"""serve.mount - Onefold beside another application.

For: what is below a path goes to Onefold, the rest elsewhere, and one lifespan for both.
Never: changes what the other application sees; swallows its fault at start.
Was wrong once: the lifespan given to the outer application alone. It started, answered, and every
call to Onefold met a store that nobody had opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

ASGIApp = Callable[[Any, Any, Any], Awaitable[None]]


class Mount:
    """Two applications as one: below `at` is `inner`, everything else is `outer`. Raises: ValueError for no path."""

    def __init__(self, inner: ASGIApp, outer: ASGIApp, at: str) -> None:
        if not at.startswith("/") or at.endswith("/") or "//" in at:
            raise ValueError(f"at={at!r} must be a path like '/onefold'")
        self._outer = outer
        self._inner = inner
        self._at = at

    def drain(self) -> None:
        """Told by the runner; handed on to Onefold."""
        drain = getattr(self._inner, "drain", None)
        if drain is not None:
            drain()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _Both(self._outer, self._inner, scope).live(receive, send)
            return
        root: str = scope.get("root_path", "")
        path: str = scope["path"]
        below = path[len(root) :] if root and path.startswith(root) else path
        if below == self._at or below.startswith(f"{self._at}/"):
            await self._inner({**scope, "root_path": f"{root}{self._at}"}, receive, send)
        else:
            await self._outer(scope, receive, send)


def mounted(outer: ASGIApp, inner: ASGIApp, *, at: str = "/onefold") -> Mount:
    """`outer` with `inner` below the path `at`, and one lifespan for both. Raises: ValueError for no path."""
    return Mount(inner, outer, at)


class _Life:
    """One application's lifespan, driven step by step from outside."""

    def __init__(self, app: ASGIApp, scope: Any) -> None:
        self._app = app
        self._scope = scope
        self._to: asyncio.Queue[Any] = asyncio.Queue()
        self._from: asyncio.Queue[Any] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._to.get, self._from.put)
        except Exception as fault:  # noqa: BLE001 - the door: an application without a lifespan says so by raising
            await self._from.put({"type": "unsupported", "fault": fault})
        else:
            await self._from.put({"type": "unsupported", "fault": None})

    async def step(self, phase: str) -> dict[str, Any]:
        """What it answers to `lifespan.<phase>`; "unsupported" when it has no lifespan or has left it."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        elif self._task.done():
            return {"type": "unsupported", "fault": None}
        await self._to.put({"type": f"lifespan.{phase}"})
        answer: dict[str, Any] = await self._from.get()
        return answer

    async def end(self) -> None:
        if self._task is not None:
            await asyncio.wait((self._task,))


class _Both:
    """Onefold opens first and closes last, so that the other application may use it throughout."""

    def __init__(self, outer: ASGIApp, inner: ASGIApp, scope: Any) -> None:
        self._outer = _Life(outer, scope)
        self._inner = _Life(inner, {key: value for key, value in scope.items() if key != "state"})

    async def live(self, receive: Any, send: Any) -> None:
        await receive()
        for life in (self._inner, self._outer):
            said = await life.step("startup")
            if said["type"] == "lifespan.startup.failed":
                if life is self._outer:
                    await self._inner.step("shutdown")
                await self._ended()
                await send(said)
                return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        worst = {"type": "lifespan.shutdown.complete"}
        for life in (self._outer, self._inner):
            said = await life.step("shutdown")
            if said["type"] == "lifespan.shutdown.failed":
                worst = said
        await self._ended()
        await send(worst)

    async def _ended(self) -> None:
        await self._outer.end()
        await self._inner.end()
