"""serve.mcp.agents - the door of agents, opened by the first of them.

For: the body bounded and strictly read before the protocol's package sees it; that package loaded,
and its session group entered and left, in one task of its own.
Never: loads it for an application nobody calls over MCP (0.6 s and 40 MB).
Was wrong once: the session group entered in the request that came first. It ended with that request,
and took everybody's calls with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from onefold.serve import bodies
from onefold.serve.door import Caller, Host
from onefold.serve.mcp.calls import Calls, Request, declared
from onefold.serve.mcp.listing import Listing
from onefold.serve.mcp.short import Plain, plain
from onefold.serve.problems import MalformedJson
from onefold.terms.codec import canonical
from onefold.terms.errors import UnknownName

CALLER: Final = "onefold.caller"
ONLY: Final = "onefold.only"
_PARSE_ERROR: Final = -32700

Handle = Callable[[Any, Any, Any], Awaitable[None]]


def _load() -> Any:
    from onefold.serve.mcp.server import build

    return build


class Agents:
    """Answers POSTs to /mcp and /tools/{name}/mcp."""

    def __init__(self, host: Host, waits: bodies.Waits) -> None:
        self._host = host
        self._calls = Calls(host, waits)
        self._listing = Listing(host.catalog, self._calls.cells.listed())
        self._loading: asyncio.Future[Handle] | None = None
        self._stop = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any, caller: Caller) -> None:
        """Raises: UnknownName for a tool that is none, TooLarge, ClientGone; all before anything is sent."""
        only = scope["path_params"].get("name")
        actuator = self._host.catalog.actuators.get(only) if only is not None else None
        if only is not None and (actuator is None or not actuator.tool):
            raise UnknownName("tool", only)
        raw = await bodies.read(scope, receive)
        try:
            body = bodies.json_of(raw)
        except MalformedJson as fault:
            await _refuse(send, str(fault))
            return
        call = plain(scope, body)
        if call is not None and self._calls.knows(call.tool, only) and not self._listing.mirrored(call.tool):
            await self._short(call, scope, receive, send, caller, only)
            return
        handle = await self._handle()
        headers = [(name, value.strip()) for name, value in scope["headers"]]  # the fast parser keeps blanks at the end
        await handle({**scope, "headers": headers, CALLER: caller, ONLY: only}, _replay(raw, receive), send)

    async def _short(self, call: Plain, scope: Any, receive: Any, send: Any, caller: Caller, only: str | None) -> None:
        """A plain call, answered here. What the long way would answer, byte for byte as JSON."""
        request = Request(
            caller=caller,
            arguments=call.arguments,
            meta=call.meta,
            header_keys=tuple([value for name, value in scope["headers"] if name == b"idempotency-key"]),
            receive=receive,
            tasks=declared(call.meta),
            only=only,
        )
        result = self._calls.signed(await self._calls.call(call.tool, request))
        await _answer(send, 200, {"jsonrpc": "2.0", "id": call.id, "result": result})

    async def _handle(self) -> Handle:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._own(self._loading))
        return await asyncio.shield(self._loading)

    async def _own(self, loading: asyncio.Future[Handle]) -> None:
        try:
            build = await asyncio.to_thread(_load)
            sessions = build(self._host, self._calls, self._listing)
            async with sessions.run():
                loading.set_result(sessions.handle_request)
                await self._stop.wait()
        except Exception as fault:
            if loading.done():
                raise
            loading.set_exception(fault)

    async def aclose(self) -> None:
        """Leave the session group. What still waits for a run stops waiting; the runs go on."""
        self._stop.set()
        if self._owner is not None:
            await self._owner


def _replay(raw: bytes, receive: Any) -> Any:
    """What was read, once more, and then whatever the client does next."""
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": raw, "more_body": False}

    return again


async def _refuse(send: Any, detail: str) -> None:
    error = {"code": _PARSE_ERROR, "message": "Parse error", "data": detail}
    await _answer(send, 400, {"jsonrpc": "2.0", "id": None, "error": error})


async def _answer(send: Any, status: int, message: dict[str, Any]) -> None:
    body = canonical(message)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
