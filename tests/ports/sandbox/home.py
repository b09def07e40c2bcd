"""Deployed files in the world of the runs' own tests: one run, its rows in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from onefold.ports.sandbox import Deployment, Described, describe
from onefold.ports.sandbox.described import described
from onefold.ports.sandbox.inside import loaded
from tests.actuators.home import Killed, MemoryActor, Tx, World

TOP = """
import asyncio, os, socket, sys, threading, time
from pydantic import BaseModel
from onefold import Retry, Run, Step, actuator, blocking
"""


class Threaded(MemoryActor):
    """Database steps in a thread, as every store runs them: the loop goes on, and carries what they say."""

    async def author(self, step: Any, event_of: Any, /, *, id: str, budget_ms: int) -> Any:
        if self.dead:
            raise Killed
        tables, commits = self.rows.tables, self.rows.commits
        tables.execute("SAVEPOINT step")
        try:
            reply = self.fold_now(event_of(await asyncio.to_thread(step, Tx(tables))), f"s/{id}")
        except BaseException:
            if self.rows.commits == commits:
                tables.execute("ROLLBACK TO step")
            tables.execute("RELEASE step")
            raise
        tables.execute("RELEASE step")
        return reply


class BoxedWorld(World):
    Life = Threaded


@asynccontextmanager
async def deployed(source: str, name: str = "programs.py", **more: Any) -> AsyncIterator[Deployment]:
    offered = more.pop("environment", None)
    deployment = Deployment(source, name, await describe(source, name, offered), offered, **more)
    try:
        yield deployment
    finally:
        await deployment.aclose()


@asynccontextmanager
async def only(body: str, **more: Any) -> AsyncIterator[tuple[Deployment, World]]:
    """A run of the one actuator of a file, which takes nothing."""
    source = TOP + body
    found = Described(
        tuple(map(described, loaded(source, "programs.py").values()))
    )  # here: the top level is the test's own
    deployment = Deployment(source, "programs.py", found, **more)
    try:
        yield deployment, BoxedWorld(deployment.actuators[0])
    finally:
        await deployment.aclose()


async def result(body: str, **more: Any) -> Any:
    """What the one actuator of a file gives."""
    async with only(body, **more) as (_, world):
        await world.play()
        return world.result
