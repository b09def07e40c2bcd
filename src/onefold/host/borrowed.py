"""host.borrowed - a cell in a program's hands without `await`: the twin of host.borrow.

For: `with app.open(Room, "room-7") as room: room.turn(Room.greet)("guest")`.
Never: behaves otherwise than the first set; a test holds the two equal, argument by argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from onefold.cell.shape import Cell
from onefold.cell.words import Absent, Evicted, Resident, Spawned, Turn
from onefold.fleet.mailbox import Posted
from onefold.host import borrow
from onefold.terms.errors import NotOwner

C = TypeVar("C", bound=Cell)
P = ParamSpec("P")
R = TypeVar("R")
Wait = Callable[[Any], Any]
"""Runs one coroutine to its end, in the caller's thread."""


class Borrow(Generic[C]):
    """A named cell; see `App.cell`."""

    def __init__(self, wait: Wait, cell: borrow.Borrow[C]) -> None:
        self._wait = wait
        self._cell = cell

    @property
    def id(self) -> str:
        return self._cell.id

    def __repr__(self) -> str:
        return repr(self._cell)

    def spawn(self) -> Spawned | Resident:
        """Let it exist; both answers are fine."""
        told: Spawned | Resident = self._wait(self._cell.spawn())
        return told

    def evict(self) -> Evicted | Absent:
        """Let it leave memory. What it owns is kept."""
        told: Evicted | Absent = self._wait(self._cell.evict())
        return told

    def retire(self) -> None:
        """Let it exist no longer. Raises: NotFound."""
        self._wait(self._cell.retire())

    def read(self) -> C:
        """The committed record, closed to writes. Raises: NotFound."""
        record: C = self._wait(self._cell.read())
        return record

    def get(self, field: str) -> Any:
        """One field's value, UNSET where nobody has set it. Raises: NotFound, Undeclared."""
        return self._wait(self._cell.get(field))

    def turn(self, method: Callable[Concatenate[C, P], R], *, key: str | None = None) -> Callable[P, R]:
        """One method as a turn: `lobby.turn(Room.greet)("guest")`. Raises: NotFound, BadArguments, TurnFailed."""
        asked = self._cell.turn(method, key=key)

        def call(*args: P.args, **words: P.kwargs) -> R:
            value: R = self._wait(asked(*args, **words))
            return value

        return call

    def run(self, source: str, *, key: str | None = None) -> Turn:
        """A program as one turn: all of it or nothing. Raises: NotFound, TurnFailed and its cases, OutOfTime."""
        turn: Turn = self._wait(self._cell.run(source, key=key))
        return turn

    def post(self, source: str, *, key: str) -> Posted:
        """A program into the cell's box: it counts once. Raises: ParseFailed, UnknownCall, KeyConflict, Busy."""
        posted: Posted = self._wait(self._cell.post(source, key=key))
        return posted

    def capture(self) -> Capturing[C]:
        """`with cell.capture() as draft:` one commit where the block ends, nothing on an exception."""
        return Capturing(self._wait, self._cell.capture())

    if not TYPE_CHECKING:

        def hibernate(self) -> None:
            raise NotOwner(repr(self._cell))


class Custody(Borrow[C]):
    """A cell that is this block's alone; see `App.open`."""

    _cell: borrow.Custody[C]

    def __init__(self, wait: Wait, cell: borrow.Custody[C]) -> None:
        super().__init__(wait, cell)

    def hibernate(self) -> None:
        """Let go of it before the block ends: it leaves memory, and this custody is over."""
        self._wait(self._cell.hibernate())

    def __enter__(self) -> Custody[C]:
        self._wait(self._cell.__aenter__())
        return self

    def __exit__(self, *fault: object) -> None:
        self._wait(self._cell.__aexit__(*fault))


class Capturing(Generic[C]):
    """What `capture()` gives: to be opened by `with`."""

    def __init__(self, wait: Wait, capturing: borrow.Capturing[C]) -> None:
        self._wait = wait
        self._capturing = capturing

    def __enter__(self) -> C:
        draft: C = self._wait(self._capturing.__aenter__())
        return draft

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._wait(self._capturing.__aexit__(kind, *rest))
