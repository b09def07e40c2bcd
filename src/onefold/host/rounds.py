"""host.rounds - work of the slow beat that is begun at a beat, and never beside itself.

For: sweeps, which take longer than a beat should.
Never: holds up the beat; cuts a commit short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Round:
    """One kind of such work. `work` returns whether it left something to do, for which the next beat comes sooner."""

    def __init__(self, name: str, work: Callable[[], Awaitable[bool]]) -> None:
        self._name = name
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._more = False

    @property
    def idle(self) -> bool:
        return self._task is None or self._task.done()

    def begin(self) -> bool:
        """Begin a round, unless one is under way. Returns whether there is more to do, so far as is known."""
        if not self.idle:
            return True
        more, self._more = self._more, False
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)
        return more

    async def stop(self) -> None:
        """End between two commits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        self._more = await self._work()
