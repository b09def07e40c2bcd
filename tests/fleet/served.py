"""Nodes of one fleet in this process: real servers on real ports, one store.

For: `nodes(store, *parts)`, opened apps that share a store and have shared it out.
Never: waits for a beat: each is told to look until nothing is left to do.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import uvicorn

from onefold import App
from onefold.fleet.planning import Plan, plan
from onefold.fleet.standing import Standing
from onefold.terms.ids import ActorId

SECRET = "the secret that these nodes share"
LOOKS = 200


@asynccontextmanager
async def nodes(
    store: str, *parts: Any, names: Iterable[str] = "ab", lease: str = "5 seconds"
) -> AsyncIterator[list[App]]:
    """Apps that are open and served, every slot with whoever is to have it. Needs ONEFOLD_SECRET."""
    async with AsyncExitStack() as stack:
        apps = [await stack.enter_async_context(node(store, *parts, name=name, lease=lease)) for name in names]
        await shared_out(apps)
        yield apps


@asynccontextmanager
async def node(store: str, *parts: Any, name: str, lease: str = "5 seconds") -> AsyncIterator[App]:
    """One of them."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    host, port = listening.getsockname()
    settings = {"name": name, "advertise": f"http://{host}:{port}", "lease": lease}
    app = App(*parts, store=store, node=settings, config={"listen": f"{host}:{port}"})
    async with app:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", access_log=False))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield app
        finally:
            server.should_exit = True
            await serving


async def shared_out(apps: Iterable[App]) -> None:
    """Until no node has anything to take or to give."""
    todo: list[Plan] = []
    for _ in range(LOOKS):
        todo = []
        for app in apps:
            membership = app.host.fleet.membership  # type: ignore[union-attr]
            await membership.look()
            standing = membership.standing
            todo.append(plan(standing.me, standing.seen, tuple(sorted(standing.spread))))
        if not any(one.take or one.hand or one.close or one.lapsed for one in todo):
            return
    raise AssertionError(f"after {LOOKS} looks there is still something to do: {todo}")


def standing(app: App) -> Standing:
    return app.host.fleet.membership.standing  # type: ignore[union-attr]


def keys_of(app: App, kind: str, count: int) -> list[str]:
    """Keys of actors that this node owns."""
    held = standing(app)
    found = []
    for n in range(100_000):
        if (row := held.node_of(ActorId(kind, None, f"{kind}-{n}"))) is not None and row.name == held.me.name:
            found.append(f"{kind}-{n}")
            if len(found) == count:
                return found
    raise AssertionError(f"{held.me.name} owns too few of {kind}")
