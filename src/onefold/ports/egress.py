"""ports.egress - where this process may connect to on somebody's word, and where never.

For: the exact list of https origins, the parts of an address, and a name's addresses, all of them public.
Never: follows a redirect; asks a proxy; looks a name up twice (the second answer may be another).
Was wrong once: the address checked, and then handed to a client that looked it up again. The second answer was the
metadata service of the cloud.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from onefold.terms.errors import Finding, LoadRefused
from onefold.terms.ids import nearest

MAX_URL: Final = 8_000
_HOST: Final = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
ORIGIN: Final = re.compile(rf"https://(?P<host>{_HOST})(?::(?P<port>[1-9][0-9]{{0,4}}))?", re.ASCII)
_URL: Final = re.compile(r"[!-\[\]^-~]+", re.ASCII)  # printable, without a space, a backslash or anything beyond ASCII
_MAPPED: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96"))
)
"""Ranges of IPv6 that carry an address of IPv4 somewhere else, through a gateway."""

Resolve: TypeAlias = "Callable[[str, int], Awaitable[Sequence[str]]]"


class NotAllowed(Exception):
    """It is not connected to. `why`: without a path, a query or an address."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Target:
    """An https address in parts. `shown`: as an error may name it, since paths hold tokens."""

    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        return f"https://{self.host}" + ("" if self.port == 443 else f":{self.port}")

    @property
    def shown(self) -> str:
        return f"{self.origin}/…"


def target_of(url: str) -> Target:
    """The parts of an address. Raises: NotAllowed for all but plain https with a name."""
    if len(url) > MAX_URL or not _URL.fullmatch(url):
        raise NotAllowed(f"the url must be plain ASCII without spaces, at most {MAX_URL} characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NotAllowed("the url cannot be read") from None
    if parts.scheme != "https":
        raise NotAllowed("the url must begin with https://")
    if "@" in parts.netloc:
        raise NotAllowed("the url must hold no user and no password")
    if parts.fragment or "#" in url:
        raise NotAllowed("the url must hold no fragment: nothing after # is ever sent")
    if not ORIGIN.fullmatch(f"https://{parts.netloc}"):
        raise NotAllowed("the url must name a host in lower case, such as https://api.example.com/path")
    return Target(parts.hostname or "", port or 443, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


def origins_of(listed: Iterable[str], where: str) -> frozenset[str]:
    """The origins of an egress list. Raises: LoadRefused, naming each that is no exact https origin."""
    found, findings = set(), []
    for item in listed:
        match = ORIGIN.fullmatch(str(item))
        if match is None or int(match["port"] or 443) > 65_535:
            told = f"{item!r} is no exact origin; write https://host, with :port where it is not 443, and no path"
            findings.append(Finding(where, told))
        else:
            found.add(Target(match["host"], int(match["port"] or 443), "/").origin)
    if findings:
        raise LoadRefused(findings)
    return frozenset(found)


def allowed(target: Target, origins: frozenset[str]) -> None:
    """Raises: NotAllowed for an origin that is not on the list."""
    if target.origin not in origins:
        near = nearest(target.origin, origins)
        told = f"; did you mean {near}?" if near else "; add it to `egress` of Reflexes"
        raise NotAllowed(f"{target.origin} is not on the list of origins that may be called{told}")


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet. What embeds another address is judged by nobody, and refused."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if ip.version == 6 and (ip.ipv4_mapped is not None or any(ip in network for network in _MAPPED)):
        return False
    return ip.is_global and not (
        ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_loopback or ip.is_link_local
    )


@cache
def _names() -> ThreadPoolExecutor:
    """Threads of their own: a name whose server does not answer keeps one for half a minute, and steps run in the loop's."""
    return ThreadPoolExecutor(8, thread_name_prefix="onefold-names")


async def looked_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system gives them. Raises: NotAllowed when there are none."""
    try:
        asking = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(_names(), asking)
    except (OSError, UnicodeError):
        raise NotAllowed("its name cannot be looked up") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def address_of(target: Target, resolve: Resolve, public: Callable[[str], bool] = is_public) -> str:
    """The one address to connect to. Raises: NotAllowed when any of the name's addresses is not public."""
    found = await resolve(target.host, target.port)
    if not found:
        raise NotAllowed("its name cannot be looked up")
    if not all(map(public, found)):
        raise NotAllowed("its name leads to an address that is not public")
    return found[0]
