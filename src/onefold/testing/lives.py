"""testing.lives - one app over the lives of many processes: attended while it works, opened again when it dies.

For: verbs that come back also when a crash cut them, time that is moved by hand, and a call that nothing here can
finish told by its wait.
Never: waits for luck; sends a verb again that could count twice.
Was wrong once: a timeout around each call. A call that waited for a person failed after ten seconds, and did not say
for whom.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from onefold.fleet.ring import holding
from onefold.terms.errors import Broken, NotOpen, OutcomeUnknown
from onefold.testing.leavings import in_boxes, in_rings, late, parked, unsettled
from onefold.testing.moving import held_up, in_custody, moving, restless
from onefold.testing.points import Points
from onefold.testing.stage import LONGEST_S, SPINS, Stage
from onefold.testing.stuck import Stuck, Unsettled, stuck

__tracebackhide__ = True  # a failing test shows the test's own lines

DOWN_MS = 5_000
"""How long a process that was killed is away: longer than a row on its way may stay unnoticed."""
READS = frozenset(
    "actors alarm approvals_list blobs_get ended export facts facts_list history link_page parked_list read read_json ready "
    "receipt cells.get cells.list cells.read reflex_draft reflex_explain reflex_graph reflex_idle reflex_overdue reflex_preview reflex_run reflex_runs "
    "reflex_schema reflex_show reflex_tasks reflexes_list run_history run_journal runs_list space table_rows tables".split()
)
AGAIN = READS | frozenset(
    "approvals_decide blobs_put cells.evict cells.let_go cells.spawn cells.take deliver deliver_raw fact_release fork link_decide prune prune_named reflex_backfill "
    "reflex_sweep reflexes_load run_cancel sweep".split()
)
"""What counts once however often it is sent. Any other verb does when it carries a key."""
CELLS = "cells."
HELD_S = 2.0
"""Real seconds for which nothing moves until a verb that waits for a custody is told so: another task may end it."""
NONE: Mapping[str, Any] = {}
BARE = frozenset({"abandon", "close", "open"})
log = logging.getLogger("onefold.testing")


class Cut(Exception):
    """Stays inside: the process died under a verb."""


class Lives:
    """The open host, whichever it is now. `stage.host` is behind every verb."""

    def __init__(self, stage: Stage, points: Points) -> None:
        self.stage = stage
        self.points = points
        self.life = 0
        self.verbs = 0
        self.heard: list[Callable[[str], None]] = []
        self._moving = 0
        self._rings = frozenset(holding())
        self._reviving = asyncio.Lock()

    def begin(self) -> None:
        """A test begins: what others have left by now is not its own."""
        self._rings = frozenset(holding())

    # --- verbs --------------------------------------------------------------------------------

    async def verb(self, name: str, /, *args: Any, **values: Any) -> Any:
        """One verb of the host. One that a crash cut is sent again, or told of. Raises: Stuck, OutcomeUnknown."""
        wait = values.pop("wait_ms", 0)
        if wait and name == "receipt":
            await self.settle()
        answer = await self._answered(name, args, values)
        if wait and name in ("start", "start_checked"):
            await self.settle()
            shown = await self.stage.host.receipt(answer.receipt.run_id, caller=values["caller"])
            return replace(answer, receipt=shown)
        return answer

    async def _answered(self, name: str, args: tuple[Any, ...], values: dict[str, Any]) -> Any:
        while True:
            try:
                return await self.attended(
                    lambda: attrgetter(name)(self.stage.host)(*args, **values), name, args, values
                )
            except Cut:
                if not _counts_once(name, args, values):
                    raise OutcomeUnknown(name) from None
                if name not in READS:
                    self._tell("the caller got no answer, and sends the same again")

    async def attended(
        self,
        act: Callable[[], Awaitable[Any]],
        name: str = "",
        args: tuple[Any, ...] = (),
        values: Mapping[str, Any] = NONE,
    ) -> Any:
        """What it gives; the app is opened again if it died meanwhile. Raises: Cut, Stuck, Broken."""
        loop = asyncio.get_running_loop()
        life, rested = self.life, loop.time()
        end = rested + LONGEST_S
        task = loop.create_task(_awaited(act))
        self.verbs += 1
        try:
            spins = quiet = 0
            while not task.done() and not self._dying(life):
                if not self.stage.opened:
                    raise NotOpen("The app")
                busy = not self.stage.host.quiet or self._moving
                end = loop.time() + LONGEST_S if self._moving and name else end
                quiet = 0 if busy else quiet + 1
                rested = rested if quiet else loop.time()
                if name == "ended" and quiet > SPINS and args[0]:
                    raise Stuck(await stuck(self.stage.host, str(args[0])))
                if name.startswith(CELLS) and loop.time() > rested + HELD_S:
                    self._held_up(args, values)
                if loop.time() > end:
                    raise Broken(restless(self.stage.host))
                spins += 1
                await asyncio.sleep(0 if spins < SPINS or quiet else 0.001)
            return await self._outcome(task, life)
        finally:
            self.verbs -= 1
            if not task.done():
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _held_up(self, args: tuple[Any, ...], values: Mapping[str, Any]) -> None:
        """Raises: Stuck where a verb on a cell waits for somebody's custody of it."""
        told = held_up(self.stage.host, str(args[0]), str(args[1]), values["caller"].principal)
        if told is not None:
            raise Stuck(told)

    def _dying(self, life: int) -> bool:
        return self.points.dead or self.life != life or self._reviving.locked()

    async def _outcome(self, task: asyncio.Task[Any], life: int) -> Any:
        """The answer that was given before the end of this life. Raises: Cut when there was none."""
        dying = self._dying(life)
        answered = task.done() and not task.cancelled() and task.exception() is None
        if dying:
            if not answered:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await self._revive()
            if not answered:
                raise Cut
        return task.result()

    async def _revive(self) -> None:
        async with self._reviving:
            if not self.points.dead:
                return
            log.warning("the process died at %s, its %d-th failpoint", self.points.crashed[-1], self.points.met)
            await self.stage.let_die()
            await self._reopen()

    async def _reopen(self) -> None:
        self.points.live_on()
        self.stage.clock.step_to(self.stage.clock.now() + DOWN_MS)
        self._tell(f"it is started again, {DOWN_MS // 1000} seconds later")
        await self.stage.open()
        self.life += 1

    def _tell(self, what: str) -> None:
        for told in self.heard:
            told(what)

    # --- from outside -------------------------------------------------------------------------

    async def settle(self) -> None:
        """Until nothing moves without time passing. Raises: Broken when a step or port never ends."""
        while True:
            life = self.life
            try:
                await self.attended(self.stage.settle)
            except Cut:
                continue
            if life == self.life:
                return

    async def advance_to(self, at: int) -> None:
        """Let time pass: stop at every alarm on the way, and settle there."""
        self._moving += 1
        try:
            while True:
                await self.settle()
                now, due = self.stage.clock.now(), self.stage.host.next_due
                stop = at if due is None else min(at, max(due, now))
                self.stage.clock.step_to(stop)
                if stop >= at:
                    break
            await self.settle()
        finally:
            self._moving -= 1

    async def restart(self) -> None:
        """Stop cleanly once nothing moves, and open again."""
        await self.settle()
        async with self._reviving:
            await self.stage.restart()
            self.life += 1

    async def crash(self) -> None:
        """Kill it now, whatever moves, and open again."""
        async with self._reviving:
            await self.stage.let_die()
            await self._reopen()

    async def finish(self) -> None:
        """The test is over. Raises: Unsettled for what it left behind."""
        left = in_custody(self.stage.host)  # first: a letter that waits for its end never comes to rest
        if not left:
            try:
                await self.settle()
            except Broken:
                left = moving(self.stage.host) or ["an app that did not come to rest"]
        stage = self.stage
        left += [*unsettled(stage), *await in_boxes(stage), *await parked(stage), *await late(stage)]
        left += in_rings(self._rings)
        if self.verbs:
            left.append(f"{self.verbs} verbs that nobody waited for")
        if self.points.order is not None and self.points.expected:
            left.append(f"a crash that never came ({self.points.order})")
        if left:
            raise Unsettled(list(dict.fromkeys(left)))


class Standing:
    """Stands where a host is expected, or its room of cells, and is that of whichever host is open now."""

    def __init__(self, lives: Lives, room: str = "") -> None:
        self._lives = lives
        self._room = room

    def __getattr__(self, name: str) -> Any:
        if name == "cells" and not self._room:
            return Standing(self._lives, CELLS)
        found = attrgetter(self._room + name)(self._lives.stage.host)
        if name in BARE or not inspect.iscoroutinefunction(found):
            return found
        return partial(self._lives.verb, self._room + name)


def _counts_once(verb: str, args: tuple[Any, ...], values: dict[str, Any]) -> bool:
    """Whether the same may be sent again: by its nature, by its key, or, of a fact, by its dedupe key."""
    key = getattr(args[0], "dedupe_key", None) if verb == "ingest" and args else values.get("key")
    return verb in AGAIN or key is not None


async def _awaited(act: Callable[[], Awaitable[Any]]) -> Any:
    return await act()
