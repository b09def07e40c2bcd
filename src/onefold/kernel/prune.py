"""kernel.prune - what a prune takes from an actor's turns, and how a turn shows it. Pure.

For: the facts behind the latest snapshot, which nothing needs for a rebuild any more.
Never: frees an id; touches a reply, a digest, an owed key or the numbering; takes the snapshot itself.
Was wrong once: whole rows removed. The id went with its row, and an event that came again folded twice.

A turn that lost facts says so: its array opens with a space, `[ ` instead of `[`, which nothing else
writes. It keeps `seq`, so that the facts behind it keep their numbers. The snapshot's own turn is
marked first, then the others are emptied, oldest first: cut off anywhere, a rebuild still begins at
a snapshot, and what is left to do ends at the first turn that is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from onefold.kernel.tables import TURN
from onefold.store.contract import Cas, Query, Row

PRUNED = b"[ ]"
EMPTY = b"[]"
SLICE = 256  # turns a commit: beside it, folds wait no longer than beside a commit of their own

_FACTS, _N, _PREV, _SEQ = TURN.at["facts"], TURN.at["n"], TURN.at["prev"], TURN.at["seq"]
_parts = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune came to. facts: how many were taken away. begins: the number of the first that is kept."""

    facts: int
    begins: int


def lost(facts: bytes) -> bool:
    """Whether facts of this turn were pruned."""
    return facts.startswith(b"[ ")


def cut(facts: bytes, before: int) -> bytes:
    """A turn's facts without the first `before` of them."""
    kept = _parts.decode(facts)[before:]
    return b"[ " + b",".join(bytes(part) for part in kept) + b"]"


def older(actor: int, n: int, limit: int) -> Query:
    """The turns of an actor from number `n` back, newest first."""
    return Query(TURN, where=(("actor", "=", actor), ("n", "<=", n)), order=("-n",), limit=limit)


def emptied(numbers: Iterable[int]) -> Cas:
    """The write that takes the facts of these turns away, and nothing else of them."""
    return Cas(TURN, [((n,), {}, {"facts": PRUNED}) for n in numbers])


def opened(row: Row, before: int) -> Cas:
    """The write that makes the snapshot the first fact of its own turn, and says that there were others."""
    return Cas(TURN, [((row[_N],), {}, {"facts": cut(_bytes(row[_FACTS]), before)})])


def count(facts: bytes) -> int:
    """How many facts a turn holds."""
    return len(_parts.decode(facts))


def first_kept(row: Row, inside: int) -> int:
    """The number of the fact at place `inside` of this turn."""
    return int(row[_SEQ] or 0) - count(_bytes(row[_FACTS])) + inside + 1


def to_empty(newest_first: Sequence[Row]) -> tuple[list[int], int, int | None]:
    """Which of these turns hold facts, how many, and the number of the turn to go on from.

    None: there is none, or all behind it were emptied before; a prune goes from the oldest to the
    newest, so that behind an emptied turn no other has facts.
    """
    numbers: list[int] = []
    facts = 0
    for row in newest_first:
        held = _bytes(row[_FACTS])
        if held == PRUNED:
            return numbers, facts, None
        if held != EMPTY:
            numbers.append(int(row[_N] or 0))
            facts += count(held)
    prev = newest_first[-1][_PREV] if newest_first else None
    return numbers, facts, None if prev is None else int(prev)


def _bytes(cell: object) -> bytes:
    assert isinstance(cell, bytes)
    return cell
