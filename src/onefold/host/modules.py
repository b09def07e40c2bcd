"""host.modules - the verbs for actors of modules: deliver, read, history, alarm, actors.

For: an event from code or from the wire into one fold, and looking at what came of it.
Never: folds to read; keeps anything of its own.
Was wrong once: reads that folded. A dashboard moved the alarms of whatever it looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Any, Generic, NamedTuple, TypeVar

from onefold.host.caller import Caller
from onefold.host.core import Core
from onefold.host.deciding import Deciding, decided
from onefold.kernel.alarm import soonest
from onefold.kernel.module import Module
from onefold.kernel.prune import PRUNED, Pruned, before, lost, older
from onefold.kernel.reading import Unreadable, read_facts
from onefold.kernel.rebuild import newest
from onefold.kernel.tables import ACTOR, ALARM, TURN
from onefold.kernel.unfit import fitting
from onefold.node.resident import Resident
from onefold.node.waking import row_of
from onefold.store.contract import Query, Row
from onefold.terms.codec import digest, parse_canonical
from onefold.terms.errors import NotFound, Undeclared, WaitsForCode
from onefold.terms.ids import ActorId, check_text, door_id, principal_text
from onefold.terms.instant import moment, text, up

T = TypeVar("T")
AnyModule = Module[Any, Any, Any, Any, Any]
HISTORY = 2_048  # turns of one look: a read of a long history lets folds through between two of them
_SEQ, _FACTS = TURN.at["seq"], TURN.at["facts"]


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact of an actor's history: its number within the actor, when it was decided, the fact."""

    seq: int
    at: datetime
    fact: Any


