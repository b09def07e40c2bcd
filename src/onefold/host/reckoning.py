"""host.reckoning - actors asked anew when the outside data changed that their alarms were reckoned by.

For: after a start under another release of zone data, every sleeping actor of a module that says `reckoned_by`,
soonest first; and the row that remembers which release that was done for: of a fleet, a row for each slot.
Never: reckons; what an actor wants is its `wake`. Holds up a start: calls are served meanwhile.
Was wrong once: actors asked when they rang. An instant that new data moved to the morning rang at noon, since nobody
asks before the alarm that the old data had set. And one row for a whole fleet: the first node that was done spoke for
all, and the others' actors were never asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any

from onefold.host.clock import Clock
from onefold.kernel.module import Module
from onefold.kernel.tables import ALARM
from onefold.node.node import Node
from onefold.node.owning import UNGUARDED, Guard
from onefold.store.contract import (
    Answer,
    AuthorSpace,
    Column,
    Condition,
    Create,
    Done,
    Last,
    Migration,
    Put,
    Query,
    Row,
    Schema,
    Table,
    Verb,
)
from onefold.terms.errors import OnefoldError, OwnedElsewhere, StoreUnavailable
from onefold.terms.ids import ActorId
from onefold.terms.instant import up

RECKONED = Table("reckoned", (Column("kind", "text"), Column("by", "text")), key=("kind",))
RECKONINGS = Schema("reckoning", (RECKONED,), (Migration(1, oldest=1, steps=(Create(RECKONED),)),))

PAGE = 256  # actors asked in one go; calls are served between two pages
AGAIN_MS = 30_000  # after a store that failed

AnyModule = Module[Any, Any, Any, Any, Any]
_ACTOR, _AT = ALARM.at["actor"], ALARM.at["at"]
log = logging.getLogger("onefold.reckoning")


class Reckoning:
    """Asks what must be asked anew, beside everything else."""

    def __init__(
        self,
        clock: Clock,
        node: Node,
        space: Callable[[str], Awaitable[AuthorSpace]],
        slots: Callable[[], Sequence[int] | None] = lambda: None,
        guard: Callable[[Iterable[int]], Guard] = lambda slots: UNGUARDED,
    ) -> None:
        """`slots`: whose actors are this process's to ask, of a fleet; None: it is in none, and asks all. `guard`: what a
        commit about the actors in some slots goes by."""
        self._guard = guard
        self._slots = slots
        self._gained = asyncio.Event()
        self._clock = clock
        self._node = node
        self._space = space
        self._task: asyncio.Task[None] | None = None
        self._never = asyncio.Event()
        self._waiting = False

    def start(self, modules: Sequence[AnyModule]) -> None:
        """Begin, where a module is reckoned by something. Returns at once."""
        reckoned = [module for module in modules if module.reckoned_by is not None]
        if reckoned:
            self._task = asyncio.get_running_loop().create_task(self._all(reckoned), name="onefold reckoning")

    @property
    def idle(self) -> bool:
        """Whether nothing is to be asked, or only later."""
        return self._task is None or self._task.done() or self._waiting

    async def stop(self) -> None:
        """Leave off; what is left is done after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def look(self) -> None:
        """Other actors are this process's now. Whoever had them may run under another release."""
        self._gained.set()

    async def _all(self, modules: Sequence[AnyModule]) -> None:
        while True:
            self._gained.clear()
            for module in modules:
                while not await self._one(module):
                    self._waiting = True
                    await self._clock.wait(self._clock.now() + AGAIN_MS, self._never)
                    self._waiting = False
            if self._slots() is None:
                return
            self._waiting = True
            await self._gained.wait()
            self._waiting = False

    async def _one(self, module: AnyModule) -> bool:
        """Ask every sleeping actor of a module, unless that was done for this release. False: try again later."""
        by = module.reckoned_by
        assert by is not None
        try:
            space = await self._space(self._node.kind(module.name).home.name)
            slots = self._slots()
            marks = _marks(module.name, slots)
            (known,) = await space.look(Query(RECKONED, on=("kind",), keys=[(mark,) for mark in marks]))
            done = {row[0] for row in known if row[1] == by}
            left = {mark: slot for mark, slot in marks.items() if mark not in done}
            if not left:
                return True
            whose = None if slots is None else [slot for slot in left.values() if slot is not None]
            if not await self._asked(module, space, whose):
                return False
            still = set(self._slots() or ())
            asked = {mark: slot for mark, slot in left.items() if slot is None or slot in still}
            guard = self._guard(slot for slot in asked.values() if slot is not None)
            return isinstance(await space.transact(guard.around(lambda: _remember(list(asked), by))), Done)
        except OnefoldError as fault:
            log.warning("the alarms of %s could not be reckoned anew: %s", module.name, fault)
            return False

    async def _asked(self, module: AnyModule, space: AuthorSpace, slots: Sequence[int] | None) -> bool:
        """Page by page in the order of their alarms. An alarm that moves back comes by again, which harms nothing."""
        whole, last = True, (-(2**62), -1)
        while rows := await _after(space, module.name, last, slots):
            last = (int(rows[-1][_AT]), int(rows[-1][_ACTOR]))  # type: ignore[arg-type]
            behind = await self._node.behind(module.name, [int(row[_ACTOR]) for row in rows])  # type: ignore[arg-type]
            whole &= all(await asyncio.gather(*(self._ask(module, at) for _, at in behind)))
        return whole

    async def _ask(self, module: AnyModule, at: ActorId) -> bool:
        """Ring an actor whose wake is sooner than its row says. One that cannot be read is asked when it rings."""
        try:
            resident = await self._node.activate(at)
            wake = None if module.wake is None else module.wake(resident.base.state)
            row = resident.alarm.at
            if wake is not None and (row is None or up(wake) < row):
                await self._node.ring(resident)
        except StoreUnavailable:
            return False
        except OwnedElsewhere:
            return True  # whoever owns it now asks it
        except OnefoldError as fault:
            log.warning("the alarm of %s %s was not reckoned anew: %s", at.kind, at.key, fault)
        return True


def _marks(kind: str, slots: Sequence[int] | None) -> dict[str, int | None]:
    """The keys under which is remembered what was done: for all actors of a kind, or for those of each slot."""
    return {kind: None} if slots is None else {f"{kind} {slot}": slot for slot in slots}


async def _after(space: AuthorSpace, kind: str, last: tuple[int, int], slots: Sequence[int] | None) -> Sequence[Row]:
    """The next page of alarms: those at the last one's instant that come after it, then those that are later."""
    at, actor = last
    of: tuple[Condition, ...] = (("kind", "=", kind),)
    if slots is not None:
        of = (*of, ("slot", "in", tuple(slots)))
    (same,) = await space.look(
        Query(ALARM, where=(*of, ("at", "=", at), ("actor", ">", actor)), order=("actor",), limit=PAGE)
    )
    if same:
        return list(same)
    (first,) = await space.look(Query(ALARM, where=(*of, ("at", ">", at)), order=("at", "actor"), limit=PAGE))
    return list(first)


def _remember(kinds: Sequence[str], by: str) -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
    yield ()
    return Last((Put(RECKONED, [(kind, by) for kind in kinds]),) if kinds else (), None)
