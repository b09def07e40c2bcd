"""cell.words - what is kept of a cell, and what a turn of it gives back. Pure.

For: facts, the reply, and the values that people get.
Never: behaviour; a word of the wire that has another meaning in the kernel.
Was wrong once: the whole record in each fact. A counter beside a list of a thousand notes wrote the notes each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

Json: TypeAlias = Any

# --- facts ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Began:
    """The cell exists from now on, with the defaults of its shape."""


@dataclass(frozen=True, slots=True)
class Set:
    """These fields have these values now. `shape`: the number of the shape they were written under."""

    fields: dict[str, Json]
    shape: int


@dataclass(frozen=True, slots=True)
class Retired:
    """It exists no longer, and its fields are gone."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The snapshot: whether it exists, its fields, and how often it has changed."""

    exists: bool
    fields: dict[str, Json]
    shape: int
    changes: int


Fact: TypeAlias = "Began | Set | Retired | Kept"


@dataclass(frozen=True, slots=True)
class Record:
    """The state: fields that were ever set, as JSON. `changes` counts facts, so that a capture sees what came between."""

    exists: bool = False
    fields: Mapping[str, Json] = field(default_factory=dict)
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """The reply that is stored. outcome: done, failed, spawned, resident, captured, retired."""

    outcome: Literal["done", "failed", "spawned", "resident", "captured", "retired"]
    value: Json = None
    ran: int = 0
    error: dict[str, Json] | None = None  # {"kind", "ran", "of", …} of terms.turns


# --- events ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spawn:
    """Let it exist."""

    id: str
    cell: str


@dataclass(frozen=True, slots=True)
class Retire:
    """Let it exist no longer."""

    id: str
    cell: str


@dataclass(frozen=True, slots=True)
class Call:
    """One method."""

    id: str
    cell: str
    method: str
    arguments: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Capture:
    """Fields as somebody set them, on what they saw: the record after `base` changes. None: whatever it is now."""

    id: str
    cell: str
    set: dict[str, Json]
    base: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """What an interpreted program came to, on the record after `base` changes."""

    id: str
    cell: str
    base: int
    set: dict[str, Json]
    told: Told


Event: TypeAlias = "Spawn | Retire | Call | Capture | Ended"

# --- what a turn comes to ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Letter:
    """A program for the cell `id` of a shape: what a module owes to the port `post.<Shape>`."""

    id: str
    program: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What a program came to. `branch`: the class of its value where a method gives one of several; else ""."""

    branch: str
    value: Json
    ran: int


@dataclass(frozen=True, slots=True)
class Spawned:
    """It is there now."""


@dataclass(frozen=True, slots=True)
class Resident:
    """It was there already, asleep or not; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Evicted:
    """It left memory; what it owns is kept."""


@dataclass(frozen=True, slots=True)
class Absent:
    """It was not in memory."""


class Unset:
    """The value of a field that nobody has set yet."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset()
