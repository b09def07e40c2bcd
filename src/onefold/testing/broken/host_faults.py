"""testing.broken.host_faults - lanes, senders and nodes with one fault each, of those that the kernel's twins leave out.

For: the parts that take the place of the sound ones in a twin (hosts puts them in).
Never: has two faults; is used by anything but a twin.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from onefold.host.sender import Sender
from onefold.kernel.alarm import Alarm
from onefold.kernel.fold import Folded, Outstanding
from onefold.kernel.prune import PRUNED
from onefold.kernel.tables import OWED, TURN
from onefold.node.batch import Batch
from onefold.node.lane import Lane
from onefold.node.node import Node
from onefold.node.resident import Resident, Turn
from onefold.store.contract import Answer, Body, Last, Remove, Row, Verb, Write
from onefold.terms.ids import ActorId
from onefold.testing.broken.kernel_faults import TwoCommits, writing

# --- who and what -----------------------------------------------------------------------------------


class ForgetsWho(Node):
    """Names an actor by its kind and key alone."""

    async def activate(self, at: ActorId) -> Resident:
        return await super().activate(at._replace(principal=None))

    async def fold(self, at: ActorId, *given: Any, **more: Any) -> Any:
        return await super().fold(at._replace(principal=None), *given, **more)

    async def read(self, at: ActorId) -> Any:
        return await super().read(at._replace(principal=None))


class ReadsTheHead(Node):
    """Shows what is decided, committed or not."""

    async def read(self, at: ActorId) -> Any:
        return (await self.activate(at)).base.state


class FoldsToRead(Node):
    """Rings the alarm of whatever it looks at."""

    async def read(self, at: ActorId) -> Any:
        await self.ring(await self.activate(at))
        return await super().read(at)


class PrunesWholeRows(Node):
    """Takes emptied turns away, ids and all."""

    async def prune(self, at: ActorId) -> Any:
        told = await super().prune(at)
        resident = await self.activate(at)
        space = (await self.kind(at.kind).home.open()).space

        def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
            yield from ()
            return Last((Remove(TURN, where=(("actor", "=", resident.base.actor), ("facts", "=", PRUNED))),), None)

        await space.transact(body)
        return told


class TakesAnyContent(Lane):
    """Knows an event by its id alone."""

    def body(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        self._asked = [_anonymous(turn) for turn in self._asked]
        return super().body(answers)


def _anonymous(turn: Turn) -> Turn:
    turn.digest = b""
    return turn


class EndsWindowsEarly(Lane):
    """Takes an id for over in the last millisecond of its window."""

    def _over(self, kind: str, before: Row, now: int) -> bool:
        return super()._over(kind, before, now + 1)


class OwesWithoutName(Lane):
    """Takes an event that may count again for one that counts once: what it owes leaves no name behind."""

    def body(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        self._folder._windowed = ()
        return super().body(answers)


class TakesAllThatComes(Lane):
    """Queues without a bound."""

    def submit(self, turn: Turn) -> None:
        pending, turn.resident.pending = turn.resident.pending, 0
        try:
            super().submit(turn)
        finally:
            turn.resident.pending += pending


# --- when --------------------------------------------------------------------------------------------


class WritesEachAlarm(Lane):
    """Writes the alarm row with every fold, exactly."""

    def _arm(self, batch: Batch, turn: Turn, folded: Folded, now: int, *, exact: bool) -> None:
        super()._arm(batch, turn, folded, now, exact=True)


class RingsLate(Lane):
    """Rounds an alarm up to the next ten seconds."""

    def _arm(self, batch: Batch, turn: Turn, folded: Folded, now: int, *, exact: bool) -> None:
        super()._arm(batch, turn, folded, now, exact=exact)
        row = batch.alarms.get(turn.resident)
        if row is not None and row.at is not None:
            batch.alarms[turn.resident] = Alarm(-(-row.at // 10_000) * 10_000, row.tries, row.error, row.written)


class CountsNoFailedWake(Lane):
    """Backs off after a wake that failed, and forgets that it did."""

    def _stirred(self, batch: Batch, turn: Turn, now: int, fault: Any) -> None:
        super()._stirred(batch, turn, now, fault)
        row = batch.alarms[turn.resident]
        if row.tries:
            batch.alarms[turn.resident] = Alarm(now + 15 * 60_000, 0, None, True)


# --- what is owed --------------------------------------------------------------------------------------


class Unremoved(Batch):
    """Commits everything but the removal of what was confirmed."""

    __slots__ = ()

    def all_writes(self) -> tuple[Write, ...]:
        held, self.removed = self.removed, []
        try:
            return super().all_writes()
        finally:
            self.removed = held


class RemovesApart(TwoCommits):
    """The answer first; then the removal of the row it answers."""

    def body(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        made = super().body(answers)
        if made is not None and self._flying[-1].rows:
            self._flying[-1].__class__ = Unremoved
        return made

    def afterwards(self, batch: Batch) -> Body[None] | None:
        apart = batch.__class__ is Unremoved and batch.removed
        return writing([Remove(OWED, keys=batch.removed)]) if apart else None


class DropsWhatFailed(Sender):
    """Takes a row away once it has failed for good."""

    async def _change(self, at: ActorId, item: Outstanding) -> None:
        if item.state == "parked":
            await self._node.fold(at, None, b"", None, removes=item.n, replies=False, probe=False)
        else:
            await super()._change(at, item)


class SendsUnannounced(Sender):
    """Sends through any port without a word in the store that it is about to."""

    async def _change(self, at: ActorId, item: Outstanding) -> None:
        if item.state != "sending":
            await super()._change(at, item)


class SendsUnderTheAttempt(Sender):
    """Gives each try a key of its own."""

    async def _ask(self, resident: Resident, port: Any, item: Outstanding, *, find: bool) -> Any:
        if item.tries:
            item = replace(item, key=f"{item.key} {item.tries}")
        return await super()._ask(resident, port, item, find=find)
