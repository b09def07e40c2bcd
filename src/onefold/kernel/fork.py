"""kernel.fork - a new actor from a prefix of another's facts. Pure.

For: which facts of a history a fork carries, their digest, and the decision that begins the new actor.
Never: reads two actors in one fold (the prefix comes in with the event that creates); owes again what was
owed; copies an id, a reply or an alarm: the wake of a fork follows from its state.
Was wrong once: a fork that shared rows with its source. A prune of the one took the other's past away.

A fork carries the whole prefix where it fits into a row. Where it does not, or where the beginning was
pruned, it carries what stands from the latest snapshot of the prefix on; where even that is too much, one
snapshot of the state there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from onefold.kernel.module import Module
from onefold.kernel.prune import before, lost
from onefold.kernel.reading import is_snapshot, read_facts
from onefold.kernel.tables import TURN
from onefold.kernel.words import Forked
from onefold.store.contract import Row
from onefold.terms.codec import digest
from onefold.terms.errors import BadArguments, Fault, TooLarge
from onefold.terms.limits import MAX_ROW_BYTES
from onefold.terms.typed import codec_of

AnyModule = Module[Any, Any, Any, Any, Any]
ANSWER = codec_of(str)  # what a fork gives: the digest of the facts it carries, in hex

_SEQ, _FACTS = TURN.at["seq"], TURN.at["facts"]


class _Tag(msgspec.Struct):
    type: str = ""


_parts = msgspec.json.Decoder(list[msgspec.Raw])
_tag = msgspec.json.Decoder(_Tag)


class Prefix:
    """The facts of one actor up to number `upto`, gathered from its turns, newest first.

    done: nothing older is needed. at: the turn to read from next.
    """

    def __init__(self, module: AnyModule, upto: int) -> None:
        self._module = module
        self._upto = upto
        self._facts: list[bytes] = []  # newest first
        self._size = 0
        self._snapshot: int | None = None  # how many of the facts gathered are from the latest snapshot on
        self.done = False
        self.at: int | None = None

    def add(self, newest_first: Sequence[Row]) -> None:
        """The next page. Raises: BadArguments when the prefix ends before what a prune has left."""
        for row in newest_first:
            facts: bytes = row[_FACTS]  # type: ignore[assignment]
            parts = _parts.decode(facts)
            first = int(row[_SEQ] or 0) - len(parts) + 1
            taken = parts[: max(0, self._upto - first + 1)]
            for part in reversed(taken):
                self._take(bytes(part))
            self.at = before(row)
            if lost(facts):
                if not self._facts:
                    raise _gone(self._upto, first)
                self.done = True
                return
            if self.at is None or self._enough():
                self.done = True
                return

    def _take(self, fact: bytes) -> None:
        self._facts.append(fact)
        self._size += len(fact) + 1
        if self._snapshot is None and _is_snapshot(self._module, fact):
            self._snapshot = len(self._facts)

    def _enough(self) -> bool:
        too_much = self._size + 1 > MAX_ROW_BYTES
        return too_much and (self._snapshot is not None or self._module.snapshot is None)

    def carried(self) -> bytes:
        """The facts that the fork carries, as one JSON array. Raises: TooLarge, Unreadable."""
        if self._size + 1 <= MAX_ROW_BYTES:
            return _array(self._facts)
        module = self._module
        since = self._facts if self._snapshot is None else self._facts[: self._snapshot]
        written = _array(since)
        if self._snapshot is not None and len(written) <= MAX_ROW_BYTES:
            return written
        if module.snapshot is not None:
            state = _state(module, read_facts(module, written))
            written = module.codecs.fact.seal_many([module.snapshot(state)])[0]
        if len(written) > MAX_ROW_BYTES:
            raise TooLarge(f"the prefix of a fork of {module.name}", len(written), MAX_ROW_BYTES)
        return written


def forked(module: AnyModule, written: bytes) -> Forked[Any]:
    """The decision that begins an actor with these facts. Raises: Unreadable."""
    facts = read_facts(module, written)
    parts = [bytes(part) for part in _parts.decode(written)]
    snapshot = next((n for n in range(len(parts), 0, -1) if _is_snapshot(module, parts[n - 1])), 0)
    return Forked(facts, written, _state(module, facts), snapshot, digest(written).hex())


def begins(made: Forked[Any], _state: Any, _now: datetime) -> Forked[Any]:
    """Decide a fork: what was made of the prefix, whatever the state is (the fold refuses one that has a history)."""
    return made


def check_upto(upto: int | None, seq: int) -> int:
    """How many facts are asked for, of `seq` that there are. Raises: BadArguments."""
    if upto is None:
        return seq
    if type(upto) is not int or not 1 <= upto <= seq:
        raise BadArguments(
            [Fault("upto", f"must be from 1 to {seq}, the facts that there are", upto)], nothing_was="forked"
        )
    return upto


def _gone(upto: int, first: int) -> BadArguments:
    return BadArguments(
        [Fault("upto", f"is behind a prune: the first fact that is kept is number {first}", upto)], nothing_was="forked"
    )


def _is_snapshot(module: AnyModule, fact: bytes) -> bool:
    if module.snapshot_kind is None:
        return False
    kind = _tag.decode(fact).type
    return kind == module.snapshot_kind or (kind in module.upgrade and is_snapshot(module, b"[" + fact + b"]", 0))


def _state(module: AnyModule, facts: Sequence[Any]) -> Any:
    state = module.initial
    for fact in facts:
        state = module.evolve(state, fact)
    return state


def _array(newest_first: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(reversed(newest_first)) + b"]"
