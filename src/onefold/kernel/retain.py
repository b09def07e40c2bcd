"""kernel.retain - how long an id counts and a reply is kept, and what is left of a turn afterwards. Pure.

For: the edge of a window, and the writes that free ids and take replies away.
Never: reads a clock; takes a fact (prune does); frees an id that has no window.
Was wrong once: an id counted for as long as its row was there. Whether a repeat counted then hung on
when somebody had last swept.

An id with a window counts from its turn's instant up to, and not at, the instant plus the window. A turn
whose id was freed keeps its place, its facts and its number; its event reads `f/` and its own number.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onefold.kernel.prune import EMPTY, FREED, PRUNED
from onefold.kernel.tables import TURN
from onefold.store.contract import Cas, Cell, Query, Row

LOOK = 512  # turns a look and a commit of a sweep: folds beside it wait about as long as beside one of their own
LAPSING = ("d/", "m/")  # ids that others chose: one that comes again after its window is a new event
FREEABLE = (*LAPSING, "o/")  # an answer is kept as long; its owed row went with it, so that none comes again

_N, _EVENT, _AT = TURN.at["n"], TURN.at["event"], TURN.at["at"]
_REPLY, _FACTS, _PREV = TURN.at["reply"], TURN.at["facts"], TURN.at["prev"]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look of a sweep came to: the turns to change, how far it got, whether it could see further."""

    turns: Sequence[Row]
    upto: int
    more: bool


def lapsed(row: Row, window: int, now: int) -> bool:
    """Whether the id of this turn, kept for `window` ms, is over at `now`: a repeat is a new event then."""
    return now >= int(row[_AT] or 0) + window and str(row[_EVENT]).startswith(LAPSING)


def after(n: int, limit: int = LOOK) -> Query:
    """The turns after number `n`, in the order in which they were decided."""
    return Query(TURN, where=(("n", ">", n),), order=("n",), limit=limit)


def aged(rows: Sequence[Row], start: int, upto: int, now: int, limit: int = LOOK) -> Look:
    """The first of these turns, which are no younger than the instant `upto`.

    One from the future, left by a clock that was set back, is passed over: it would hold up all behind it.
    """
    old: list[Row] = []
    last = start
    for row in rows:
        at = int(row[_AT] or 0)
        if upto < at <= now:
            return Look(old, last, more=False)
        if at <= upto:
            old.append(row)
        last = int(row[_N] or 0)
    return Look(old, last, more=len(rows) == limit)


def freed(rows: Iterable[Row]) -> Cas:
    """The write that frees the ids of these turns."""
    return Cas(TURN, [_freed(int(row[_N] or 0)) for row in rows])


def _freed(n: int) -> tuple[Row, Mapping[str, Cell], Mapping[str, Cell]]:
    return ((n,), {}, {"event": f"{FREED}{n}", "digest": b"", "reply": None})


def holds_id(row: Row) -> bool:
    """Whether the turn has an id that its window frees."""
    return str(row[_EVENT]).startswith(FREEABLE)


def removable(rows: Iterable[Row], kept: Container[int], newest: Container[int]) -> list[Row]:
    """Of turns whose windows are over, oldest first, those whose rows may go: no facts left, none before them.

    kept: numbers of turns before these that are still there. newest: those each actor ends with; they
    carry its number and its last instant, and stay.
    """
    gone: dict[int, Row] = {}
    stays: set[int] = set()
    for row in rows:
        n, prev = int(row[_N] or 0), row[_PREV]
        first = prev is None or prev in gone or (prev not in stays and prev not in kept)
        if first and row[_FACTS] in (EMPTY, PRUNED) and n not in newest:
            gone[n] = row
        else:
            stays.add(n)
    return list(gone.values())


def holds_reply(row: Row) -> bool:
    return row[_REPLY] is not None


def unreplied(rows: Iterable[Row]) -> Cas:
    """The write that takes the replies of these turns away. Their ids and digests stay."""
    return Cas(TURN, [((row[_N],), {}, {"reply": None}) for row in rows])
