"""node.brought - what brought a turn: the row that goes with its commit, and what must have been folded before it.

For: letters of one sender that are handed over together: each is decided on top of the one before it, or not at all.
Never: waits; knows what a letter is.
Was wrong once: each letter handed over when the one before it was committed. A thousand of them were a thousand
commits, one after the other, where sixty-four other callers shared one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from onefold.kernel.words import Decision
from onefold.store.contract import Row, Table
from onefold.terms.errors import OnefoldError

if TYPE_CHECKING:
    from onefold.node.resident import Resident, Turn

Decide = Callable[[Any, datetime], Decision[Any, Any]]


class Behind(OnefoldError):
    """Stays inside the host: what had to be folded before this was not, so this was not decided, and nothing is kept."""

    def __init__(self) -> None:
        super().__init__("what goes before it was not folded")


class Brought:
    """`row`: where it lies and its key, taken away by the commit of its turn; None for a row of another file.

    after: whatever must be folded before it; the actor is the same. turn: as it was last handed to a lane.
    """

    __slots__ = ("after", "row", "turn")

    def __init__(self, row: tuple[Table, Row] | None, after: Brought | None = None) -> None:
        self.row = row
        self.after = after
        self.turn: Turn | None = None

    def handed(self, turn: Turn, decide: Decide | None) -> Decide | None:
        """Its turn, each time it is handed to a lane; what decides it there."""
        self.turn = turn
        after = self.after
        if after is None or decide is None:
            return decide

        def on_top(state: Any, now: datetime) -> Decision[Any, Any]:
            """Raises: Behind."""
            if not after.is_under(turn.resident):
                raise Behind
            return decide(state, now)

        return on_top

    def is_under(self, resident: Resident) -> bool:
        """Whether it is committed, or folded on the same head: what is decided there next stands or falls with it."""
        turn = self.turn
        if turn is None:
            return False
        told = turn.future
        if told.done():
            return not told.cancelled() and told.exception() is None
        known = turn.folded is not None or turn.first is not None or turn.stored is not None
        return known and turn.fault is None and turn.resident is resident
