"""host.clock - the one place where time is read.

For: the wall clock in milliseconds, which never goes back, and waiting for an instant or a wake.
Never: is imported by anything below host; every other room is handed a clock.
Was wrong once: a timer set for the whole wait. A loop's timer holds about 24 days, stands still
while a laptop sleeps, and knows nothing of a clock that was set. And, on a store's clock that was set back two minutes, a
node that looked at its fleet again after two minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from onefold.terms.instant import Instant

STANDS_MS = (
    50  # the shortest wait while the store's clock stands still here: whoever looks again has nothing new to see
)
LOOK_MS = 1_000  # the same of the store's clock, which a renewal of the lease may set
LOOK_AGAIN_MS = 60_000  # how long a wait may trust the loop's timer before it looks at the clock again


class Clock(Protocol):
    """What host needs of time."""

    def now(self) -> Instant: ...

    async def wait(self, until: int | None, woken: asyncio.Event) -> None:
        """Return at `until` (ms), or when `woken` is set, whichever is first. None: when woken."""


def boot_ms() -> int:
    """Milliseconds since the machine started, those in which it slept or this process stood still included."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1_000_000  # noqa: TID251 - as below


class WallClock:
    """The machine's clock, rounded down to a millisecond; when it is set back, time stands still here."""

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Instant:
        ms = time.time_ns() // 1_000_000  # noqa: TID251 - the one clock
        if ms > self._last:
            self._last = ms
        return Instant(self._last)

    async def wait(self, until: int | None, woken: asyncio.Event) -> None:
        while not woken.is_set():
            left = LOOK_AGAIN_MS if until is None else until - self.now()
            if left <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_AGAIN_MS) / 1000):
                    await woken.wait()


class StoreClock(WallClock):
    """The store's clock, which all nodes of a fleet share, whatever their machines say."""

    def __init__(self) -> None:
        super().__init__()
        self._store: Callable[[], int] | None = None  # None: nothing was heard of it yet

    def follow(self, store: Callable[[], int]) -> None:
        """From now on this is what it shows: also where the machine's own clock was ahead."""
        if self._store is None:
            self._last = 0
        self._store = store

    def now(self) -> Instant:
        if self._store is None:
            return super().now()
        ms = self._store()
        if ms > self._last:
            self._last = ms
        return Instant(self._last)

    async def wait(self, until: int | None, woken: asyncio.Event) -> None:
        """While the store's clock is behind what it showed before, a wait lasts as long as it was asked for: whoever asked
        looks again, and finds that its instant has not come.
        """
        if until is None:
            return await super().wait(None, woken)
        end = boot_ms() + max(until - self.now(), STANDS_MS)
        while not woken.is_set():
            left = until - self.now()
            if left > 0 and self._store is not None and self._store() < self._last:
                left = min(left, end - boot_ms())
            if left <= 0:
                return None
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_MS) / 1000):
                    await woken.wait()
        return None
