"""fence.words - what the fence reads and what it says.

For: a file as bytes, a place that must stay pure, a finding.
Never: behaviour. Nothing here opens a file.
Was wrong once: a finding as one sentence. An editor could not show the cure without the complaint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind = Literal["module", "chart", "cell", "actuator", "step"]
"""Which part of a program a function belongs to. A step may do anything, but not under a changing key."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file: how it is called in findings, and its bytes as they lie on the disk."""

    file: str
    raw: bytes


Find: TypeAlias = Callable[[str, str, int], "Source | None"]
"""The file that (importing file, dotted module, leading dots) means, or None when it is not one of the user's."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that may not stand where it stands. `line` counts from 1; `instead` says what to write."""

    file: str
    line: int
    rule: str
    problem: str
    instead: str


@dataclass(frozen=True, slots=True)
class Place:
    """A guarded function: what it is to Onefold.

    role: the name of its argument of Module ("decide"), or what else it is. owner: as a sentence names it.
    now: whether it is handed the instant.
    """

    kind: Kind
    role: str
    owner: str
    now: bool = False

    @property
    def pure(self) -> bool:
        """Whether it must give the same for the same arguments, and waits for nothing."""
        return self.kind in ("module", "chart", "cell")
