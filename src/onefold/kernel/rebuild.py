"""kernel.rebuild - an actor's state from its rows. Pure.

For: reading turns newest first back to the latest snapshot, and folding what came after.
Never: decides; writes; guesses at a fact it does not know.
Was wrong once: reading the whole history. An actor of a year took seconds to wake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onefold.kernel.fold import Outstanding
from onefold.kernel.module import Module
from onefold.kernel.prune import PRUNED, first_kept, lost
from onefold.kernel.reading import is_snapshot, kinds_of, read_facts
from onefold.kernel.tables import OWED, TURN
from onefold.store.contract import Query, Row

PAGE = 256  # turns of a first look: with snapshots every 500 facts one or two looks are enough
GROWTH = 8  # each further look asks for so many times as many as the one before

_SEQ, _FACTS = TURN.at["seq"], TURN.at["facts"]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a rebuild begins: a place in the turns, newest first, and among the facts of that one.

    seq: the number of the fact there, when it is a snapshot; 0 when it is not.
    """

    index: int
    inside: int
    seq: int


def newest(actor: int, limit: int = PAGE) -> Query:
    """The newest turns of an actor. Where they do not reach back far enough, ask for `older` ones."""
    return Query(TURN, where=(("actor", "=", actor),), order=("-n",), limit=limit)


def outstanding(actor: int) -> Query:
    return Query(OWED, where=(("actor", "=", actor),), order=("n",))


def start_in(module: Module[Any, Any, Any, Any, Any], newest_first: Sequence[Row]) -> Start | None:
    """Where a rebuild begins in these turns; None when they do not reach back far enough.

    At the latest snapshot. What a prune left begins with a snapshot, whatever the module calls its own now.
    """
    needles = _needles(module)
    for index, row in enumerate(newest_first):
        facts: bytes = row[_FACTS]  # type: ignore[assignment]
        if any(needle in facts for needle in needles):
            inside = _latest(module, facts)
            if inside is not None:
                return Start(index, inside, first_kept(row, inside))
        if not row[_SEQ]:
            return Start(index - 1, 0, 0)  # nothing was decided yet: behind it are only declines
        if lost(facts):
            return Start(index - 1 if facts == PRUNED else index, 0, 0)
    return None


def missing(newest_first: Sequence[Row], start: Start | None) -> int:
    """The number of the first fact there is, where it is not fact 1 and nothing stands for those before it; else 0."""
    if start is not None or not newest_first:
        return 0
    first = first_kept(newest_first[-1], 0)
    return first if first != 1 else 0


def rebuild(module: Module[Any, Any, Any, Any, Any], newest_first: Sequence[Row], start: Start | None) -> Any:
    """State from turns, newest first, from `start` on or from the first fact.

    Raises: Unreadable for a fact this code does not know; such an actor is left alone.
    """
    state = module.initial
    evolve = module.evolve
    first, inside = (len(newest_first) - 1, 0) if start is None else (start.index, start.inside)
    for index in range(first, -1, -1):
        raw: bytes = newest_first[index][_FACTS]  # type: ignore[assignment]
        for fact in read_facts(module, raw, inside if index == first else 0):
            state = evolve(state, fact)
    return state


def _needles(module: Module[Any, Any, Any, Any, Any]) -> list[bytes]:
    """What stands in a turn that may hold a snapshot: its class, or one from before that is read as it."""
    if module.snapshot_kind is None:
        return []
    return [f'"type":"{kind}"'.encode() for kind in (module.snapshot_kind, *module.upgrade)]


def _latest(module: Module[Any, Any, Any, Any, Any], facts: bytes) -> int | None:
    """The place of the last snapshot among a turn's facts."""
    kinds = kinds_of(facts)
    for place in range(len(kinds) - 1, -1, -1):
        if kinds[place] == module.snapshot_kind:
            return place
        if kinds[place] in module.upgrade and is_snapshot(module, facts, place):
            return place
    return None


def owed_rows(rows: Sequence[Row]) -> Iterator[Outstanding]:
    """Owed rows as their owner holds them."""
    for n, _actor, _slot, key, port, body, tries, next_at, state, error, at in rows:
        yield Outstanding(n, key, port, body, tries, next_at, state, at, error, found=True)  # type: ignore[arg-type]
