"""host.peers - turns sent to other nodes over HTTP, and what became of each.

For: one client, its connections kept; three things told apart: it answered, it never got there, nobody knows.
Never: sends a turn twice; follows a redirect; trusts what is not signed on the other side (serve checks that).
Was wrong once: any failure of the connection as "not sent". The other node had the turn already, and it was routed anew
under another id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onefold.fleet.wire import NUDGE, PATH, SIGNED, Answer, Sent, fault_of, signature
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import OnefoldError

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 1.0  # a node of the same fleet that does not take a connection within this is gone, or cut off
READ_S = 35.0  # longer than a turn may take there
NUDGE_S = 1.0


@dataclass(frozen=True, slots=True)
class NotReached:
    """It certainly did not arrive."""


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """It may have arrived."""


class Peers:
    """The other nodes. `now`: seconds since 1970."""

    def __init__(self, secrets: Sequence[bytes], now: Callable[[], int]) -> None:
        self._secret = secrets[0]
        self._now = now
        self._client: httpx2.AsyncClient | None = None

    async def ask(self, url: str, sent: Sent) -> Answer | OnefoldError | NotReached | Ambiguous:
        """Send a turn to the node at `url`. Never raises what the network raises."""
        import httpx2  # only a fleet pays for it

        try:
            answer = await self._post(url, PATH, canonical(sent.to_json()), READ_S)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL):
            return NotReached()
        except httpx2.HTTPError:
            return Ambiguous()
        try:
            if answer.status_code == 200:
                told = parse(answer.content, "an answer of another node")
                return Answer(canonical(told["reply"]), bool(told["replayed"]))
            if answer.headers.get("content-type") == "application/onefold-fault+json":
                return fault_of(answer.content)
        except (OnefoldError, KeyError, TypeError):
            return Ambiguous()
        # A proxy's page, or a server that refused before it read anything of it.
        return NotReached() if answer.status_code in (401, 403, 404, 421, 429, 503) else Ambiguous()

    async def nudge(self, url: str) -> None:
        """Tell a node that something waits for it in the store. Whether it hears this matters to nobody."""
        import httpx2

        try:
            await self._post(url, NUDGE, b"{}", NUDGE_S)
        except (httpx2.HTTPError, httpx2.InvalidURL):
            return

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, url: str, path: str, body: bytes, read_s: float) -> httpx2.Response:
        import httpx2

        if self._client is None:
            limits = httpx2.Limits(max_connections=256, max_keepalive_connections=64)
            self._client = httpx2.AsyncClient(trust_env=False, follow_redirects=False, limits=limits)
        headers = {"content-type": "application/json", SIGNED: signature(self._secret, self._now(), path, body)}
        timeout = httpx2.Timeout(read_s, connect=CONNECT_S, pool=CONNECT_S)
        return await self._client.post(url.rstrip("/") + path, content=body, headers=headers, timeout=timeout)
