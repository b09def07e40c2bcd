"""kernel.reading - facts of any age, as the facts of today. Pure.

For: turning a turn's bytes into facts: as they are where they fit, through the module's `upgrade` where not.
Never: writes what it read anew (a row stays as it was written); skips a fact; guesses at one.
Was wrong once: a step that rewrote old rows at a deploy. It ran for hours, and the code before it could
not read what it had already done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onefold.kernel.module import Module
from onefold.terms.errors import BadArguments
from onefold.terms.faults import says
from onefold.terms.typed import UnknownKind

FAULTS = (ValueError, TypeError, AssertionError, ArithmeticError, LookupError, AttributeError)
"""What a module's own `upgrade` raises over a row it did not expect. Anything else passes through."""

_parts = msgspec.json.Decoder(list[msgspec.Raw]).decode
_plain = msgspec.json.Decoder().decode


class _Tag(msgspec.Struct):
    type: str = ""


_tag = msgspec.json.Decoder(_Tag).decode
_tags = msgspec.json.Decoder(list[_Tag]).decode


class Unreadable(Exception):
    """A fact that this code cannot read. kind: its class when it was written. why: None for one not known at all."""

    def __init__(self, kind: str, why: str | None = None) -> None:
        self.kind = kind
        self.why = why
        super().__init__(kind)


def kinds_of(raw: bytes) -> list[str]:
    """The classes of a turn's facts, in order."""
    return [tag.type for tag in _tags(raw)]


def read_facts(module: Module[Any, Any, Any, Any, Any], raw: bytes, start: int = 0) -> Sequence[Any]:
    """A turn's facts from place `start` on. Raises: Unreadable."""
    if not start:
        try:
            return module.codecs.fact.decode_many(raw)
        except BadArguments:
            pass  # one of them at least is of another age
    return [_read(module, bytes(part)) for part in _parts(raw)[start:]]


def is_snapshot(module: Module[Any, Any, Any, Any, Any], raw: bytes, place: int) -> bool:
    """Whether the fact at this place, of a kind that is upgraded, was a snapshot. One that cannot be read is none."""
    try:
        fact = _read(module, bytes(_parts(raw)[place]))
    except Unreadable:
        return False
    return type(fact).__name__ == module.snapshot_kind


def _read(module: Module[Any, Any, Any, Any, Any], part: bytes) -> Any:
    codec = module.codecs.fact
    try:
        return codec.decode(part)
    except BadArguments as fault:
        kind = _tag(part).type
        upgrade = module.upgrade.get(kind)
        if upgrade is None:
            known = not (isinstance(fault, UnknownKind) and fault.kind == kind)
            raise Unreadable(kind, str(fault.faults[0]) if known else None) from None
    try:
        return codec.round_trip(upgrade(_plain(part)))
    except BadArguments as fault:
        raise Unreadable(kind, f"its upgrade gave no fact of today: {fault.faults[0]}") from None
    except FAULTS as fault:
        raise Unreadable(kind, f"its upgrade raised {type(fault).__name__}: {says(fault)}") from None
