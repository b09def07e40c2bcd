"""serve.routes - the table of routes, what one asks, what one answers.

For: a path cut into decoded parts, the route that fits it, its arguments from path, query and headers;
answers as bytes.
Never: calls host; knows what a route is for; matches by regular expression.
Was wrong once: the decoded path cut at slashes. The key `room/7` of an actor became two parts of a
path, and its owner could never read it. Cut first, decode afterwards.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from onefold.serve.door import Caller
from onefold.serve.problems import BadRequest, MethodNotAllowed
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments, Fault, NotFound, UnknownName

JSON: Final = (b"content-type", b"application/json")
NO_STORE: Final = (b"cache-control", b"no-store")
REPLAYED: Final = (b"onefold-replayed", b"true")  # this answer was given before
LIST_LIMIT: Final = 100
LIST_MOST: Final = 1000  # one page of receipts of 1 KB is then a megabyte
WAIT_DEFAULT, WAIT_MOST = 20, 25  # seconds; calls over HTTP die at 30 to 60 s in many clients

T = TypeVar("T")
Headers = Sequence[tuple[bytes, bytes]]


@dataclass(slots=True)
class Answer:
    """What goes back: a status, headers, and either `body` whole or the pieces of `stream`."""

    status: int
    body: bytes = b""
    headers: Headers = (JSON, NO_STORE)
    stream: AsyncIterator[bytes] | None = None


def answer(value: Any, status: int = 200, headers: Headers = ()) -> Answer:
    """A JSON answer in the canonical form."""
    return Answer(status, canonical(value), (JSON, NO_STORE, *headers))


def redirect(to: str, status: int = 303, headers: Headers = ()) -> Answer:
    return Answer(status, b"", ((b"location", to.encode("ascii")), NO_STORE, *headers))


@dataclass(slots=True)
class Ask:
    """One request, cut up: who asks, for which path arguments, below which mounted path."""

    scope: Any
    receive: Callable[[], Awaitable[Any]]
    caller: Caller
    params: Mapping[str, str]
    base: str
    host: str

    def header(self, name: bytes) -> str | None:
        """A header's text, several of one name joined by commas; None where there is none."""
        found = [value for known, value in self.scope["headers"] if known == name]
        return b", ".join(found).decode("latin-1") if found else None

    def queries(self, *allowed: str) -> dict[str, str]:
        """The query's fields. Raises: BadArguments for one that is unknown here, given twice, or not UTF-8."""
        try:
            pairs = parse_qsl(
                self.scope.get("query_string", b"").decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=32,
            )
        except ValueError:
            raise BadRequest([Fault("query", "is not percent-encoded UTF-8")], nothing_was="done") from None
        faults = []
        found: dict[str, str] = {}
        for name, value in pairs:
            if name not in allowed:
                hint = f"; there are {', '.join(allowed)}" if allowed else ""
                faults.append(Fault(name, f"is not a parameter here{hint}"))
            elif name in found:
                faults.append(Fault(name, "is given twice"))
            found[name] = value
        if faults:
            raise BadArguments(faults, nothing_was="done")
        return found

    def chosen(self, *allowed: str) -> dict[str, str]:
        """As `queries`, for a page's form, which also sends the fields that were left empty."""
        return {name: value for name, value in self.queries(*allowed).items() if value}

    def key(self) -> str | None:
        """`Idempotency-Key`, bare or as a quoted structured text. Raises: BadArguments for an empty or doubled one."""
        given = [value for name, value in self.scope["headers"] if name == b"idempotency-key"]
        if not given:
            return None
        return idempotency_key(given)

    def wait_ms(self) -> int:
        """How long the answer may wait, by `Prefer: wait=N`. What cannot be followed is not, as RFC 7240 says."""
        return prefer_wait(self.header(b"prefer")) * 1000


def idempotency_key(given: Sequence[bytes]) -> str:
    """The one key in these header values. Raises: BadArguments."""
    try:
        text = given[0].decode("utf-8").strip()
    except UnicodeDecodeError:
        raise BadArguments([Fault("Idempotency-Key", "is not UTF-8")]) from None
    if len(given) > 1:
        raise BadArguments([Fault("Idempotency-Key", "is given twice")])
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            raise BadArguments([Fault("Idempotency-Key", "has no closing quote", text)])
        text = text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if not text:
        raise BadArguments([Fault("Idempotency-Key", "must not be empty")])
    return text


def prefer_wait(header: str | None) -> int:
    """Seconds, 0 to 25. `respond-async` without a wait means 0."""
    seconds = WAIT_DEFAULT
    for preference in (header or "").split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        name, value = name.strip().lower(), value.strip().strip('"')
        if name == "wait" and value.isascii() and value.isdigit():
            return min(int(value[:6]), WAIT_MOST)
        if name == "respond-async":
            seconds = 0
    return seconds


