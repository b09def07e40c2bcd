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
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from onefold.terms.errors import Broken, NotOpen, OutcomeUnknown
from onefold.testing.points import Points
from onefold.testing.stage import LONGEST_S, SPINS, Stage
from onefold.testing.stuck import Stuck, Unsettled, stuck

__tracebackhide__ = True  # a failing test shows the test's own lines

DOWN_MS = 5_000
"""How long a process that was killed is away: longer than a row on its way may stay unnoticed."""
READS = frozenset(
    "actors alarm approvals_list blobs_get ended facts facts_list history link_page parked_list read read_json ready "
    "receipt reflex_draft reflex_explain reflex_graph reflex_idle reflex_overdue reflex_preview reflex_run reflex_runs "
    "reflex_schema reflex_show reflex_tasks reflexes_list run_journal runs_list space table_rows tables".split()
)
AGAIN = READS | frozenset(
    "approvals_decide blobs_put deliver deliver_raw fact_release fork link_decide prune prune_named reflex_backfill "
    "reflex_sweep reflexes_load run_cancel sweep".split()
)
"""What counts once however often it is sent. Any other verb does when it carries a key."""
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
        self._reviving = asyncio.Lock()

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
                return await self.attended(lambda: getattr(self.stage.host, name)(*args, **values), name, args)
            except Cut:
                if not _counts_once(name, args, values):
                    raise OutcomeUnknown(name) from None
                if name not in READS:
                    self._tell("the caller got no answer, and sends the same again")

    async def attended(self, act: Callable[[], Awaitable[Any]], name: str = "", args: tuple[Any, ...] = ()) -> Any:
        """What it gives; the app is opened again if it died meanwhile. Raises: Cut, Stuck, Broken."""
        loop = asyncio.get_running_loop()
        life, end = self.life, loop.time() + LONGEST_S
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
                if name == "ended" and quiet > SPINS and args[0]:
                    raise Stuck(await stuck(self.stage.host, str(args[0])))
                if loop.time() > end:
                    raise Broken("the app did not come to rest: a step or port of the test never ends")
                spins += 1
                await asyncio.sleep(0 if spins < SPINS or quiet else 0.001)
            return await self._outcome(task, life)
        finally:
            self.verbs -= 1
            if not task.done():
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)

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
        await self.settle()
        left = [*unsettled(self.stage), *await self._portless(), *await self._late()]
        if self.verbs:
            left.append(f"{self.verbs} verbs that nobody waited for")
        if self.points.order is not None and self.points.expected:
            left.append(f"a crash that never came ({self.points.order})")
        if left:
            raise Unsettled(left)

    async def _late(self) -> list[str]:
        """What reflexes should have done by now and did not: a selection that fails, an effect that is not here."""
        host = self.stage.host
        if not host._reflexing.begun:
            return []
        late = await host.reflex_overdue(caller=self.stage.caller())
        idle = await host.reflex_idle(caller=self.stage.caller())
        return [f"{one.what} of the reflex {one.reflex} late" for one in late] + [
            f"{task.id} of the reflex {task.reflex} unclaimed: no effect of this app takes it" for task in idle
        ]

    async def _portless(self) -> list[str]:
        """What is owed through a port that the test forgot to give to its app."""
        items = await self.stage.host.parked_list(caller=self.stage.caller())
        return sorted({f"something of {item.program} unsent: {item.cause}" for item in items if item.kind == "port"})


class Standing:
    """Stands where a host is expected, and is whichever host is open now."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._lives.stage.host, name)
        if name in BARE or not inspect.iscoroutinefunction(found):
            return found
        return partial(self._lives.verb, name)


def unsettled(stage: Stage) -> list[str]:
    """Actors still in a turn, and what is due to be sent and is not on its way."""
    node, now, left = stage.host._core.node, stage.clock.now(), []
    for at, resident in node._residents.items():
        if not resident.idle:
            left.append(f"{at.kind} {at.key} in a turn")
        due = [row for row in resident.owed.values() if row.next_at is not None and row.next_at <= now]
        left += [f"{row.name} of {at.kind} {at.key} unsent through {row.port}" for row in due if not row.in_flight]
    return left


def _counts_once(verb: str, args: tuple[Any, ...], values: dict[str, Any]) -> bool:
    """Whether the same may be sent again: by its nature, by its key, or, of a fact, by its dedupe key."""
    key = getattr(args[0], "dedupe_key", None) if verb == "ingest" and args else values.get("key")
    return verb in AGAIN or key is not None


async def _awaited(act: Callable[[], Awaitable[Any]]) -> Any:
    return await act()
