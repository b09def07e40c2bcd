"""host.parked - what waits for a person: listed with its cause, retried, or dropped.

For: owed rows and alarms that were given up on, runs that stopped by name, and the way out of each.
Never: drops by itself; retries for ever in silence.
Was wrong once: parked rows with no verb. People mended them with SQL, and the actor never heard of it.

An id is what, where and which: "owed.main.17", "alarm.main.3", or a run's id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from onefold.actuators.tables import RUN
from onefold.host.caller import Caller
from onefold.host.core import MAIN, Core, left_as_it_was, take_up
from onefold.host.driver import soonest
from onefold.host.parking import LETTER, WAYS, of_cell, of_reflex
from onefold.host.parking import ParkedDetail as ParkedDetail
from onefold.host.parking import ParkedItem as ParkedItem
from onefold.host.reflexing import Reflexing
from onefold.host.sender import hears
from onefold.kernel.alarm import LIMIT
from onefold.kernel.alert import KINDS, NOTICES, falls, stopped
from onefold.kernel.blob import pointed
from onefold.kernel.tables import ACTOR, ALARM, OWED
from onefold.kernel.words import Dropped
from onefold.node.resident import Resident
from onefold.node.waking import row_of
from onefold.reflex.parking import is_one
from onefold.reflex.words import IntakeRow
from onefold.store.contract import Query, Row
from onefold.terms.codec import parse
from onefold.terms.errors import NotFound, WaitsForCode
from onefold.terms.ids import ActorId, principal_of
from onefold.terms.instant import Instant, moment, text

if TYPE_CHECKING:
    from onefold.fleet.mailbox import GivenUp

LISTED = 1_000  # of each kind and space in one list
_NUMBER = re.compile(r"[0-9]{1,18}")  # not isdigit, which takes a raised two, and not what no row can have


_STOPPED = Query(OWED, where=(("state", "in", tuple(KINDS)),), order=("n",), limit=LISTED)
_FALLING = Query(
    OWED,
    where=(("port", "in", NOTICES), ("state", "in", ("ready", "sending")), ("error", "null", False)),
    order=("n",),
    limit=LISTED,
)
_RUNS = Query(RUN, where=(("status", "=", "parked"),), order=("actor",), limit=LISTED)


def _asleep(kinds: Sequence[str]) -> Query:
    return Query(
        ALARM,
        where=(("kind", "in", tuple(kinds)), ("at", "null", True), ("error", "null", False)),
        order=("actor",),
        limit=LISTED,
    )


def _beside(kinds: Sequence[str]) -> Query:
    """Wakes given up whose row rings for something owed. Goes through the table; who asks is a person."""
    where = (("kind", "in", tuple(kinds)), ("tries", ">=", LIMIT), ("at", "null", False), ("error", "null", False))
    return Query(ALARM, where=where, order=("actor",), limit=LISTED)  # type: ignore[arg-type]


def _numbered(id: str) -> tuple[str, str, int | None]:
    """What an id names: the kind of thing, its space, its number; None for what is no number."""
    what, _, rest = id.partition(".")
    name, _, number = rest.rpartition(".")
    return what, name, int(number) if _NUMBER.fullmatch(number) else None


class ParkedVerbs:
    """Verbs on what is parked. `_core` is the opened application."""

    _core: Core
    _reflexing: Reflexing
    cells: Any  # the verbs on cells, loaded only in an app that has some
    run_retry: Callable[..., Any]
    run_cancel: Callable[..., Any]

    async def parked_list(self, *, caller: Caller) -> list[ParkedItem]:
        """Everything parked that the caller may see, oldest first."""
        found: list[ParkedItem] = []
        for place in self._core.places:
            found.extend(await self._parked_in(place, caller))
        found.extend(of_reflex(row) for row in await self._reflexing.parked(caller.whose))
        found.extend(of_cell(row) for row in await self._letters(caller))
        return sorted(found, key=lambda item: (item.since, item.id))

    async def parked_show(self, id: str, *, caller: Caller) -> ParkedDetail:
        """One item with all that is known of it. Raises: NotFound."""
        if is_one(id):
            return await self._shown_of_reflex(id, caller)
        if id.startswith(LETTER):
            return await self._shown_of_cell(id, caller)
        name, number = _numbered(id)[1:]
        for place in self._core.places:
            if id.startswith("run_") or place.name == name:
                items = await self._parked_in(place, caller, id=id, only=number)
                item = next((each for each in items if each.id == id), None)
                if item is not None:
                    break
        else:
            raise NotFound("parked item", id)
        told = ParkedDetail(item.id, item.kind, item.program, item.cause, item.since, *WAYS[item.kind])
        if item.kind in ("run", "code"):
            return told
        what, at, resident, n = await self._which(id, caller)
        told = replace(told, key=at.key, principal=at.principal)
        if what == "alarm":
            return replace(told, tries=resident.alarm.tries)
        row = resident.owed[n]
        aside = pointed(row.body)
        body = row.body if aside is None else await self._core.fetch(at, aside)
        due = None if row.next_at is None else moment(row.next_at)
        return replace(told, tries=row.tries, port=row.port, owed=row.name, body=parse(body), next_at=due)

    async def parked_count(self) -> int:
        """How many items there are, of every principal; at most LISTED of each kind in each space. Wakes nobody."""
        count = len(self._core.node.waits.known)
        for place in self._core.places:
            for query in (_STOPPED, _FALLING, _asleep(place.kinds), _beside(place.kinds)):
                count += len(await place.look(query))
            if place.name in self._core.catalog.actuators:
                count += len(await place.look(_RUNS))
            elif place.name == MAIN:
                count += len(await self._strangers(place))
        if self._core.catalog.cells:
            count += len(await self._core.postman.parked())
        return count + len(await self._reflexing.parked(None))

    async def parked_retry(self, id: str, *, caller: Caller) -> None:
        """Try once more, with a fresh count. Raises: NotFound."""
        caller.need("operate", "retrying what is parked")
        if id.startswith("run_"):
            await self.run_retry(id, caller=caller)
            return
        if is_one(id):
            await self._shown_of_reflex(id, caller)
            await self._reflexing.unpark(id)
            return
        if id.startswith(LETTER):
            await self._letter(id, "letter again", caller)
            return
        what, at, _, _ = await self._which(id, caller)
        if what != "code":  # else it could be read
            word = {"do": "retry", "id": id}
            await self._core.at_owner(at, word, partial(self._retry, at, word))

    async def parked_drop(self, id: str, *, reason: str, caller: Caller) -> None:
        """Give up on it. What was owed comes back to its actor as an answer, if it hears drops. Raises: NotFound."""
        caller.need("operate", "dropping what is parked")
        if id.startswith("run_"):
            await self.run_cancel(id, reason, caller=caller)
            return
        if is_one(id):
            await self._reflexing.drop(id, reason, caller.whose)
            return
        if id.startswith(LETTER):
            await self._letter(id, "letter gone", caller)
            return
        what, at, _, _ = await self._which(id, caller)
        if what == "code":
            raise NotFound("parked item", id)  # it could be read: nothing waits any more
        word = {"do": "drop", "id": id, "reason": reason}
        await self._core.at_owner(at, word, partial(self._drop, at, word))

    # --- inside -----------------------------------------------------------------------------

    async def _retry(self, at: ActorId, word: Mapping[str, Any]) -> None:
        """As `parked_retry`, of an actor of this process."""
        what, _, number = _numbered(word["id"])
        resident = await self._core.node.activate(at)
        if what == "alarm":
            _still(what, resident, number or 0, word["id"])
            await self._core.node.rearm(at)
            return
        row = resident.owed.get(number or 0)
        if row is None:
            raise NotFound("parked item", word["id"])
        await self._core.once_more(at, row)
        self._core.node.send_due(await self._core.node.activate(at))

    async def _drop(self, at: ActorId, word: Mapping[str, Any]) -> None:
        """As `parked_drop`, of an actor of this process."""
        what, resident, number = await self._parked_of(at, word["id"])
        if what == "alarm":
            await self._core.node.disarm(at)
            return
        row = resident.owed[number]
        if not take_up(row):
            raise NotFound("parked item", word["id"])
        with left_as_it_was(row):
            event, decide = hears(resident.module, row, Dropped(word["reason"]))
            await self._core.node.fold(at, event, b"", decide, removes=number, replies=False)

    async def _parked_of(self, at: ActorId, id: str) -> tuple[str, Resident, int]:
        """Raises: NotFound, OwnedElsewhere."""
        what, _, number = _numbered(id)
        resident = await self._core.node.activate(at)
        _still(what, resident, number or 0, id)
        return what, resident, number or 0

    async def _shown_of_reflex(self, id: str, caller: Caller) -> ParkedDetail:
        """A parked fact or task. Raises: NotFound."""
        row = next((row for row in await self._reflexing.parked(caller.whose) if row.id == id), None)
        if row is None:
            raise NotFound("parked item", id)
        item = of_reflex(row)
        told = ParkedDetail(item.id, item.kind, item.program, item.cause, item.since, *WAYS[item.kind])
        if isinstance(row, IntakeRow):
            return replace(told, principal=row.principal, body=row.body)
        return replace(told, principal=row.principal, key=row.unit, tries=row.attempt)

    async def _letters(self, caller: Caller) -> list[GivenUp]:
        """Letters that were given up on, of those that the caller may see."""
        if not self._core.catalog.cells:
            return []
        return [each for each in await self._core.postman.parked() if caller.sees(each.mail.to.principal)]

    async def _one_letter(self, id: str, caller: Caller) -> GivenUp:
        """A parked letter. Raises: NotFound."""
        found = next((each for each in await self._letters(caller) if of_cell(each).id == id), None)
        if found is None:
            raise NotFound("parked item", id)
        return found

    async def _shown_of_cell(self, id: str, caller: Caller) -> ParkedDetail:
        """A parked letter. Raises: NotFound."""
        mail = (found := await self._one_letter(id, caller)).mail
        item, to = of_cell(found), mail.to
        told = ParkedDetail(item.id, item.kind, item.program, item.cause, item.since, *WAYS[item.kind])
        return replace(told, key=to.key, principal=to.principal, tries=mail.tries, body=parse(mail.body))

    async def _letter(self, id: str, act: str, caller: Caller) -> None:
        """What a person wants done with a parked letter, by the owner of its box. Raises: NotFound, OwnedElsewhere."""
        mail = (await self._one_letter(id, caller)).mail
        word = {"do": act, "n": mail.n}
        await self._core.at_owner(mail.to, word, partial(self._boxed, mail.to, word))

    async def _boxed(self, to: ActorId, word: Mapping[str, Any]) -> None:
        """The same, in a box of this process."""
        postman = self._core.postman
        await (postman.drop if word["do"] == "letter gone" else postman.retry)(to, word["n"])

    async def _parked_in(
        self, place: Any, caller: Caller, *, id: str | None = None, only: int | None = None
    ) -> list[ParkedItem]:
        """What is parked in one space; with `id` and its number, of rows, alarms and runs that one alone."""
        items: list[ParkedItem] = []
        if id is None or id.startswith("owed."):
            items += await self._parked_rows(place, caller, only)
        if id is None or id.startswith("alarm."):
            items += await self._parked_alarms(place, caller, only)
        if id is None or id.startswith("code."):
            items += await self._for_code(place, caller)
        if place.name in self._core.catalog.actuators and (id is None or id.startswith("run_")):
            items += await self._parked_runs(place, caller, id)
        return items

    async def _seen(
        self, place: Any, query: Query, caller: Caller, only: int | None, *, by: str = "n"
    ) -> list[tuple[tuple[Any, ...], ActorId]]:
        """Rows of this query that the caller may see, each with its actor: the first LISTED of them, however many
        of others lie between. `by`: the number they are ordered by, and asked for by.
        """
        owner, place_of = query.table.at["actor"], query.table.at[by]
        found: list[tuple[tuple[Any, ...], ActorId]] = []
        after, more = 0, True
        while more and len(found) < LISTED:
            cursor: Any = (by, ">", after) if only is None else (by, "=", only)
            rows = await place.look(replace(query, where=(*query.where, cursor)))
            names = await self._names([row[owner] for row in rows], place)
            known = [(row, names[row[owner]]) for row in rows if row[owner] in names]
            found += [(row, who) for row, who in known if caller.sees(who.principal)]
            more = only is None and len(rows) == query.limit
            after = _int(rows[-1][place_of]) if rows else after
        return found[:LISTED]

    async def _parked_rows(self, place: Any, caller: Caller, only: int | None) -> list[ParkedItem]:
        """Rows that have stopped, and notices that do not get through."""
        seen = [await self._seen(place, query, caller, only) for query in (_STOPPED, _FALLING)]
        items: list[ParkedItem] = []
        for (n, _actor, _slot, _key, port, _body, tries, next_at, state, error, at), who in chain(*seen):
            kind, cause = KINDS.get(str(state), "notice"), f"{port}: {error}"
            if kind == "notice" and next_at is not None:
                cause = f"{cause} (tried {tries} times; the next at {text(Instant(_int(next_at)))})"
            items.append(ParkedItem(f"owed.{place.name}.{n}", kind, who.kind, cause, moment(_int(at))))
        return items

    async def _parked_alarms(self, place: Any, caller: Caller, only: int | None) -> list[ParkedItem]:
        """Wakes that were given up, also where the alarm rings for something that is owed beside them."""
        queries = (_asleep(place.kinds), _beside(place.kinds))
        seen = [await self._seen(place, query, caller, only, by="actor") for query in queries]
        items: list[ParkedItem] = []
        for row, at in chain(*seen):
            try:
                resident = await self._core.node.shown(at)
            except WaitsForCode:
                continue  # it is told of with those that wait for code
            since = moment(resident.base.at)
            items.append(ParkedItem(f"alarm.{place.name}.{row[0]}", "alarm", at.kind, str(row[5]), since))
        return items

    async def _for_code(self, place: Any, caller: Caller) -> list[ParkedItem]:
        """Actors that wait for code which is not here: for a fact of theirs, or for their whole module."""
        items: list[ParkedItem] = []
        for at, (fault, since) in list(self._core.node.waits.known.items()):
            if at.kind in place.kinds and caller.sees(at.principal):
                (row,) = await place.look(row_of(at)) or [(0,)]
                items.append(ParkedItem(f"code.{place.name}.{row[0]}", "code", at.kind, str(fault), moment(since)))
        if "operate" not in caller.rights or place.name != MAIN:
            return items
        for kind in await self._strangers(place):
            cause = f"no part of this app is the module {kind!r}; its actors wait. Start the version that has it."
            since = min([_int(row[3]) for row in await place.look(soonest((kind,)))], default=self._core.clock.now())
            items.append(ParkedItem(f"code.{place.name}.{kind}", "code", kind, cause, moment(since)))
        return items

    async def _strangers(self, place: Any) -> list[str]:
        """Kinds with an alarm in this space that no part of the app is."""
        found: list[str] = []
        kind = ""
        while rows := await place.look(Query(ALARM, where=(("kind", ">", kind),), order=("kind",), limit=1)):
            kind = str(rows[0][1])
            if kind not in place.kinds:
                found.append(kind)
        return found

    async def _parked_runs(self, place: Any, caller: Caller, run: str | None) -> list[ParkedItem]:
        """Runs that have stopped by name; of `run`, that one alone."""
        query = _RUNS if run is None else replace(_RUNS, where=(*_RUNS.where, ("run", "=", run)))
        items: list[ParkedItem] = []
        for _row, at in await self._seen(place, query, caller, None, by="actor"):
            state = await self._core.node.read(at)
            cause = "" if state.trouble is None else state.trouble.message
            items.append(ParkedItem(at.key, "run", place.name, cause, moment(state.updated_at)))
        return items

    async def _which(self, id: str, caller: Caller) -> tuple[str, ActorId, Resident, int]:
        """The parked thing behind an id, to be looked at. Raises: NotFound, also for what is not parked any more."""
        what, name, n = _numbered(id)
        place = next((p for p in self._core.places if p.name == name), None)
        if what not in ("owed", "alarm", "code") or place is None or n is None:
            raise NotFound("parked item", id)
        actor = n
        if what == "owed":
            rows = await place.look(Query(OWED, on=("n",), keys=[(n,)]))
            if not rows:
                raise NotFound("parked item", id)
            actor = _int(rows[0][1])
        at = (await self._names([actor], place)).get(actor)
        if at is None or not caller.sees(at.principal):
            raise NotFound("parked item", id)
        resident = await self._core.node.shown(at)
        _still(what, resident, n, id)
        return what, at, resident, n

    async def _names(self, numbers: list[Any], place: Any) -> dict[Any, ActorId]:
        if not numbers:
            return {}
        keys: list[Row] = [(n,) for n in dict.fromkeys(numbers)]
        rows = await place.look(Query(ACTOR, on=("n",), keys=keys))
        return {row[0]: ActorId(str(row[1]), principal_of(str(row[2])), str(row[3])) for row in rows}


def _still(what: str, resident: Resident, n: int, id: str) -> None:
    """Raises: NotFound where this is not parked any more."""
    row = resident.owed.get(n) if what == "owed" else None
    if (what == "owed" and (row is None or not (stopped(row) or falls(row)))) or (
        what == "alarm" and not (resident.alarm.given_up and resident.alarm.error)
    ):
        raise NotFound("parked item", id)


def _int(cell: object) -> int:
    assert isinstance(cell, int)
    return cell