DIGITS: Final = 20  # more than any limit has; zeros before a number are no way around it


def number(value: str | None, name: str, default: int, least: int, most: int) -> int:
    """A whole number of a query. Raises: BadArguments."""
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) <= DIGITS and least <= int(value) <= most):
        raise BadArguments([Fault(name, f"must be a whole number from {least} to {most}", value)], nothing_was="done")
    return int(value)


def page_of(ask: Ask, items: Sequence[T]) -> tuple[Sequence[T], str | None]:
    """A part of a list that is at hand whole: by `limit`, or all of it; `after` counts what was seen before.

    Raises: BadArguments, NotFound.
    """
    queries = ask.queries("limit", "after")
    limit = number(queries.get("limit"), "limit", len(items), 1, LIST_MOST)
    after = queries.get("after", "0")
    if not (after.isascii() and after.isdigit() and len(after) <= DIGITS):
        raise NotFound("page", after)
    end = min(int(after) + limit, len(items))
    return items[int(after) : end], str(end) if end < len(items) else None


# --- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `needs`: one of these rights is enough; None lets everybody in. `page`: faults are shown as HTML."""

    method: str
    path: str
    handle: Callable[[Ask], Awaitable[Answer]]
    needs: frozenset[str] | None
    page: bool = False

    @property
    def names(self) -> list[str]:
        """What its named parts are called, in order."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


def parts_of(scope: Any) -> tuple[str, list[str]]:
    """The path this application is mounted at, and the decoded parts below it. Raises: BadRequest."""
    base: str = scope.get("root_path", "").rstrip("/")
    raw: bytes = scope.get("raw_path") or quote(scope["path"], safe="/%:@!$&'()*+,;=~").encode("ascii")
    raw = raw.partition(b"?")[0]
    prefix = quote(base, safe="/%:@!$&'()*+,;=~").encode("ascii")
    if prefix and (raw == prefix or raw.startswith(prefix + b"/")):
        raw = raw[len(prefix) :]
    try:
        return base, [unquote_to_bytes(part).decode("utf-8") for part in raw.split(b"/")[1:]] or [""]
    except UnicodeDecodeError:
        raise BadRequest([Fault("path", "is not percent-encoded UTF-8")], nothing_was="done") from None


class _Node:
    """One part of a path in the tree of all routes."""

    __slots__ = ("fixed", "named", "routes")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.named: _Node | None = None
        self.routes: dict[str, Route] = {}


class Table:
    """All routes, as a tree. A fixed part goes before a named one; two routes of one shape are refused.

    What a named part is called is its route's own affair: a signal here may be an id two parts further on.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in routes:
            node = self._root
            for part in route.path.split("/")[1:]:
                node = self._below(node, part)
            if route.method in node.routes:
                raise ValueError(f"two routes are {route.method} {route.path}")
            node.routes[route.method] = route

    @staticmethod
    def _below(node: _Node, part: str) -> _Node:
        if not part.startswith("{"):
            return node.fixed.setdefault(part, _Node())
        node.named = node.named or _Node()
        return node.named

    def find(self, method: str, parts: Sequence[str]) -> tuple[Route, dict[str, str]]:
        """The route, and its arguments. Raises: UnknownName, MethodNotAllowed."""
        wanted = "GET" if method == "HEAD" else method
        allowed = set[str]()
        for node, values in self._walk(self._root, parts, 0, ()):
            route = node.routes.get(wanted)
            if route is not None:
                return route, dict(zip(route.names, values, strict=True))
            allowed |= node.routes.keys() | ({"HEAD"} if "GET" in node.routes else set())
        if allowed:
            raise MethodNotAllowed(method, sorted(allowed))
        raise UnknownName("route", "/" + "/".join(parts))

    def _walk(
        self, node: _Node, parts: Sequence[str], at: int, values: tuple[str, ...]
    ) -> Iterator[tuple[_Node, tuple[str, ...]]]:
        """Every place these parts lead to: an actor may have the key `events`, which is also a route's word."""
        if at == len(parts):
            yield node, values
            return
        if (below := node.fixed.get(parts[at])) is not None:
            yield from self._walk(below, parts, at + 1, values)
        if node.named is not None and parts[at]:
            yield from self._walk(node.named, parts, at + 1, (*values, parts[at]))

    @cached_property
    def paths(self) -> dict[str, list[Route]]:
        """The routes by their path, in order: what a document lists."""
        by_path: dict[str, list[Route]] = {}
        for route in self.routes:
            by_path.setdefault(route.path, []).append(route)
        return by_path
