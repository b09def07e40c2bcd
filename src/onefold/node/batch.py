"""node.batch - what one physical commit holds for a lane: verdicts, and the rows they need.

For: gathering the rows of many folds by table, and giving each turn its answer after the commit.
Never: decides; touches a store.
Was wrong once: a list of rows per fold. Sixty-four folds were two hundred statements, not six.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onefold.kernel.alarm import Alarm
from onefold.kernel.fold import Base, Folded, Outstanding
from onefold.kernel.tables import ACTOR, ALARM, OWED, SENT, TURN
from onefold.node.resident import Resident, Turn
from onefold.store.contract import Answer, Append, Put, Query, Remove, Row, Table, Verb, Write
from onefold.terms.errors import Contended, KeyConflict, OnefoldError

Beside: TypeAlias = "Callable[[Base, Sequence[Any]], Sequence[Append | Put]]"


@dataclass(frozen=True, slots=True)
class Retake:
    """Nothing was written: these turns met a key, the rest is decided again."""

    refused: tuple[tuple[Turn, OnefoldError], ...]


class Verdict:
    """What becomes of one turn, once its batch is durable."""

    __slots__ = ("fault", "first", "folded", "stored", "turn")

    def __init__(
        self,
        turn: Turn,
        folded: Folded | None = None,
        fault: OnefoldError | None = None,
        stored: bytes | None = None,
        first: Verdict | None = None,
    ) -> None:
        self.turn = turn
        self.folded = folded
        self.fault = fault
        self.stored = stored
        self.first = first

    def answer(self) -> tuple[Any, OnefoldError | None]:
        """The reply, or the fault, of this turn."""
        if self.folded is not None:
            return self.folded.reply, None
        if self.first is not None:
            return self.first.answer()
        if self.fault is not None:
            return None, self.fault
        if self.stored is not None:
            return self.turn.resident.module.codecs.reply.decode(self.stored), None
        return None, None


class Batch:
    """The verdicts of one commit in the order of their turns, and its rows by table."""

    __slots__ = (
        "alarms",
        "beside",
        "by_event",
        "changed",
        "created",
        "local",
        "named",
        "owed",
        "put_rows",
        "removed",
        "turns",
        "unowed",
        "verdicts",
        "void",
    )

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self.by_event: dict[tuple[int, str], Verdict] = {}
        self.created: dict[Resident, Row] = {}
        self.turns: list[Row] = []
        self.owed: list[Row] = []
        self.changed: list[tuple[Resident, Outstanding]] = []
        self.removed: list[Row] = []
        self.named: list[tuple[Turn, Row, int]] = []  # the turn, its `sent` row, the owed row's number
        self.local: list[tuple[Table, Row]] = []
        self.alarms: dict[Resident, Alarm] = {}
        self.beside: dict[str, tuple[Table, list[Row], list[Turn]]] = {}
        self.put_rows: dict[str, tuple[Table, list[Row]]] = {}
        self.unowed: set[int] = set()
        self.void = False

    # --- verdicts ---------------------------------------------------------------------------

    def fold(self, turn: Turn, folded: Folded) -> None:
        verdict = Verdict(turn, folded)
        self.verdicts.append(verdict)
        if turn.event is not None:
            self.by_event[(turn.resident.base.actor, turn.event)] = verdict

    def repeat(self, turn: Turn, digest: bytes, reply: bytes | None) -> None:
        """The id was folded before: the first reply, or a conflict when the content differs."""
        if digest != turn.digest:
            self.refuse(turn, KeyConflict((turn.event or "")[2:]))
        else:
            self.verdicts.append(Verdict(turn, stored=reply if turn.replies else None))

    def join(self, turn: Turn, first: Verdict) -> None:
        """The id is being folded by this very batch: wait for it."""
        if first.turn.digest != turn.digest:
            self.refuse(turn, KeyConflict((turn.event or "")[2:]))
        else:
            self.verdicts.append(Verdict(turn, first=first))

    def refuse(self, turn: Turn, fault: OnefoldError) -> None:
        self.verdicts.append(Verdict(turn, fault=fault))

    def stir(self, turn: Turn) -> None:
        """No fold, perhaps rows: a confirmation nobody hears, a try that failed, an early alarm."""
        self.verdicts.append(Verdict(turn))

    # --- rows -------------------------------------------------------------------------------

    def owe(self, base: Base, item: Outstanding) -> None:
        self.owed.append(_owed_row(base, item))

    def name(self, turn: Turn, sent: Row, n: int) -> None:
        self.named.append((turn, sent, n))

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
        """What must be answered inside the transaction, before the writes: named keys, then rows beside."""
        asked: list[Verb] = []
        if self.named:
            asked.append(Query(SENT, on=("actor", "key"), keys=[(row[0], row[1]) for _, row, _ in self.named]))
        asked.extend(Append(table, rows) for table, rows, _ in self.beside.values())
        return tuple(asked)

    def heard(self, answers: Sequence[Answer]) -> list[tuple[Turn, OnefoldError]]:
        """The turns that these answers refuse."""
        refused: list[tuple[Turn, OnefoldError]] = []
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
    def writes(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.turns or self.removed or self.changed or self.alarms)

    def all_writes(self) -> tuple[Write, ...]:
        """The rows, one verb a table."""
        writes: list[Write] = []
        if self.created:
            writes.append(Append(ACTOR, list(self.created.values())))
        if self.turns:
            writes.append(Append(TURN, self.turns))
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
        writes.extend(self._local_writes())
        writes.extend(Put(table, rows) for table, rows in self.put_rows.values())
        if self.alarms:
            writes.extend(self._alarm_writes())
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
            elif resident.alarm.written:
                gone.append((base.actor,))
        writes: list[Write] = []
        if put:
            writes.append(Put(ALARM, put))
        if gone:
            writes.append(Remove(ALARM, keys=gone))
        return writes


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
