"""host.peers - turns sent to other nodes over HTTP, and what became of each.

For: turns to one node that are ready in the same moment in one request; few connections, kept; three things told apart:
it answered, it never got there, nobody knows.
Never: sends a turn twice; trusts what is not signed on the other side (serve checks that).
Was wrong once: any failure of the connection as "not sent". The other node had the turn already, and it was routed anew
under another id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from onefold.fleet.wire import AT_ONCE, LOOK, NUDGE, PATH, Sent, signature
from onefold.host.connection import Ambiguous, Connection, NotReached, Told, request
from onefold.terms.codec import Json, canonical

LINES = 16  # connections to one node
READ_S = 35.0  # longer than a turn may take there
NUDGE_S = 1.0
LEARNED = b'{"learn":true}'  # a nudge that is answered once the node has learned who owns what
WAITING = 10_000  # turns for one node; beyond it, it does not keep up
DONE, UNSIGNED = 204, 401
log = logging.getLogger("onefold.fleet")


class Peers:
    """The other nodes. `now`: seconds since 1970."""

    def __init__(self, secrets: Sequence[bytes], now: Callable[[], int]) -> None:
        self._secret = secrets[0]
        self._now = now
        self._peers: dict[str, _Peer] = {}

    async def ask(self, url: str, sent: Sent) -> Told:
        """Send a turn to the node at `url`. Never raises what the network raises."""
        return await self._peer(url).ask(sent)

    async def look(self, url: str, space: str, queries: Json) -> Told:
        """Ask the node at `url` about a file that it has."""
        told: list[Told] = [NotReached()]

        def heard(n: int, answer: Told) -> None:
            told[0] = answer

        with suppress(OSError, ValueError):
            body = canonical({"space": space, "queries": queries})
            await self._peer(url).post(LOOK, body, 1, heard, READ_S)
        return told[0]

    async def nudge(self, url: str) -> None:
        """Tell a node that something waits for it in the store. Whether it hears this matters to nobody."""
        with suppress(OSError, ValueError):
            await self._peer(url).post(NUDGE, b"{}", 0, lambda n, told: None, NUDGE_S)

    async def learns(self, url: str) -> bool:
        """Have a node learn who owns what now; whether it did."""
        with suppress(OSError, ValueError):
            return await self._peer(url).post(NUDGE, LEARNED, 0, lambda n, told: None, NUDGE_S) == DONE
        return False

    def reached(self, url: str) -> bool | None:
        """Whether a node of this fleet was met there the last time; None: nobody tried."""
        peer = self._peers.get(url)
        return None if peer is None else peer.reached

    async def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()

    def _peer(self, url: str) -> _Peer:
        peer = self._peers.get(url)
        if peer is None:
            peer = self._peers[url] = _Peer(url, lambda path, body: signature(self._secret, self._now(), path, body))
        return peer


class _Peer:
    """One node, and the turns that wait for a connection to it."""

    def __init__(self, url: str, sign: Callable[[str, bytes], str]) -> None:
        self._url = url
        self._sign = sign
        self._waiting: deque[tuple[bytes, asyncio.Future[Told]]] = deque()
        self._free: list[Connection] = []
        self._all: set[Connection] = set()
        self._sending: set[asyncio.Task[None]] = set()
        self._due = False
        self._strange = False
        self.reached: bool | None = None

    async def ask(self, sent: Sent) -> Told:
        if len(self._waiting) >= WAITING:
            return NotReached()
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[Told] = loop.create_future()
        self._waiting.append((canonical(sent.to_json()), heard))
        if not self._due:
            self._due = True
            loop.call_soon(self._go)
        return await heard

    async def post(
        self, path: str, body: bytes, count: int, heard: Callable[[int, Told], None], within_s: float
    ) -> int:
        """One request; the status of its answer, 0 without one. Raises: OSError, ValueError, TimeoutError where no
        connection could be made.
        """
        try:
            connection = await self._connected()
        except (OSError, ValueError):
            self.reached = False
            raise
        try:
            await connection.send(request(self._url, path, self._sign(path, body), body), body, count, heard, within_s)
            self._answered(connection.status)
            return connection.status
        finally:
            if connection.over:
                self._all.discard(connection)
            else:
                self._free.append(connection)

    def _answered(self, status: int) -> None:
        """Say it where two nodes cannot talk, once: their turns go on as letters, and nobody would know why."""
        strange = status == UNSIGNED
        self.reached = bool(status) and not strange
        if strange and not self._strange:
            log.error(
                "the node at %s refuses what is signed here: are ONEFOLD_SECRET and the clock the same?", self._url
            )
        self._strange = strange

    def close(self) -> None:
        for task in self._sending:
            task.cancel()
        for connection in tuple(self._all):
            connection.drop()

    def _go(self) -> None:
        """Send what waits: all that is there goes in one request, while there are connections for more."""
        self._due = False
        while self._waiting and len(self._sending) < LINES:
            turns = [self._waiting.popleft() for _ in range(min(len(self._waiting), AT_ONCE))]
            task = asyncio.get_running_loop().create_task(self._send(turns), name="onefold turns")
            self._sending.add(task)
            task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._go()

    async def _send(self, turns: Sequence[tuple[bytes, asyncio.Future[Told]]]) -> None:
        def heard(n: int, told: Told) -> None:
            future = turns[n][1]
            if not future.done():
                future.set_result(told)

        otherwise: Told = NotReached()
        try:
            body = b"[%b]" % b",".join(turn for turn, _ in turns)
            await self.post(PATH, body, len(turns), heard, READ_S)
        except (OSError, ValueError):
            pass  # no connection: certainly not sent
        except asyncio.CancelledError:
            otherwise = Ambiguous()
            raise
        finally:
            for n in range(len(turns)):
                heard(n, otherwise)

    async def _connected(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if not connection.over:
                return connection
            self._all.discard(connection)
        connection = await Connection.open(self._url)
        self._all.add(connection)
        return connection
