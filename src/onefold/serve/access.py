"""serve.access - who is let in: names this server answers to, pages it takes posts from, keys and rights.

For: Host and Origin of every request, the bearer key or the console's session turned into a Caller.
Never: looks at a body; keeps a secret longer than its digest; trusts an address a proxy told.
Was wrong once: "no keys, loopback only" checked where the socket is bound. A proxy on the same
machine then lent every right to whoever it forwarded.

Without keys every right belongs to this machine: the peer is loopback, the Host is a loopback name,
and no forwarding header says that somebody else stands behind it. A page of a foreign site cannot
get there: its Origin is refused, and a name pointed at this machine is not among the Hosts.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from onefold.host.caller import ALL
from onefold.serve.bodies import HEADERS, headers_of
from onefold.serve.door import Caller, Host
from onefold.serve.problems import HostRefused, OriginRefused
from onefold.terms.errors import Forbidden, Unauthenticated
from onefold.terms.ids import check_text

LOCAL: Final = Caller(principal=None, rights=ALL, name="local")
ACTS_AS: Final = b"onefold-as"
SAID_BY: Final = b"onefold-by"
NOBODY: Final = Caller(principal=None, rights=frozenset(), name="nobody")  # routes that ask for no right
SESSION: Final = b"onefold_session"
SESSION_MS: Final = 12 * 3_600_000  # a working day; then the key is asked for again
REMEMBERED: Final = 64  # answers kept by name: real clients use one or two, and a flood of others must not fill memory
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
_FORWARDED: Final = frozenset(
    b"forwarded via x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip cf-connecting-ip".split()
)
_PORT: Final = re.compile(r"(.*?)(?::(\d{1,5}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Known:
    """One bearer key, as its SHA-256, and who comes with it."""

    digest: bytes
    caller: Caller


def _split(host: str) -> tuple[str, str | None]:
    """`name:port` in lower case; the port is None where none is said. An address in brackets keeps them."""
    found = _PORT.fullmatch(host.strip().lower())
    return (found[1].rstrip("."), found[2]) if found else (host, None)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def local_address(client: Sequence[Any] | None) -> bool:
    """Whether the peer is this machine. A peer without an address came through a socket file or a test."""
    if not client:
        return True
    try:
        address = ipaddress.ip_address(str(client[0]))
    except ValueError:
        return True
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


class Names:
    """The Hosts this server answers to and the Origins it takes requests from."""

    def __init__(self, listen: tuple[str, int], public_url: str, more: Sequence[str] = ()) -> None:
        host = listen[0].lower()
        self.wildcard = host in ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound
        named = f"[{host}]" if ":" in host and not host.startswith("[") else host
        public = urlsplit(public_url)
        self.any_port = frozenset(_LOOPBACK_NAMES if self.wildcard or self._loops(host) else ())
        default = "443" if public.scheme == "https" else "80"
        public_name = _split(public.netloc.rpartition("@")[2])
        self.exact = {(named, str(listen[1]) if listen[1] else None), (public_name[0], public_name[1] or default)}
        self.exact |= {(public_name[0], None)} if public_name[1] in (None, default) else set()
        for one in more:
            name, port = _split(one)
            self.exact |= {(name, port)} if port else {(name, None), (name, "80"), (name, "443")}
        self.known: set[bytes] = set()

    @staticmethod
    def _loops(host: str) -> bool:
        return host == "localhost" or (_is_address(host) and local_address((host,)))

    def knows(self, host: bytes) -> bool:
        """Whether a Host header names this server. Good ones are remembered in `known`."""
        name, port = _split(host.decode("latin-1"))
        good = (
            name in self.any_port
            or (name, port) in self.exact
            or ((name, None) in self.exact and port in ("80", "443"))
            or (self.wildcard and _is_address(name))
        )
        if good and len(self.known) < REMEMBERED:
            self.known.add(host)
        return good

    def local(self, host: bytes) -> bool:
        """Whether a Host header is a name of this machine that works on this machine only."""
        name = _split(host.decode("latin-1"))[0]
        return name in _LOOPBACK_NAMES or (_is_address(name) and local_address((name.strip("[]"),)))

    def takes(self, origin: bytes) -> bool:
        """Whether a page of `origin` may send requests. `null` is no page of ours."""
        try:
            said = urlsplit(origin.decode("latin-1"))
        except ValueError:
            return False
        return said.scheme in ("http", "https") and bool(said.netloc) and self.knows(said.netloc.encode("latin-1"))


def named(caller: Caller, headers: Mapping[bytes, bytes]) -> Caller:
    """`caller` under the principal and the name that its request says, percent-encoded. Adds no right.

    Only for one whom no key names: with keys, the key alone says who speaks. Raises: BadArguments.
    """
    said = {name: unquote(headers[name].decode("latin-1")) for name in (ACTS_AS, SAID_BY) if name in headers}
    principal = check_text(said[ACTS_AS], "principal") if ACTS_AS in said else caller.principal
    by = check_text(said[SAID_BY], "Onefold-By") if SAID_BY in said else said.get(ACTS_AS, caller.name)
    return Caller(principal=principal, rights=caller.rights, name=by)


class Access:
    """Everything that decides whether a request is let in, and as whom."""

    def __init__(self, host: Host, more_names: Sequence[str] = ()) -> None:
        config = host.config
        self._clock = host.clock
        self.names = Names(config.listen, config.public_url, more_names)
        self.keyed = bool(config.keys)
        self._near: set[tuple[Any, bytes]] = set()
        self._keys = tuple(
            Known(
                hashlib.sha256(config.secret(key.secret_env, "keys").encode()).digest(),
                Caller(principal=key.principal, rights=key.may, name=key.principal or key.secret_env.lower()),
            )
            for key in config.keys
        )
        # The usual form of the header by its digest: looking one up tells by its time nothing about a key.
        self._shown = {
            hashlib.sha256(b"Bearer " + config.secret(key.secret_env, "keys").encode()).digest(): known.caller
            for key, known in zip(config.keys, self._keys, strict=True)
        }

    def check_names(self, scope: Any, *, null_origin: bool = False) -> bytes:
        """The Host header. Raises: HostRefused, OriginRefused. `null_origin` lets a page without one post."""
        headers = headers_of(scope)
        host = headers.get(b"host", b"")
        if host not in self.names.known and not self.names.knows(host):
            raise HostRefused(host.decode("latin-1"))
        origin = headers.get(b"origin")
        if origin is not None and not self.names.takes(origin) and not (null_origin and origin == b"null"):
            raise OriginRefused(origin.decode("latin-1"))
        return host

    def caller(self, scope: Any, host: bytes) -> Caller:
        """Who sends this request. Raises: Unauthenticated."""
        headers = scope.get(HEADERS) or headers_of(scope)
        if not self.keyed:
            client = scope.get("client")
            near = (client and client[0], host) in self._near or self._here(client, host)
            if not near or not _FORWARDED.isdisjoint(headers):
                raise Unauthenticated("no keys are configured, so only this machine itself is let in")
            return LOCAL if ACTS_AS not in headers and SAID_BY not in headers else named(LOCAL, headers)
        if (authorization := headers.get(b"authorization")) is not None:
            return self._shown.get(hashlib.sha256(authorization).digest()) or self._bearer(authorization)
        if (cookie := headers.get(b"cookie")) is not None and (caller := self.session(cookie)):
            return caller
        raise Unauthenticated

    def _here(self, client: Sequence[Any] | None, host: bytes) -> bool:
        """Whether a request of this peer under this Host stayed on this machine. Good answers are remembered."""
        good = local_address(client) and self.names.local(host)
        if good and len(self._near) < REMEMBERED:
            self._near.add((client and client[0], host))
        return good

    def _bearer(self, authorization: bytes) -> Caller:
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            raise Unauthenticated("the Authorization header is no Bearer key")
        found = self._of(token.strip())
        if found is None:
            raise Unauthenticated("the key is not one of this server's")
        return found.caller

    def _of(self, token: bytes) -> Known | None:
        """The key with this text. Compares digests and never stops early, so time tells nothing."""
        digest = hashlib.sha256(token).digest()
        found = None
        for known in self._keys:
            if hmac.compare_digest(known.digest, digest):
                found = known
        return found

    # --- the console's session: a signed cookie that ends by itself and with its key ---

    def open_session(self, token: str) -> str | None:
        """A cookie's value for somebody who showed a key; None for a key that is not ours."""
        known = self._of(token.strip().encode("utf-8", "replace"))
        if known is None:
            return None
        at = self._keys.index(known)
        ends = self._clock.now() + SESSION_MS
        return f"{at}.{ends}.{self._sign(known, at, ends)}"

    def session(self, cookies: bytes) -> Caller | None:
        """Who a session cookie was given to, if it is ours and has not ended."""
        for part in cookies.split(b";"):
            name, _, value = part.strip().partition(b"=")
            if name != SESSION:
                continue
            found = re.fullmatch(rb"(\d{1,3})\.(\d{1,15})\.([0-9a-f]{64})", value)
            if not found or int(found[1]) >= len(self._keys):
                return None
            known = self._keys[int(found[1])]
            right = self._sign(known, int(found[1]), int(found[2])).encode()
            if hmac.compare_digest(right, found[3]) and self._clock.now() < int(found[2]):
                return known.caller
        return None

    @staticmethod
    def _sign(known: Known, at: int, ends: int) -> str:
        return hmac.new(known.digest, b"console session\0%d\0%d" % (at, ends), hashlib.sha256).hexdigest()


def require(caller: Caller, rights: frozenset[str], what: str) -> None:
    """Raises: Forbidden unless the caller has one of `rights`."""
    if rights and not (caller.rights & rights):
        raise Forbidden(" or ".join(sorted(rights)), what)
