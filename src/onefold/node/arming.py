"""node.arming - the alarm row that goes with the turns of a commit.

For: when the row of an actor must be written, and to what: tightened by a fold, exact after a ring, backed
off after a wake that failed.
Never: reads a clock; rings; writes (batch does).
Was wrong once: the row read as it was committed. Two commits on their way at once then each wrote theirs
without the other's.
"""

from __future__ import annotations

from collections import deque

from onefold.kernel.alarm import Alarm, after_failure, soonest, tightened
from onefold.kernel.drain import FRESH_MS, looked_at
from onefold.kernel.fold import Folded, Folder, Outstanding
from onefold.node.batch import Batch
from onefold.node.resident import Resident, Turn
from onefold.terms.errors import DecideFailed, OnefoldError

NO_CHANGE = "the alarm was folded and changed nothing, yet its wake is still due"


class Arming:
    """What a lane does about alarm rows. `_flying`: the commits that are on their way, oldest first."""

    _flying: deque[Batch]
    _folder: Folder

    def _row(self, batch: Batch, resident: Resident) -> Alarm:
        """The alarm row as it will be once all that is decided is committed."""
        row = batch.alarms.get(resident)
        if row is None:
            decided = (one.alarms[resident] for one in reversed(self._flying) if resident in one.alarms)
            row = next(decided, resident.alarm) if self._flying else resident.alarm
        return row

    def _arm(self, batch: Batch, turn: Turn, folded: Folded, now: int, *, exact: bool) -> None:
        """Write the alarm row if it must be: tightened, or `exact` after a ring and when an actor comes to rest."""
        resident = turn.resident
        wake = folded.wake
        row = self._row(batch, resident)
        if resident.failed_wake is not None:
            if wake == resident.failed_wake:
                wake = row.at
            else:
                resident.failed_wake = None
                row = Alarm(row.at, 0, None, row.written)
        due = wake
        if folded.owed:
            owed = min(item.next_at for item in folded.owed if item.next_at is not None)
            due = soonest(wake, owed if owed > now else now + FRESH_MS)
        over = row.written and row.at is None and row.error is None  # it was parked, and its wake is taken back
        if exact:
            due = soonest(due, self._owed_due(resident, now, turn.removes))
            if due != row.at or over:
                batch.alarms[resident] = Alarm() if due is None else Alarm(due, row.tries, row.error, True)
        elif tightened(row, due):
            batch.alarms[resident] = Alarm(due, row.tries, row.error, True)
        elif over:
            batch.alarms[resident] = Alarm()

    def _owed_due(self, resident: Resident, now: int, without: int | None = None) -> int | None:
        """The soonest instant at which an outstanding row must be looked at again, uncommitted ones too."""
        rows = {**resident.owed, **resident.coming} if resident.coming else resident.owed
        return min(
            (looked_at(item, now) for item in rows.values() if item.next_at is not None and item.n != without),
            default=None,
        )

    def _stirred(self, batch: Batch, turn: Turn, now: int, fault: OnefoldError | None) -> None:
        """An alarm that changed nothing: it was early, or its wake failed."""
        resident = turn.resident
        try:
            wake = resident.module.wakes_at(resident.base.state)
        except Exception as raised:  # noqa: BLE001 - the door: a module that cannot say when has failed to wake now
            base = resident.base
            wake, fault = now, DecideFailed(base.kind, base.key, type(raised).__name__, str(raised))
        owed = self._owed_due(resident, now)
        before, parks = self._row(batch, resident), False
        if wake is not None and wake <= now:
            if before.given_up and wake == resident.failed_wake:
                row = Alarm(owed, before.tries, before.error, True)
            else:
                row = after_failure(before, now, str(fault) if fault else NO_CHANGE)
                parks = row.given_up and not before.given_up
                if owed is not None and (row.at is None or owed < row.at):
                    row = Alarm(owed, row.tries, row.error, True)
            resident.failed_wake = wake
        else:
            due = soonest(wake, owed)
            row = Alarm() if due is None else Alarm(due, 0, None, True)
        batch.alarms[resident] = row
        if parks and self._folder.alerts is not None:
            self._tell(batch, resident, self._folder.alerts.alarm(resident.base, row.error, now), now)
        batch.turns.append(turn)

    def _tell(self, batch: Batch, resident: Resident, alert: Outstanding | None, now: int) -> None:
        """People are told of something that stops, by a row in the commit in which it does."""
        if alert is not None:
            batch.tell(resident, alert)
            row = self._row(batch, resident)
            if tightened(row, now + FRESH_MS):
                batch.alarms[resident] = Alarm(now + FRESH_MS, row.tries, row.error, True)
