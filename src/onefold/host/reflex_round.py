"""host.reflex_round - when the engine of reflexes is advanced: beside the alarms, and never faster than there is work.

For: advancing on every fact, until nothing moves; sleeping until the engine wants to be woken; looking again now and
then for what a crash left behind; stopping cleanly.
Never: decides; holds an instant that is in no row; lets an effect that takes long keep the others waiting.
Was wrong once: one advance after another. While an effect waited half a minute for its provider, no fact woke
anything. A few advances may be under way at once: what they do is claimed row by row.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, Protocol

from onefold.host.clock import Clock
from onefold.host.driver import AFTER_FAULT_MS, BEAT_MS, SAID_AGAIN_MS
from onefold.reflex.words import Report
from onefold.terms.errors import OnefoldError
from onefold.terms.instant import moment, up

AT_ONCE: Final = 8  # advances under way: those of slow effects, while facts go on waking others
SOON_MS: Final = 1_000  # until the next look while something due is in another advance's hands
SLOW_MS: Final = 1_000  # until another advance looks beside one that takes long: how late a clock may then be

log = logging.getLogger("onefold.reflexes")


class Advancing(Protocol):
    """The engine, as far as it must be driven."""

    async def advance(self, now: datetime) -> Report: ...
    async def next_due(self, now: datetime) -> datetime | None: ...


class ReflexRound:
    """Drives one engine. `told` hears what each advance did; `beat` is called at each slow beat."""

    def __init__(
        self,
        clock: Clock,
        engine: Advancing,
        told: Callable[[Report], Awaitable[None]],
        beat: Callable[[], object] = lambda: None,
    ) -> None:
        self._clock = clock
        self._engine = engine
        self._told = told
        self._beat = beat
        self._woken = asyncio.Event()
        self._quiet = asyncio.Event()
        self._stopping = False
        self._wanted = True  # whether there may be work that no advance under way has seen
        self._next: int | None = None
        self._beat_at = 0
        self._under_way: set[asyncio.Task[bool]] = set()
        self._task: asyncio.Task[None] | None = None
        self._said: tuple[str, int] = ("", 0)
        self._asked = 0  # how often `_next` was answered
        self.advances = 0

    # --- from outside -------------------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._drive(), name="onefold reflexes")

    def wake(self) -> None:
        """Something was committed that an engine wants to see."""
        self._wanted = True
        self._quiet.clear()
        self._woken.set()

    def rest(self) -> None:
        """Begin nothing more."""
        self._stopping = True
        self._woken.set()

    async def stop(self, grace_s: float) -> None:
        """Begin nothing more; what is under way has `grace_s` seconds. What is cut off lapses and is taken up again."""
        self.rest()
        if self._task is not None:
            await self._task
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=grace_s)
        await self._cut()

    async def abandon(self) -> None:
        """As a kill would leave it. For tests."""
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
        """When the engine next wants to be woken, in ms; None when only a fact can help. The beat is none."""
        return self._next

    @property
    def quiet(self) -> bool:
        """Whether nothing is due and nothing is under way."""
        return self._quiet.is_set() and not self._woken.is_set()

    # --- the loop -------------------------------------------------------------------------------

    async def _drive(self) -> None:
        while not self._stopping:
            self._woken.clear()
            now = self._clock.now()
            if now >= self._beat_at:
                self._beat_at = now + BEAT_MS
                self._beat()
                self._wanted = True
            if self._next is not None and now >= self._next:
                self._next = None
                self._wanted = True
            if self._wanted and len(self._under_way) < AT_ONCE:
                self._wanted = False
                self._begin()
            elif self._under_way and self._next is None:
                self._next = now + SLOW_MS  # what is under way takes long, and knows of nothing that came due since
            if not self._under_way and not self._wanted and not self._woken.is_set():
                self._quiet.set()
            until = self._beat_at if self._next is None else min(self._next, self._beat_at)
            await self._clock.wait(until, self._woken)
            self._quiet.clear()

    def _begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._advance(), name="onefold advance")
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[bool]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is None and task.result():
            self._wanted = True
        self._woken.set()

    async def _advance(self) -> bool:
        """One advance; whether it moved anything. A store that fails is asked again a little later."""
        now = self._clock.now()
        try:
            self.advances += 1
            report = await self._engine.advance(moment(now))
            await self._told(report)
            await self._ask_next(report.moved)
        except OnefoldError as fault:
            self._fails(str(fault), now)
            return False
        except Exception as fault:
            log.exception("an advance raised")
            self._fails(type(fault).__name__, now)
            return False
        return report.moved

    async def _ask_next(self, moved: bool) -> None:
        """When to look next. Asked again where another advance ended meanwhile, and knew more.

        What is due at once, and did not move, is in other hands, or waits for code or a store.
        """
        due, seen = None, -1
        while seen != self._asked:
            seen = self._asked
            due = await self._engine.next_due(moment(self._clock.now()))
        self._asked += 1
        now = self._clock.now()
        at = None if due is None else up(due)
        self._next = at if at is None or moved or at > now else now + SOON_MS

    def _fails(self, trouble: str, now: int) -> None:
        self._next = self._clock.now() + AFTER_FAULT_MS
        said, at = self._said
        if said != trouble or now >= at + SAID_AGAIN_MS:
            self._said = (trouble, now)
            log.warning("reflexes could not be advanced: %s", trouble)
