"""host.driver - the only clock of the system: sleeps until something is due, and rings it.

For: finding due alarms of every space and waking their actors; looking again now and then for
what a crash or a lost wake left behind; stopping cleanly.
Never: knows what an alarm means; keeps an instant that is not in a row.
Was wrong once: one timer per alarm. A million sleeping runs took a minute to arm after a restart,
and the rows and the timers disagreed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from onefold.host.clock import Clock
from onefold.kernel.tables import ALARM
from onefold.node.node import Node
from onefold.store.contract import Condition, Each, Query
from onefold.terms.errors import OnefoldError, OwnedElsewhere, WaitsForCode
from onefold.terms.ids import ActorId

AT_ONCE = 512  # alarms a look, for each kind: as many as one commit takes
BEAT_MS = 30_000  # the janitor's beat: how long a wake that was lost may stay unnoticed
SOONER_MS = 1_000  # until the next beat while sweeps have more to do than one beat takes
AFTER_FAULT_MS = 500  # before a store that failed is asked again
SAID_AGAIN_MS = 600_000  # before a trouble that lasts is said again: what repeats twice a second hides all else

log = logging.getLogger("onefold.driver")

_ACTOR, _AT, _KIND = ALARM.at["actor"], ALARM.at["at"], ALARM.at["kind"]


def _nothing_to_sweep() -> bool:
    return False


class Where(Protocol):
    """The spaces to look into: which kinds live there, and how to ask one of them."""

    name: str
    kinds: Sequence[str]

    async def look(self, query: Query) -> Sequence[tuple[object, ...]]: ...


def due(kinds: Sequence[str], now: int, k: int = AT_ONCE, slots: Sequence[int] | None = None) -> Query:
    """The first `k` alarms of each kind that are due at `now`; with `slots`, of actors in these."""
    return Query(ALARM, where=(("at", "<=", now), *_in(slots)), each=Each("kind", kinds, k), order=("at",))


def soonest(kinds: Sequence[str], slots: Sequence[int] | None = None) -> Query:
    """The soonest alarm of each kind. Unknown kinds wait, and never stand in front."""
    return Query(ALARM, where=(("at", "null", False), *_in(slots)), each=Each("kind", kinds, 1), order=("at",))


def _in(slots: Sequence[int] | None) -> tuple[Condition, ...]:
    return () if slots is None else (("slot", "in", tuple(slots)),)


class Driver:
    """Rings alarms when they are due. `spaces` is asked anew at each beat, since spaces come and go."""

    def __init__(
        self,
        clock: Clock,
        node: Node,
        spaces: Callable[[], Iterable[Where]],
        slots: Callable[[str], Sequence[int] | None] = lambda space: None,
        single: Callable[[], Sequence[ActorId]] = tuple,
    ) -> None:
        """`slots`: of a space, whose alarms are this process's to ring; None: all. `single`: actors beside those."""
        self._slots = slots
        self._single = single
        self._clock = clock
        self._node = node
        self._spaces = spaces
        self._next: dict[str, int | None] = {}
        self._woken = asyncio.Event()
        self._stopping = False
        self._beat_at = 0
        self._task: asyncio.Task[None] | None = None
        self._quiet = asyncio.Event()
        self._left_out: dict[tuple[str, int], int] = {}  # alarms that cannot be rung, and until when
        self._said: dict[str, tuple[str, int]] = {}  # troubles by what is troubled: which, and when it was said
        self.janitor: Callable[[], bool] = _nothing_to_sweep
        self.rung = 0

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._drive(), name="onefold driver")

    def rest(self) -> None:
        """Ring nothing more."""
        self._stopping = True
        self._woken.set()

    async def stop(self) -> None:
        """Ring nothing more; what is ringing finishes."""
        self.rest()
        if self._task is not None:
            await asyncio.wait((self._task,))
            if not self._task.cancelled():  # else it was abandoned before
                self._task.result()

    def abandon(self) -> None:
        """Ring nothing more, and leave what is ringing. For tests."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()

    def armed(self, space: str, at: int) -> None:
        """A commit wrote an alarm for `at`."""
        known = self._next.get(space)
        if known is None or at < known:
            self._next[space] = at
            self._quiet.clear()
            self._woken.set()

    def look(self) -> None:
        """Look at every space again: other actors are this process's now."""
        self._left_out.clear()
        self._next.clear()
        self._quiet.clear()
        self._woken.set()

    @property
    def next_due(self) -> int | None:
        """The soonest alarm known, in ms; None when none is set. The beat is none."""
        return min((at for at in self._next.values() if at is not None), default=None)

    @property
    def quiet(self) -> bool:
        """Whether nothing is due and the driver sleeps."""
        return self._quiet.is_set() and not self._woken.is_set()

    # --- the loop ---------------------------------------------------------------------------

    async def _drive(self) -> None:
        while not self._stopping:
            self._woken.clear()
            now = self._clock.now()
            beat = now >= self._beat_at
            if beat:
                self._beat_at = now + (SOONER_MS if self.janitor() else BEAT_MS)
                self._said = {what: said for what, said in self._said.items() if said[1] > now - SAID_AGAIN_MS}
            spaces = tuple(self._spaces())
            for gone in self._next.keys() - {where.name for where in spaces}:
                del self._next[gone]  # another process has it now, and rings what is due there
            for where in spaces:
                at = self._next.get(where.name)
                if beat or where.name not in self._next or (at is not None and at <= now):
                    await self._look(where, now)
                    await asyncio.sleep(0)  # a look at a file blocks the loop: of a thousand, each lets calls through
            if self._woken.is_set():
                continue
            self._quiet.set()
            await self._clock.wait(self._until(), self._woken)
            self._quiet.clear()

    def _until(self) -> int:
        """When to look again: at the soonest alarm known, and at each beat all the same."""
        return min([self._beat_at, *(at for at in self._next.values() if at is not None)])

    async def _look(self, where: Where, now: int) -> None:
        """Learn when the next alarm of one space is due, and ring all that are. A space at rest is asked once."""
        try:
            while not self._stopping:
                slots = self._slots(where.name)
                found = await where.look(soonest(where.kinds, slots))
                if self._said and self._said.pop(f"the alarms of {where.name}", None) is not None:
                    log.warning("the alarms of %s can be read again", where.name)
                apart = await self._apart(where, now)
                ats = [*(int(row[_AT]) for row in found), *apart]  # type: ignore[call-overload]
                at = min(ats, default=None)
                self._next[where.name] = at
                if at is None or at > now:
                    return
                self._next[where.name] = now + AFTER_FAULT_MS
                self._left_out = {who: until for who, until in self._left_out.items() if until > now}
                rows = await where.look(due(where.kinds, now, AT_ONCE + len(self._left_out), slots))
                by_kind = self._by_kind(rows)
                if not by_kind or not await self._ring(by_kind):
                    await self._behind(where, now, AFTER_FAULT_MS if by_kind else BEAT_MS)
                    return
                now = self._clock.now()
        except Exception as fault:  # noqa: BLE001 - the door: one space that fails must not stop the only clock
            self._say(f"the alarms of {where.name}", f"could not be read: {fault}")
            self._next[where.name] = now + AFTER_FAULT_MS

    async def _apart(self, where: Where, now: int) -> list[int]:
        """Ring the actors that are this process's apart from their slots; when each is due next."""
        ats = []
        for at in self._single():
            if at.kind in where.kinds:
                try:
                    resident = await self._node.activate(at)
                except OnefoldError:
                    continue  # it is another's by now, or waits
                if resident.alarm.at is not None and resident.alarm.at <= now:
                    await self._one(resident.base.actor, at)
                if resident.alarm.at is not None and resident.alarm.at > now:
                    ats.append(resident.alarm.at)
        return ats

    async def _behind(self, where: Where, now: int, most: int) -> None:
        """When to look again behind alarms that cannot be rung now: when the soonest of the others is due, and `most`
        later at the latest. Was wrong once: half a second later. Whoever stood behind one that waits for other code
        was rung that late.
        """
        self._next[where.name] = now + most  # a commit that arms an earlier one while this asks is heard
        found = await where.look(due(where.kinds, now + most, AT_ONCE + len(self._left_out), self._slots(where.name)))
        for row in found:
            at = int(row[_AT])  # type: ignore[call-overload]
            if at > now and (str(row[_KIND]), row[_ACTOR]) not in self._left_out:
                self._next[where.name] = min(self._next[where.name] or at, at)

    def _say(self, what: str, trouble: str) -> None:
        """Log a trouble when it is new; one that lasts, every ten minutes."""
        now = self._clock.now()
        said, at = self._said.get(what, ("", 0))
        if said != trouble or now >= at + SAID_AGAIN_MS:
            self._said[what] = (trouble, now)
            log.warning("%s %s", what, trouble)

    def _by_kind(self, rows: Sequence[tuple[object, ...]]) -> dict[str, list[int]]:
        """The actors to ring, without those that were found not to ring just now."""
        by_kind: dict[str, list[int]] = {}
        for row in rows:
            kind, actor = str(row[_KIND]), int(row[_ACTOR])  # type: ignore[call-overload]
            if (kind, actor) not in self._left_out:
                by_kind.setdefault(kind, []).append(actor)
        return by_kind

    async def _ring(self, by_kind: Mapping[str, Sequence[int]]) -> bool:
        """Ring these alarms; False when none of them could be."""
        rung = 0
        for kind, numbers in by_kind.items():
            behind = await self._node.behind(kind, numbers)
            answers = await asyncio.gather(*(self._one(n, at) for n, at in behind))
            rung += sum(answers)
        self.rung += rung
        return rung > 0

    async def _one(self, number: int, at: ActorId) -> bool:
        """Ring one alarm. An actor that waits for other code, or whose code raises, is left out until the next beat."""
        try:
            await self._node.ring(await self._node.activate(at))
            return True
        except OwnedElsewhere:
            pass  # whoever owns it rings it
        except WaitsForCode as fault:
            self._say(f"the alarm of {at.kind} {at.key}", f"waits: {fault}")
        except OnefoldError as fault:
            self._say(f"the alarm of {at.kind} {at.key}", f"could not be rung: {fault}")
            return False
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:  # the door: whatever one actor raises, the others' alarms still ring
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            log.exception("the alarm of %s %s raised", at.kind, at.key)
        self._left_out[(at.kind, number)] = self._clock.now() + BEAT_MS
        return False
