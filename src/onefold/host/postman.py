"""host.postman - letters from their boxes into turns, in order for each sender, as long as the app is open.

For: what was posted in this process, by the ring; what the ring had no room for and what an earlier life left, by the rows.
Never: holds a letter that is not in its box; writes in a box that is another node's by then; lets one that cannot be folded hold up another sender's.
Was wrong once: a scan after each post. A thousand posts read the same rows a thousand times. And a letter whose turn
raised what is no error of ours: it took its carrier with it, and after 64 of them nothing was carried.
And a node that had every slot when it looked, and slept until it was told: another joined, could not reach it, and
its letters lay there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from onefold.fleet.mailbox import (
    BOX_AT_MOST,
    MAIL,
    GivenUp,
    Waiting,
    again,
    behind,
    boxes,
    due,
    failed,
    given_up,
    open_in,
    parked,
    ready,
    soonest,
    waits,
)
from onefold.fleet.ring import Ring, Taken
from onefold.host.clock import Clock
from onefold.node.owning import UNGUARDED, Guard
from onefold.store.contract import AuthorSpace, Body, Done, Last, Refused, Remove, Row, Write
from onefold.terms.errors import AlreadyDone, CallerError, NotFound, OnefoldError, OwnedElsewhere
from onefold.terms.faults import says
from onefold.terms.ids import ActorId
from onefold.terms.turns import ParseFailed, TurnFailed, UnknownCall

AT_ONCE = 256  # letters of one look
CARRIERS = 64  # boxes that are worked at beside each other: as many turns share a commit
ROOM = 4_096  # of the ring; what it has no room for is found by its row
AFTER_FAULT_MS = 1_000
SHARED_MS = 1_000  # where other nodes post, too: until the next look, should nobody have told of a letter
log = logging.getLogger("onefold.mail")

Deliver = Callable[[Waiting], Awaitable[None]]


class Postman:
    """Carries letters. `post` tells of one that is committed."""

    def __init__(
        self,
        clock: Clock,
        space: Callable[[], Awaitable[AuthorSpace]],
        deliver: Deliver,
        slots: Callable[[], Sequence[int] | None] = lambda: None,
        single: Callable[[], Sequence[ActorId]] = tuple,
        shared: bool = False,
        guard: Callable[[ActorId], Guard] = lambda to: UNGUARDED,
    ) -> None:
        """slots: whose letters are this process's to deliver; None: all. single: actors beside these. shared: others post,
        too, and may not get through to say so: the rows are looked at now and then. guard: of a fleet, what a commit in an
        actor's box goes by.
        """
        self._guard = guard
        self._shared = shared
        self._clock = clock
        self._space = space
        self._deliver = deliver
        self._slots = slots
        self._single = single
        self.ring: Ring[ActorId] = Ring(ROOM)
        self._woken = asyncio.Event()
        self._working: dict[ActorId, asyncio.Task[None]] = {}
        self._again: set[ActorId] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._looking = True
        self.next_due: int | None = None  # when the rows are looked at again, in ms
        self._stopping = False
        self._trouble = False  # the store failed: the next look is a while from now

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._carry(), name="onefold carrier") for _ in range(CARRIERS)]
        self._tasks.append(loop.create_task(self._look(), name="onefold postman"))

    def look(self) -> None:
        """Look at the rows now: somebody else posted."""
        self._woken.set()

    def post(self, to: ActorId) -> None:
        """A letter for this actor is in its box."""
        if not isinstance(self.ring.put(to), Taken):
            self._woken.set()

    @property
    def idle(self) -> bool:
        """Whether nothing is carried, and what is left waits for its time."""
        return not (self._looking or self._woken.is_set() or self._working or self.ring.waiting or self.ring.unsettled)

    async def drain(self, to: ActorId) -> int:
        """Deliver every letter that is due to one actor; how many there were."""
        space, now = await self._space(), self._clock.now()
        (before,) = await space.look(open_in(to, now, BOX_AT_MOST))
        await self._work(to)
        (after,) = await space.look(open_in(to, now, BOX_AT_MOST))
        return len({row[0] for row in before} - {row[0] for row in after})

    @property
    def working(self) -> tuple[ActorId, ...]:
        """Whose boxes are worked at."""
        return tuple(self._working)

    def abandon(self) -> None:
        """As a kill would: nobody waits for a turn that is on its way."""
        for task in self._working.values():
            task.cancel()
        self.ring.drop()

    async def stop(self) -> None:
        """Take no further letter; those whose turn is on its way are finished by it, or by the next life."""
        self._stopping = True
        self.ring.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._working.values(), return_exceptions=True)
        if left := self.ring.drop():
            log.warning("%d letters of the ring were not settled: those in their boxes are for the next life", left)

    # --- what was given up on -----------------------------------------------------------------------

    async def parked(self) -> list[GivenUp]:
        """Letters that wait for a person."""
        (rows,) = await (await self._space()).look(parked())
        return [given_up(row) for row in rows]

    async def retry(self, to: ActorId, n: int) -> None:
        """Try a parked letter of this actor once more, with a fresh count. Raises: OwnedElsewhere."""
        await self._committed(to, again(n, self._clock.now()))

    async def drop(self, to: ActorId, n: int) -> None:
        """Take a parked letter out of its box. Raises: OwnedElsewhere."""
        await self._committed(to, Remove(MAIL, keys=[(n,)]))

    # --- by the ring, and by the rows ---------------------------------------------------------------

    async def _carry(self) -> None:
        async for mail in self.ring:
            await self._work(mail.letter)
            await mail.settle()

    async def _look(self) -> None:
        while True:
            self._woken.clear()
            self._looking = True
            try:
                until = await self._once() if not self._trouble else None
            except OnefoldError as fault:
                log.warning("letters could not be read: %s", fault)
                self._trouble = True
                until = None
            if self._trouble:
                self._trouble = False
                until = self._clock.now() + AFTER_FAULT_MS
            self._looking, self.next_due = False, until
            await self._clock.wait(until, self._woken)

    async def _once(self) -> int | None:
        """Work at every box with a letter that is due; when the next one is."""
        space, slots = await self._space(), self._slots()
        await asyncio.gather(*(self._work(to) for to in self._single()))
        before: list[Row] = []
        while True:
            now = self._clock.now()
            (rows,) = await space.look(due(now, AT_ONCE, slots))
            await asyncio.gather(*(self._work(to) for to in boxes(rows)))
            if len(rows) < AT_ONCE or rows == before:  # the same again: they are another node's by now
                break
            before = rows
        if not self._shared:
            (rows,) = await space.look(soonest())
            return int(rows[0][MAIL.at["due_at"]]) if rows else None
        (rows,) = await space.look(soonest(slots, now))
        until = now + SHARED_MS
        return min(until, int(rows[0][MAIL.at["due_at"]])) if rows else until

    async def _work(self, to: ActorId) -> None:
        """Empty one box as far as it goes. Whoever else asks for that meanwhile waits for the same work."""
        self._again.add(to)
        task = self._working.get(to)
        if task is None:
            task = self._working[to] = asyncio.get_running_loop().create_task(self._box(to), name="onefold box")
        await asyncio.shield(task)

    async def _box(self, to: ActorId) -> None:
        try:
            while to in self._again and not self._trouble and not self._stopping:
                self._again.discard(to)
                space, now = await self._space(), self._clock.now()
                (due_now,) = await space.look(open_in(to, now, AT_ONCE))
                if not due_now:
                    continue
                self._again.add(to)  # there may be more than one look shows
                (first,) = await space.look(waits(to, now, due_now))
                rows = sorted([*due_now, *first], key=_number)
                held = behind(rows, now)
                went = True if held is None else await self._write(to, held)
                if went:
                    senders = ready(rows, now)
                    went = None if any(await asyncio.gather(*map(self._sender, senders))) else True
                if went is None:
                    self._again.discard(to)
        except OnefoldError as fault:
            log.warning("the box of %s %s could not be read: %s", to.kind, to.key, fault)
            self._fails()
        finally:
            self._again.discard(to)
            self._working.pop(to, None)

    def _fails(self) -> None:
        self._trouble = True
        self._woken.set()

    async def _sender(self, letters: list[Waiting]) -> bool:
        """One sender's letters, each after the one before it is committed. Those behind a fault wait with it. Whether
        their actor is another node's.
        """
        for mail in letters:
            went = False if self._stopping else await self._one(mail)
            if not went:
                return went is None
        return False

    async def _one(self, mail: Waiting) -> bool | None:
        """One letter: its turn is committed and took it away, or it was given another time. False: it stays first. None:
        its actor is another node's.
        """
        try:
            await self._deliver(mail)
            return True
        except OwnedElsewhere:
            return None  # its owner delivers it
        except AlreadyDone:
            return await self._write(mail.to, Remove(MAIL, keys=[(mail.n,)]))
        except TurnFailed as fault:
            if not isinstance(fault, ParseFailed | UnknownCall):
                return True  # the verdict is committed, and is the poster's to read
            return await self._write(mail.to, failed(mail, self._clock.now(), str(fault), hopeless=True))
        except Exception as fault:  # noqa: BLE001 - the door: whatever one letter's turn raises, the others are carried
            if self._stopping:
                return False  # it is as it was, and the next life's
            hopeless = isinstance(fault, CallerError) and not isinstance(fault, NotFound)
            why = says(fault) if isinstance(fault, OnefoldError) else f"{type(fault).__name__}: {says(fault)}"
            log.warning("the letter %s for %s %s: %s", mail.event[2:], mail.to.kind, mail.to.key, why)
            kept = await self._write(mail.to, failed(mail, self._clock.now(), why, hopeless=hopeless))
            return kept and hopeless

    async def _write(self, to: ActorId, write: Write) -> bool | None:
        """Whether it was written. None: the box is another node's."""
        try:
            return await self._committed(to, write)
        except OwnedElsewhere:
            return None

    async def _committed(self, to: ActorId, write: Write) -> bool:
        """The same. Raises: OwnedElsewhere."""

        def body() -> Any:
            yield ()
            return Last((write,), None)

        told: Body[None] = body
        guard = self._guard(to)
        outcome = await (await self._space()).transact(guard.around(told))
        if isinstance(outcome, Refused) and isinstance(outcome.error, OwnedElsewhere):
            raise outcome.error
        done = isinstance(outcome, Done)
        if done:
            self._woken.set()
        else:
            self._fails()
        return done


def _number(row: Row) -> int:
    return int(row[0] or 0)
