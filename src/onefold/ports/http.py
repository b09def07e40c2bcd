"""ports.http - the effect `http`: one signed request to an origin that the app allows.

For: {"method", "url", "headers", "body" or "text", "accept"} to {"status", "body"}; the task's key as Idempotency-Key, a
Standard Webhooks signature, and the bearer token that the app keeps for the origin.
Never: takes a secret from a reflex, or says one; follows a redirect; repeats in an error what came back.
Was wrong once: any answer was an answer. A page of a proxy that said 502 was kept as the result.

2xx is done, and so is each status in `accept`: an outcome to branch on. Everything else is raised, and tried again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onefold.ports.egress import NotAllowed, Resolve, Target, address_of, allowed, is_public, looked_up, target_of
from onefold.ports.telling import strange
from onefold.ports.webhook import message_id
from onefold.reflex.seams import Task
from onefold.reflex.words import Json
from onefold.terms.codec import below, canonical, parse, text_problem
from onefold.terms.errors import BadArguments, Fault, PortFailed
from onefold.terms.limits import MAX_BODY_BYTES

if TYPE_CHECKING:
    import ssl

    import httpx2

NAME: Final = "http"
METHODS: Final = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
PARTS: Final = ("method", "url", "headers", "body", "text", "accept")
TIMEOUT_S: Final = 20.0  # for each word with the other side; the reflex's own timeout bounds the whole
MAX_HEADERS: Final = 50
OURS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
    | {"accept-encoding", "keep-alive"}
)
"""Headers that are the client's own: another value would be another request than the one that was allowed."""
SECRET: Final = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token"})
"""Headers that hold secrets, which no definition and no row may hold."""
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_VALUE: Final = re.compile(r"[\x20-\x7e]{0,2000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes
    accept: frozenset[int]


class HttpEffect:
    """origins: that may be called, and only they. bearer: an origin's token, read when it is sent; None: it has none.
    sign(id, seconds, body): a `webhook-signature`. now: the host's clock in milliseconds. The rest is for tests."""

    name = NAME
    writes: Sequence[str] | None = ()

    def __init__(
        self,
        origins: frozenset[str],
        sign: Callable[[str, int, bytes], str],
        now: Callable[[], int],
        *,
        bearer: Callable[[str], str | None] = lambda origin: None,
        resolve: Resolve = looked_up,
        public: Callable[[str], bool] = is_public,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._origins = origins
        self._sign = sign
        self._now = now
        self._bearer = bearer
        self._resolve = resolve
        self._public = public
        self._trust = trust

    def __repr__(self) -> str:
        return f"<effect {self.name}>"

    async def run(self, task: Task, input: Json, /) -> Json:
        """{"status", "body"}. Raises: BadArguments for what may not be sent, PortFailed when it was not taken."""
        request = self._checked(input)
        try:
            address = await address_of(request.target, self._resolve, self._public)
        except NotAllowed as refused:
            raise self._failed(task, request, refused.why) from None
        import httpx2  # only who sends pays for the client

        verify: Any = True if self._trust is None else self._trust
        try:  # no proxy, no netrc, no hop
            async with httpx2.AsyncClient(
                verify=verify, trust_env=False, follow_redirects=False, timeout=TIMEOUT_S
            ) as http:
                return await self._sent(http, task, request, address)
        except httpx2.HTTPError as error:
            raise self._failed(task, request, type(error).__name__) from None

    def show(self, input: Json, /) -> str | None:
        request = self._checked(input)
        return f"{request.method} {request.target.origin}{request.target.path.partition('?')[0]}"

    # --- sending ----------------------------------------------------------------------------------

    async def _sent(self, http: httpx2.AsyncClient, task: Task, request: Request, address: str) -> Json:
        target = request.target
        literal = f"[{address}]" if ":" in address else address
        sent = http.build_request(
            request.method,
            f"https://{literal}:{target.port}{target.path}",
            headers=self._headers(task, request),
            content=request.body or None,
            extensions={"sni_hostname": target.host},  # the certificate is the name's, whatever address it leads to
        )
        answer = await http.send(sent, stream=True)
        try:
            taken = answer.is_success or answer.status_code in request.accept
            if not taken:
                raise self._failed(task, request, f"it answered {answer.status_code}")
            raw = await self._read(answer, task, request)
        finally:
            await answer.aclose()
        if answer.headers.get("content-encoding", "identity") != "identity":
            raw = b""  # packed, although that was not asked for: unpacked it could be anything
        return {"status": answer.status_code, "body": _body(answer.headers.get("content-type", ""), raw)}

    def _headers(self, task: Task, request: Request) -> dict[str, str]:
        seconds, id = self._now() // 1000, message_id(task.key)
        key = task.key if _VALUE.fullmatch(task.key) and task.key.strip() == task.key else id
        headers = {
            "accept-encoding": "identity",
            "user-agent": "onefold",
            **request.headers,
            "host": request.target.origin.removeprefix("https://"),
            "idempotency-key": key,
            "webhook-id": id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": self._sign(id, seconds, request.body),
        }
        token = self._bearer(request.target.origin)
        return headers if token is None else {**headers, "authorization": f"Bearer {token}"}

    async def _read(self, answer: httpx2.Response, task: Task, request: Request) -> bytes:
        raw = bytearray()
        async for chunk in answer.aiter_raw():
            raw += chunk
            if len(raw) > MAX_BODY_BYTES:
                raise self._failed(task, request, f"it answered more than {MAX_BODY_BYTES} bytes")
        return bytes(raw)

    def _failed(self, task: Task, request: Request, why: str) -> PortFailed:
        return PortFailed(self.name, task.key, f"{request.target.shown}: {why}")

    # --- what may be sent -------------------------------------------------------------------------

    def _checked(self, input: Json) -> Request:
        if not isinstance(input, dict):
            raise _bad([Fault("", 'must be an object such as {"url": "https://…", "body": {…}}')])
        faults = [strange(key, PARTS) for key in input if key not in PARTS]
        method = input.get("method", "POST")
        if method not in METHODS:
            faults.append(Fault("method", f"must be one of {', '.join(METHODS)}", _short(method)))
        target = None
        try:
            url = input.get("url")
            target = target_of(url if isinstance(url, str) else "")
            allowed(target, self._origins)
        except NotAllowed as refused:
            faults.append(Fault("url", refused.why))
        headers = _checked_headers(input.get("headers", {}), faults)
        body, kind = _written(input, method, faults)
        accept = input.get("accept", [])
        if not isinstance(accept, list) or not all(type(one) is int and 200 <= one <= 599 for one in accept):
            faults.append(Fault("accept", "must be a list of statuses such as [404, 409]"))
        if faults or target is None:
            raise _bad(faults)
        if kind and "content-type" not in headers:
            headers["content-type"] = kind
        return Request(method, target, headers, body, frozenset(accept))


def _checked_headers(given: Any, faults: list[Fault]) -> dict[str, str]:
    found: dict[str, str] = {}
    if not isinstance(given, dict) or len(given) > MAX_HEADERS:
        faults.append(Fault("headers", f"must be an object of at most {MAX_HEADERS} texts"))
        return found
    for name, value in given.items():
        low = name.lower()
        where = below("headers", name)
        if low in SECRET:
            told = "holds a secret, and no definition may; the app gives it: Reflexes(egress={origin: 'env:NAME'})"
            faults.append(Fault(where, told))
        elif low in OURS or low.startswith("webhook-") or low == "idempotency-key":
            faults.append(Fault(where, "is set by the sender; leave it out"))
        elif not _HEADER.fullmatch(name) or not isinstance(value, str) or not _VALUE.fullmatch(value):
            faults.append(Fault(where, "must be a header's name, and its value plain text on one line"))
        elif low in found:
            faults.append(Fault(where, "stands twice"))
        else:
            found[low] = value
    return found


def _written(input: Mapping[str, Json], method: Any, faults: list[Fault]) -> tuple[bytes, str | None]:
    """The body's bytes, and what they are."""
    if "body" in input and "text" in input:
        faults.append(Fault("text", "stands beside body; leave one"))
        return b"", None
    if method in ("GET", "HEAD") and ("body" in input or "text" in input):
        faults.append(Fault("body" if "body" in input else "text", f"cannot be sent with {method}"))
        return b"", None
    raw, kind = b"", None
    if "body" in input:
        raw, kind = canonical(input["body"]), "application/json"
    elif "text" in input:
        text = input["text"]
        if not isinstance(text, str) or text_problem(text):
            faults.append(Fault("text", "must be text"))
        else:
            raw, kind = text.encode(), "text/plain; charset=utf-8"
    if len(raw) > MAX_BODY_BYTES:
        faults.append(Fault("body", f"has {len(raw)} bytes; at most {MAX_BODY_BYTES} are sent"))
    return raw, kind


def _body(kind: str, raw: bytes) -> Json:
    """What came back: JSON where it says so and is, text otherwise; None for nothing, or for bytes that are no text."""
    if not raw:
        return None
    if kind.partition(";")[0].strip().lower().endswith(("/json", "+json")):
        try:
            return parse(raw)
        except BadArguments:
            pass
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return None if text_problem(text) else text


def _short(value: Any) -> Any:
    return value[:40] if isinstance(value, str) else None


def _bad(faults: list[Fault]) -> BadArguments:
    return BadArguments(faults, nothing_was="sent")
