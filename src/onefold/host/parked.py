"""host.parked - what waits for a person: listed with its cause, retried, or dropped.

For: owed rows and alarms that were given up on, runs that stopped by name, and the way out of each.
Never: drops by itself; retries for ever in silence.
Was wrong once: parked rows with no verb. People mended them with SQL, and the actor never heard of it.

An id is what, where and which: "owed.main.17", "alarm.main.3", or a run's id.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onefold.actuators.tables import RUN
from onefold.host.caller import Caller
from onefold.host.core import MAIN, Core, left_as_it_was, take_up
from onefold.host.driver import soonest
from onefold.host.sender import hears
from onefold.kernel.tables import ACTOR, ALARM, OWED
from onefold.kernel.words import Dropped
from onefold.node.resident import Resident
from onefold.node.waking import row_of
from onefold.store.contract import Query, Row
from onefold.terms.errors import NotFound, WaitsForCode
from onefold.terms.ids import ActorId, principal_of
from onefold.terms.instant import moment

LISTED = 1_000  # of each kind and space in one list
_PARKED = ("parked", "uncertain")
_NUMBER = re.compile(r"[0-9]{1,18}")  # not isdigit, which takes a raised two, and not what no row can have


@dataclass(frozen=True, slots=True)
class ParkedItem:
    """One thing that waits for a person. `cause`: its last error."""

    id: str
    kind: str  # owed, uncertain, alarm, run
    program: str
    cause: str
    since: datetime


class ParkedVerbs:
    """Verbs on what is parked. `_core` is the opened application."""

    _core: Core
    run_retry: Callable[..., Any]
    run_cancel: Callable[..., Any]

    async def parked_list(self, *, caller: Caller) -> list[ParkedItem]:
        """Everything parked that the caller may see, oldest first."""
        found: list[ParkedItem] = []
        for place in self._core.places:
            owed = await place.look(Query(OWED, where=(("state", "in", _PARKED),), order=("n",), limit=LISTED))
            asleep = Query(ALARM, where=(("kind", "in", tuple(place.kinds)), ("at", "null", True)), limit=LISTED)
            alarms = await place.look(asleep)
            names = await self._names([*(row[1] for row in owed), *(row[0] for row in alarms)], place)
            for row in owed:
                at = names.get(row[1])
                if at is not None and caller.sees(at.principal):
                    kind = "uncertain" if row[8] == "uncertain" else "owed"
                    cause = f"{row[4]}: {row[9]}"
                    found.append(ParkedItem(f"owed.{place.name}.{row[0]}", kind, at.kind, cause, moment(_int(row[10]))))
            for row in alarms:
                at = names.get(row[0])
                if at is not None and caller.sees(at.principal):
                    try:
                        resident = await self._core.node.activate(at)
                    except WaitsForCode:
                        continue  # it is told of below
                    since = moment(resident.base.at)
                    found.append(ParkedItem(f"alarm.{place.name}.{row[0]}", "alarm", at.kind, str(row[5]), since))
            found.extend(await self._for_code(place, caller))
            if place.name in self._core.catalog.actuators:
                found.extend(await self._parked_runs(place, caller))
        return sorted(found, key=lambda item: (item.since, item.id))

    async def parked_retry(self, id: str, *, caller: Caller) -> None:
        """Try once more, with a fresh count. Raises: NotFound."""
        caller.need("operate", "retrying what is parked")
        if id.startswith("run_"):
            await self.run_retry(id, caller=caller)
            return
        what, at, resident, number = await self._which(id, caller)
        if what == "alarm":
            await self._core.node.rearm(at)
            return
        if what == "code":
            return  # it could be read
        await self._core.once_more(at, resident.owed[number])
        self._core.node.send_due(await self._core.node.activate(at))

    async def parked_drop(self, id: str, *, reason: str, caller: Caller) -> None:
        """Give up on it. What was owed comes back to its actor as an answer, if it hears drops. Raises: NotFound."""
        caller.need("operate", "dropping what is parked")
        if id.startswith("run_"):
            await self.run_cancel(id, reason, caller=caller)
            return
        what, at, resident, number = await self._which(id, caller)
        if what == "alarm":
            await self._core.node.disarm(at)
            return
        if what == "code":
            raise NotFound("parked item", id)  # it could be read: nothing waits any more
        row = resident.owed[number]
        if not take_up(row):
            raise NotFound("parked item", id)
        with left_as_it_was(row):
            event, decide = hears(resident.module, row, Dropped(reason))
            await self._core.node.fold(at, event, b"", decide, removes=number, replies=False)

    # --- inside -----------------------------------------------------------------------------

    async def _for_code(self, place: Any, caller: Caller) -> list[ParkedItem]:
        """Actors that wait for code which is not here: for a fact of theirs, or for their whole module."""
        items: list[ParkedItem] = []
        for at, (fault, since) in list(self._core.node.waits.known.items()):
            if at.kind in place.kinds and caller.sees(at.principal):
                (row,) = await place.look(row_of(at)) or [(0,)]
                items.append(ParkedItem(f"code.{place.name}.{row[0]}", "code", at.kind, str(fault), moment(since)))
        kind = ""
        while "operate" in caller.rights and place.name == MAIN:
            rows = await place.look(Query(ALARM, where=(("kind", ">", kind),), order=("kind",), limit=1))
            if not rows:
                break
            kind = str(rows[0][1])
            if kind not in place.kinds:
                cause = f"no part of this app is the module {kind!r}; its actors wait. Start the version that has it."
                since = min(
                    [_int(row[3]) for row in await place.look(soonest((kind,)))], default=self._core.clock.now()
                )
                items.append(ParkedItem(f"code.{place.name}.{kind}", "code", kind, cause, moment(since)))
        return items

    async def _parked_runs(self, place: Any, caller: Caller) -> list[ParkedItem]:
        rows = await place.look(Query(RUN, where=(("status", "=", "parked"),), order=("actor",), limit=LISTED))
        items: list[ParkedItem] = []
        for row in rows:
            principal = principal_of(str(row[RUN.at["principal"]]))
            if not caller.sees(principal):
                continue
            run = str(row[RUN.at["run"]])
            state = await self._core.node.read(ActorId(place.name, principal, run))
            cause = "" if state.trouble is None else state.trouble.message
            items.append(ParkedItem(run, "run", place.name, cause, moment(state.updated_at)))
        return items

    async def _which(self, id: str, caller: Caller) -> tuple[str, ActorId, Resident, int]:
        """The parked thing behind an id. Raises: NotFound, also for what is not parked any more."""
        what, _, rest = id.partition(".")
        name, _, number = rest.rpartition(".")
        place = next((p for p in self._core.places if p.name == name), None)
        if what not in ("owed", "alarm", "code") or place is None or not _NUMBER.fullmatch(number):
            raise NotFound("parked item", id)
        n = int(number)
        actor = n
        if what == "owed":
            rows = await place.look(Query(OWED, on=("n",), keys=[(n,)]))
            if not rows or rows[0][8] not in _PARKED:
                raise NotFound("parked item", id)
            actor = _int(rows[0][1])
        at = (await self._names([actor], place)).get(actor)
        if at is None or not caller.sees(at.principal):
            raise NotFound("parked item", id)
        resident = await self._core.node.activate(at)
        row = resident.owed.get(n) if what == "owed" else None
        if (what == "owed" and (row is None or row.next_at is not None)) or (
            what == "alarm" and not resident.alarm.parked
        ):
            raise NotFound("parked item", id)
        return what, at, resident, n

    async def _names(self, numbers: list[Any], place: Any) -> dict[Any, ActorId]:
        if not numbers:
            return {}
        keys: list[Row] = [(n,) for n in dict.fromkeys(numbers)]
        rows = await place.look(Query(ACTOR, on=("n",), keys=keys))
        return {row[0]: ActorId(str(row[1]), principal_of(str(row[2])), str(row[3])) for row in rows}


def _int(cell: object) -> int:
    assert isinstance(cell, int)
    return cell
