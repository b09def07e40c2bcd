"""host.guards - what a commit goes by that is no turn: a sweep, a mark, a receipt in a box.

For: names of this node that such a commit must still find its own; nothing where the app has its store for itself.
Never: decides who owns what; stands in for the guard of a turn, which its lane sends.
Was wrong once: none of these had one. A node that was taken for dead swept on, over its successor's turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from onefold.node.owning import UNGUARDED, Guard
from onefold.terms.ids import ActorId

if TYPE_CHECKING:
    from onefold.fleet.standing import Standing


def of_all(standing: Standing | None, space: str) -> Guard:
    """Of whoever goes through a whole space. Raises: OwnedElsewhere for a node that owns nothing."""
    return UNGUARDED if standing is None else standing.of_all(space)


def of_slots(standing: Standing | None, slots: Iterable[int]) -> Guard:
    """Of a word about the actors in these slots. Raises: OwnedElsewhere."""
    return UNGUARDED if standing is None else standing.of_slots(slots)


def of_boxes(standing: Standing | None) -> Callable[[ActorId], Guard]:
    """Of a change in an actor's box, whose rows are in `main` wherever its turns are."""
    return _nobodys if standing is None else standing.of_box


def _nobodys(to: ActorId) -> Guard:
    return UNGUARDED
