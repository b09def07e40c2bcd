"""host.gates - who alone may have turns of an actor for a while: custody, and a program that runs beside the loop.

For: waiting until nobody else holds an actor; holding it.
Never: holds back what the kernel folds by itself; outlives the process, since a crash lets go of everything.
Was wrong once: a lock for every actor. A million cells that nobody held cost a million locks. And waiting for a holder
while the app closed: a custody that was never let go of kept the process from ending.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from onefold.terms.errors import Busy, NotOpen
from onefold.terms.ids import ActorId
from onefold.terms.limits import QUEUE_PER_ACTOR


class Gates:
    """Actors that somebody holds, by whom, and who waits in the order they came."""

    def __init__(self) -> None:
        self._held: dict[ActorId, tuple[object, deque[asyncio.Future[None]]]] = {}
        self._closed = False

    def holder(self, at: ActorId) -> object | None:
        """Who holds it; None when nobody does."""
        held = self._held.get(at)
        return None if held is None else held[0]

    def holding(self) -> tuple[tuple[ActorId, object], ...]:
        """All that are held, and by whom."""
        return tuple((at, held[0]) for at, held in self._held.items())

    async def open(self, at: ActorId, who: object | None = None) -> None:
        """Return when nobody but `who` holds it. Raises: Busy when too many wait; NotOpen."""
        while (held := self._held.get(at)) is not None and held[0] is not who:
            await self._wait(at, held[1])

    async def take(self, at: ActorId, who: object) -> None:
        """Hold it, once nobody else does. Raises: Busy, NotOpen."""
        while (held := self._held.get(at)) is not None:
            await self._wait(at, held[1])
        self._held[at] = (who, deque())

    def let_go(self, at: ActorId, who: object) -> None:
        """Hold it no longer."""
        held = self._held.get(at)
        if held is None or held[0] is not who:
            return
        del self._held[at]
        for each in held[1]:  # all: most of them want one turn, and the next holder has them wait again
            if not each.done():
                each.set_result(None)

    def close(self) -> None:
        """The app ends: whoever waits for a holder that may never let go is told so."""
        self._closed = True
        for _, waiting in self._held.values():
            for each in waiting:
                if not each.done():
                    each.set_exception(NotOpen("The app"))

    @asynccontextmanager
    async def held(self, at: ActorId, who: object) -> AsyncIterator[None]:
        """Hold it for a while; who holds it already goes on. Raises: Busy, NotOpen."""
        if self.holder(at) is who:
            yield
            return
        await self.take(at, who)
        try:
            yield
        finally:
            self.let_go(at, who)

    async def _wait(self, at: ActorId, waiting: deque[asyncio.Future[None]]) -> None:
        if self._closed:
            raise NotOpen("The app")
        if len(waiting) >= QUEUE_PER_ACTOR:
            raise Busy(f"{at.kind} {at.key}", QUEUE_PER_ACTOR)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in waiting:
                waiting.remove(turn)  # who went away takes no place
            raise
