"""node.owning - what a node asks of a fleet: whether an actor is its own, and what its commits must find unchanged.

For: a hold on a name and its epoch, which every resident carries; the guard that goes with every commit.
Never: decides who owns what (fleet does); compares times for a commit.
Was wrong once: a look before the commit. Between the two another node seized the actor, and both wrote. And a guard in
the commits of turns alone: a prune, a sweep and a letter's receipt went on after the node had lost the actor.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from onefold.store.contract import Answer, Body, Last, Query, Refusal, Row, Space, Still, Verb
from onefold.terms.errors import OwnedElsewhere
from onefold.terms.ids import ActorId

T = TypeVar("T")


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

    def still(self, holds: Collection[Hold]) -> Still:
        """What goes with the writes of a commit, so that nobody has taken these names before it is through."""

    def question(self, holds: Collection[Hold]) -> Query:
        """What a commit asks that met another's name: whose they are now."""

    def lost(self, holds: Collection[Hold], rows: Sequence[Row]) -> Mapping[Hold, OwnedElsewhere]:
        """Those of the holds that these rows say are another's."""


class Guard:
    """What a commit that is no turn goes by: names that are still this process's when it is through. Without any, it is
    the only one that can have the file.
    """

    __slots__ = ("_holds", "_owning")

    def __init__(self, owning: Owning | None = None, holds: Iterable[Hold] = ()) -> None:
        self._owning = owning
        self._holds = tuple(dict.fromkeys(holds))

    def around(self, body: Body[T]) -> Body[T]:
        """The same, refused with OwnedElsewhere where one of the names is another's by the time of its commit."""
        owning, holds = self._owning, self._holds
        if owning is None or not holds:
            return body
        told: list[Still] = []  # what was sent along: it was met where the body runs again

        def run() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Any]]:
            if told:
                (rows,) = yield (owning.question(holds),)
                for lost in owning.lost(holds, rows).values():
                    raise Refusal(lost)
            last = yield from body()
            if not last.writes:
                return last
            told.append(owning.still(holds))
            return Last((told[-1], *last.writes), last.value)

        return run


UNGUARDED = Guard()
"""Of what belongs to nobody, or of a file that no other process can have."""


def of_actors(owning: Owning | None, actors: Iterable[ActorId]) -> Guard:
    """Of a commit in the space where these actors' turns are. Raises: OwnedElsewhere."""
    holds = [] if owning is None else [owning.hold(at) for at in actors]
    return Guard(owning, [hold for hold in holds if hold.fenced])
