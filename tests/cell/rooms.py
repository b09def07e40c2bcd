"""Shapes that the tests of cells stand on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from onefold import Cell
from onefold.cell import Handle, cost


@dataclass(frozen=True)
class Entered:
    who: str


@dataclass(frozen=True)
class Full:
    at_most: int


@dataclass
class Seat:
    """Something of the host that no program may touch."""

    number: int


class Unsayable(Exception):
    """An exception whose own words fail."""

    def __str__(self) -> str:
        return self.nothing  # type: ignore[attr-defined,no-any-return] # that is the case


class Room(Cell):
    """A room that counts who was in it."""

    visits: int = 0
    occupants: list[str] = []  # noqa: RUF012 - a draft never shares it
    price: Decimal = Decimal("1.50")

    def greet(self, name: str) -> str:
        """Say hello."""
        self.visits += 1
        return f"hello {name}"

    @cost(5)
    def enter(self, who: str, at_most: int = 8) -> Entered | Full:
        if len(self.occupants) >= at_most:
            return Full(at_most)
        self.occupants.append(who)
        return Entered(who)

    def spoil(self) -> None:
        self.occupants.append("nobody")
        self.visits = 99
        raise RuntimeError("the room is spoilt")

    def wrong(self) -> None:
        self.visits = "many"  # type: ignore[assignment] # that is the case

    def when(self) -> datetime:
        return self.now

    def seat(self, number: int) -> Handle[Seat]:
        return Handle(Seat(number))

    def take(self, seat: Handle[Seat]) -> int:
        return seat.spend().number

    def look(self, seat: Handle[Seat]) -> int:
        return seat.value.number


class Mumbler(Cell):
    words: int = 0

    def mumble(self) -> None:
        self.words += 1
        raise Unsayable


class Memory(Cell, tool=True, on_demand=True):
    notes: dict[str, str] = {}  # noqa: RUF012 - as above

    def recall(self, topic: str) -> str | None:
        return self.notes.get(topic)

    def remember(self, topic: str, text: str) -> None:
        self.notes[topic] = text
