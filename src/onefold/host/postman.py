"""host.postman - letters from their boxes into turns, in order for each sender, as long as the app is open.

For: what was posted in this process, by the ring; what the ring had no room for and what an earlier life left, by the rows.
Many letters of a box are on their way at once, each decided on top of the one before it of its sender.
Never: holds a letter that is not in its box; writes in a box that is another node's by then; lets one that cannot be folded hold up another sender's.
Was wrong once: a scan after each post. A thousand posts read the same rows a thousand times. And a letter whose turn
raised what is no error of ours: it took its carrier with it, and after 64 of them nothing was carried.
And a node that had every slot when it looked, and slept until it was told: another joined, could not reach it, and
its letters lay there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from onefold.fleet.known import Known
from onefold.fleet.mailbox import (
    BOX_AT_MOST,
    MAIL,
    GivenUp,
    Waiting,
    again,
    behind,
    boxes,
    by_sender,
    due,
    due_of,
    given_up,
    open_in,
    parked,
    ready,
    soonest,
    unparked,
    waits,
)
from onefold.fleet.ring import Ring, Taken
from onefold.host.clock import Clock
from onefold.host.fates import fate
from onefold.host.handing import Opened, handed, together
from onefold.kernel.alarm import soonest as soonest_of
from onefold.node.brought import Behind
from onefold.node.owning import UNGUARDED, Guard
from onefold.store.contract import AuthorSpace, Body, Done, Last, Refused, Remove, Row, Write
from onefold.terms.errors import AlreadyDone, OnefoldError, OwnedElsewhere
from onefold.terms.ids import ActorId

AT_ONCE = 256  # letters of one look for boxes
TOGETHER = 64  # letters of one box on their way: more make no commit cheaper, and their bodies are in memory
WORKED = 64  # boxes that are worked at beside those of the ring, for the same reason
CARRIERS = 64  # boxes that are worked at beside each other: as many turns share a commit
ROOM = 4_096  # of the ring; what it has no room for is found by its row
KNOWN = 10_000  # boxes that nobody need look at: they hold what was told, and nothing else
AFTER_FAULT_MS = 1_000
SHARED_MS = 1_000  # where other nodes post, too: until the next look, should nobody have told of a letter
_DUE = MAIL.at["due_at"]
log = logging.getLogger("onefold.mail")

Open = Callable[[Waiting], Opened]


class Postman:
    """Carries letters. `post` tells of one that is committed."""

    def __init__(
        self,
        clock: Clock,
        space: Callable[[], Awaitable[AuthorSpace]],
        open: Open,
        slots: Callable[[], Sequence[int] | None] = lambda: None,
        single: Callable[[], Sequence[ActorId]] = tuple,
        shared: bool = False,
        guard: Callable[[ActorId], Guard] = lambda to: UNGUARDED,
    ) -> None:
        """slots: whose letters are this process's to deliver; None: all. single: actors beside these. shared: others post,
        too, and may not get through to say so: the rows are looked at now and then. guard: of a fleet, what a commit in an
        actor's box goes by.
        """
        self.others: Callable[[], Awaitable[bool]] = _nobody  # whether a node of other code lives
        self.files: Callable[[], Sequence[str]] = tuple  # kinds whose file is this process's, whatever slots it has
        self._guard = guard
        self._shared = shared
        self._clock = clock
        self._space = space
        self._open = open
        self._slots = slots
        self._single = single
        self.ring: Ring[ActorId] = Ring(ROOM)
        self._known = Known(KNOWN, ROOM)
        self._woken = asyncio.Event()
        self._called: set[ActorId] = set()  # boxes in the ring
        self._working: dict[ActorId, asyncio.Task[None]] = {}
        self._again: set[ActorId] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._looking = True
        self._sweep = True  # the next look is for boxes, too, not for the next instant alone
        self._again_at: int | None = None  # when boxes are looked for again, where others post
        self.next_due: int | None = None  # when the rows are looked at again, in ms
        self._stopping = False
        self._left = 0  # letters that a stop kept from going
        self._trouble = False  # the store failed: the next look is a while from now

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._carry(), name="onefold carrier") for _ in range(CARRIERS)]
        self._tasks.append(loop.create_task(self._look(), name="onefold postman"))

    def look(self) -> None:
        """Look at the rows now: somebody else posted."""
        self._sweep = True
        self._woken.set()

    def post(self, to: ActorId, mail: Waiting | None = None) -> None:
        """A letter for this actor is in its box. `mail`: which, where it certainly is; told in the order of posting."""
        if mail is None:
            self._known.doubt(to)
        else:
            self._known.told(mail)
        if to in self._working or self._at_once:
            self._begin(to)
        elif to not in self._called:
            if isinstance(self.ring.put(to), Taken):
                self._called.add(to)
            else:
                self._known.doubt(to)
                self.look()

    @property
    def _at_once(self) -> bool:
        """Whether a box is worked at before anybody else has his turn of the loop: its turn shares the next commit."""
        return bool(self._tasks) and not self._shared and len(self._working) < WORKED and not self.ring.letters

    @property
    def idle(self) -> bool:
        """Whether nothing is carried, and what is left waits for its time."""
        return not (self._looking or self._woken.is_set() or self._working or self.ring.waiting or self.ring.unsettled)

    async def drain(self, to: ActorId) -> int:
        """Deliver every letter that is due to one actor; how many there were."""
        space, now = await self._space(), self._clock.now()
        (before,) = await space.look(open_in(to, now, BOX_AT_MOST))
        self._known.doubt(to)
        await self._emptied(to)
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
        self.ring.drop()
        if left := self._left + self._known.letters:
            log.warning("%d letters were not delivered: they are in their boxes, for the next life", left)

    # --- what was given up on -----------------------------------------------------------------------

    async def parked(self) -> list[GivenUp]:
        """Letters that wait for a person."""
        (rows,) = await (await self._space()).look(parked())
        return [given_up(row) for row in rows]

    async def retry(self, to: ActorId, n: int) -> None:
        """Try a parked letter of this actor once more, with a fresh count. Raises: OwnedElsewhere."""
        await self._committed(to, again(n, self._clock.now()))
        self._known.doubt(to)
        self.look()

    async def drop(self, to: ActorId, n: int) -> None:
        """Take a parked letter out of its box. Raises: OwnedElsewhere."""
        await self._committed(to, Remove(MAIL, keys=[(n,)]))

    # --- by the ring, and by the rows ---------------------------------------------------------------

    async def _carry(self) -> None:
        async for mail in self.ring:
            self._called.discard(mail.letter)
            await self._emptied(mail.letter)
            await mail.settle()

    async def _look(self) -> None:
        while True:
            self._woken.clear()
            self._looking, until = True, None
            try:
                until = await self._once() if not self._trouble else None
            except OnefoldError as fault:
                log.warning("letters could not be read: %s", fault)
                self._trouble = self._sweep = True
            if self._trouble:
                self._trouble = False
                until = self._clock.now() + AFTER_FAULT_MS
            self._looking, self.next_due = False, until
            await self._clock.wait(until, self._woken)
            self._sweep = self._sweep or not self._woken.is_set()  # it may have been woken a little too early

    async def _once(self) -> int | None:
        """Begin to work at every box with a letter that is due, if some may be; when the next one is."""
        space, slots, now = await self._space(), self._slots(), self._clock.now()
        if self._sweep or (self.next_due is not None and self.next_due <= now):
            self._sweep, self._again_at = False, now + SHARED_MS if self._shared else None
            for to in self._single():
                self._doubted(to)
            if files := self.files():
                (rows,) = await space.look(due_of(files, now, AT_ONCE))
                for to in boxes(rows):
                    self._doubted(to)
            await self._swept(space, now, slots)
        (rows,) = await space.look(soonest(slots, now))
        return soonest_of(self._again_at, int(rows[0][_DUE] or 0)) if rows else self._again_at

    async def _swept(self, space: AuthorSpace, now: int, slots: Sequence[int] | None) -> None:
        """Begin with every box that has a letter due by now, behind none that is slow to empty."""
        behind: tuple[int, int] | None = None
        while behind is None or behind[0] <= now:
            (rows,) = await space.look(due(now, AT_ONCE, slots, behind))
            for to in boxes(rows):
                while len(self._working) >= WORKED + CARRIERS and to not in self._working:
                    await asyncio.wait(self._working.values(), return_when=asyncio.FIRST_COMPLETED)
                self._doubted(to)
            if len(rows) == AT_ONCE:
                behind = (int(rows[-1][_DUE] or 0), _number(rows[-1]))
            elif behind is None or behind[1] < 0:
                return
            else:
                behind = (behind[0] + 1, -1)  # of that instant there are no more

    def _doubted(self, to: ActorId) -> None:
        """As `_begin`, by its rows: somebody else may have posted."""
        self._known.doubt(to)
        self._begin(to)

    def _begin(self, to: ActorId) -> None:
        """Empty one box as far as it goes. Who asks for that while it is done asks once more."""
        self._again.add(to)
        if to not in self._working:
            task = asyncio.get_running_loop().create_task(self._box(to), name="onefold box")
            self._working[to] = task

    async def _emptied(self, to: ActorId) -> None:
        """As `_begin`, and wait for its end."""
        self._begin(to)
        await asyncio.shield(self._working[to])

    async def _box(self, to: ActorId) -> None:
        try:
            while to in self._again and not self._trouble and not self._stopping:
                self._again.discard(to)
                senders = [self._sender(letters) for letters in await self._next(to)]
                went = [await senders[0]] if len(senders) == 1 else await asyncio.gather(*senders)
                if None in went:  # its owner delivers them
                    self._again.discard(to)
                elif False in went:
                    self._again.add(to)
                if not all(went):
                    self._known.doubt(to)
        except OnefoldError as fault:
            log.warning("the box of %s %s could not be read: %s", to.kind, to.key, fault)
            self._known.doubt(to)
            self._fails()
        finally:
            self._again.discard(to)
            del self._working[to]

    async def _next(self, to: ActorId) -> Sequence[Sequence[Waiting]]:
        """What may be tried now of one box, by sender: of what was told, or by its rows. There may be more behind it."""
        told = self._known.take(to, TOGETHER)
        if told is not None:
            if told:
                self._again.add(to)
            return by_sender(told)
        space, now = await self._space(), self._clock.now()
        if not self._shared:
            self._known.begin(to)
        (rows,) = await space.look(unparked(to, TOGETHER))
        if len(rows) < TOGETHER and all(int(row[_DUE] or 0) <= now for row in rows):
            self._known.looked(to, {_number(row) for row in rows})
        else:
            self._known.doubt(to)
        if len(rows) == TOGETHER:
            (rows,) = await space.look(open_in(to, now, TOGETHER))
            if rows:
                self._again.add(to)
                (first,) = await space.look(waits(to, now, rows))
                rows = sorted([*rows, *first], key=_number)
        held = behind(rows, now)
        kept = True if held is None else await self._write(to, held)
        if kept is None:
            self._again.discard(to)
        return ready(rows, now) if kept else ()

    def _fails(self) -> None:
        self._trouble = self._sweep = True
        self._woken.set()

    # --- one sender's -------------------------------------------------------------------------------

    async def _sender(self, letters: Sequence[Waiting]) -> bool | None:
        """One sender's letters, in order. True: all went, or were parked. False: the rest waits with one that did not.
        None: their actor is another node's.
        """
        opened = deque((mail, self._opened(mail)) for mail in letters)
        while opened and not self._stopping:
            first = opened[0][1]
            if isinstance(first, Exception):
                told: Sequence[BaseException | None] = (first,)
            else:
                told = await handed(together(each for _, each in opened))
            for fault in told:
                if isinstance(fault, Behind):
                    break  # what is before it was parked: it goes next
                went = await self._went(opened.popleft()[0], fault, read=isinstance(first, Opened))
                if not went:
                    self._leaves(1 + len(opened))
                    return went
        self._leaves(len(opened))
        return not opened

    def _leaves(self, letters: int) -> None:
        self._left += letters if self._stopping else 0

    def _opened(self, mail: Waiting) -> Opened | Exception:
        try:
            return self._open(mail)
        except Exception as fault:  # noqa: BLE001 - the door: whatever one letter is, the others are carried
            return fault

    async def _went(self, mail: Waiting, fault: BaseException | None, *, read: bool) -> bool | None:
        """What becomes of one letter. True: its turn is committed and took it away, or it is parked. False: it was given
        another time, and stays first. None: its actor is another node's. read: this code could read it.
        """
        if fault is None:
            return True
        if isinstance(fault, OwnedElsewhere):
            return None
        if isinstance(fault, AlreadyDone):
            return await self._write(mail.to, Remove(MAIL, keys=[(mail.n,)]))
        if self._stopping:
            return False  # it is as it was, and the next life's
        if not isinstance(fault, Exception):
            raise fault
        others = not read and await self.others()
        what = fate(mail, fault, self._clock.now(), read=read, others=others)
        log.warning("the letter %s for %s %s: %s", mail.event[2:], mail.to.kind, mail.to.key, what.why)
        kept = await self._write(mail.to, what.write)
        return kept and what.goes_on

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


async def _nobody() -> bool:
    return False