class History(list[FactRow]):
    """Facts in order. `begins`: the number of the first one there is; behind it they were pruned, unless it is 1.

    It is told where the list would have shown an earlier one; otherwise it is the number of its first.
    """

    def __init__(self, rows: Iterable[FactRow] = (), *, after: int = 0) -> None:
        super().__init__(rows)
        self.begins = self[0].seq if self else after + 1


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items, and where to go on: `after=next`, or None at the end.

    begins: of facts, the number of the first there is, where earlier ones were asked for and are pruned.
    """

    items: list[T]
    next: str | None = None
    begins: int | None = None


class Delivered(NamedTuple):
    """What an event came to: the reply as JSON, and whether it was given before."""

    reply: bytes
    replayed: bool


class ModuleVerbs:
    """Verbs on actors of modules. `_core` is the opened application."""

    _core: Core

    async def deliver(self, module: AnyModule, event: Any, *, caller: Caller) -> Any:
        """One fold; the module's reply, after the commit. Raises: what `Node.fold` does, BadArguments."""
        at = ActorId(module.name, caller.principal, check_text(module.key(event), "key"))
        event_id = door_id(module.event_id(event))
        told = digest(module.codecs.event.slim(event))
        decide = self._core.node.kind(module.name).module.decide
        reply = await self._core.fold(at, event_id, told, event, partial(decided, decide, event))
        self._core.point("before-reply")
        return reply

    async def deliver_raw(self, module: str, raw: bytes, *, caller: Caller) -> Delivered:
        """As `deliver`, for an event as JSON; its digest is over what arrived."""
        found = self._core.catalog.module(module)
        value, written = parse_canonical(raw, "event")
        codecs = found.codecs
        event = codecs.event.arrived(written, value)
        at = ActorId(found.name, caller.principal, check_text(found.key(event), "key"))
        event_id = door_id(found.event_id(event))
        deciding = Deciding(self._core.node.kind(module).module.decide, event)
        reply = await self._core.fold(at, event_id, digest(written), event, deciding)
        self._core.point("before-reply")
        return Delivered(codecs.reply.encode(reply), not deciding.asked)

    async def read(self, module: AnyModule, key: str, *, caller: Caller) -> Any:
        """The view of the durable state. An actor without history shows its initial state."""
        return module.view(await self._core.node.read(ActorId(module.name, caller.principal, check_text(key, "key"))))

    async def read_json(self, module: str, key: str, *, caller: Caller) -> dict[str, Any]:
        """{"key", "view", "alarm"}; alarm is absent when none is set."""
        found = self._core.catalog.module(module)
        at = ActorId(found.name, caller.principal, check_text(key, "key"))
        resident = await self._core.node.shown(at)
        codec = found.codecs.view
        view = found.view(resident.durable)
        shows = fitting(found.name, key, "view", "a view", codec.annotation, lambda: codec.to_json(view))
        told = {"key": key, "view": shows}
        due = self._due(resident)
        return told if due is None else {**told, "alarm": text(due)}

    async def alarm(self, module: AnyModule, key: str, *, caller: Caller) -> datetime | None:
        """The actor's next alarm, folding it first if it is due."""
        at = ActorId(module.name, caller.principal, check_text(key, "key"))
        due = self._due(await self._core.node.shown(at))
        if due is not None and due <= self._core.clock.now():
            await self._core.at_owner(at, {"do": "ring"}, partial(self._ring, at))
            due = self._due(await self._core.node.shown(at))
        return None if due is None else moment(due)

    async def _ring(self, at: ActorId, _word: Any = None) -> None:
        """Fold the alarm of an actor of this process, if it is due."""
        resident = await self._core.node.activate(at)
        due = self._due(resident)
        if due is not None and due <= self._core.clock.now():
            await self._core.node.ring(resident)

    async def history(
        self, module: AnyModule, key: str, *, after: int = 0, limit: int | None = None, caller: Caller
    ) -> History:
        """The facts of an actor in order, from the one after number `after`.

        After a prune they begin with a snapshot; `begins` of the list says at which number.
        """
        rows = History(after=after)
        for row in await self._turns(module.name, key, after, caller):
            facts = _facts(module, key, row)
            first = int(row[TURN.at["seq"]]) - len(facts) + 1  # type: ignore[arg-type]
            at = moment(int(row[TURN.at["at"]]))  # type: ignore[arg-type]
            rows.extend(FactRow(seq, at, fact) for seq, fact in enumerate(facts, first) if seq > after)
            if limit is not None and len(rows) >= limit:
                break
        return History(rows if limit is None else rows[:limit], after=after)

    async def prune(self, module: AnyModule, key: str, *, caller: Caller) -> Pruned:
        """Take the facts behind the actor's latest snapshot away; ids, replies, owed keys and numbers stay.

        Raises: Undeclared for a module without a snapshot: nothing would stand for its facts.
        """
        caller.need("operate", "pruning facts")
        if module.snapshot is None:
            raise Undeclared("snapshot", f"The module {module.name}")
        at, word = ActorId(module.name, caller.principal, check_text(key, "key")), {"do": "prune"}
        told = await self._core.at_owner(at, word, partial(self._prune, at, word))
        return Pruned(told["facts"], told["begins"])

    async def _prune(self, at: ActorId, word: Mapping[str, Any]) -> dict[str, int]:
        """The same, of an actor of this process."""
        pruned = await self._core.node.prune(at)
        return {"facts": pruned.facts, "begins": pruned.begins}

    async def prune_named(self, module: str, key: str, *, caller: Caller) -> Pruned:
        """As `prune`, by names that somebody typed. Raises: as `prune`; UnknownName, NotFound for an actor not there."""
        caller.need("operate", "pruning facts")
        home = self._core.node.kind(self._core.catalog.module(module).name).home
        (rows,) = await (await home.open()).space.look(
            row_of(ActorId(module, caller.principal, check_text(key, "key")))
        )
        if not rows:
            raise NotFound(module, key)
        return await self.prune(self._core.catalog.module(module), key, caller=caller)

    async def facts(
        self, module: str, key: str, *, after: int = 0, limit: int = 100, caller: Caller
    ) -> Page[dict[str, Any]]:
        """A page of {"seq", "at", "fact"}. Raises: NotFound for an actor without history."""
        found = self._core.catalog.module(module)
        rows = await self.history(found, key, after=after, limit=limit + 1, caller=caller)
        if not rows and after == 0:
            raise NotFound(found.name, key)
        told = [{"seq": r.seq, "at": text(up(r.at)), "fact": found.codecs.fact.to_json(r.fact)} for r in rows[:limit]]
        begins = rows.begins if rows.begins > after + 1 else None
        return Page(told, str(rows[limit - 1].seq) if len(rows) > limit else None, begins)

    async def actors(
        self, module: str, *, prefix: str = "", limit: int = 100, after: str | None = None, caller: Caller
    ) -> Page[dict[str, Any]]:
        """A page of {"key", "alarm"} of the caller's actors, in the order of their keys."""
        kind = self._core.node.kind(module)
        space = await self._core.space(kind.home.name)
        where: list[tuple[str, Any, Any]] = [
            ("kind", "=", module),
            ("principal", "=", principal_text(caller.principal)),
        ]
        if prefix:
            where += [("key", ">=", prefix), ("key", "<", prefix + "\U0010ffff")]
        if after is not None:
            where.append(("key", ">", after))
        (rows,) = await space.look(Query(ACTOR, where=tuple(where), order=("key",), limit=limit + 1))
        shown = rows[:limit]
        alarms: dict[Any, Any] = {}
        if shown:
            (found,) = await space.look(Query(ALARM, on=("actor",), keys=[(row[0],) for row in shown]))
            alarms = {row[0]: row[3] for row in found if row[3] is not None}
        items = [
            {"key": row[3], "alarm": text(alarms[row[0]])} if row[0] in alarms else {"key": row[3]} for row in shown
        ]
        return Page(items, shown[-1][3] if len(rows) > limit else None)

    # --- inside -----------------------------------------------------------------------------

    def _due(self, resident: Resident) -> int | None:
        """When the actor will next be woken: by its wake, or by something owed."""
        wake = resident.module.wake
        at = None if wake is None else wake(resident.durable)
        owed = min((item.next_at for item in resident.owed.values() if item.next_at is not None), default=None)
        return soonest(None if at is None else up(at), owed)

    async def _turns(self, kind: str, key: str, after: int, caller: Caller) -> Sequence[Row]:
        """The actor's turns after fact number `after`, oldest first, from where its history begins."""
        space = (await self._core.node.kind(kind).home.open()).space
        at = (kind, principal_text(caller.principal), check_text(key, "key"))
        (actors,) = await space.look(Query(ACTOR, on=("kind", "principal", "key"), keys=[at]))
        if not actors:
            return []
        number = int(actors[0][0])
        turns: list[Row] = []
        (page,) = await space.look(newest(number, HISTORY))
        while page:
            told = list(takewhile(lambda row: int(row[_SEQ] or 0) > after and row[_FACTS] != PRUNED, page))
            begins = next((n for n, row in enumerate(told, 1) if lost(row[_FACTS])), None)
            turns += told[:begins]
            prev = before(page[-1])
            if begins or len(told) < len(page) or prev is None:
                break
            (page,) = await space.look(older(number, prev, HISTORY))
        return turns[::-1]


def _facts(module: AnyModule, key: str, row: Row) -> Sequence[Any]:
    """A turn's facts. Raises: WaitsForCode."""
    try:
        return read_facts(module, row[TURN.at["facts"]])  # type: ignore[arg-type]
    except Unreadable as fact:
        raise WaitsForCode(module.name, key, fact.kind, fact.why) from None
