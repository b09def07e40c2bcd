"""node.told - what passes between a node and its lanes, and what an alarm decides.

For: a lane's news with the name of its space; a future that nobody waits for; the wake of an actor, where it is due.
Never: keeps anything.
Was wrong once: the name of the space looked up for each alarm. A commit of 512 looked it up 512 times.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from onefold.kernel.fold import Folded, Outstanding
from onefold.kernel.module import Module
from onefold.kernel.words import NOTHING, Decision
from onefold.node.resident import Resident
from onefold.terms.instant import up


class Hears(Protocol):
    """What a node hears of its lanes."""

    def folded(self, resident: Resident, folded: Folded) -> None: ...
    def dropped(self, resident: Resident) -> None: ...
    def owes(self, resident: Resident, item: Outstanding) -> None: ...
    def armed(self, space: str, at: int) -> None: ...


class _Unheard:
    """Stands for a future that nobody waits for."""

    def done(self) -> bool:
        return True


UNHEARD: Any = _Unheard()


class Told:
    """One lane's news, with the name of its space."""

    __slots__ = ("_armed", "_space", "dropped", "folded", "owes")

    def __init__(self, node: Hears, space: str) -> None:
        self._armed: Callable[[str, int], None] = node.armed
        self._space = space
        self.folded = node.folded
        self.dropped = node.dropped
        self.owes = node.owes

    def armed(self, at: int) -> None:
        self._armed(self._space, at)


def taken_back(decide: object) -> None:
    """Nothing of what it decided came to be. A decision that keeps whether it was asked begins anew."""
    forget = getattr(decide, "taken_back", None)
    if forget is not None:
        forget()


def on_ring(
    module: Module[Any, Any, Any, Any, Any], given_up: int | None, state: Any, now: datetime
) -> Decision[Any, Any]:
    """`given_up`: a wake (ms) that is parked: the row rings for what is owed beside it, and it is not tried."""
    if module.wake is None or module.on_alarm is None:
        return NOTHING
    wake = module.wake(state)
    if wake is None or wake > now or up(wake) == given_up:
        return NOTHING
    return module.on_alarm(state, now)
