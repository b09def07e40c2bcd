"""node.batch - what one physical commit holds for a lane: its turns, and the rows they need.

For: gathering the rows of many folds by table, one verb a table; the body that writes them.
Never: decides; touches a store.
Was wrong once: a list of rows per fold. Sixty-four folds were two hundred statements, not six. And owners asked for
first, in a trip of their own: in a fleet each fold waited twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

from onefold.kernel import blob
from onefold.kernel.alarm import Alarm
from onefold.kernel.fold import Base, Folded, Outstanding
from onefold.kernel.retain import freed
from onefold.kernel.tables import ACTOR, ALARM, OWED, SENT, TURN
from onefold.node.brought import Brought
from onefold.node.owning import Hold, Owning
from onefold.node.resident import Resident, Turn
from onefold.store.contract import Answer, Append, Last, Put, Query, Refusal, Remove, Row, Table, Verb, Write
from onefold.terms.errors import AlreadyDone, Contended, KeyConflict, OnefoldError

_AT = TURN.at["at"]

Beside: TypeAlias = "Callable[[Base, Sequence[Any]], Sequence[Append | Put]]"


class Retake(OnefoldError):
    """Stays inside the node: nothing was written; these turns met a key, and the rest is decided again."""

    def __init__(self, refused: Sequence[tuple[Turn, OnefoldError]]) -> None:
        self.refused = tuple(refused)
        super().__init__("turns of this batch met a key")


def unheeded(resident: Resident) -> bool:
    """Whether nobody works on it in memory, who would begin anew where it is dropped, as the pass of a run does."""
    return resident.module.room == "modules" and not resident.module.own_words


class Batch:
    """The turns of one commit in their order, and its rows by table."""

    __slots__ = (
        "alarms",
        "alerts",
        "beside",
        "blind",
        "by_event",
        "changed",
        "created",
        "guard",
        "holds",
        "lapsed",
        "local",
        "met",
        "named",
        "owed",
        "put_rows",
        "refs",
        "removed",
        "rows",
        "runs",
        "spills",
        "taken",
        "turns",
        "unowed",
        "void",
    )

    def __init__(self, guard: Owning | None = None) -> None:
        self.guard = guard
        self.holds: list[Hold] = []
        self.turns: list[Turn] = []
        self.by_event: dict[tuple[int, str], Turn] = {}
        self.created: dict[Resident, Row] = {}
        self.lapsed: list[Row] = []  # turns whose id comes again after its window
        self.rows: list[Row] = []
        self.owed: list[Row] = []
        self.changed: list[tuple[Resident, Outstanding]] = []
        self.removed: list[Row] = []
        self.named: list[tuple[Turn, Row, int]] = []  # the turn, its `sent` row, the owed row's number
        self.local: list[tuple[Table, Row]] = []
        self.taken: dict[str, tuple[Table, list[Row]]] = {}  # rows that brought a turn, and go with it
        self.alerts: list[tuple[Resident, Outstanding]] = []
        self.alarms: dict[Resident, Alarm] = {}
        self.beside: dict[str, tuple[Table, list[Row], list[Turn]]] = {}
        self.put_rows: dict[str, tuple[Table, list[Row]]] = {}
        self.unowed: set[int] = set()
        self.spills: dict[bytes, blob.Spill] = {}
        self.refs: list[Row] = []
        self.met: Sequence[Row] = ()  # blobs that are there already, of those that are spilled or referred to
        self.void = False
        self.runs = 0
        self.blind = False  # decided before anybody asked whether its ids are known: their key tells, in the commit

    # --- turns ------------------------------------------------------------------------------

    def repeat(self, turn: Turn, digest: bytes, reply: bytes | None) -> None:
        """The id was folded before: the first reply, AlreadyDone without one, or a conflict when the content differs."""
        if digest != turn.digest:
            turn.fault = KeyConflict((turn.event or "")[2:])
        elif turn.replies and reply is None:
            turn.fault = AlreadyDone((turn.event or "")[2:])
        elif turn.replies:
            turn.stored = reply
        if turn.removes is not None and turn.fault is None:
            self.removed.append((turn.removes,))
        if turn.takes is not None and turn.fault is None:
            self._take(turn.takes)
        self.turns.append(turn)

    def join(self, turn: Turn, first: Turn) -> None:
        """The id is being folded by this very batch: wait for it."""
        if first.digest != turn.digest:
            turn.fault = KeyConflict((turn.event or "")[2:])
        else:
            turn.first = first
            if turn.takes is not None:
                self._take(turn.takes)
        self.turns.append(turn)

    def _take(self, brought: Brought) -> None:
        if brought.row is not None:
            table, key = brought.row
            self.taken.setdefault(table.name, (table, []))[1].append(key)

    # --- rows -------------------------------------------------------------------------------

    def keep(self, turn: Turn, folded: Folded, event: tuple[int, str] | None) -> None:
        """A turn that was folded, and its rows."""
        base = turn.resident.base
        turn.folded = folded
        self.turns.append(turn)
        self.rows.append(folded.turn)
        if event is not None:
            self.by_event[event] = turn
        if turn.removes is not None:
            self.removed.append((turn.removes,))
        if turn.takes is not None:
            self._take(turn.takes)
        if turn.change is not None:
            self.changed.append((turn.resident, turn.change))
        if folded.owed:
            self.owed.extend(_owed_row(base, item) for item in folded.owed)
            self.named.extend((turn, (base.actor, key, digest), n) for n, key, digest in folded.named)
        if folded.local:
            self.local.extend(folded.local)
        if folded.refs:
            self.refs.extend(folded.refs)
            self.spills.update((spill.address, spill) for spill in folded.spills)

    def tell(self, resident: Resident, alert: Outstanding) -> None:
        """A notice about something of this actor that stops with this commit."""
        self.alerts.append((resident, alert))
        self.owed.append(_owed_row(resident.base, alert))
        resident.coming[alert.n] = alert

    def put_beside(self, turn: Turn, rows: Sequence[Append | Put]) -> None:
        """Rows of other tables that go with this turn's facts. An Append that meets a key refuses the turn."""
        for verb in rows:
            table = verb.table
            if isinstance(verb, Append):
                _, gathered, turns = self.beside.setdefault(table.name, (table, [], []))
                gathered.extend(verb.rows)
                turns.extend(turn for _ in verb.rows)
            else:
                self.put_rows.setdefault(table.name, (table, []))[1].extend(verb.rows)

    def questions(self) -> tuple[Verb, ...]:
        """What must be answered inside the transaction, before the writes: blobs, named keys, then rows beside. Where it
        runs again, who owns the actors comes first.
        """
        asked: list[Verb] = []
        if self.guard is not None:
            holds = {turn.resident.hold: None for turn in self.turns if turn.resident.hold is not None}
            self.holds = [hold for hold in holds if hold.fenced]
            if self.again and self.holds:
                asked.append(self.guard.question(self.holds))
        if self.refs:
            asked.append(blob.lookup(dict.fromkeys(row[0] for row in self.refs)))
        if self.named:
            asked.append(Query(SENT, on=("actor", "key"), keys=[(row[0], row[1]) for _, row, _ in self.named]))
        asked.extend(Append(table, rows) for table, rows, _ in self.beside.values())
        return tuple(asked)

    def heard(self, answers: Sequence[Answer]) -> list[tuple[Turn, OnefoldError]]:
        """The turns that these answers refuse."""
        refused: list[tuple[Turn, OnefoldError]] = []
        if self.again and self.holds:
            assert self.guard is not None
            lost = self.guard.lost(self.holds, answers[0])
            if lost:
                gone = [(turn, lost.get(turn.resident.hold)) for turn in self.turns if turn.resident.hold is not None]
                return [(turn, fault) for turn, fault in gone if fault is not None]
            answers = answers[1:]
        if self.refs:
            self.met, answers = answers[0], answers[1:]
        if self.named:
            refused, self.unowed = self.known_names(answers[0])
            answers = answers[1:]
        for (_, _, turns), met in zip(self.beside.values(), answers, strict=True):
            refused.extend(
                (turn, Contended(turn.resident.base.key))
                for turn, row in zip(turns, met, strict=True)
                if row is not None
            )
        return refused

    def known_names(self, rows: Sequence[Row]) -> tuple[list[tuple[Turn, OnefoldError]], set[int]]:
        """Named keys that were sent before: those with other bytes are refused, the same need no row.

        Keys of one batch see each other.
        """
        known = {(row[0], row[1]): row[2] for row in rows}
        refused: list[tuple[Turn, OnefoldError]] = []
        unowed: set[int] = set()
        for turn, sent, n in self.named:
            digest = known.setdefault((sent[0], sent[1]), sent[2])
            if digest is not sent[2]:
                if digest != sent[2]:
                    refused.append((turn, KeyConflict(str(sent[1])[2:])))
                else:
                    unowed.add(n)
        return refused, unowed

    @property
    def again(self) -> bool:
        """Whether it ran before, and met a key or a name that is another's by now."""
        return self.runs > 1

    @property
    def writes(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.rows or self.removed or self.changed or self.alarms or self.taken)

    def all_writes(self) -> tuple[Write, ...]:
        """The rows, one verb a table."""
        writes: list[Write] = []
        if self.guard is not None and self.holds:
            writes.append(self.guard.still(self.holds))
        if self.created:
            writes.append(Append(ACTOR, list(self.created.values())))
        if self.lapsed:
            writes.append(freed(self.lapsed))
        if self.rows:
            writes.append(Append(TURN, self.rows))
        owed = [row for row in self.owed if row[0] not in self.unowed] if self.unowed else self.owed
        if owed:
            writes.append(Append(OWED, owed))
        sent = [row for _, row, n in self.named if n not in self.unowed]
        if sent:
            writes.append(Append(SENT, sent))
        if self.removed:
            writes.append(Remove(OWED, keys=self.removed))
        if self.changed:
            writes.append(Put(OWED, [_owed_row(resident.base, item) for resident, item in self.changed]))
        writes.extend(Remove(table, keys=keys) for table, keys in self.taken.values())
        writes.extend(self._local_writes())
        writes.extend(Put(table, rows) for table, rows in self.put_rows.values())
        if self.alarms:
            writes.extend(self._alarm_writes())
        if self.refs:
            at = max(int(row[_AT] or 0) for row in self.rows)
            writes.extend(blob.writes(tuple(self.spills.values()), self.refs, self.met, at))
        return tuple(writes)

    def _local_writes(self) -> list[Write]:
        by_table: dict[str, tuple[Table, list[Row]]] = {}
        for table, row in self.local:
            by_table.setdefault(table.name, (table, []))[1].append(row)
        return [Append(table, rows, met="keep") for table, rows in by_table.values()]

    def _alarm_writes(self) -> list[Write]:
        put: list[Row] = []
        gone: list[Row] = []
        for resident, alarm in self.alarms.items():
            base = resident.base
            if alarm.written:
                put.append((base.actor, base.kind, base.slot, alarm.at, alarm.tries, alarm.error))
            else:
                gone.append((base.actor,))
        writes: list[Write] = []
        if put:
            writes.append(Put(ALARM, put))
        if gone:
            writes.append(Remove(ALARM, keys=gone))
        return writes


def committing(batch: Batch) -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
    """The body: one question where a key must be known first, and one write, with the guard in front."""
    if batch.void:
        raise Refusal(Retake(()))
    batch.runs += 1
    questions = batch.questions()
    if questions:
        refused = batch.heard((yield questions))
        if refused:
            raise Refusal(Retake(() if batch.blind else refused))
    if batch.blind and batch.again:  # it would meet the same key
        raise Refusal(Retake(()))
    return Last(batch.all_writes(), None)


def _owed_row(base: Base, item: Outstanding) -> Row:
    return (
        item.n,
        base.actor,
        base.slot,
        item.key,
        item.port,
        item.body,
        item.tries,
        item.next_at,
        item.state,
        item.error,
        item.at,
    )
