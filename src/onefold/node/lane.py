"""node.lane - the turns of one space, many to a commit.

For: taking the queued turns, deciding them on their heads, writing them in one body, answering.
Never: decides inside a transaction; answers before the commit its head came from; guesses what
a commit did.
Was wrong once: a decline answered at once, since it writes no fact. It stood on a fold whose
commit then failed: the caller held an answer from a world that never was.

    ask     which of these ids are known already?           (outside any transaction)
    body    duplicates apart, decide the rest in order; rows
    landed  done: durable = head, answer, send · else: drop every actor touched, answer the fault

Where asking is a trip of its own, it is left out until an id was known: its key meets it in the commit, that batch is
taken again, and asks, as do the next hundred.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Container, Mapping
from datetime import datetime
from typing import Any, Protocol

from onefold.kernel.alarm import Alarm, tightened
from onefold.kernel.drain import looked_at
from onefold.kernel.fold import Folded, Folder, Outstanding
from onefold.kernel.retain import lapsed
from onefold.kernel.tables import TURN
from onefold.kernel.unfit import blamed, decided_by, giver
from onefold.node.arming import Arming
from onefold.node.batch import Batch, Beside, Retake, committing, unheeded
from onefold.node.owning import Owning
from onefold.node.resident import Resident, Turn
from onefold.store.contract import Answer, Body, Done, Outcome, Query, Refused, Row, Space, Unknown
from onefold.terms.errors import Broken, Busy, Contended, DecideFailed, Failed, NotOpen, OnefoldError, OutcomeUnknown
from onefold.terms.faults import says
from onefold.terms.ids import principal_text
from onefold.terms.instant import Instant, moment
from onefold.terms.limits import QUEUE_PER_ACTOR, QUEUE_PER_SPACE
from onefold.terms.places import at_place, place_of, place_of_function

ASKED_FOR = 100  # batches after an id that was known; why: what is sent again seldom comes alone
AT_ONCE = 512  # turns a commit: beyond it a commit gets longer, not cheaper a turn

log = logging.getLogger("onefold.node")

_DIGEST, _REPLY = TURN.at["digest"], TURN.at["reply"]
_ACTOR, _EVENT = TURN.at["actor"], TURN.at["event"]


class After(Protocol):
    """Whom the lane tells after a commit; called on the loop's thread, never raises."""

    def folded(self, resident: Resident, folded: Folded) -> None: ...
    def armed(self, at: int) -> None: ...
    def dropped(self, resident: Resident) -> None: ...
    def owes(self, resident: Resident, item: Outstanding) -> None: ...


class Retaken(OnefoldError):
    """Stays inside the node: a fold this one stood on was refused, so this one is taken again."""


