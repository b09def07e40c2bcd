"""serve.front - the ASGI application: one request in, one answer out, nothing raised past here.

For: the short way for events of modules, the table for everything else, every fault as its answer,
the count of what was answered.
Never: knows what a route does; leaves a fault to the server (its words would not be ours).
Was wrong once: routes below a stack of middleware. Seven frames a request halved what a fold could
answer; the checks stand in line here, once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote

from onefold.serve import bodies
from onefold.serve.access import NOBODY, Access, require
from onefold.serve.door import Caller, Host
from onefold.serve.problems import Unexpected, told
from onefold.serve.routes import JSON, REPLAYED, Answer, Ask, Route, Table, parts_of
from onefold.terms.errors import BadArguments, OnefoldError
from onefold.terms.limits import MAX_BODY_BYTES

log = logging.getLogger("onefold.serve")

_EVENTS_OK: Final = ("POST /modules/{module}/events", 200)
_CALL: Final = frozenset({"call"})
_APPROVE: Final = "/approve/"
APP: Final = b"onefold-app"
GONE: Final = 499  # counted, never sent: nobody is there to read it
_SAME_PAGE: Final = (b"same-origin", b"none")

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Inner = Callable[[Scope, Receive, Send, Caller], Awaitable[None]]


class Front:
    """Everything Onefold serves, as one ASGI application over an opened host."""

    def __init__(
        self,
        host: Host,
        access: Access,
        table: Table,
        *,
        agents: Inner,
        page_of: Callable[[OnefoldError, Ask], Answer],
        counts: Counter[tuple[str, int]],
        waits: bodies.Waits,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.host = host
        self.access = access
        self.table = table
        self.counts = counts
        self.waits = waits
        self._agents = agents
        self._page_of = page_of
        self._close = close
        self._named = (APP, quote(host.catalog.title, safe="").encode())  # so that a command knows whom it asked

    def drain(self) -> None:
        """The process is about to leave: answer whoever waits with what there is."""
        self.waits.leave()

    async def aclose(self) -> None:
        """End what runs beside the requests. The host is not closed: who opened it closes it."""
        await self._close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. Events of modules are answered right here: each further frame costs them a tenth."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        if root and path.startswith(root):
            path = path[len(root) :]
        if scope["method"] != "POST" or not (path.startswith("/modules/") and path.endswith("/events")):
            await self._request(scope, receive, send)
            return
        raw: bytes | None = None
        try:
            caller = self.access.caller(scope, self.access.check_names(scope))
            if "call" not in caller.rights:
                require(caller, _CALL, _EVENTS_OK[0])
            bodies.announced(scope, MAX_BODY_BYTES)
            message = await receive()
            raw = bodies.whole(message, MAX_BODY_BYTES)
            if raw is None:
                raw = await bodies.rest(message, receive, MAX_BODY_BYTES)
            told = await self.host.deliver_raw(path[9:-7], raw, caller=caller)
        except Exception as fault:  # noqa: BLE001 - the door: every fault becomes an answer
            await self._event_fault(fault, raw, scope, receive, send)
            return
        self.counts[_EVENTS_OK] += 1
        body = b'{"reply":%b}' % told.reply
        headers = [JSON, (b"content-length", b"%d" % len(body))]
        if told.replayed:
            headers.append(REPLAYED)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _event_fault(
        self, fault: Exception, raw: bytes | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if isinstance(fault, bodies.ClientGone):
            self.counts[_EVENTS_OK[0], GONE] += 1
            return
        told = self._as_json_fault(fault, raw) if isinstance(fault, OnefoldError) else None
        answer = _problem(told or self._unexpected(fault, _EVENTS_OK[0]), scope)
        await self._give(_EVENTS_OK[0], answer, scope, receive, send)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    @staticmethod
    def _as_json_fault(error: OnefoldError, raw: bytes | None) -> OnefoldError:
        """A body that is no JSON at all is 400; a wrong event stays 422."""
        if isinstance(error, BadArguments) and raw is not None:
            try:
                bodies.json_of(raw)
            except OnefoldError as malformed:
                return malformed
        return error

    # --- the table --------------------------------------------------------------------------------

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        label, route, ask = "unrouted", None, Ask(scope, receive, NOBODY, {}, "", "")
        try:
            host = self.access.check_names(scope, null_origin=_own_form(scope))
            base, parts = parts_of(scope)
            route, params = self.table.find(scope["method"], parts)
            label = f"{route.method} {route.path}"
            ask = Ask(scope, receive, NOBODY, params, base, host.decode("latin-1"))
            if route.needs is not None:
                ask.caller = self.access.caller(scope, host)
                require(ask.caller, route.needs, label)
            if route.handle is agents:
                scope["path_params"] = params
                await self._agents(scope, receive, self._counting(label, send), ask.caller)
                return
            answer = await route.handle(ask)
        except bodies.ClientGone:
            self.counts[label, GONE] += 1
            return
        except OnefoldError as error:
            answer = self._fault(error, route, ask)
        except Exception as error:  # noqa: BLE001 - the door: every fault becomes an answer
            answer = self._fault(self._unexpected(error, label), route, ask)
        if ask.caller is not NOBODY:
            answer.headers = (*answer.headers, self._named)
        await self._give(label, answer, scope, receive, send)

    def _counting(self, label: str, send: Send) -> Send:
        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.counts[label, message["status"]] += 1
            await send(message)

        return counted

    def _unexpected(self, error: Exception, label: str) -> OnefoldError:
        """Logged with its traceback for the operator; the answer names its kind and no more."""
        log.error("unexpected %s at %s", type(error).__name__, label, exc_info=error)
        return Unexpected(type(error).__name__, label)

    def _fault(self, error: OnefoldError, route: Route | None, ask: Ask) -> Answer:
        if route is not None and route.page:
            return self._page_of(error, ask)
        return _problem(error, ask.scope)

    async def _give(self, label: str, answer: Answer, scope: Scope, receive: Receive, send: Send) -> None:
        self.counts[label, answer.status] += 1
        try:
            await self._send(label, answer, scope, receive, send)
        finally:
            if (close := getattr(answer.stream, "aclose", None)) is not None:
                await close()

    async def _send(self, label: str, answer: Answer, scope: Scope, receive: Receive, send: Send) -> None:
        headers = list(answer.headers)
        if answer.stream is None and answer.status not in (204, 304):
            headers.append((b"content-length", b"%d" % len(answer.body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        if answer.stream is None or scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})
            return
        try:
            if scope["method"] == "GET":
                await bodies.read(scope, receive)  # whoever streams what was posted has read it
            await self.waits.on(_pour(answer.stream, send), receive)
        except bodies.ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - the door: an answer under way can only end
            self._unexpected(error, label)
        await send({"type": "http.response.body", "body": b""})

    # --- lifespan -----------------------------------------------------------------------------------

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.drain()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


async def _pour(stream: AsyncIterator[bytes], send: Send) -> None:
    async for piece in stream:
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def agents(ask: Ask) -> Answer:
    """Stands in the table for the routes that MCP answers by itself."""
    raise Unexpected("call", ask.scope["path"])


def _problem(error: OnefoldError, scope: Scope) -> Answer:
    told_so = told(error, instance_of(scope))
    return Answer(told_so.status, told_so.body, told_so.headers)


def _own_form(scope: Scope) -> bool:
    """Whether this may be the approval page posting its own form.

    That page has `Referrer-Policy: no-referrer`, for which browsers send `Origin: null`. Its right is the
    link and its nonce; where the browser says who posts, it must be the page itself.
    """
    if scope["method"] != "POST" or _APPROVE not in scope["path"]:
        return False
    return bodies.headers_of(scope).get(b"sec-fetch-site", b"none") in _SAME_PAGE


def instance_of(scope: Scope) -> str:
    """The path a problem names. An approval link's own path is its secret, so it is left out."""
    path: str = scope["path"]
    return path[: path.index(_APPROVE) + len(_APPROVE) - 1] if _APPROVE in path else path
