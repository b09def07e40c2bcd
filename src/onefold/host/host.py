"""host.host - the opened application: every verb, and its opening and closing.

For: one object that the doors, the command line and `App` speak to.
Never: an HTTP word; a global; anything done before it was opened.
Was wrong once: work begun where the app was made. A second process that only wanted to look at it
began to send.
"""

from __future__ import annotations

import logging
import re
import secrets  # noqa: TID251 - minted here, once, and handed down
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, BinaryIO

from onefold.actuators.executing import run_pass
from onefold.host.approvals import ApprovalVerbs, asking
from onefold.host.blobs import BlobJanitor, BlobVerbs
from onefold.host.caller import Caller
from onefold.host.catalog import Catalog
from onefold.host.clock import Clock
from onefold.host.config import Config
from onefold.host.core import MAIN, Core, Passing, nowhere
from onefold.host.delivering import standing_ports
from onefold.host.deploy_verbs import DeployVerbs
from onefold.host.deployed import DEPLOYMENTS
from onefold.host.deploying import Deploying
from onefold.host.driver import soonest
from onefold.host.exporting import export_of
from onefold.host.forking import ForkVerbs
from onefold.host.guards import of_slots
from onefold.host.kin import kin_ports
from onefold.host.limiting import limit_ports, limits_module
from onefold.host.live import Happening, Live
from onefold.host.modules import ModuleVerbs
from onefold.host.offering import Offering
from onefold.host.parked import ParkedVerbs
from onefold.host.passes import pass_port
from onefold.host.reckoning import RECKONINGS, Reckoning
from onefold.host.reflex_alerts import alerting
from onefold.host.reflexes import ReflexVerbs
from onefold.host.reflexing import Reflexing
from onefold.host.rerunning import RerunVerbs
from onefold.host.runs import RunVerbs
from onefold.host.settings import on_postgres
from onefold.host.sweep import Janitor, SweepVerbs
from onefold.kernel.alarm import soonest as soonest_of
from onefold.kernel.port import Port, Posting, StandIn
from onefold.kernel.tables import ALARM
from onefold.kernel.twice import twice
from onefold.reflex.seams import Effect
from onefold.reflex.tables import LEDGER
from onefold.store.contract import AuthorSpace, Schema, World
from onefold.terms.errors import Finding, LoadRefused, NotFound, OnefoldError
from onefold.terms.faults import FIRST_PAGE

if TYPE_CHECKING:
    from onefold.cell.module import Cells
    from onefold.host.cells import CellVerbs
    from onefold.host.enlisting import Enlisted
    from onefold.host.fleet import Fleet

_PLACE = re.compile(r"-?[0-9]{1,19}")  # not isdigit, which takes a raised two; a row's number may be below zero
COUNTED_MS = 5_000  # how old the count of what is parked may be in an answer to a probe
log = logging.getLogger("onefold.host")
GRACE_S = 10.0  # what is on its way at a stop may finish for this long


