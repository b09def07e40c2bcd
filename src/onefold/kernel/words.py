"""kernel.words - what a module says and hears.

For: the values that cross between the kernel and a module.
Never: behaviour; a clock; a store.
Was wrong once: a decision that sends. Whatever left before the commit could not be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, overload

from onefold.terms.ids import join

F = TypeVar("F")
R = TypeVar("R")
B = TypeVar("B")


class Owed:
    """What must still be sent, once, by a port.

    port: the port's name. key: from the event or the state, never from `now` or an attempt; a key
    equal to the folded event's id is derived from it and needs no tombstone, any other is named
    and is never used again for other bytes. body: the port's input. at: not before this instant.
    """

    __slots__ = ("at", "body", "key", "port")

    def __init__(self, port: str, key: str, body: object, at: datetime | None = None) -> None:
        self.port = port
        self.key = key
        self.body = body
        self.at = at

    @staticmethod
    def join(*parts: str | None) -> str:
        """One key of several parts, so that no two lists of parts ever give the same key."""
        return join(*parts)

    def __repr__(self) -> str:
        return f"Owed({self.port!r}, key={self.key!r}, body={self.body!r}, at={self.at!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Owed):
            return NotImplemented
        return (self.port, self.key, self.body, self.at) == (other.port, other.key, other.body, other.at)

    __hash__ = None  # type: ignore[assignment]


class Decision(Generic[F, R]):
    """What one event changes.

    facts: committed with the turn, in this order. owed: rows of the same commit, sent only after
    it, bytes never rebuilt. reply: given to the caller after commit, and again to every repeat.
    A decline is a reply without facts: it counts, and is stored.
    """

    __slots__ = ("facts", "owed", "reply")

    @overload
    def __init__(self: Decision[F, None], *, facts: Sequence[F] = (), owed: Sequence[Owed] = ()) -> None: ...
    @overload
    def __init__(self, *, facts: Sequence[F] = (), owed: Sequence[Owed] = (), reply: R) -> None: ...
    def __init__(self, *, facts: Sequence[F] = (), owed: Sequence[Owed] = (), reply: Any = None) -> None:
        self.facts = facts
        self.owed = owed
        self.reply = reply

    def __repr__(self) -> str:
        return f"Decision(facts={list(self.facts)!r}, owed={list(self.owed)!r}, reply={self.reply!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        mine = (list(self.facts), list(self.owed), self.reply)
        return mine == (list(other.facts), list(other.owed), other.reply)

    __hash__ = None  # type: ignore[assignment]


class Forked(Decision[F, str]):
    """What begins an actor with facts of another: they are written already, and `state` is theirs.

    snapshot: the number of the last snapshot among them, 0 without one. The reply is their digest.
    """

    __slots__ = ("snapshot", "state", "written")

    def __init__(self, facts: Sequence[F], written: bytes, state: Any, snapshot: int, digest: str) -> None:
        super().__init__(facts=facts, reply=digest)
        self.written = written
        self.state = state
        self.snapshot = snapshot


@dataclass(frozen=True, slots=True)
class Answer(Generic[B]):
    """What a port gave back, as an event of the actor that owed it. The first per owed key counts."""

    key: str
    port: str
    body: B


@dataclass(frozen=True, slots=True)
class Dropped:
    """The body of an answer when a person gave up on an owed row."""

    reason: str


NOTHING: Decision[Any, Any] = Decision()
