"""kernel.retain - how long an id counts and a reply is kept, and what is left of a turn afterwards. Pure.

For: the edge of a window, and the writes that free ids and take replies away.
Never: reads a clock; takes a fact (prune does); frees an id that has no window.
Was wrong once: an id counted for as long as its row was there. Whether a repeat counted then hung on
when somebody had last swept. And mail lapsed like any event: cut off before its sender was told, it counted twice.

An id with a window counts from its turn's instant up to, and not at, the instant plus the window. A turn
whose id was freed keeps its place, its facts and its number; its event reads `f/` and its own number. Mail never lapses in
a fold: only its own owed row can bring it again, and as long as that stands a sweep leaves its id and its reply.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onefold.kernel.port import DELIVER
from onefold.kernel.prune import EMPTY, FREED, PRUNED
from onefold.kernel.tables import ACTOR, OWED, TURN
from onefold.store.contract import Cas, Cell, Query, Row
from onefold.terms.ids import ActorId, delivered_id, leaving_key, principal_of

LOOK = 512  # turns a look and a commit of a sweep: folds beside it wait about as long as beside one of their own
LAPSING = "d/"  # ids that others chose: one that comes again after its window is a new event
FREEABLE = (LAPSING, "m/", "o/")  # kept as long; what could bring one of the last two again is gone, see `untold`

_N, _EVENT, _AT = TURN.at["n"], TURN.at["event"], TURN.at["at"]
_KIND, _WHOSE, _KEY = ACTOR.at["kind"], ACTOR.at["principal"], ACTOR.at["key"]
_OWES, _OWED_KEY = OWED.at["actor"], OWED.at["key"]
AFTER_DELIVER = DELIVER[:-1] + chr(ord(DELIVER[-1]) + 1)
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


def mailed(rows: Iterable[Row]) -> bool:
    """Whether any of these turns folded what another actor owed."""
    return any(str(row[_EVENT]).startswith("m/") for row in rows)


def posted(n: int, limit: int) -> Query:
    """Mail that is still owed, from the row after number `n` on."""
    return Query(
        OWED, where=(("n", ">", n), ("port", ">=", DELIVER), ("port", "<", AFTER_DELIVER)), order=("n",), limit=limit
    )


def untold(rows: Iterable[Row], actors: Iterable[Row]) -> set[str]:
    """The events that these owed rows bring, should they be sent again. actors: of whom they are."""
    who = {row[0]: ActorId(str(row[_KIND]), principal_of(str(row[_WHOSE])), str(row[_KEY])) for row in actors}
    return {delivered_id(leaving_key(who[row[_OWES]], str(row[_OWED_KEY]))) for row in rows if row[_OWES] in who}


def holds_reply(row: Row) -> bool:
    return row[_REPLY] is not None


def unreplied(rows: Iterable[Row]) -> Cas:
    """The write that takes the replies of these turns away. Their ids and digests stay."""
    return Cas(TURN, [((row[_N],), {}, {"reply": None}) for row in rows])