class Host(
    ModuleVerbs,
    ForkVerbs,
    RunVerbs,
    RerunVerbs,
    ApprovalVerbs,
    ParkedVerbs,
    BlobVerbs,
    SweepVerbs,
    ReflexVerbs,
    DeployVerbs,
):
    """An app that runs. Build it with the world it stands on, then `open` it."""

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        world: World,
        clock: Clock,
        *,
        signing: Sequence[bytes],
        point: Callable[[str], None] = nowhere,
        chance: Callable[[int], bytes] = secrets.token_bytes,
        twice: bool = False,
        stand_in: StandIn | None = None,
        run_pass: Passing = run_pass,
        member: Enlisted | None = None,
    ) -> None:
        """twice: the functions of modules are run twice and compared. stand_in, run_pass: for tests.
        member: of a fleet.
        """
        self.config = config
        self.catalog = catalog
        self.clock = clock
        self._core = Core(
            config, catalog, world, clock, point, stand_in, run_pass, None if member is None else member.standing
        )
        self._twice = twice
        self._secrets = signing
        self._chance = chance
        self._live = Live(clock)
        self._reflexing = Reflexing(self._core, self._live, self.start, self.run_send, self._post)
        self._offering = Offering(self._core, self._offer, self._withdraw, self._reflexing.offered)
        self._deploying = Deploying(self._core, self._offering, self._live)
        self._counted = (-COUNTED_MS, 0)
        self.fleet: Fleet | None = None if member is None else member.fleet(self._core, signing)

    @cached_property
    def cells(self) -> CellVerbs:
        """The verbs on cells. That room is loaded by whoever asks first."""
        from onefold.host.cells import CellVerbs

        core = self._core
        verbs = CellVerbs(core, self._chance, self.actors, core.letterbox)
        core.programs, core.evicts, core.admits = verbs, verbs.evict_here, verbs.opened
        return verbs

    async def _post(self, shape: str, id: str, source: str, *, key: str, caller: Caller) -> Any:
        return await self.cells.post(shape, id, source, key=key, caller=caller)

    @property
    def signing(self) -> Sequence[bytes]:
        """What links and callbacks are signed with: the first signs, all are accepted."""
        return self._secrets

    # --- opening and closing ----------------------------------------------------------------

    async def open(
        self,
        *,
        notify: Port[Any, Any] | None = None,
        alert: Port[Any, Any] | None = None,
        ended: Port[Any, Any] | None = None,
        posts: Callable[[Posting], Port[Any, Any]] | None = None,
        outward: Callable[[], Sequence[Effect]] = tuple,
    ) -> None:
        """Open the store, take up what was left, and begin. Spaces of actuators open when first needed. `ended` posts
        receipts, `posts` makes the port of a webhook that a module was given, `outward` the effects that leave the app.

        Raises: StoreLocked, StoreRolledBack, StoreTooNew, LoadRefused.
        """
        core = self._core
        self._keep_ports(notify, alert, ended)
        self._reflexing.outward = outward
        modules = list(self.catalog.modules.values())
        if self._twice:
            modules = [twice(module) for module in modules]
        core.ports.update(standing_ports(core, modules, posts))
        core.ports.update(self._ports_to_cells())
        schemas, ready = _of_cells(self.catalog.cells)
        shared = _of_fleet(fleet=core.standing is not None) if core.standing or self.catalog.cells else ()
        core.keep(
            MAIN,
            [*modules, *self.catalog.cells.values(), alerting(self.config.alerts), *limits_module(self.catalog)],
            schemas=(RECKONINGS, LEDGER, DEPLOYMENTS, *schemas, *shared),
            ready=ready,
            resting={module.name for module in modules if module.mostly_sleeps},
            windows=core.windows,
        )
        self._offering.shared = shared if on_postgres(self.config.store) else ()
        self._offering.keep(self.catalog.actuators.values())
        self._open_runs()
        core.acts.update({"retry": self._retry, "drop": self._drop, "fork": self._fork, "prune": self._prune})
        core.acts.update({"letter again": self._boxed, "letter gone": self._boxed, "ring": self._ring})
        reckoning = self._beside()
        core.heard += [self._live.heard, self._reflexing.heard]
        core.beside_idle.append(lambda: self._reflexing.quiet)
        await core.space(MAIN)
        if self.fleet is not None:
            await self.fleet.open()
        await self._deploying.open()
        await self._reflexing.open()
        core.start()
        reckoning.start(modules)
        if self.catalog.cells or self.fleet is not None:
            self._begin_mail()

    def _ports_to_cells(self) -> dict[str, Port[Any, Any]]:
        if not self.catalog.cells:
            return {}
        from onefold.host.posting import post_ports

        return post_ports(self.cells, self.catalog.cells.values())

    def _begin_mail(self) -> None:
        postman = self._core.postman
        if self.catalog.cells:
            self._core.closing.append(self.cells.stop)  # whoever brings a letter needs its verbs
        self._core.closing.append(postman.stop)
        self._core.beside_idle.append(lambda: postman.idle)
        postman.start()

    def _beside(self) -> Reckoning:
        """What runs beside the driver, and ends before the store does."""
        core = self._core
        janitor = Janitor(core, self._forget_run, self._reflexing)
        core.closing.append(janitor.round.stop)
        core.beside_idle.append(lambda: janitor.round.idle)
        reckoning = Reckoning(self.clock, core.node, core.space, core.shared_slots, partial(of_slots, core.standing))
        core.gained.append(reckoning.look)
        core.closing.append(reckoning.stop)
        core.beside_idle.append(lambda: reckoning.idle)
        blobs = BlobJanitor(core)
        core.closing.append(blobs.round.stop)
        core.beside_idle.append(lambda: blobs.round.idle)
        core.driver.janitor = lambda: janitor.beat() | blobs.beat() | self._deploying.beat()
        return reckoning

    def _keep_ports(
        self, notify: Port[Any, Any] | None, alert: Port[Any, Any] | None, ended: Port[Any, Any] | None
    ) -> None:
        """The ports that are the host's own. Raises: LoadRefused where a part has the name of one."""
        ports = self._core.ports
        ports["pass"] = pass_port(self._core)
        ports.update(limit_ports(self._core))
        if notify is not None:
            ports["notify"] = asking(self._core, notify)
        ports.update(kin_ports(self._core, ended))
        if alert is not None:
            if alert.name in self.catalog.ports:
                told = "is what `alerts` in onefold.toml are sent through; give this port another name"
                raise LoadRefused([Finding(f"port {alert.name}", told)])
            ports[alert.name] = alert

    def rest(self) -> None:
        """The process is about to stop: claim nothing more. Calls are still answered until `close`."""
        if self.fleet is not None:
            self.fleet.rest(int(GRACE_S * 1000))
        self._core.driver.rest()
        self._reflexing.rest()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Stop cleanly: no new claims, what is on its way finishes within the grace, files are closed."""
        self._live.close()
        if self.fleet is not None:
            self._core.last.append(self.fleet.close)
            await self.fleet.leave(int(grace_s * 1000))
        await self._reflexing.stop(grace_s)
        await self._core.stop(grace_s)
        if "cells" in self.__dict__:
            self.cells.close()
        from onefold.fleet.ring import holding

        for ring in holding():
            log.error("a ring of this process has %d letters that nobody settled or forwarded", ring.letters)

    @property
    def rung(self) -> int:
        """How many alarms have been rung since the start."""
        return self._core.driver.rung

    @property
    def next_due(self) -> int | None:
        """When the soonest alarm known will ring, or a reflex or a box of letters wants to be looked after, in ms."""
        due = soonest_of(self._core.driver.next_due, self._reflexing.next_due)
        return soonest_of(due, self._core.postman.next_due)

    @property
    def resident_count(self) -> int:
        """How many actors are in memory."""
        return self._core.node.resident_count

    async def space(self, name: str) -> AuthorSpace:
        """One opened space, for looking into its rows."""
        return await self._core.space(name)

    @property
    def quiet(self) -> bool:
        """Whether nothing moves until time passes or somebody calls."""
        return self._core.quiet

    async def abandon(self) -> None:
        """Let go of everything as a kill would. For tests."""
        self._live.close()
        if self.fleet is not None:
            await self.fleet.abandon()
        self._core.postman.abandon()
        await self._reflexing.abandon()
        await self._deploying.close()
        await self._core.abandon()
        if "cells" in self.__dict__:
            self.cells.close()

    # --- looking ----------------------------------------------------------------------------

    @property
    def armed(self) -> tuple[tuple[str, bool], ...]:
        """The ids of the reflexes that are loaded, each with whether it is enabled."""
        return self._reflexing.armed

    def watch(self) -> AsyncIterator[Happening]:
        """What happens from now on, one line each."""
        return self._live.watch()

    async def ready(self) -> dict[str, Any]:
        """{"ready", "store", "oldest_overdue_seconds", "parked"}: how far behind the app is."""
        now = self.clock.now()
        oldest: int | None = None
        if self.fleet is not None and self.fleet.membership.lease.left_ms() <= 0:
            why = "this node's lease is over; it answers for nothing until it has renewed it"
            return {"ready": False, "store": why, "oldest_overdue_seconds": 0.0, "parked": 0}
        try:
            for place in self._core.places:
                for row in await place.look(soonest(place.kinds)):
                    at = row[ALARM.at["at"]]
                    if isinstance(at, int) and (oldest is None or at < oldest):
                        oldest = at
            parked = await self._parked_lately(now)
            late = await self._reflexing.late(now)
            oldest = soonest_of(oldest, late)
        except OnefoldError as fault:
            return {"ready": False, "store": str(fault), "oldest_overdue_seconds": 0.0, "parked": 0}
        overdue = 0.0 if oldest is None else max(0, now - oldest) / 1000
        return {"ready": True, "store": "ok", "oldest_overdue_seconds": overdue, "parked": parked}

    async def _parked_lately(self, now: int) -> int:
        """The count of what is parked, at most COUNTED_MS old: whoever probes each second pays for one."""
        at, count = self._counted
        if not 0 <= now - at < COUNTED_MS:
            count = await self.parked_count()
            self._counted = (now, count)
        return count

    async def tables(self, name: str, *, caller: Caller) -> list[str]:
        """The names of an actuator's own tables."""
        caller.need("operate", "reading an actuator's tables")
        return await (await self._author_space(name)).author_tables()

    async def table_rows(
        self, name: str, table: str, *, limit: int = 100, after: str | None = None, caller: Caller
    ) -> tuple[list[str], list[Any], str | None]:
        """Columns, rows, and where to go on. Raises: NotFound."""
        caller.need("operate", "reading an actuator's tables")
        space = await self._author_space(name)
        if after is not None and not (_PLACE.fullmatch(after) and abs(int(after)) < 2**63):
            raise NotFound("page", after, FIRST_PAGE)
        columns, rows, more = await space.author_rows(table, limit=limit, after=None if after is None else int(after))
        return columns, rows, None if more is None else str(more)

    async def export(self, name: str, *, sql: bool, caller: Caller) -> BinaryIO:
        """An actuator's own database, as SQL or as a SQLite file, which is gone once it is closed."""
        caller.need("operate", "exporting an actuator's tables")
        return await export_of(await self._author_space(name), sql=sql)

    async def _author_space(self, name: str) -> AuthorSpace:
        return await self._core.space(self.catalog.actuator(name).name)


def _of_cells(cells: Mapping[str, Cells]) -> tuple[tuple[Schema, ...], Callable[[AuthorSpace], Any] | None]:
    """The tables that cells need, and what numbers their shapes. Nothing of that room is loaded where there are none."""
    if not cells:
        return (), None
    from onefold.cell.numbers import SHAPES
    from onefold.host.cells import number_shapes

    return (SHAPES,), partial(number_shapes, list(cells.values()))


def _of_fleet(*, fleet: bool) -> tuple[Schema, ...]:
    """The tables that all spaces share: boxes, and who owns what in a fleet."""
    from onefold.fleet.mailbox import MAILS
    from onefold.fleet.ownership import FLEET

    return (FLEET, MAILS) if fleet else (MAILS,)
