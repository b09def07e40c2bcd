"""serve.bodies - a request's body: bounded before it is read, and strict JSON.

For: bytes of at most MAX_BODY_BYTES, JSON by the one codec, a form's few fields, the end of a client.
Never: parses twice; trusts Content-Length alone (a chunked body has none, a liar has a wrong one).
Was wrong once: read, then measure. Ten chunked uploads filled the memory before the first was refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from onefold.serve.door import Json
from onefold.serve.problems import BadRequest, MalformedJson, SlowBody
from onefold.terms.codec import parse
from onefold.terms.errors import BadArguments, Fault, TooLarge
from onefold.terms.limits import MAX_BODY_BYTES

T = TypeVar("T")

BODY_SECONDS: Final = 30  # the whole body must be here by then; a byte a second would hold a place for ever
FORM_BYTES: Final = 16_384  # a choice, a nonce and a reason of 2,000 characters, percent-encoded
FORM_FIELDS: Final = 16
SHORT_DIGITS: Final = 4  # a length this short is below every limit here
WHAT: Final = "The request's body"
HEADERS: Final = "onefold.headers"
_ONCE: Final = (b"host", b"origin", b"authorization", b"content-length", b"sec-fetch-site")


class ClientGone(Exception):
    """The client closed before its request was whole. There is nobody to answer."""


def headers_of(scope: Any) -> dict[bytes, bytes]:
    """The headers by name, made once a request. Raises: BadRequest when one stands twice that decides something."""
    found: dict[bytes, bytes] | None = scope.get(HEADERS)
    if found is None:
        given = scope["headers"]
        found = dict(given)
        if len(found) != len(given):
            names = [name for name, _ in given]
            for name in _ONCE:
                if names.count(name) > 1:
                    raise BadRequest([Fault(name.decode(), "stands twice in the headers")], nothing_was="done")
        scope[HEADERS] = found
    return found


def announced(scope: Any, limit: int) -> None:
    """Refuse by Content-Length alone, before a byte is asked for. Raises: TooLarge, BadRequest."""
    length = headers_of(scope).get(b"content-length")
    if length is None or (len(length) <= SHORT_DIGITS and length.isdigit()):
        return
    if not length.isdigit():
        raise BadRequest([Fault("Content-Length", "must be a whole number")], nothing_was="read")
    if len(length) > 19 or int(length) > limit:
        raise TooLarge(WHAT, int(length[:19]), limit)


def whole(message: Any, limit: int) -> bytes | None:
    """The body, if this first message is all of it; else None. Raises: TooLarge."""
    if message["type"] != "http.request" or message.get("more_body"):
        return None
    body: bytes = message.get("body", b"")
    if len(body) > limit:
        raise TooLarge(WHAT, len(body), limit)
    return body


async def rest(message: Any, receive: Any, limit: int) -> bytes:
    """The body that this first message begins. Raises: TooLarge while reading, SlowBody, ClientGone."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _pieces(message, receive, limit)
    except TimeoutError:
        fault = Fault("body", f"did not arrive within {BODY_SECONDS} seconds")
        raise SlowBody([fault], nothing_was="done") from None


async def read(scope: Any, receive: Any, limit: int = MAX_BODY_BYTES) -> bytes:
    """The whole body. Raises: TooLarge before and while reading, SlowBody, ClientGone."""
    announced(scope, limit)
    message = await receive()
    body = whole(message, limit)
    return await rest(message, receive, limit) if body is None else body


async def _pieces(message: Any, receive: Any, limit: int) -> bytes:
    pieces = bytearray()
    while True:
        if message["type"] != "http.request":
            raise ClientGone
        pieces += message.get("body", b"")
        if len(pieces) > limit:
            raise TooLarge(WHAT, len(pieces), limit)
        if not message.get("more_body"):
            return bytes(pieces)
        message = await receive()


def json_of(raw: bytes, what: str = "the body") -> Json:
    """The JSON value of a body. Raises: MalformedJson, which HTTP answers with 400."""
    try:
        return parse(raw, what)
    except BadArguments as fault:
        raise MalformedJson(fault.faults, nothing_was="done") from None


def object_of(raw: bytes, allowed: tuple[str, ...]) -> dict[str, Any]:
    """A body that is one JSON object with no field but `allowed`; an empty body is an empty object.

    Raises: MalformedJson, BadArguments with one fault for each field that does not belong.
    """
    value = json_of(raw) if raw.strip() else {}
    if not isinstance(value, dict):
        raise BadArguments([Fault("", "the body must be one JSON object")], nothing_was="done")
    unknown = [
        Fault(name, f"is not a field here; there are {', '.join(allowed)}") for name in value if name not in allowed
    ]
    if unknown:
        raise BadArguments(unknown, nothing_was="done")
    return value


def text_in(body: dict[str, Any], field: str) -> str | None:
    """An optional text of a body; null counts as absent. Raises: BadArguments."""
    value = body.get(field)
    if value is not None and not isinstance(value, str):
        raise BadArguments([Fault(field, "must be text", value)], nothing_was="done")
    return value


async def form(scope: Any, receive: Any) -> dict[str, str]:
    """The fields of a posted form. Raises: TooLarge, BadRequest for what no page of ours sends."""
    raw = await read(scope, receive, FORM_BYTES)
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(raw),
            errors="strict",
            max_num_fields=FORM_FIELDS,
        )
    except ValueError:
        raise BadRequest([Fault("body", "is not a form of this page")], nothing_was="decided") from None
    fields = dict(pairs)
    if len(fields) != len(pairs) or any("\0" in value for value in fields.values()):
        raise BadRequest([Fault("body", "is not a form of this page")], nothing_was="decided")
    return fields


class Waits:
    """Waiting on behalf of clients: it ends with its client, and when this process is about to leave.

    Only waiting may be handed in: what is waited for goes on without it.
    """

    def __init__(self) -> None:
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """End every wait now, and every later one at once. What they waited for is not touched."""
        self._leaving.set()

    @property
    def leaving(self) -> bool:
        return self._leaving.is_set()

    async def on(self, work: Coroutine[Any, Any, T], receive: Any) -> T | None:
        """What `work` gives; None when the process leaves first. Raises: ClientGone. The body must have been read."""
        tasks: tuple[asyncio.Task[Any], ...] = (
            asyncio.create_task(work),
            asyncio.create_task(_until_gone(receive)),
            asyncio.create_task(self._left()),
        )
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                result: T = tasks[0].result()
                return result
            if tasks[1].done():
                raise ClientGone
            return None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _left(self) -> None:
        await self._leaving.wait()


async def _until_gone(receive: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
