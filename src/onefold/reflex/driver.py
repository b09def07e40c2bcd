"""reflex.driver - when an engine is advanced: on every fact until nothing moves, and else when it wants to be woken.

For: an engine on its own. A host has a round of its own, beside its other clocks.
Never: reads a clock (one is handed in); holds an instant that is in no row; decides.
Was wrong once: a beat that did the work. A chain went one hop a minute, and a hundred tasks a minute were the most
there could be. The beat finds what was left behind; work moves by itself.

One slow effect does not keep the others waiting: a few advances may be under way at once. No wait is longer than a
beat, so that no timer is asked for more than it holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from onefold.reflex.words import Report
from onefold.terms.instant import Instant, moment, up

BEAT_MS: Final = 30_000
"""How long what a crash or a lost wake left behind may stay unnoticed."""

SOON_MS: Final = 1_000
"""Until the next look at what is due and did not move: it is in other hands, or the store failed."""

AT_ONCE: Final = 8
"""Advances under way."""


class Clock(Protocol):
    """Where the time comes from. `wait` returns at `until` (ms), or once `woken` is set, whichever is first."""

    def now(self) -> Instant: ...
    async def wait(self, until: int | None, woken: asyncio.Event, /) -> None: ...


class Driven(Protocol):
    """An engine, as far as it must be driven. `stirred` is called whenever a verb left something to be done."""

    stirred: Callable[[], None]

    async def advance(self, now: datetime, /) -> Report: ...
    async def next_due(self, now: datetime, /) -> datetime | None: ...


def _told_nobody(report: Report | Exception) -> None:
    return None


class Driver:
    """Drives one engine, from `async with` on until its end. told: hears what each advance did, or why it could not.
    beats: how many there were.
    """

    def __init__(
        self, engine: Driven, clock: Clock, *, told: Callable[[Report | Exception], None] = _told_nobody
    ) -> None:
        self._engine, self._clock, self._told = engine, clock, told
        self._woken = asyncio.Event()
        self._quiet = asyncio.Event()
        self._stopping = False
        self._wanted = True  # there may be something that no advance under way has seen
        self._due: int | None = None
        self._beat_at = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self.beats = 0

    async def __aenter__(self) -> Driver:
        self.start()
        return self

    async def __aexit__(self, *gone: object) -> None:
        await self.stop()

    def start(self) -> None:
        """Begin. The engine's verbs wake it from now on."""
        self._engine.stirred = self.wake
        self._task = asyncio.get_running_loop().create_task(self._drive(), name="onefold reflexes")

    def rest(self) -> None:
        """Begin nothing more."""
        self._stopping = True
        self._woken.set()

    async def stop(self, grace_s: float | None = None) -> None:
        """Begin nothing more; what is under way ends, or is cut off after so long. Then it lapses, and is taken up again."""
        self.rest()
        if self._task is not None:
            await self._task
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=grace_s)
        await self._cut()

    async def abandon(self) -> None:
        """Leave everything as a kill would."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._cut()

    async def _cut(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    @property
    def next_due(self) -> int | None:
        """When it looks next, in ms; None when only a fact can help. The beat is none."""
        return self._due

    @property
    def resting(self) -> bool:
        """Whether nothing is under way and only time can help."""
        return self._quiet.is_set() and not self._woken.is_set()

    def wake(self) -> None:
        """Something came that an engine wants to see."""
        self._wanted = True
        self._quiet.clear()
        self._woken.set()

    async def quiet(self) -> None:
        """Returns once nothing is under way and only time can help."""
        await self._quiet.wait()

    # --- the loop -------------------------------------------------------------------------------

    async def _drive(self) -> None:
        while not self._stopping:
            self._woken.clear()
            now = self._clock.now()
            if now >= self._beat_at or (self._due is not None and now >= self._due):
                self._wanted = True
                self.beats += now >= self._beat_at
                self._beat_at, self._due = now + BEAT_MS, None
            if self._wanted and len(self._under_way) < AT_ONCE:
                self._wanted = False
                self._begin()
            elif not self._under_way and not self._wanted:
                self._quiet.set()
            slow = self._under_way and self._due is None
            due = now + SOON_MS if slow else self._due  # while effects take long, others come due that nobody asked for
            await self._clock.wait(self._beat_at if due is None else min(due, self._beat_at), self._woken)
            self._wanted |= bool(slow) and self._clock.now() >= now + SOON_MS

    def _begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._advance(), name="onefold advance")
        self._under_way.add(task)
        self._quiet.clear()
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._woken.set()
        if not task.cancelled() and (fault := task.exception()) is not None:
            task.get_loop().call_exception_handler({"message": "an advance was killed", "exception": fault})

    async def _advance(self) -> None:
        """Once, and again as long as it moves. A store that fails is asked again a little later."""
        try:
            while not self._stopping:
                report = await self._engine.advance(moment(self._clock.now()))
                self._told(report)
                if not report.moved:
                    break
            due = await self._engine.next_due(moment(self._clock.now()))
        except Exception as fault:  # noqa: BLE001 - the door: whatever one advance raises, the clock goes on
            self._told(fault)
            due = moment(self._clock.now())
        if due is not None:
            now = self._clock.now()
            at = up(due) if up(due) > now else now + SOON_MS
            self._due = at if self._due is None else min(at, self._due)  # too early is one look too many
