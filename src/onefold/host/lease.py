"""host.lease - a node's life in its fleet, renewed beside everything else.

For: a thread of its own with a connection of its own, so that a loop that is blocked neither loses the lease nor keeps
it wrongly; the store's clock, as of the last renewal.
Never: renews what was closed; counts a lease from the answer: it may have been on its way for seconds.
Was wrong once: renewal as a task of the loop. One slow function of somebody's, and the whole node was taken for dead.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from onefold.fleet.ownership import LIVE, Me, renewing
from onefold.host.clock import boot_ms
from onefold.store.contract import Body, Done, Outcome, Refused
from onefold.terms.errors import OnefoldError

PART = 4  # renewals a lease: three may be lost
AGAIN_PART = 16  # of a lease, until the next try after one that failed
MARGIN_PART = 8  # of a lease, given up at its end: what was decided just before must be on its way by then
log = logging.getLogger("onefold.fleet")

Transact: TypeAlias = "Callable[[Body[int | None]], Awaitable[Outcome[int | None]]]"


class Lease:
    """What is known of it. Written by whoever renews, read by everybody; each field by itself is right."""

    def __init__(self, lease_ms: int, boot: Callable[[], int] = boot_ms) -> None:
        """`boot`: milliseconds of a clock that goes on while the machine sleeps."""
        self.ms = lease_ms
        self.boot = boot
        self.deadline = 0  # by `boot`
        self.state = LIVE
        self.closed = False  # another node said that this life is over
        self._clock = (0, boot())  # the store's, and `boot` then

    def renewed(self, sent: int, store_now: int) -> None:
        """A renewal that left at `sent` was written at `store_now` of the store."""
        self.deadline = sent + self.ms - self.ms // MARGIN_PART
        self._clock = (store_now, self.boot())

    def left_ms(self) -> int:
        """How long this node may still send and answer. Nothing once it was closed."""
        return 0 if self.closed else self.deadline - self.boot()

    def now(self) -> int:
        """The store's clock, never ahead of it."""
        store, at = self._clock
        return store + self.boot() - at

    async def renew(self, me: Me, transact: Transact) -> int:
        """One renewal; how long to wait for the next (ms). Never raises what the store raises."""
        sent = self.boot()
        try:
            outcome = await transact(renewing(me, self.ms, self.state))
        except OnefoldError as fault:
            outcome = Refused(fault)
        if isinstance(outcome, Done) and outcome.value is not None:
            self.renewed(sent, outcome.value)
            return self.ms // PART
        if isinstance(outcome, Done) and self.state == LIVE:
            if not self.closed:
                log.warning("node %s was closed by another: it owns nothing any more", me.name)
            self.closed = True
        elif not isinstance(outcome, Done):
            log.warning("the lease of node %s was not renewed: %s", me.name, outcome.error)
        return self.ms // AGAIN_PART


class Renewal:
    """Renews in a thread. `opening` gives, on that thread's loop, how to transact, and how to let go."""

    def __init__(self, lease: Lease, opening: Callable[[], Awaitable[tuple[Transact, Callable[[], None]]]]) -> None:
        self._lease = lease
        self._opening = opening
        self._me = Me("", 0)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._stopped = False

    def begin(self, me: Me) -> None:
        """Renew this life from now on."""
        self._me = me
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="onefold lease", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Renew no more."""
        self._stopped = True
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with suppress(RuntimeError):  # it ended by itself
                loop.call_soon_threadsafe(stop.set)

    async def ended(self) -> None:
        """Wait for the thread."""
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        asyncio.run(self._renew())

    async def _renew(self) -> None:
        self._stop, self._loop = asyncio.Event(), asyncio.get_running_loop()
        opened: tuple[Transact, Callable[[], None]] | None = None
        try:
            while not self._stopped:
                wait = self._lease.ms // AGAIN_PART
                try:
                    opened = opened or await self._opening()
                    wait = await self._lease.renew(self._me, opened[0])
                except OnefoldError as fault:
                    log.warning("the lease of node %s cannot be renewed: %s", self._me.name, fault)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait / 1000):
                        await self._stop.wait()
        finally:
            if opened is not None:
                opened[1]()
