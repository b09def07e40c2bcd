"""Several apps of this process on one database, each served by a real server on a port of its own: a fleet.

For: `Fleet`: nodes by name, names whose actors one of them owns, waiting until something is so.
Never: waits for luck: whatever is awaited is asked for until it is so.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import uvicorn

import onefold
from onefold.host.fleet import Fleet as Part
from onefold.host.host import Host
from onefold.terms.ids import ActorId
from tests.postgres import fresh_database

LEASE = "2 seconds"
SLOTS = 32
PEOPLE: dict[str, Any] = {"ann": {"notify": []}}
SECRET = "known to every node of the fleets of tests"
PATIENCE_S = 30.0


@dataclass
class Node:
    """One app and its server."""

    app: onefold.App
    server: uvicorn.Server
    serving: asyncio.Task[None]
    listening: socket.socket

    @property
    def host(self) -> Host:
        return self.app.host

    @property
    def part(self) -> Part:
        part = self.host.fleet
        assert part is not None
        return part

    @property
    def name(self) -> str:
        return self.part.membership.name

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listening.getsockname()[1]}"

    def owns(self, kind: str, key: str, principal: str | None = None) -> bool:
        node = self.part.membership.standing.node_of(ActorId(kind, principal, key))
        return node is not None and node.name == self.name

    async def stop(self) -> None:
        """Leave, cleanly."""
        self.server.should_exit = True
        await self.serving
        self.listening.close()

    async def cut(self) -> None:
        """Answer nobody any more, and keep the store."""
        self.server.force_exit = self.server.should_exit = True
        for server in self.server.servers:
            server.close()

    async def kill(self) -> None:
        """Be gone as after a kill: nothing is handed over, and no lease is given up."""
        host = self.host
        self.serving.cancel()
        with suppress(asyncio.CancelledError):
            await self.serving
        self.listening.close()
        for connection in tuple(self.server.server_state.connections):
            connection.transport.abort()
        await host.abandon()
        self.app._opened.host = None


@dataclass
class Fleet:
    """Nodes that share `store`."""

    store: str = field(default_factory=fresh_database)
    nodes: dict[str, Node] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)

    async def start(
        self, name: str, *parts: Any, lease: str = LEASE, advertise: str | None = None, **said: Any
    ) -> Node:
        listening = listening_socket()
        port = listening.getsockname()[1]
        node = {"name": name, "advertise": advertise or f"http://127.0.0.1:{port}", "lease": lease}
        config = {"listen": f"127.0.0.1:{port}", "slots": SLOTS, "people": PEOPLE, **self.said, **said}
        app = onefold.App(*parts, store=self.store, node=node, config=config)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", log_config=None))
        serving = asyncio.get_running_loop().create_task(_serving(server, listening))
        while not server.started:
            if serving.done():
                listening.close()
                raise RuntimeError(f"node {name} did not start: see the log")
            await asyncio.sleep(0.005)
        self.nodes[name] = started = Node(app, server, serving, listening)
        return started

    async def settled(self, *names: str) -> None:
        """Every slot is owned by the node that is to own it, and all of these know so."""
        nodes = [self.nodes[name] for name in (names or self.nodes)]

        def shared() -> bool:
            held = [node.part.membership.standing.held_slots() for node in nodes]
            if not all(held) or sorted(slot for one in held for slot in one) != list(range(SLOTS)):
                return False
            views = [node.part.membership.standing.seen for node in nodes]
            slots = [f"slot/{slot}" for slot in range(SLOTS)]
            owners = [[view.owners[slot] for slot in slots] for view in views]
            return all(one == owners[0] for one in owners)

        for node in nodes:
            node.part.membership.nudge()
        await until(shared)

    async def close(self) -> None:
        await asyncio.gather(*(node.stop() for node in self.nodes.values() if node.app._opened.host is not None))


def listening_socket() -> socket.socket:
    """On a port of its own. The protocol is said: whoever accepts sends small pieces at once only on what is plainly TCP."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    return listening


async def _serving(server: uvicorn.Server, listening: socket.socket) -> None:
    with suppress(SystemExit):  # of a lifespan that failed: it would end the loop
        await server._serve([listening])


def a_key(node: Node, kind: str, principal: str | None = None, of: str = "k") -> str:
    """A key whose actor this node owns."""
    return next(key for n in count() if node.owns(kind, key := f"{of}{n}", principal))


async def until(so: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Wait until it is so; what it gave."""
    async with asyncio.timeout(patience_s):
        while True:
            told = so()
            if isinstance(told, Awaitable):
                told = await told
            if told:
                return told
            await asyncio.sleep(0.01)


@asynccontextmanager
async def fleet_of(*parts: Any, names: str = "ab", store: str | None = None, **said: Any) -> AsyncIterator[Fleet]:
    """Nodes that have shared out all slots."""
    fleet = Fleet(store or fresh_database(), said=said)
    try:
        for name in names:
            await fleet.start(name, *parts)
        await fleet.settled()
        yield fleet
    finally:
        await fleet.close()
