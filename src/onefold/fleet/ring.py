"""fleet.ring - letters within one process: bounded, and each of them a debt until somebody settles it.

For: many who offer and many who take, at the price of a hop; a full ring said to whoever offers.
Never: acknowledges. `Taken` says that the ring has the letter, and a crash takes the ring along: what must survive
is in the box before it is offered.
Was wrong once: a queue that was simply read. A consumer that raised between two lines had read the letter and
done nothing, and nobody could tell. And a ring that was let go of with letters in it: nobody looked there again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

L = TypeVar("L")
_holding: set[Ring[Any]] = set()
"""Rings of this process with letters in them: also those that whoever made them has forgotten."""


def holding() -> tuple[Ring[Any], ...]:
    """The rings of this process in which there are letters that nobody has settled or forwarded."""
    return tuple(_holding)


@dataclass(frozen=True, slots=True)
class Taken:
    """The ring has it."""


@dataclass(frozen=True, slots=True)
class Full:
    """The ring has no room, and the letter is still yours."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The ring takes nothing any more, and the letter is still yours."""


class Unsettled(RuntimeError):
    """Letters were taken from a ring and neither settled nor forwarded. They are still in it."""

    def __init__(self, letters: int) -> None:
        self.letters = letters
        super().__init__(
            f"{letters} letter{'s were' if letters != 1 else ' was'} taken from a ring and not settled. "
            "Call `await mail.settle()` when its turn is committed, or `mail.forward(to)`."
        )


class Mail(Generic[L]):
    """A letter in somebody's hands: read it, then settle it or pass the debt on. Once."""

    __slots__ = ("_ring", "letter", "settled")

    def __init__(self, ring: Ring[L], letter: L) -> None:
        self._ring = ring
        self.letter = letter
        self.settled = False

    async def settle(self) -> None:
        """Its turn is committed. Raises: Unsettled for a letter that was settled or forwarded before."""
        self._discharge()

    def forward(self, to: Ring[L]) -> Taken | Full | Closed:
        """Pass the debt on to another ring. It stays here, unsettled, where that one has no room."""
        told = to.put(self.letter)
        if isinstance(told, Taken):
            self._discharge()
        return told

    def _discharge(self) -> None:
        if self.settled:
            raise Unsettled(1)
        self.settled = True
        self._ring.discharged(self)


class Ring(Generic[L]):
    """A bounded ring of letters. Not thread-safe: it lives on one loop."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a ring holds at least one letter, not {capacity}")
        self.capacity = capacity
        self._letters: deque[L] = deque()
        self._owing: set[Mail[L]] = set()
        self._there = asyncio.Event()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many letters nobody has taken yet."""
        return len(self._letters)

    @property
    def unsettled(self) -> int:
        """How many were taken and are owed."""
        return len(self._owing)

    @property
    def letters(self) -> int:
        """How many there are in it: not taken, or taken and owed."""
        return len(self._letters) + len(self._owing)

    async def offer(self, letter: L) -> Taken | Full | Closed:
        """Give it a letter, if it has room."""
        return self.put(letter)

    def put(self, letter: L) -> Taken | Full | Closed:
        """`offer`, where nobody can await."""
        if self._closed:
            return Closed()
        if self.letters >= self.capacity:
            return Full()
        self._letters.append(letter)
        _holding.add(self)
        self._there.set()
        return Taken()

    def close(self) -> None:
        """Take nothing more. What is in it is still handed out."""
        self._closed = True
        self._there.set()

    def drop(self) -> int:
        """Let go of every letter in it, taken or not, for whoever has them elsewhere too; how many these were."""
        dropped = self.letters
        self._letters.clear()
        self._owing.clear()
        _holding.discard(self)
        return dropped

    def check(self) -> None:
        """Raises: Unsettled where a consumer took a letter and left it."""
        if self._owing:
            raise Unsettled(len(self._owing))

    def __aiter__(self) -> AsyncIterator[Mail[L]]:
        return self._mails()

    async def _mails(self) -> AsyncIterator[Mail[L]]:
        """Letters as they come. A consumer that asks for the next one without settling the last is told so."""
        last: Mail[L] | None = None
        while True:
            if last is not None and not last.settled:
                raise Unsettled(1)
            while not self._letters:
                if self._closed:
                    return
                self._there.clear()
                await self._there.wait()
            last = Mail(self, self._letters.popleft())
            self._owing.add(last)
            yield last

    def discharged(self, mail: Mail[L]) -> None:
        """Told by a mail of this ring."""
        self._owing.discard(mail)
        if not self.letters:
            _holding.discard(self)
