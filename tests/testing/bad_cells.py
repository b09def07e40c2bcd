"""Cells with one fault each, and the law that is to find it."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from typing import ClassVar

from pydantic import BaseModel, Field

from onefold import Cell

ticks = itertools.count()


class Note(BaseModel):
    text: str = ""
    mark: int = Field(default=0, exclude=True)


class Sound(Cell):
    """A cell without a fault. It refuses by raising."""

    lines: list[str] = []  # noqa: RUF012 - a draft never shares it
    price: Decimal = Decimal(1)

    def write(self, line: str) -> int:
        if not line:
            raise ValueError("a line has something in it")
        self.lines.append(line)
        return len(self.lines)

    def latest(self) -> str | None:
        return self.lines[-1] if self.lines else None

    def at(self) -> str:
        return self.now.isoformat()

    def never_called(self) -> None: ...


class Numbered(Sound):
    """Counts what is nowhere in the record."""

    def write(self, line: str) -> int:
        self.lines.append(f"{next(ticks)} {line}")
        return len(self.lines)


class Chancy(Sound):
    """Answers by chance."""

    def latest(self) -> str | None:
        return str(random.random())


class Remembering(Sound):
    """Remembers on its class what another turn asks for."""

    last: ClassVar[list[str]] = []

    def write(self, line: str) -> int:
        self.last[:] = [line]
        return 0

    def latest(self) -> str | None:
        return self.last[0] if self.last else None


class Missing(Sound):
    """Asks for what a cell without lines has not."""

    def latest(self) -> str | None:
        return max(self.lines or [None], key=lambda line: line.upper())  # type: ignore[list-item, union-attr] # that is the case


class Undeclaring(Sound):
    """Keeps what its shape does not have."""

    def write(self, line: str) -> int:
        self.count = 1
        return 1


class Misanswering(Sound):
    """Gives something else than it says."""

    def write(self, line: str) -> int:
        return line  # type: ignore[return-value] # that is the case


class Misfielding(Sound):
    """Leaves a field that is not of its type."""

    def write(self, line: str) -> int:
        self.lines = line  # type: ignore[assignment] # that is the case
        return 1


class Hiding(Sound):
    """A field that is written with less than it holds."""

    note: Note = Note()

    def write(self, line: str) -> int:
        self.note = Note(text=line, mark=1)
        return 1


class Loose(Sound):
    """Gives more than what comes back."""

    def noted(self) -> Note:
        return Note(text="a", mark=1)


BAD: list[tuple[str, type[Cell]]] = [
    ("purity", Numbered),
    ("purity", Chancy),
    ("replay", Remembering),
    ("totality", Missing),
    ("totality", Undeclaring),
    ("totality", Misanswering),
    ("totality", Misfielding),
    ("round trips", Hiding),
    ("round trips", Loose),
]
