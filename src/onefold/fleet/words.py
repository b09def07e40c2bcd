"""fleet.words - what the verbs of a fleet answer.

For: `app.fleet.claim(…)` and its kin: outcomes to branch on, none of them a fault.
Never: behaviour.
Was wrong once: "failed" as an outcome. A store that could not be asked is a fault, and is raised like every other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Claimed:
    """It is this node's, under this epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class HeldBy:
    """Another node has it, until then at least."""

    node: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Seized:
    """It was another's and is this node's now; whatever that one still writes is refused."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Free:
    """Nobody owns it."""


@dataclass(frozen=True, slots=True)
class Contended:
    """Somebody else changed it at the same moment. Nothing was done."""


@dataclass(frozen=True, slots=True)
class Owner:
    """This node owns it under that epoch."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """It is owned under a newer epoch: what stood on the older one is over."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Done:
    """So many letters were delivered."""

    delivered: int


@dataclass(frozen=True, slots=True)
class Member:
    """One node as the fleet's rows have it. names: what it owns beside slots, each with its epoch. reached: whether the
    node that is asked met it at its address the last time it tried; None: it never tried.
    """

    name: str
    incarnation: int
    state: str
    until: datetime
    url: str | None
    slots: int
    epochs: tuple[int, int] | None = None
    names: Mapping[str, int] = field(default_factory=dict)
    reached: bool | None = None
