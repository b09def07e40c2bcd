"""actuators.forgetting - what goes of an ended run after its retention, and what stays for its key. Pure.

For: the writes that take a run away in one commit.
Never: takes a run that has not ended or still owes something; frees a key.
Was wrong once: every row of the run removed. A call that came again with its key ran once more.

A run that was started with a key leaves its actor and one turn: the start's id and the digest of its input,
so that the same call again is told that it was done, and another input that the key is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onefold.actuators.tables import RUN
from onefold.kernel.prune import PRUNED
from onefold.kernel.tables import ACTOR, ALARM, OWED, SENT, TURN
from onefold.store.contract import Append, Query, Remove, Row, Verb, Write
from onefold.terms.ids import door_id

ENDED = ("done", "failed", "cancelled")
START = door_id("start")

_N, _PREV, _REPLY = TURN.at["n"], TURN.at["prev"], TURN.at["reply"]
_FACTS, _OWES = TURN.at["facts"], TURN.at["owes"]
_ACTOR, _KEY = RUN.at["actor"], RUN.at["key"]
_STATUS, _UPDATED = RUN.at["status"], RUN.at["updated_at"]
_STARTED = RUN.at["started_at"]


def ended(status: str, after: int, limit: int) -> Query:
    """Runs that ended so, by their actors' numbers, which is about the order in which they were started."""
    return Query(RUN, where=(("status", "=", status), ("actor", ">", after)), order=("actor",), limit=limit)


def over(row: Row, upto: int) -> bool:
    """Whether this run had ended at `upto` (ms)."""
    return row[_STATUS] in ENDED and int(row[_UPDATED] or 0) <= upto


def started_by(row: Row, upto: int) -> bool:
    """Whether this run had been started at `upto` (ms); one that had not cannot have ended then."""
    return int(row[_STARTED] or 0) <= upto


def questions(actors: Sequence[int]) -> tuple[Verb, ...]:
    """What must be known of these runs in the commit that takes them away."""
    keys: list[Row] = [(n,) for n in actors]
    return (
        Query(RUN, on=("actor",), keys=keys, lock="update"),
        Query(OWED, where=(("actor", "in", tuple(actors)),)),
        Query(TURN, on=("actor", "event"), keys=[(n, START) for n in actors]),
    )


def forgotten(
    runs: Sequence[Row], owed: Sequence[Row], starts: Sequence[Row], upto: int, number: Callable[[], int]
) -> tuple[list[Row], tuple[Write, ...]]:
    """The runs that go, and the writes. `number` gives the number of a turn."""
    owing = {row[OWED.at["actor"]] for row in owed}
    going = [row for row in runs if over(row, upto) and row[_ACTOR] not in owing]
    if not going:
        return [], ()
    actors = [row[_ACTOR] for row in going]
    kept = {row[_ACTOR] for row in going if row[_KEY] is not None}
    stays = [_mark(row, number()) for row in starts if row[TURN.at["actor"]] in kept]
    alone: list[Row] = [(n,) for n in actors if n not in kept]
    every: list[Row] = [(n,) for n in actors]
    writes: list[Write] = [
        Remove(TURN, where=(("actor", "in", tuple(actors)),)),
        Remove(SENT, where=(("actor", "in", tuple(actors)),)),
        Remove(ALARM, keys=every),
        Remove(RUN, keys=every),
    ]
    if stays:
        writes.append(Append(TURN, stays))
    if alone:
        writes.append(Remove(ACTOR, keys=alone))
    return going, tuple(writes)


def _mark(start: Row, n: int) -> Row:
    """The start's turn, alone in its history, without what it said and decided."""
    row = list(start)
    row[_N], row[_PREV], row[_REPLY], row[_FACTS], row[_OWES] = n, None, None, PRUNED, None
    return tuple(row)
