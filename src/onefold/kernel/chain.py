"""kernel.chain - each turn's facts sealed with all that came before them. Pure.

For: the link that a turn's row carries, and finding where a history no longer agrees with its links.
Never: a secret (whoever can rewrite every row can forge every link); a row or a statement of its own.
Was wrong once: the event's id under the link. Ids whose window is over are freed, and every such history
was called forged.

A link is a digest of 16 bytes (BLAKE2b) over the link before and the bytes of the facts. So an altered
fact, another order and a turn that is gone show at the turn where they are. What a chain alone cannot see:
newest turns that are gone together with their head; facts that were emptied as a prune empties them; rows
changed by somebody who made all later links anew. The first two show in the store's mark and in its copies,
the third against a link noted elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from onefold.kernel.prune import EMPTY, PRUNED, count, lost
from onefold.kernel.tables import TURN
from onefold.store.contract import Row

START = bytes(16)  # what stands before an actor's first turn

_AT = TURN.at
_N, _ACTOR, _SEQ, _PREV, _FACTS, _LINK = (_AT[name] for name in ("n", "actor", "seq", "prev", "facts", "link"))


def link(before: bytes, facts: bytes) -> bytes:
    """The link of a turn: 16 bytes. `before` is that of the actor's turn before it, START for the first."""
    return blake2b(before + facts, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Break:
    """Where a history disagrees with itself: the actor's and the turn's row number, and why."""

    actor: int
    turn: int
    why: str


@dataclass(frozen=True, slots=True)
class _End:
    """How far one history was read. held: a turn was met whose facts are there."""

    n: int
    seq: int
    link: bytes | None
    held: bool


class Audit:
    """Reads every turn of a space in the order of their numbers, and says where a history breaks.

    Where facts were pruned or the oldest turns are gone, it goes on from there: the link that stands is taken
    as it is. Turns from before there were links are read without them. After a break the reading goes on from
    the row as it is, so that one changed turn is one break.
    """

    def __init__(self) -> None:
        self._ends: dict[int, _End] = {}

    def read(self, row: Row) -> Break | None:
        """The next turn."""
        n, actor, seq = int(row[_N] or 0), int(row[_ACTOR] or 0), int(row[_SEQ] or 0)
        facts: bytes = row[_FACTS]  # type: ignore[assignment]
        sealed: bytes | None = row[_LINK]  # type: ignore[assignment]
        end = self._ends.get(actor)
        held = (end is not None and end.held) or facts not in (EMPTY, PRUNED)
        self._ends[actor] = _End(n, seq, sealed, held)
        why = _begins(row[_PREV], facts, sealed) if end is None else _follows(end, row[_PREV], seq, facts, sealed)
        return None if why is None else Break(actor, n, why)

    def ends(self) -> dict[int, int]:
        """The newest turn of each actor that was read."""
        return {actor: end.n for actor, end in self._ends.items()}


def _begins(prev: object, facts: bytes, sealed: bytes | None) -> str | None:
    if prev is not None or sealed is None or lost(facts):
        return None
    return None if link(START, facts) == sealed else ALTERED


def _follows(end: _End, prev: object, seq: int, facts: bytes, sealed: bytes | None) -> str | None:
    if prev != end.n:
        missing = isinstance(prev, int) and prev > end.n
        return f"the turn before it, {prev}, is missing" if missing else f"it does not stand behind turn {end.n}"
    if sealed is None:
        return None if end.link is None else "its link is gone"
    if lost(facts):  # a prune empties the oldest first, so that none is empty behind one that is not
        return "its facts are gone, and those before it are not" if facts == PRUNED and end.held else None
    if link(end.link or START, facts) != sealed:
        return ALTERED
    held = count(facts)
    return None if end.seq + held == seq else f"it ends at fact {seq}, and holds {held} after {end.seq}"


ALTERED = "its facts are not those that were committed here"
