"""store.postgres.lane - whoever is ready commits together: one batch is committing while the next collects.

For: the queue before one connection, and the gate of each space before it.
Never: decides an outcome (engine does); lets a space commit while its author's step holds it.
Was wrong once: a flush for each party that came while one was committing. The commits queued up behind one another;
now whoever came meanwhile is the next commit, and the slower the disk, the larger it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from onefold.store.batch import Landing
from onefold.store.contract import Body, Outcome, Party, Refused
from onefold.store.lane import PATIENCE, Single
from onefold.store.postgres.engine import Engine, Joined, Place
from onefold.terms.errors import NotOpen

T = TypeVar("T")


class Lane:
    """The queue of one engine. Everything here happens on the loop's thread."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._waiting: list[Joined] = []
        self._task: asyncio.Task[None] | None = None

    def join(self, place: Gate, party: Party) -> None:
        self._waiting.append((place, party))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._ended)

    @property
    def busy(self) -> bool:
        """Whether anything waits or is being committed."""
        return self._task is not None

    async def settled(self) -> None:
        """Everything that waits is committed, and everybody was told."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def abandon(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        self.engine.drop()

    async def _work(self) -> None:
        try:
            while self._waiting:
                for _ in range(PATIENCE):
                    await asyncio.sleep(0)
                joined, self._waiting = self._waiting, []
                landings = await self.engine.commit(joined)
                gates = {id(party): place for place, party in joined}
                self._tell(landings, gates)
        finally:
            self._task = None  # here, not when the loop comes to it: whoever joins until then would wait for ever

    def _ended(self, task: asyncio.Task[None]) -> None:
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            told = {"message": "a lane of the store ended", "exception": fault}
            task.get_loop().call_exception_handler(told)

    def _tell(self, landings: Sequence[Landing], gates: dict[int, Any]) -> None:
        rest = iter(landings)
        for party, outcome in rest:
            try:
                gates[id(party)].left()
                party.landed(outcome)
            except Exception as fault:  # noqa: BLE001 - the door: a party that cannot hear must not keep others from it
                told = {"message": "a party raised when it was told", "exception": fault}
                asyncio.get_running_loop().call_exception_handler(told)
            except BaseException:
                asyncio.get_running_loop().call_soon(self._tell, list(rest), gates)
                raise


class Gate(Place):
    """What of one space goes to its lane, and when: nothing while somebody holds it."""

    def __init__(self, name: str, lane: Lane) -> None:
        self.name = name
        self.lane = lane
        self._waiting: list[Party] = []
        self._inside = 0
        self._held = False
        self._closed = False
        self._turns: deque[asyncio.Future[None]] = deque()

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._inside or self._held or self._turns)

    def join(self, party: Party) -> None:
        """Raises: NotOpen."""
        self._check_open()
        if self._held or self._turns:
            self._waiting.append(party)
        else:
            self._inside += 1
            self.lane.join(self, party)

    async def transact(self, body: Body[T]) -> Outcome[T]:
        heard: asyncio.Future[Outcome[T]] = asyncio.get_running_loop().create_future()
        self.join(Single(body, heard))
        return await heard

    def left(self) -> None:
        """One of its parties is about to be told."""
        self._inside -= 1
        self._pass_on()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Nothing of this space commits meanwhile. Holders take turns in the order they came. Raises: NotOpen."""
        self._check_open()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        self._pass_on()
        try:
            await turn
            self._check_open()
            yield
        finally:
            if turn in self._turns:
                self._turns.remove(turn)
                self._go_on()
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self._held = False
                self._go_on()

    async def close(self) -> None:
        """Commit what waits, then take nobody any more. Who waits for a holder to end gets NotOpen."""
        self._closed = True
        self._turn_away()
        waiting, self._waiting = self._waiting, []
        for party in waiting:
            if self._held:
                party.landed(Refused(NotOpen(f"The space {self.name!r}")))
            else:
                self._inside += 1
                self.lane.join(self, party)

    def abandon(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._turn_away()

    def _check_open(self) -> None:
        if self._closed:
            raise NotOpen(f"The space {self.name!r}")

    def _turn_away(self) -> None:
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_exception(NotOpen(f"The space {self.name!r}"))

    def _pass_on(self) -> None:
        """Give the space to the next holder, once nothing of it is under way."""
        while self._turns and not self._held and not self._inside:
            turn = self._turns.popleft()
            if not turn.done():
                self._held = True
                turn.set_result(None)

    def _go_on(self) -> None:
        """Whoever waited for a holder commits before the next one."""
        waiting, self._waiting = self._waiting, []
        for party in waiting:
            self._inside += 1
            self.lane.join(self, party)
        self._pass_on()
