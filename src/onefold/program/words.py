"""program.words - what a program runs against, under which limits, and what it comes to.

For: the values between a program and whoever runs it. Pure.
Never: knows a cell; knows the interpreter.
Was wrong once: the interpreter's own errors as the answer. They named its parts, and changed with its releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Json: TypeAlias = Any
Kind = Literal["parse", "call", "raised", "limit", "handle"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one turn may use. All but `seconds` are verdicts: the same program meets them everywhere."""

    source_bytes: int = 16_384  # read by a parser of ours; a program of a person or a model has some hundred
    nesting: int = 200  # of its tree: how deep a parser goes is up to the Python of the node, and a verdict is not
    cost: int = 200  # the sum of what its calls cost; a method costs 1 unless it says otherwise
    memory_bytes: int = 16 << 20
    depth: int = 100  # calls within calls
    output_bytes: int = 65_536  # of its value as JSON, and of what it prints together
    seconds: float = 2.0  # of running, waits for the worker not counted


LIMITS = Limits()


class Method(Protocol):
    """One name that a program may call."""

    @property
    def cost(self) -> int: ...
    @property
    def parameters(self) -> Sequence[str]:
        """In order: a call by position is one by these names."""

    def __call__(self, arguments: Mapping[str, Json], /) -> Json:
        """Act on the draft. Raises: BadArguments; BadToken; whatever the method raises."""


Scope: TypeAlias = "Mapping[str, Method]"


@dataclass(frozen=True, slots=True)
class Ran:
    """It ran to its end. `value`: of its last expression, None without one."""

    value: Json
    ran: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """It stopped, after `ran` of `of` statements. `told`: the rest of the record, by kind (terms.turns)."""

    kind: Kind
    told: Mapping[str, Json]
    ran: int
    of: int


Verdict: TypeAlias = "Ran | Stopped"


@dataclass(frozen=True, slots=True)
class OneCall:
    """A body that is one call with literal arguments."""

    name: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Statements:
    """A body of more than that: its top-level statements, and the line each begins in."""

    parts: tuple[str, ...]
    lines: tuple[int, ...]


Program: TypeAlias = "OneCall | Statements"


class OverCost(Exception):
    """The calls of a program cost more than it may spend."""


class BadToken(Exception):
    """A handle that is not in this turn's pool, or not any more."""

    def __init__(self, token: str, why: str) -> None:
        super().__init__(f"the handle {token!r} {why}")
        self.token = token
        self.why = why