class Lane(Arming):
    """A party of its space's commits. One lane a space; turns of one actor keep their order."""

    def __init__(
        self,
        space: Space,
        folder: Folder,
        now: Callable[[], Instant],
        after: After,
        beside: Mapping[str, Beside],
        resting: Container[str] = (),
        windows: Mapping[str, int] | None = None,
        guard: Owning | None = None,
    ) -> None:
        """`resting`: kinds whose actors mostly sleep; their alarm is written exactly when they come to rest, so
        that ten thousand sleepers do not each ring once early. `windows`: how long ids count (ms), by kind. `guard`:
        the fleet's, asked within every commit.
        """
        self.space = space
        self._folder = folder
        self._now = now
        self._after = after
        self._beside = beside
        self._resting = resting
        self._windows = windows or {}
        self._guard = guard
        self._queue: deque[Turn] = deque()
        self._joined = (
            False  # whether it waits to be asked: never twice, since the second asking would take the first's turns
        )
        self._lands = False  # whether it was asked, and is still to be told
        self._asked: list[Turn] = []
        self._asking, self._blind = 0, False  # so many batches more are asked for, though that is a trip of its own
        self._flying: deque[Batch] = deque()
        self._settled: asyncio.Future[None] | None = None

    # --- taking turns ---------------------------------------------------------------------

    def submit(self, turn: Turn) -> None:
        """Queue a turn. Raises: Busy, before anything exists, when the actor or the space is full."""
        resident = turn.resident
        if resident.pending >= QUEUE_PER_ACTOR:
            raise Busy(f"{resident.base.kind} {resident.base.key}", QUEUE_PER_ACTOR)
        if len(self._queue) >= QUEUE_PER_SPACE:
            raise Busy(f"the space {self.space.name}", QUEUE_PER_SPACE)
        if not self._joined:
            self.space.join(self)
            self._joined = True
        resident.pending += 1
        self._queue.append(turn)

    @property
    def idle(self) -> bool:
        """Whether no turn is queued or committing."""
        return not (self._queue or self._asked or self._flying)

    async def settled(self) -> None:
        """Wait until it is idle."""
        while not self.idle:
            self._settled = asyncio.get_running_loop().create_future()
            await self._settled

    def ask(self) -> tuple[Query, ...]:
        self._joined = self._blind = False
        self._lands = True
        queue = self._queue
        self._asked = [queue.popleft() for _ in range(min(len(queue), AT_ONCE))]
        if queue:
            self._joined = True
            self.space.join(self)
        if self._asking == 0 and self.space.far and not self._windows:
            self._blind = all(unheeded(turn.resident) for turn in self._asked)
        if self._blind:
            return ()
        self._asking -= self._asking > 0
        keys: list[Row] = [(t.resident.base.actor, t.event) for t in self._asked if t.repeats]
        return (Query(TURN, on=("actor", "event"), keys=keys),) if keys else ()

    # --- deciding -------------------------------------------------------------------------

    def body(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        turns = self._asked
        try:
            return self._decided(answers)
        except Exception as fault:
            broken = Broken(f"deciding met {type(fault).__name__}: {says(fault)}")
            broken.__cause__ = fault
            for turn in turns:
                self._forget(turn.resident)
                turn.landed(None, broken)
            raise broken from fault

    def _decided(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        batch = Batch(self._guard)
        batch.blind = self._blind
        met: dict[tuple[Any, Any], Row] = {}
        if answers:
            met = {(row[_ACTOR], row[_EVENT]): row for row in answers[0]}
        turns, self._asked = self._asked, []
        now = self._now()
        moment_of = moment(now)
        for turn in turns:
            if turn.resident.gone:
                turn.resident.pending -= 1
                turn.landed(None, Retaken())
            elif turn.decide is None:
                self._change(batch, turn, now)
            else:
                self._take(batch, turn, met, now, moment_of)
        if not batch.turns:
            return None
        if not batch.writes and not self._flying:
            self._settle(batch)
            return None
        self._flying.append(batch)
        return lambda: committing(batch)

    def _take(self, batch: Batch, turn: Turn, met: dict[tuple[Any, Any], Row], now: int, when: datetime) -> None:
        base = turn.resident.base
        event = turn.event
        if now < base.at:
            now, when = base.at, moment(base.at)
        key = before = None
        if event is not None:
            key = (base.actor, event)
            before = met.get(key) if met else None
            if before is not None and not self._over(base.kind, before, now):
                batch.repeat(turn, before[_DIGEST], before[_REPLY])  # type: ignore[arg-type]
                return
            first = batch.by_event.get(key)
            if first is not None:
                batch.join(turn, first)
                return
        try:
            assert turn.decide is not None
            decision = decided_by(turn.decide(base.state, when), event)
            if event is None and not decision.facts and not decision.owed:
                self._stirred(batch, turn, now, None)
                return
            module = turn.resident.module
            folded = self._folder.fold(module, base, event, turn.digest, decision, now, turn.replies)
            folded.wake = module.wakes_at(folded.state)
        except OnefoldError as fault:
            own = turn.resident.module.own_words
            self._failed(batch, turn, now, fault if own else blamed(fault, base.kind, base.key, event))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as fault:  # noqa: BLE001 - the door: a module's own fault is its caller's answer
            failed = DecideFailed(base.kind, base.key, type(fault).__name__, says(fault))
            failed.__cause__ = fault
            self._failed(batch, turn, now, failed)
        else:
            if before is not None:
                batch.lapsed.append(before)
            self._keep(batch, turn, folded, now, key)

    def _over(self, kind: str, before: Row, now: int) -> bool:
        """Whether the window of an id that was folded before is over."""
        window = self._windows.get(kind)
        return window is not None and lapsed(before, window, now)

    def _keep(self, batch: Batch, turn: Turn, folded: Folded, now: int, key: tuple[int, str] | None) -> None:
        resident = turn.resident
        base = resident.base
        batch.keep(turn, folded, key)
        if resident.fresh:
            batch.created[resident] = (base.actor, base.kind, principal_text(base.principal), base.key, base.slot)
        base.state = folded.state
        base.seq = folded.seq
        base.turns = base.turns + 1 if base.snapshot_seq == folded.snapshot_seq else 0
        base.snapshot_seq = folded.snapshot_seq
        base.last = folded.n
        base.link = folded.link
        base.at = now
        for item in folded.owed:
            resident.coming[item.n] = item
        beside = self._beside.get(base.kind)
        if beside is not None and folded.facts:
            batch.put_beside(turn, beside(base, folded.facts))
        rests = turn.removes is not None and base.kind in self._resting
        self._arm(batch, turn, folded, now, exact=key is None or rests)

    def _change(self, batch: Batch, turn: Turn, now: int) -> None:
        """A row without a fold: a confirmation that nobody hears, or a try that failed."""
        resident = turn.resident
        if turn.removes is not None:
            batch.removed.append((turn.removes,))
        if turn.change is not None:
            batch.changed.append((resident, turn.change))
            before = resident.coming.get(turn.change.n) or resident.owed.get(turn.change.n)
            resident.coming[turn.change.n] = turn.change
            if self._folder.alerts is not None:
                self._tell(batch, resident, self._folder.alerts.row(resident.base, before, turn.change, now), now)
            row = self._row(batch, resident)
            due = None if turn.change.next_at is None else looked_at(turn.change, now)
            if tightened(row, due):
                batch.alarms[resident] = Alarm(due, row.tries, row.error, True)
        if turn.alarm is not None:
            batch.alarms[resident] = turn.alarm
        batch.turns.append(turn)

    # --- faults, and turns beside an author's SQL ---------------------------------------------------

    def _failed(self, batch: Batch, turn: Turn, now: int, fault: OnefoldError) -> None:
        if batch.blind and turn.repeats:  # it may have been folded before, and this is not its answer then
            self._asking = ASKED_FOR
            turn.resident.pending -= 1
            turn.landed(None, Retaken())
            return
        if isinstance(fault, Failed):
            module = turn.resident.module
            place = place_of(fault) or place_of_function(getattr(module, giver(turn.event)))
            log.error("%s%s", fault, at_place(place))
        if turn.event is None:
            self._stirred(batch, turn, now, fault)
        else:
            turn.fault = fault
            batch.turns.append(turn)

    def authored(self, turn: Turn) -> Body[None]:
        """The body of a turn that commits together with what its author wrote. `landed` must be told.

        Raises: the fault, when the turn is refused.
        """
        turn.resident.pending += 1
        batch = Batch(self._guard)
        now = self._now()
        self._take(batch, turn, {}, now, moment(now))
        if turn.fault is not None:
            turn.resident.pending -= 1
            raise turn.fault
        self._flying.append(batch)
        return lambda: committing(batch)

    # --- landing --------------------------------------------------------------------------

    def landed(self, outcome: Outcome[Any]) -> None:
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)
        lands, self._lands = self._lands, False
        if not self._flying:
            if isinstance(outcome, Refused):
                # Whoever came since it was asked has joined again, and goes on waiting for the next commit.
                self._joined = self._joined and lands and not isinstance(outcome.error, NotOpen)
                self._refuse_all(outcome.error)
            return
        batch = self._flying.popleft()
        if isinstance(outcome, Done):
            self._settle(batch)
            return
        if batch.blind:
            self._asking = ASKED_FOR
        if isinstance(outcome, Unknown):
            self._drop(batch, {}, None)
        elif isinstance(outcome.error, Retake):
            self._drop(batch, dict(outcome.error.refused), Retaken())
        elif batch.blind and isinstance(outcome.error, Contended):
            self._drop(batch, {}, Retaken())
        else:
            self._drop(batch, {}, outcome.error)

    def _refuse_all(self, fault: OnefoldError) -> None:
        """The store could not even be asked: nothing was decided, and everybody who waits is told."""
        turns = [*self._asked, *self._queue]
        self._asked = []
        self._queue.clear()
        for turn in turns:
            turn.resident.pending -= 1
            turn.landed(None, fault)

    def _settle(self, batch: Batch) -> None:
        after = self._after
        for resident, row in batch.alarms.items():
            resident.alarm = row
            if row.at is not None:
                after.armed(row.at)
        for resident in batch.created:
            resident.fresh = False
        for turn in batch.turns:
            resident = turn.resident
            resident.pending -= 1
            if turn.removes is not None:
                if turn.fault is None:  # an answer that could not be folded removed nothing
                    resident.owed.pop(turn.removes, None)
            elif turn.change is not None:
                resident.owed[turn.change.n] = turn.change
                resident.arrived(turn.change)
            folded = turn.folded
            if folded is not None:
                resident.durable = folded.state
                resident.durable_seq = folded.seq
                for item in folded.owed:
                    if item.n not in batch.unowed:
                        resident.owed[item.n] = item
                    resident.arrived(item)
                turn.answer(self._folder.blobs)
                self._pass_on(resident, folded)
            else:
                turn.answer(self._folder.blobs)
        for resident, item in batch.alerts:
            resident.owed[item.n] = item
            resident.arrived(item)
            after.owes(resident, item)

    def _pass_on(self, resident: Resident, folded: Folded) -> None:
        """Tell whoever listens. What is owed and was not sent for their sake is rung for soon."""
        try:
            self._after.folded(resident, folded)
        except Exception:  # the door: whatever a listener raises, the others of this commit are answered
            log.exception("what listens to %s %s raised", resident.at.kind, resident.at.key)

    def _drop(self, batch: Batch, refused: Mapping[Turn, OnefoldError], fault: OnefoldError | None) -> None:
        """Forget every actor this batch or its successors touched: the rows are the truth."""
        for row in batch.alarms.values():
            if row.at is not None:
                self._after.armed(row.at)  # it may have been written, and nobody looks before that instant otherwise
        for flying in (batch, *self._flying):
            flying.void = True
            for turn in flying.turns:
                self._forget(turn.resident)
        for turn in batch.turns:
            turn.resident.pending -= 1
            turn.landed(None, refused.get(turn) or fault or OutcomeUnknown((turn.event or "a/alarm")[2:]))

    def _forget(self, resident: Resident) -> None:
        if not resident.gone:
            resident.gone = True
            self._after.dropped(resident)
