"""store.lane - whoever is ready in this turn of the loop commits together at its end.

For: the queue of parties, one flush a turn, waiting while the author's step holds the file.
Never: decides an outcome (batch does); opens or closes a database.
Was wrong once: the loop stood still while another process wrote: a tenth of a second under load, and health checks with
it. And a flush started by a timer of one millisecond. One caller alone then waited
ten times as long as the disk needs, and many callers gained nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from onefold.store.batch import Bodies, Engine, Landing, decide, write
from onefold.store.contract import Answer, Body, Outcome, Party, Query, Refused
from onefold.terms.errors import NotOpen

T = TypeVar("T")

PATIENCE = 2  # turns of the loop that a flush waits for company
# why: what comes over connections reaches the lane a turn or two after its neighbours. Measured with 8 callers
# over HTTP: 1.5 to 2.6 times the rate; with one caller, no loss, since a turn with nothing to do costs 10 us.
AGAIN_S = 0.0005  # until the next try to become the writer; why: longer, and a busy neighbour is seldom met
WAIT_S = 2.0  # how long another process may write before whoever waits here is told

Takes = Callable[[bool], bool]
"""Become the writer; False where another process is. True: this is the last try, and the commit is refused instead."""


class Single:
    """One body as a party, and who waits for its outcome."""

    __slots__ = ("_body", "_heard")

    def __init__(self, body: Body[Any], heard: asyncio.Future[Outcome[Any]]) -> None:
        self._body = body
        self._heard = heard

    def ask(self) -> tuple[Query, ...]:
        return ()

    def body(self, answers: tuple[Answer, ...], /) -> Body[Any]:
        return self._body

    def landed(self, outcome: Outcome[Any], /) -> None:
        if not self._heard.done():
            self._heard.set_result(outcome)


class Lane:
    """The queue before one engine. Not thread-safe: everything here happens on the loop's thread."""

    def __init__(
        self, name: str, engine: Engine, flushed: Callable[[], None] | None = None, takes: Takes | None = None
    ) -> None:
        """`flushed` is called after each flush, once its parties have been told. takes: where other processes write, too."""
        self._name = name
        self._engine = engine
        self._flushed = flushed
        self._takes = takes
        self._paused: tuple[list[Landing], Bodies] | None = None  # those who decided, and wait for another process
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Party] = []
        self._due = False
        self._held = False
        self._closed = False
        self._free: list[asyncio.Future[None]] = []

    @property
    def idle(self) -> bool:
        return not self._waiting and not self._held and not self._free

    def join(self, party: Party) -> None:
        self._check_open()
        self._waiting.append(party)
        if not self._due and not self._held:
            self._due = True
            self._loop.call_soon(self._soon, PATIENCE)

    def _soon(self, turns: int) -> None:
        """Flush, after so many more turns of the loop."""
        if turns:
            self._loop.call_soon(self._soon, turns - 1)
        else:
            self._flush()

    async def transact(self, body: Body[T]) -> Outcome[T]:
        heard: asyncio.Future[Outcome[T]] = self._loop.create_future()
        self.join(Single(body, heard))
        return await heard

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep everybody else waiting meanwhile. Raises: NotOpen."""
        await self._hold()
        try:
            yield
        finally:
            self._release()

    async def _hold(self) -> None:
        """Holders take turns in the order they came."""
        self._check_open()
        if self._held or self._free:
            turn: asyncio.Future[None] = self._loop.create_future()
            self._free.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._free:
                    self._free.remove(turn)
                elif turn.done() and not turn.cancelled():
                    self._release()
                raise
            self._held = False  # it was passed on to this one, who may come after the end
            self._check_open()
        self._held = True

    def _release(self) -> None:
        self._held = False
        if self._waiting and not self._due:
            self._due = True
            self._loop.call_soon(self._soon, 0)
        elif self._free:
            self._pass_on()

    def abandon(self) -> None:
        """Take nobody any more, commit nothing that waits, tell nobody. Holders still waiting get NotOpen."""
        self._closed = True
        self._paused = None
        self._waiting.clear()
        self._turn_away()

    def close(self) -> None:
        """Commit what waits, then take nobody any more. Who waits for a holder to end gets NotOpen."""
        self._closed = True
        self._turn_away()
        while self._paused is not None or self._waiting:
            try:
                if self._paused is not None:
                    self._write()
                elif self._held:
                    waiting, self._waiting = self._waiting, []
                    self._tell([(party, Refused(NotOpen(f"The space {self._name!r}"))) for party in waiting])
                else:
                    self._flush()
            except Exception as fault:  # noqa: BLE001 - the door: a party that cannot hear must not keep a space open
                self._loop.call_exception_handler({"message": f"while {self._name!r} closed", "exception": fault})

    def _check_open(self) -> None:
        if self._closed:
            raise NotOpen(f"The space {self._name!r}")

    def _turn_away(self) -> None:
        for turn in self._free:
            if not turn.done():
                turn.set_exception(NotOpen(f"The space {self._name!r}"))
        self._free.clear()

    def _pass_on(self) -> None:
        while self._free:
            turn = self._free.pop(0)
            if not turn.done():
                self._held = True
                turn.set_result(None)
                return

    def _flush(self) -> None:
        self._due = False
        parties = self._waiting
        if self._held or not parties:
            return
        self._waiting = []
        landings, bodies = decide(self._engine, parties)
        if bodies and self._takes is not None and not self._takes(False):
            self._held, self._paused = True, (landings, bodies)
            self._loop.call_later(AGAIN_S, self._resume, self._loop.time() + WAIT_S)
            return
        self._landed(landings + write(self._engine, bodies) if bodies else landings)

    def _resume(self, until: float) -> None:
        """Write, if no other process does by now. The loop goes on meanwhile."""
        if self._paused is None:
            return  # closed, or let go of
        assert self._takes is not None
        if self._takes(self._loop.time() >= until):
            self._write()
        else:
            self._loop.call_later(AGAIN_S, self._resume, until)

    def _write(self) -> None:
        assert self._paused is not None
        landings, bodies = self._paused
        self._held, self._paused = False, None
        if self._waiting and not self._due and not self._closed:
            self._due = True
            self._loop.call_soon(self._soon, 0)
        self._landed(landings + write(self._engine, bodies))

    def _landed(self, landings: Sequence[Landing]) -> None:
        try:
            self._tell(landings)
        finally:
            if self._flushed is not None:
                self._flushed()
            if self._free and not self._held:
                self._pass_on()

    def _tell(self, landings: Sequence[Landing]) -> None:
        rest = iter(landings)
        for party, outcome in rest:
            try:
                party.landed(outcome)
            except BaseException:
                # The loop reports the raise; whoever comes after it must hear all the same.
                self._loop.call_soon(self._tell, list(rest))
                raise


__all__ = ["Lane", "Single"]
