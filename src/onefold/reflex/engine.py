"""reflex.engine - automations over a store: the verbs, each a question or a commit of the stages.

For: loading, facts in, one advance, the next instant to be woken for, and what people ask of the ledger.
Never: reads a clock; keeps between two verbs what is not in the store; decides (the stages do).
Was wrong once: arming as a verb. It changed a set in memory that the host's own rows contradicted after a restart.

    facts, clocks ─→ materialize, match ─→ runs ─→ fan out ─→ tasks ─→ claim, execute, record ─→ facts
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from onefold.reflex import due, intake, watch
from onefold.reflex.advancing import Advance, Parts, committed
from onefold.reflex.seams import Effect, Select, Transform
from onefold.reflex.tables import INTAKE, LEDGER
from onefold.reflex.watch import Loaded
from onefold.reflex.words import FACT, Fired, Ingested, Json, Report, Signal, Write, number_of
from onefold.store.contract import Space, World
from onefold.terms.errors import NotFound, UnknownName
from onefold.terms.ids import Principal, nearest
from onefold.terms.instant import down, moment

MAX_CHAIN_DEPTH = 24


class Engine:
    """Reflexes over one space of a store, alone or inside an app.

    store: a World, whose space `main` is opened when it is first needed, or a Space whose schemas have the ledger.
    transform: templates to JSON. select: rows for a query. effects: by name. max_chain_depth: links of a chain after
    which a fact waits for a person.
    """

    def __init__(
        self,
        store: World | Space,
        *,
        transform: Transform,
        select: Select | None = None,
        effects: Mapping[str, Effect] | Iterable[Effect] = (),
        max_chain_depth: int = MAX_CHAIN_DEPTH,
    ) -> None:
        self._store = store
        self._transform, self._select = transform, select
        self._effects = _by_name(effects)
        self._ceiling = max_chain_depth
        self._parts: Parts | None = None
        self._loaded: Loaded | None = None

    # --- the set --------------------------------------------------------------------------------

    async def adopt(self, loaded: Loaded) -> None:
        """Go on with this set."""
        self._loaded = loaded
        (await self._opened()).loaded = loaded

    # --- facts ----------------------------------------------------------------------------------

    async def ingest(self, fact: Write | Signal, principal: Principal = None, *, now: datetime) -> Ingested:
        """Keep a fact; it is durable when this returns. A repeat of its dedupe key counts once, and is told of.

        Raises: BadArguments, TooLarge.
        """
        return await self._admit(intake.taken(fact, principal, down(now, what="now")))

    async def fire(
        self, reflex: str, *, now: datetime, input: Json = None, by: str | None = None, principal: Principal = None
    ) -> Fired:
        """A person's fact, aimed at one reflex of their own, armed or not. Raises: UnknownName, BadArguments."""
        known = self._loaded.by_id if self._loaded is not None else {}
        if reflex not in known or known[reflex].principal != principal:
            own = [id for id, other in known.items() if other.principal == principal]
            raise UnknownName("reflex", reflex, nearest(reflex, own))
        kept = await self._admit(intake.by_hand(reflex, input, by, principal, down(now, what="now")))
        return Fired(kept.id)

    async def release(self, fact: str, *, now: datetime, principals: Iterable[Principal] | None = None) -> bool:
        """Let a parked fact pass. False: it is not parked. Raises: NotFound."""
        parts = await self._opened()
        n = number_of(fact, FACT)
        if n is None:
            raise NotFound("fact", fact)
        whose = None if principals is None else tuple(principals)
        return await committed(parts.space, intake.releasing(n, whose, down(now, what="now")))

    async def _admit(self, fact: intake.Incoming) -> Ingested:
        parts = await self._opened()
        body = intake.admitting([fact], lambda: parts.space.mint(INTAKE))
        return (await committed(parts.space, body))[0]

    # --- moving on --------------------------------------------------------------------------------

    async def advance(self, now: datetime, limit: int = 100) -> Report:
        """One committed increment at `now`; at most `limit` rows of each stage. Raises: HostError; nothing is lost."""
        return await Advance(await self._opened(), down(now, what="now"), limit).run()

    async def next_due(self, now: datetime) -> datetime | None:
        """When to advance next: `now` for what is due, later for what is not yet; None when only a new fact can help."""
        parts = await self._opened()
        (newest,) = await parts.space.look(watch.newest())
        loaded = self._loaded
        matches = loaded is not None and bool(loaded.by_id) and watch.is_newest(loaded, newest)
        asked = due.questions(tuple(parts.effects), matches=matches)
        soonest = due.soonest(asked, await parts.space.look(*asked))
        return None if soonest is None else max(moment(soonest), moment(down(now, what="now")))

    async def _opened(self) -> Parts:
        if self._parts is None:
            space = self._store if not hasattr(self._store, "open") else await self._store.open("main", [LEDGER])
            self._parts = Parts(space, self._transform, self._select, self._effects, self._ceiling, self._loaded)
        return self._parts


def _by_name(effects: Mapping[str, Effect] | Iterable[Effect]) -> Mapping[str, Effect]:
    return effects if isinstance(effects, Mapping) else {effect.name: effect for effect in effects}
