"""reflex.watch - what a stage asks of the loaded set, and whether this engine may still ask it.

For: `Loaded`, the set as the stages see it; the lock under which a decision over it is written.
Never: loads. Pure.
Was wrong once: a node that went on matching with the set it had. It marked facts delivered of which the new
reflexes never heard.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from onefold.reflex.tables import STATE
from onefold.reflex.words import Reflex
from onefold.store.contract import Query, Row
from onefold.terms.ids import Principal

SET = ""
"""The row of `state` that stands for the loaded set."""


class Loaded(Protocol):
    """The reflexes that this engine holds, of one generation."""

    @property
    def generation(self) -> int: ...
    @property
    def by_id(self) -> Mapping[str, Reflex]: ...
    def watching(self, kind: str, subject: str, principal: Principal, /) -> Sequence[Reflex]: ...
    def definition(self, version: str, /) -> Reflex | None: ...


def newest() -> Query:
    """The row that holds the generation of the set that was loaded last."""
    return Query(STATE, on=STATE.key, keys=[(SET,)])


def held(reflexes: Collection[str]) -> tuple[Query, Query]:
    """The set's row, shared, and those of these reflexes, for change: in this order and sorted, as everybody does."""
    mine = Query(STATE, on=STATE.key, keys=[(id,) for id in sorted(reflexes)], order=("reflex",), lock="update")
    return Query(STATE, on=STATE.key, keys=[(SET,)], lock="share"), mine


def generation_of(rows: Sequence[Row]) -> int:
    """0 before anything was loaded."""
    return int(rows[0][STATE.at["gen"]]) if rows else 0  # type: ignore[arg-type]


def is_newest(loaded: Loaded, rows: Sequence[Row]) -> bool:
    return generation_of(rows) == loaded.generation


def behind(loaded: Loaded, rows: Sequence[Row]) -> str:
    """What an engine that may not match says of it."""
    return (
        f"set {generation_of(rows)} was loaded elsewhere, and this engine holds {loaded.generation}: it matches nothing"
    )
