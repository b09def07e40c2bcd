"""testing.clock - time that stands still until a test moves it.

For: waits of days in milliseconds, and alarms that ring at exactly their instant.
Never: moves by itself; goes back.
Was wrong once: a clock that jumped straight to the end. Alarms on the way rang late, all at once, in
an order that no real day has.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from onefold.terms.instant import Instant, moment

START = Instant(1_767_225_600_000)  # 2026-01-01T00:00:00Z


class VirtualClock:
    """A host's clock. `step_to` moves it; whoever waited for an instant on the way is woken there."""

    def __init__(self, start: int = START) -> None:
        self._now = start
        self._waiting: dict[asyncio.Event, int] = {}

    def now(self) -> Instant:
        return Instant(self._now)

    @property
    def moment(self) -> datetime:
        """The instant it is."""
        return moment(self._now)

    async def wait(self, until: int | None, woken: asyncio.Event) -> None:
        if until is not None and until <= self._now:
            return
        if until is not None:
            self._waiting[woken] = until
        try:
            await woken.wait()
        finally:
            self._waiting.pop(woken, None)

    def set_back(self, ms: int) -> None:
        """What a machine's clock does when it is set: time goes back. Only while no host is open."""
        self._now -= ms

    def next_stop(self, until: int) -> int:
        """The soonest instant up to `until` for which somebody waits; `until` when nobody does."""
        return min([until, *self._waiting.values()])

    def step_to(self, at: int) -> None:
        """Move to `at`; wake who waited for it."""
        self._now = max(self._now, at)
        for woken, until in tuple(self._waiting.items()):
            if until <= self._now:
                woken.set()
