"""kernel.rebuild - an actor's state from its rows. Pure.

For: reading turns newest first back to the latest snapshot, and folding what came after.
Never: decides; writes; guesses at a fact it does not know.
Was wrong once: reading the whole history. An actor of a year took seconds to wake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from onefold.kernel.fold import Outstanding
from onefold.kernel.module import Module
from onefold.kernel.tables import OWED, TURN
from onefold.store.contract import Query, Row

PAGE = 256  # turns of a first look: with snapshots every 500 facts one or two looks are enough
GROWTH = 8

_SEQ, _FACTS, _AT, _N = TURN.at["seq"], TURN.at["facts"], TURN.at["at"], TURN.at["n"]
_KEY, _EVENT = OWED.at["key"], TURN.at["event"]


class _Tag(msgspec.Struct):
    type: str = ""


_tags = msgspec.json.Decoder(list[_Tag])


def newest(actor: int, limit: int = PAGE) -> Query:
    """The newest turns of an actor. Where they do not reach back far enough, ask for GROWTH times as many."""
    return Query(TURN, where=(("actor", "=", actor),), order=("-n",), limit=limit)


def outstanding(actor: int) -> Query:
    return Query(OWED, where=(("actor", "=", actor),), order=("n",))


def has_snapshot(module: Module[Any, Any, Any, Any, Any], turns: Sequence[Row]) -> bool:
    """Whether one of these turns holds the module's snapshot fact."""
    kind = module.snapshot_kind
    if kind is None:
        return False
    needle = f'"type":"{kind}"'.encode()
    return any(needle in row[_FACTS] and _kinds(row).count(kind) for row in turns)  # type: ignore[operator]


def _kinds(row: Row) -> list[str]:
    return [tag.type for tag in _tags.decode(row[_FACTS])]  # type: ignore[arg-type]


def rebuild(module: Module[Any, Any, Any, Any, Any], newest_first: Sequence[Row]) -> tuple[Any, int]:
    """State from turns, newest first, and the seq of the snapshot it began at (0 without one).

    Raises: UnknownKind for a fact this code does not know; such an actor is left alone.
    """
    kind = module.snapshot_kind
    start, inside, snapshot_seq = len(newest_first) - 1, 0, 0
    if kind is not None:
        for index, row in enumerate(newest_first):
            kinds = _kinds(row) if kind.encode() in row[_FACTS] else []  # type: ignore[operator]
            if kind in kinds:
                inside = len(kinds) - 1 - kinds[::-1].index(kind)
                start = index
                snapshot_seq = int(row[_SEQ] or 0) - (len(kinds) - 1 - inside)
                break
    state = module.initial
    evolve = module.evolve
    for index in range(start, -1, -1):
        row = newest_first[index]
        facts = module.codecs.fact.decode_many(row[_FACTS])  # type: ignore[arg-type]
        for fact in facts[inside:] if index == start else facts:
            state = evolve(state, fact)
    return state, snapshot_seq


def owed_rows(rows: Sequence[Row]) -> Iterator[Outstanding]:
    """Owed rows as their owner holds them."""
    for n, _actor, _slot, key, port, body, tries, next_at, state, error, at in rows:
        yield Outstanding(n, key, port, body, tries, next_at, state, at, error, found=True)  # type: ignore[arg-type]
