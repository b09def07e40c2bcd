"""reflex.engine - automations over a store: the verbs, each a question or a commit of the stages.

For: loading, facts in, one advance, the next instant to be woken for, and what people ask of the ledger.
Never: reads a clock; keeps between two verbs what is not in the store; decides (the stages do).
Was wrong once: arming as a verb. It changed a set in memory that the host's own rows contradicted after a restart.

    facts, clocks ─→ materialize, match ─→ runs ─→ fan out ─→ tasks ─→ claim, execute, record ─→ facts
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from onefold.reflex import backfill, due, intake, watch, words
from onefold.reflex.acting import committed
from onefold.reflex.advancing import Advance, Parts
from onefold.reflex.backlog import Backlog
from onefold.reflex.difference import Change, changes
from onefold.reflex.gate import Known, Placed, admit, drafted, known_to, read_draft
from onefold.reflex.graph import Graph
from onefold.reflex.ledger import Ledger
from onefold.reflex.load import LoadedSet, loading, reloading, texts_of
from onefold.reflex.preview import NEXT
from onefold.reflex.rehearsing import previewed
from onefold.reflex.schema import draft_schema
from onefold.reflex.seams import Effect, Select, Transform
from onefold.reflex.source import placed
from onefold.reflex.tables import INTAKE, LEDGER, REFLEX_RUN
from onefold.reflex.watch import Loaded
from onefold.reflex.words import (
    FACT,
    Draft,
    Fired,
    Ingested,
    Json,
    Preview,
    Reflex,
    Report,
    Signal,
    Write,
    fact_id,
    number_of,
)
from onefold.store.contract import Done, Query, Space, Unknown, World
from onefold.terms import codec
from onefold.terms.errors import (
    BadArguments,
    Contended,
    Fault,
    HostError,
    NotFound,
    OutcomeUnknown,
    StoreUnavailable,
    UnknownName,
)
from onefold.terms.ids import Principal, nearest
from onefold.terms.instant import down, moment, up
from onefold.terms.limits import QUEUE_PER_SPACE

MAX_CHAIN_DEPTH = 24


class Engine(Ledger):
    """Reflexes over one space of a store, alone or inside an app.

    store: a World, whose space `main` is opened when it is first needed, or a Space whose schemas have the ledger.
    transform: templates to JSON. select: rows for a query. effects: by name. max_chain_depth: links of a chain after
    which a fact waits for a person. max_waiting: facts due and unmatched, beyond which `ingest` and `fire` are Busy.
    """

    def __init__(
        self,
        store: World | Space,
        *,
        transform: Transform,
        select: Select | None = None,
        effects: Mapping[str, Effect] | Iterable[Effect] = (),
        max_chain_depth: int = MAX_CHAIN_DEPTH,
        max_waiting: int = QUEUE_PER_SPACE,
    ) -> None:
        self._store = store
        self._transform, self._select = transform, select
        self._effects = _by_name(effects)
        self._ceiling = max_chain_depth
        self._backlog = Backlog(max_waiting)
        self._parts: Parts | None = None
        self._loaded: Loaded | None = None
        self.stirred: Callable[[], None] = _nobody
        """Called whenever a verb left something for an advance to do."""
        self.life: Callable[[], str | None] = lambda: None
        """Of a fleet, which life of which node this is: whoever sees that it is over lets its claims go."""

    # --- the set --------------------------------------------------------------------------------

    @property
    def loaded(self) -> Loaded | None:
        """The set that this engine holds; None before it loaded one."""
        return self._loaded

    async def load(self, definitions: Iterable[Placed | Mapping[str, Json]], at: datetime) -> words.Loaded:
        """Make these the set, from `at` on: those that enter it, or become enabled, begin there; none else moves.

        Raises: LoadRefused with all that is wrong with any of them; nothing is loaded then.
        """
        begins = down(at, what="at")
        admitted = admit(placed(definitions), self._known(), begins)
        generation = await committed((await self._opened()).space, loading(admitted.reflexes, begins))
        held = LoadedSet(admitted.reflexes, generation)
        if self._loaded is None or self._loaded.generation <= generation:  # else another load here came after this one
            await self.adopt(held)
        return words.Loaded(held.armed, admitted.findings)

    async def reload(self) -> bool:
        """Hold the set that the store has, whoever loaded it. False: it is held already.

        Raises: LoadRefused where newer code wrote it; the engine then goes on executing, and matches nothing.
        """
        stored = await committed((await self._opened()).space, reloading)
        if self._loaded is not None and self._loaded.generation >= stored.generation:
            return False
        await self.adopt(stored.loaded())
        return True

    def draft(self, definition: Json, now: datetime, principals: Collection[Principal] | None = None) -> Draft:
        """A definition as it would be saved, with what is wrong with it, and what it would change. Arms nothing.
        `principals`: of whose loaded reflexes anything may be said; None for everybody's."""
        known = () if self._loaded is None else self._loaded.by_id.values()
        seen = [reflex for reflex in known if principals is None or reflex.principal in principals]
        return drafted(definition, self._known(), down(now, what="now"), seen)

    async def difference(self, old: str, new: str) -> list[Change]:
        """What changed between two versions, as runs name them. Raises: NotFound for one that was never loaded."""
        (rows,) = await (await self._opened()).space.look(texts_of({old, new}))
        found = {version: codec.parse(body) for version, body in rows}
        for version in (old, new):
            if version not in found:
                raise NotFound("version", version)
        return changes(found[old], found[new])

    def graph(self) -> Graph:
        """What wakes what in the set that is held."""
        return Graph(() if self._loaded is None else self._loaded.by_id.values(), self._effects)

    def _known(self) -> Known:
        return known_to(self._effects, self._select, self._transform)

    async def adopt(self, loaded: Loaded) -> None:
        """Go on with this set."""
        self._loaded = loaded
        (await self._opened()).loaded = loaded
        self.stirred()

    # --- facts ----------------------------------------------------------------------------------

    async def ingest(self, fact: Write | Signal, principal: Principal = None, *, now: datetime) -> Ingested:
        """Keep a fact; it is durable when this returns. A repeat of its dedupe key counts once, and is told of.

        Raises: BadArguments, TooLarge, Busy; OutcomeUnknown where the commit's answer was lost.
        """
        return await self._admit(intake.taken(fact, principal, down(now, what="now")))

    async def fire(
        self, reflex: str, *, now: datetime, input: Json = None, by: str | None = None, principal: Principal = None
    ) -> Fired:
        """A person's fact, aimed at one reflex of their own, armed or not. Raises: UnknownName, BadArguments."""
        self._own(reflex, principal)
        kept = await self._admit(intake.by_hand(reflex, input, by, principal, down(now, what="now")))
        return Fired(kept.id)

    async def preview(
        self,
        reflex: str | Mapping[str, Json],
        *,
        now: datetime,
        fact: Write | Signal | Mapping[str, Json] | None = None,
        at: datetime | None = None,
        count: int = NEXT,
        principal: Principal = None,
    ) -> Preview:
        """What a reflex would do, armed or not, and its next `count` occurrences. Nothing is written. `reflex`: its id,
        or a draft's definition, which need not be loaded.

        fact: instead of its clock: also {"kind": "manual", "payload"} as fired by hand, {"kind": "run", "stats"} as
        after a settled run. at: as though it were then. Raises: UnknownName, BadArguments; LoadRefused for a draft
        that could not be loaded.
        """
        begins = down(now, what="now")
        if isinstance(reflex, str):
            one = self._own(reflex, principal)
        else:
            one = read_draft(reflex, self._known(), principal, begins)
        pretended = None if at is None else up(at, what="at")
        parts = await self._opened()
        return await previewed(parts, one, begins, fact=fact, at=pretended, count=count)

    async def backfill(
        self, reflex: str, *, since: datetime, until: datetime, now: datetime, principal: Principal = None
    ) -> int:
        """Runs for the occurrences from `since` to `until`, for each that has none yet; how many that were. A key
        counts once, whoever asks and how often; under `overlap: skip` they wait for each other.

        Raises: UnknownName; BadArguments for a reflex without a clock, a time to come, more than 10,000 occurrences;
        Contended where another engine loaded a newer set: nothing more is made, the same again is safe.
        """
        one, at = self._own(reflex, principal), down(now, what="now")
        found = backfill.asked(one, up(since, what="since"), down(until, what="until"), at)
        parts, made = await self._opened(), 0
        for some in backfill.chunks(found):
            assert self._loaded is not None
            body = backfill.backfilling(self._loaded, one, some, at, lambda: parts.space.mint(REFLEX_RUN))
            outcome = await parts.space.transact(body)
            if not isinstance(outcome, Done):
                raise outcome.error
            if outcome.value.behind:
                raise Contended(f"the set of reflexes that holds {reflex}")
            made += backfill.made(outcome.answers)
        self.stirred()
        return made

    def schema(self, principal: Principal = None) -> dict[str, Json]:
        """JSON Schema (2020-12) of what a draft of this principal may say, with the names that are registered here.

        What it takes is still only a draft: it has no word for arming.
        """
        known = self._loaded.by_id if self._loaded is not None else {}
        own = [id for id, reflex in known.items() if reflex.principal == principal]
        return draft_schema(self._effects.values(), getattr(self._select, "names", ()), own)

    def _own(self, reflex: str, principal: Principal) -> Reflex:
        """Raises: UnknownName for another's too."""
        known = self._loaded.by_id if self._loaded is not None else {}
        if reflex not in known or known[reflex].principal != principal:
            own = [id for id, other in known.items() if other.principal == principal]
            raise UnknownName("reflex", reflex, nearest(reflex, own))
        return known[reflex]

    async def release(self, fact: str, *, now: datetime, principals: Iterable[Principal] | None = None) -> bool:
        """Let a parked fact pass. False: it is not parked. Raises: NotFound."""
        parts = await self._opened()
        n = number_of(fact, FACT)
        if n is None:
            raise NotFound("fact", fact)
        whose = None if principals is None else tuple(principals)
        released = await committed(parts.space, intake.releasing(n, whose, down(now, what="now")))
        self.stirred()
        return released

    async def _admit(self, fact: intake.Incoming) -> Ingested:
        parts = await self._opened()
        await self._backlog.admit(parts.space, fact.at)
        minted: list[int] = []

        def mint() -> int:
            minted.append(parts.space.mint(INTAKE))
            return minted[-1]

        outcome = await parts.space.transact(intake.admitting([fact], mint))
        if isinstance(outcome, Done):
            self.stirred()
            return outcome.value[0]
        if isinstance(outcome, Unknown):
            return await self._looked_up(parts, minted[-1])
        raise outcome.error

    async def _looked_up(self, parts: Parts, n: int) -> Ingested:
        """Whether a fact whose commit gave no answer is there. Raises: OutcomeUnknown where nobody can say."""
        try:
            (rows,) = await parts.space.look(Query(INTAKE, on=INTAKE.key, keys=[(n,)]))
        except HostError:
            raise OutcomeUnknown(fact_id(n)) from None
        if not rows:
            raise StoreUnavailable(parts.space.name, "its commit failed")
        return Ingested(fact_id(n), False)

    # --- moving on --------------------------------------------------------------------------------

    async def advance(self, now: datetime, limit: int = 100) -> Report:
        """One committed increment at `now`; at most `limit` rows of each stage, and as many effects under way.

        Several may be under way at once, of one engine or of several: what each does is claimed row by row, and what
        another did meanwhile is left alone. `now` may go back, which only delays. Raises: BadArguments for a limit
        below 1; HostError, with nothing lost.
        """
        if limit < 1:
            raise BadArguments([Fault("limit", "must be at least 1", limit)])
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

    async def _space(self) -> Space:
        return (await self._opened()).space

    async def _opened(self) -> Parts:
        if self._parts is None:
            space = self._store if not hasattr(self._store, "open") else await self._store.open("main", [LEDGER])
            self._parts = Parts(
                space,
                self._transform,
                self._select,
                self._effects,
                self._ceiling,
                self._backlog,
                self._loaded,
                life=self.life,
            )
        return self._parts


def _nobody() -> None:
    return None


def _by_name(effects: Mapping[str, Effect] | Iterable[Effect]) -> Mapping[str, Effect]:
    return effects if isinstance(effects, Mapping) else {effect.name: effect for effect in effects}
