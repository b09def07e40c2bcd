"""kernel.prune - what a prune takes from an actor's turns, and how a turn shows it. Pure.

For: the facts behind the latest snapshot, which nothing needs for a rebuild any more.
Never: frees an id (a turn whose window freed it goes whole); touches a reply, a digest, an owed key or the numbering;
takes the snapshot itself.
Was wrong once: whole rows removed. The id went with its row, and an event that came again folded twice.

A turn that lost facts says so: its array opens with a space, `[ ` instead of `[`, which nothing else
writes. It keeps `seq`, so that the facts behind it keep their numbers. The snapshot's own turn is
marked first, then the others are emptied, oldest first: cut off anywhere, a rebuild still begins at
a snapshot, and what is left to do ends at the first turn that is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import msgspec

from onefold.kernel.tables import TURN
from onefold.store.contract import Cas, Query, Row

PRUNED = b"[ ]"
EMPTY = b"[]"
SLICE = 256  # turns a commit: beside it, folds wait no longer than beside a commit of their own

FREED = "f/"  # the event of a turn whose id was freed after its window: this and its own number
_EVENT = TURN.at["event"]
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


def before(row: Row) -> int | None:
    """The number to read on from, behind this turn; None at the actor's first.

    It is always a smaller one: a row that was changed by hand must not be read in a circle. `doctor` names it.
    """
    prev = row[_PREV]
    return None if prev is None else min(int(prev), int(row[_N] or 0) - 1)


def emptied(numbers: Sequence[int]) -> Cas:
    """The write that takes the facts of these turns away, and nothing else of them."""
    return Cas(TURN, [((n,), {}, {"facts": PRUNED}) for n in numbers])


def opened(row: Row, before: int) -> Cas:
    """The write that makes the snapshot the first fact of its own turn, and says that there were others.

    Only while the turn is as it was read: a prune behind a later snapshot may have emptied it meanwhile.
    """
    facts = _bytes(row[_FACTS])
    return Cas(TURN, [((row[_N],), {"facts": facts}, {"facts": cut(facts, before)})])


def count(facts: bytes) -> int:
    """How many facts a turn holds."""
    return len(_parts.decode(facts))


def first_kept(row: Row, inside: int) -> int:
    """The number of the fact at place `inside` of this turn."""
    return int(row[_SEQ] or 0) - count(_bytes(row[_FACTS])) + inside + 1


@dataclass(slots=True)
class Behind:
    """The turns behind a snapshot, newest first, as far back as any of them has facts.

    turns: number and event of each. held: the numbers of those with facts. facts: how many. `cursor`: the
    turn to go on from; None: there is none. whole: the walk went to the actor's first turn.
    """

    cursor: int | None
    turns: list[tuple[int, str]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    facts: int = 0
    whole: bool = True

    def add(self, newest_first: Sequence[Row]) -> None:
        """A page from the cursor on. A prune goes from the oldest to the newest, so that behind an
        emptied turn no other has facts."""
        self.cursor = None
        for row in newest_first:
            facts, n = _bytes(row[_FACTS]), int(row[_N] or 0)
            if facts == PRUNED:
                self.whole = False
                return
            self.turns.append((n, str(row[_EVENT])))
            if facts != EMPTY:
                self.held.append(n)
                self.facts += count(facts)
        if newest_first:
            self.cursor = before(newest_first[-1])

    def to_remove(self) -> list[int]:
        """The actor's oldest turns whose ids were freed, oldest first: without facts nothing is left of them."""
        oldest = self.turns[::-1] if self.whole else []
        free = list(takewhile(lambda turn: turn[1].startswith((FREED, "a/")), oldest))
        while free and not free[-1][1].startswith(FREED):
            free.pop()
        return [n for n, _ in free]

    def to_empty(self, gone: Sequence[int]) -> list[int]:
        """The turns whose facts go while their rows stay, oldest first."""
        return self.held[::-1] if not gone else [n for n in reversed(self.held) if n > gone[-1]]


def _bytes(cell: object) -> bytes:
    assert isinstance(cell, bytes)
    return cell
