"""api.rooms - typed state that takes turns, as the page of the public API prints it."""

from __future__ import annotations

from dataclasses import dataclass

from onefold import Cell
from onefold.cell import cost


@dataclass(frozen=True)
class Entered:
    who: str


@dataclass(frozen=True)
class Full:
    at_most: int


class Room(Cell):  # fields with defaults are the shape
    visits: int = 0
    occupants: list[str] = []  # noqa: RUF012 - a shape's defaults are values

    def greet(self, name: str) -> str:
        self.visits += 1
        return f"hello {name}"

    @cost(5)
    def enter(self, who: str, at_most: int = 8) -> Entered | Full:
        if len(self.occupants) >= at_most:
            return Full(at_most)
        self.occupants.append(who)
        return Entered(who)


class Memory(Cell, tool=True, on_demand=True):  # offered over MCP; the first turn creates it
    notes: dict[str, str] = {}  # noqa: RUF012 - as above

    def recall(self, topic: str) -> str | None:
        return self.notes.get(topic)

    def remember(self, topic: str, text: str) -> None:
        self.notes[topic] = text
