"""host.reflex_alerts - who is told, and once, that something of a reflex waits for a person.

For: an actor for each parked fact or task, whose one event owes the alert: kept, retried and parked like any other.
Never: sends; tells twice of one parking, also after a kill between the parking and the telling.
Was wrong once: told by the process that saw it park. It died in between, and nobody ever looked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from onefold.host.catalog import ALERTS
from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.kernel.alert import PORT, Alert
from onefold.kernel.module import Module
from onefold.kernel.words import Decision, Owed
from onefold.reflex.words import IntakeRow, TaskRow
from onefold.terms.codec import digest
from onefold.terms.errors import OnefoldError
from onefold.terms.ids import ActorId, Principal, door_id
from onefold.terms.instant import up

log = logging.getLogger("onefold.reflexes")


@dataclass(frozen=True)
class Stopped:
    """A fact or a task was parked. since: ms."""

    item: str
    kind: str
    program: str
    cause: str
    since: int
    principal: Principal = None


@dataclass(frozen=True)
class Told:
    item: str


def alerting(people: tuple[str, ...]) -> Module[int, Stopped, Told, None, int]:
    """The module. people: whom its alerts name."""

    def decide(count: int, event: Stopped, now: datetime) -> Decision[Told, None]:
        alert = Alert(
            event.item, event.kind, event.program, event.item, event.cause, event.since, people, event.principal
        )
        return Decision(
            facts=[Told(event.item)], reply=None, owed=[Owed(PORT, key=f"alert/{_once(event)}", body=alert)]
        )

    return Module(
        ALERTS,
        initial=0,
        key=lambda event: event.item,
        decide=decide,
        evolve=_evolve,
        view=_view,
        event_id=_once,
    )


def _evolve(count: int, fact: Told) -> int:
    return count + 1


def _view(count: int) -> int:
    return count


def _once(event: Stopped) -> str:
    return f"{event.item}@{event.since}"


def stopped(row: IntakeRow | TaskRow) -> Stopped:
    """What there is to tell of a parked fact or task."""
    if isinstance(row, IntakeRow):
        return Stopped(row.id, "fact", row.subject, row.note or "", up(row.at), row.principal)
    since = 0 if row.ended_at is None else up(row.ended_at)
    return Stopped(row.id, "task", row.reflex, row.error or "", since, row.principal)


class ReflexAlerts:
    """Tells of what is parked, where somebody is to be told."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: set[str] = set()

    async def tell(self, parked: Iterable[IntakeRow | TaskRow]) -> None:
        """Tell of those that were not told of. A repeat after a restart counts once."""
        events = {_once(event): event for event in map(stopped, parked)}
        self._known &= events.keys()
        for id, event in events.items():
            if id not in self._known:
                try:
                    await self._fold(event)
                except OnefoldError as fault:
                    log.warning("nobody could be told of %s: %s", event.item, fault)
                else:
                    self._known.add(id)

    async def _fold(self, event: Stopped) -> None:
        module: Module[Any, Any, Any, Any, Any] = self._core.node.kind(ALERTS).module
        at = ActorId(ALERTS, event.principal, event.item)
        told = digest(module.codecs.event.slim(event))
        await self._core.fold(at, door_id(_once(event)), told, event, partial(decided, module.decide, event))
