"""node.owning - what a node asks of a fleet: whether an actor is its own, and what its commits must find unchanged.

For: a hold on a name and its epoch, which every resident carries; the question that goes with a commit.
Never: decides who owns what (fleet does); compares times for a commit.
Was wrong once: a look before the commit. Between the two another node seized the actor, and both wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from onefold.store.contract import Query, Row, Space
from onefold.terms.errors import OwnedElsewhere
from onefold.terms.ids import ActorId


class Hold:
    """A name that this process owns under an epoch.

    leaving: it is being handed over: nothing new is taken, what is on its way finishes. over: it is another's now.
    fenced: whether commits must ask for it; not where only one process can have the file.
    """

    __slots__ = ("epoch", "fenced", "leaving", "name", "over")

    def __init__(self, name: str, epoch: int, *, fenced: bool = True) -> None:
        self.name = name
        self.epoch = epoch
        self.fenced = fenced
        self.leaving = False
        self.over = False

    def admit(self, event: str | None) -> None:
        """Raises: OwnedElsewhere, while it is handed over, for what comes from outside."""
        if self.leaving and event is not None and event.startswith(("d/", "m/")):
            raise OwnedElsewhere(self.name, None, self.epoch, self.epoch)

    def __repr__(self) -> str:
        return f"<hold on {self.name} of epoch {self.epoch}{', over' if self.over else ''}>"


class Owning(Protocol):
    """A node's standing in its fleet. Called on the loop's thread."""

    slots: int

    def hold(self, at: ActorId) -> Hold:
        """What this process has this actor by. Raises: OwnedElsewhere."""

    def valid(self, hold: Hold) -> bool:
        """Whether it is held now, by the epoch and by the time that is left of the lease: what a read and a send ask."""

    def abroad(self, space: str) -> Space | None:
        """A space whose file is another process's, to be looked at; None for one that is opened here."""

    def question(self, holds: Collection[Hold]) -> Query:
        """What a commit asks first, so that nobody takes these names before it is through."""

    def lost(self, holds: Collection[Hold], rows: Sequence[Row]) -> Mapping[Hold, OwnedElsewhere]:
        """Those of the holds that these rows say are another's."""
