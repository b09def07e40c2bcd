"""host.reflexing - the engine of reflexes inside an app: made of its parts, loaded, driven, taken down.

For: one engine over `main`, with the templates, selections and effects that the app's `Reflexes` bring and the effects
that exist by themselves; the set that a file, a PUT or an earlier start left.
Never: makes an engine for an app that has no use for one: a start pays for what it is given.
Was wrong once: the set kept where it was loaded from. An app whose set had come over HTTP woke up without any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from onefold.host.core import MAIN, Core
from onefold.host.driver import SAID_AGAIN_MS
from onefold.host.live import Happening, Live
from onefold.host.reflex_alerts import ReflexAlerts
from onefold.host.reflex_effects import Starting, standing, watched
from onefold.host.rounds import Round
from onefold.kernel.fold import Folded
from onefold.node.resident import Resident
from onefold.reflex.seams import Effect, Task
from onefold.reflex.tables import INTAKE
from onefold.reflex.words import FACT, Drawn, IntakeRow, Loaded, Report, TaskRow, number_of
from onefold.store.contract import AuthorSpace
from onefold.terms.errors import Finding, LoadRefused, OnefoldError, OwnedElsewhere
from onefold.terms.faults import says, short
from onefold.terms.ids import Principal
from onefold.terms.instant import moment, up

if TYPE_CHECKING:
    from onefold.fleet.standing import Standing
    from onefold.reflex.driver import Driver
    from onefold.reflex.engine import Engine

SAID = 300  # characters of a line
log = logging.getLogger("onefold.reflexes")


class Reflexing:
    """What an app has of reflexes. Opened with its host."""

    def __init__(self, core: Core, live: Live, start: Starting, send: Starting, post: Starting) -> None:
        """`start` and `send`: the host's verbs for runs, `post` that for cells, for the effects that use them."""
        self._core = core
        self._live = live
        self._start = start
        self._send = send
        self._post = post
        self._engine: Engine | None = None
        self._known: dict[str, Effect] = {}
        self._driver: Driver | None = None
        self._looked = -1  # the beat at which was looked for what is parked
        self._alerts = ReflexAlerts(core)
        self._telling = Round("onefold alerts of reflexes", self._tell)
        self._taking_up = asyncio.Lock()
        self._catching_up = Round("onefold newer reflexes", self._catch_up)
        self._said: tuple[str, int] = ("", 0)
        core.nudged.append(self.look)
        self.outward: Callable[[], Sequence[Effect]] = tuple
        """Makes the effects that leave the app, when an engine is made."""
        self.given = any(part.source for part in core.catalog.reflexes)
        """Whether the code says what is loaded: a file, a folder, or definitions."""

    # --- opening and closing ------------------------------------------------------------------

    async def open(self) -> None:
        """Load what the code gives, or take up the set that the store has. Raises: LoadRefused."""
        space = await self.space()
        if not self._core.catalog.reflexes and not await _has_a_set(space):
            return
        engine = self._made(space)
        if self._core.config.alone:
            await engine.take_over(moment(self._core.clock.now()))
        if self.given:
            await self.load_given()
        else:
            await engine.reload()
        self._begin()

    async def load_given(self) -> Loaded:
        """Read the code's own sources, again if need be, and load them. Raises: LoadRefused."""
        from onefold.reflex.source import definitions

        found: list[Finding] = []
        read: list[Any] = []
        for part in self._core.catalog.reflexes:
            try:
                read += definitions(part.source)
            except LoadRefused as refused:
                found += refused.findings
        if found:
            raise LoadRefused(found)
        return await self.load(read)

    async def load(self, placed: Sequence[Any]) -> Loaded:
        """Make these definitions, each with where it came from, the set. Raises: LoadRefused."""
        engine = await self.engine()
        loaded = await engine.load(placed, at=moment(self._core.clock.now()))
        if self._core.router is not None:
            self._core.router.tell_all()
        for finding in loaded.findings:
            log.warning("%s", finding)
        return loaded

    async def engine(self) -> Engine:
        """The engine, made and driven from when it is first needed."""
        space = await self.space()
        if self._engine is None:
            self._made(space)
            self._begin()
        assert self._engine is not None
        return self._engine

    @property
    def armed(self) -> tuple[tuple[str, bool], ...]:
        """The ids of the loaded set, each with whether it is enabled. Asks nobody."""
        loaded = None if self._engine is None else self._engine.loaded
        return () if loaded is None else tuple((one.id, one.enabled) for one in loaded.by_id.values())

    def look(self) -> None:
        """Another process may have loaded a newer set, or left a fact: only who holds the newest may match."""
        self._catching_up.begin()

    async def current(self) -> Engine:
        """As `engine`, with the set that was loaded last, through whichever node."""
        if self._core.router is not None:
            await self._take_up()
        return await self.engine()

    async def _catch_up(self) -> bool:
        await self._take_up()
        if self._engine is not None and self._core.standing is not None:
            await self._freed(self._core.standing)
        self.wake()
        return False

    async def _freed(self, own: Standing) -> None:
        """Let go of what nodes had claimed that are gone."""
        from onefold.host.abandoned import freed

        try:
            count = await freed(await self.space(), own, self._core.clock.now())
            if count:
                log.warning("%d tasks were let go of that a node had claimed which is gone", count)
        except OwnedElsewhere:
            return  # whoever owns something does it
        except OnefoldError as fault:
            log.warning("what a node had claimed that is gone was not let go of: %s", fault)

    def _life(self) -> str | None:
        own = self._core.standing
        return None if own is None else own.me.text

    async def _take_up(self) -> None:
        from onefold.reflex.watch import generation_of, newest

        try:
            async with self._taking_up:
                (rows,) = await (await self.space()).look(newest())
                held = None if self._engine is None else self._engine.loaded
                if generation_of(rows) > (0 if held is None else held.generation):
                    await (await self.engine()).reload()
        except OnefoldError as fault:
            log.warning("the set that was loaded elsewhere could not be taken up: %s", fault)

    def _made(self, space: AuthorSpace) -> Engine:
        from onefold.reflex.engine import Engine

        parts = self._core.catalog.reflexes
        brought = next((part.transform for part in parts if part.transform is not None), None)
        if brought is None:
            from onefold.reflex.templates import CelTransform

            brought = CelTransform()
        self._known = dict(self._effects())
        self._engine = Engine(space, transform=brought, select=self._select(), effects=self._known)
        self._engine.life = self._life
        return self._engine

    def _begin(self) -> None:
        """Drive it. Not before claims of a dead process were let go of: they would be taken for our own."""
        from onefold.reflex.driver import Driver

        assert self._engine is not None
        self._driver = Driver(self._engine, self._core.clock, told=self._told)
        self._driver.start()
        if self._core.standing is not None:
            self.look()  # an earlier life of this node, or of another, may have left claims

    async def drawn(self, principals: Collection[Principal] | None) -> Drawn:
        """The graph of the loaded reflexes of these principals; None is everybody's."""
        from onefold.reflex.graph import Graph

        loaded = (await self.current()).loaded
        known = () if loaded is None else loaded.by_id.values()
        graph = Graph([one for one in known if principals is None or one.principal in principals], self._effects())
        return Drawn(graph.text(), graph.dot(), tuple(graph.findings()))

    def _select(self) -> Any:
        from onefold.host.reflex_seams import Seams

        return Seams(self._core).selects()

    def _effects(self) -> Mapping[str, Effect]:
        """Those of the parts, and those that exist by themselves. Raises: LoadRefused for a name that both have."""
        from onefold.host.reflex_seams import Seams

        own = [*standing(self._core, self._start, self._send, self._post), *self.outward()]
        return watched(Seams(self._core).effects(own).values(), self._core, self._done)

    def offered(self) -> None:
        """The app has other actuators: their effects are the engine's from now on."""
        if self._engine is not None:
            known = self._effects()
            self._known.clear()
            self._known.update(known)  # the engine looks into this very dict, between two advances
            self._engine.stirred()

    def rest(self) -> None:
        """Claim nothing more."""
        if self._driver is not None:
            self._driver.rest()

    async def stop(self, grace_s: float) -> None:
        """Begin nothing more; effects under way have `grace_s` seconds."""
        if self._driver is not None:
            await self._driver.stop(grace_s)
        await self._telling.stop()
        await self._catching_up.stop()

    async def abandon(self) -> None:
        """As a kill would leave it. For tests."""
        if self._driver is not None:
            await self._driver.abandon()
        await self._telling.stop()
        await self._catching_up.stop()

    # --- what is kept for a time only -------------------------------------------------------------

    async def sweep(self, runs: datetime | None, intake: datetime | None, *, dry_run: bool) -> tuple[int, int]:
        """Take settled runs and delivered facts from before these instants; how many of each went, or would."""
        if runs is None and intake is None:
            return 0, 0
        gone = await (await self.engine()).sweep(runs=runs, intake=intake, dry_run=dry_run)
        return gone.runs, gone.facts

    async def sweep_some(self, runs: datetime | None, intake: datetime | None) -> bool:
        """A page of each, for a beat. Returns whether there is more."""
        if self._engine is None or (runs is None and intake is None):
            return False
        return await self._engine.sweep_some(runs=runs, intake=intake)

    # --- told and asked -------------------------------------------------------------------------

    async def space(self) -> AuthorSpace:
        return await self._core.space(MAIN)

    def heard(self, resident: Resident, folded: Folded) -> None:
        """A fold was committed: whatever it published is to be matched."""
        if folded.local and any(table is INTAKE for table, _ in folded.local):
            self.wake()

    def wake(self) -> None:
        """Something was committed that an engine wants to see."""
        if self._driver is not None:
            self._driver.wake()

    @property
    def begun(self) -> bool:
        """Whether there is an engine."""
        return self._engine is not None

    @property
    def quiet(self) -> bool:
        return (self._driver is None or self._driver.resting) and self._telling.idle and self._catching_up.idle

    @property
    def next_due(self) -> int | None:
        return None if self._driver is None else self._driver.next_due

    async def late(self, now: int) -> int | None:
        """Since when something of reflexes is overdue (ms): a run, an occurrence, or a task that is ready."""
        if self._engine is None:
            return None
        found = await self._engine.overdue(moment(now))
        due = await self._engine.next_due(moment(now))
        return min([up(one.due) for one in found[:1]], default=None if due is None else up(due))

    def _told(self, report: Report | Exception) -> None:
        if isinstance(report, Exception):
            self._failed(report)
            return
        if report.behind:
            self.look()
        for event in report.events:
            log.warning("%s", event)
            self._say("ReflexEvent", None, event)
        counts = (("materialized", report.materialized), ("matched", report.matched), ("fanned out", report.fanned))
        told = [f"{count} {what}" for what, count in (*counts, ("settled", report.settled)) if count]
        if told:
            self._say("Reflexes", None, f"reflexes: {', '.join(told)}")
        beats = 0 if self._driver is None else self._driver.beats
        if self._core.config.alerts and (report.events or beats != self._looked):
            self._looked = beats
            self._telling.begin()

    def _failed(self, fault: Exception) -> None:
        """Say why nothing moves: once, and again every ten minutes while it lasts."""
        now, trouble = self._core.clock.now(), f"{type(fault).__name__}: {says(fault)}"
        said, at = self._said
        if said != trouble or now >= at + SAID_AGAIN_MS:
            self._said = (trouble, now)
            log.warning("reflexes cannot be advanced: %s", fault, exc_info=not isinstance(fault, OnefoldError))

    async def _tell(self) -> bool:
        """Tell of what is parked. Nothing is left for a next beat: it looks anew."""
        await self._alerts.tell(await self.parked(None))
        return False

    async def parked(self, principals: Collection[Principal] | None) -> list[IntakeRow | TaskRow]:
        """Facts and tasks that wait for a person."""
        return [] if self._engine is None else await self._engine.parked(principals)

    async def unpark(self, id: str) -> None:
        """Let a parked fact pass, or open a parked task again. Raises: NotFound."""
        engine, now = await self.engine(), moment(self._core.clock.now())
        if number_of(id, FACT) is not None:
            await engine.release(id, now=now)
        else:
            await engine.retry(id, now)

    async def drop(self, id: str, reason: str, principals: Collection[Principal] | None) -> None:
        """Give up a parked fact or task. Raises: NotFound."""
        await (await self.engine()).drop(id, reason, principals)

    def _done(self, task: Task, effect: str, how: str) -> None:
        self._say("ReflexTask", effect, f"{effect} {task.key} attempt {task.attempt}: {how}")

    def _say(self, what: str, program: str | None, text: str) -> None:
        if self._live.watched:
            at = moment(self._core.clock.now())
            self._live.tell(Happening(at, what, None, program, short(text, SAID)))


async def _has_a_set(space: AuthorSpace) -> bool:
    """Whether a set was ever loaded into this store."""
    from onefold.reflex.watch import newest

    (rows,) = await space.look(newest())
    return bool(rows)
