"""host.core - the opened application's inner parts, wired together once.

For: making node, sender, driver and spaces out of parts and a store, and taking them down again.
Never: a verb (host.modules, host.runs, host.approvals and host.parked have those); a global.
Was wrong once: each verb opened what it needed. Two of them opened one file, and one was refused.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onefold.actuators.carried import PassEnded
from onefold.actuators.declare import Actuator
from onefold.actuators.executing import Actor, run_pass
from onefold.host.catalog import Catalog
from onefold.host.clock import Clock
from onefold.host.config import Config
from onefold.host.deciding import Deciding, read_by
from onefold.host.driver import Driver
from onefold.host.guards import of_boxes
from onefold.host.programs import NoCells, Programs
from onefold.host.publishing import publisher
from onefold.host.sender import Sender
from onefold.host.settings import on_postgres
from onefold.kernel.alert import PORT, Alerts, falls, stopped
from onefold.kernel.blob import BLOBS, filled, pointers
from onefold.kernel.drain import again
from onefold.kernel.fold import Folded, Folder, Outstanding
from onefold.kernel.module import Module
from onefold.kernel.port import Local, Port, StandIn
from onefold.kernel.tables import KERNEL, OWED, TURN
from onefold.node.batch import Beside
from onefold.node.blobs import Blobs, Noted
from onefold.node.brought import Brought
from onefold.node.home import Home
from onefold.node.node import Decide, Node
from onefold.node.resident import Resident
from onefold.reflex.tables import LEDGER
from onefold.store.contract import AuthorSpace, Query, Row, Schema, Space, World
from onefold.store.folder import Folder as Files
from onefold.terms.codec import digest
from onefold.terms.errors import OnefoldError
from onefold.terms.ids import SLOTS, ActorId

MAIN = "main"
log = logging.getLogger("onefold.host")

if TYPE_CHECKING:
    from onefold.fleet.standing import Standing
    from onefold.fleet.wire import Sent
    from onefold.host.letterbox import Letterbox
    from onefold.host.postman import Postman
    from onefold.host.routing import Router


def nowhere(point: str) -> None:
    """The failpoint of an app that is not under test."""


Act = Callable[[ActorId, Mapping[str, Any]], Awaitable[Any]]
Heard = Callable[[Resident, Folded], None]
Passing = Callable[[Actor, Actuator[Any, Any]], Awaitable[PassEnded]]


def take_up(row: Outstanding) -> bool:
    """Take a parked row, or a notice that fails, for one person. False when it is not parked any more, or somebody else has it.

    Was wrong once: each person's retry written as it came. The second put a row that was being sent back to
    where it had been, and a port that cannot dedupe paid twice.
    """
    free = (stopped(row) or falls(row)) and not row.in_flight
    row.in_flight = row.in_flight or free
    return free


@contextmanager
def left_as_it_was(row: Outstanding) -> Iterator[None]:
    """A row that was taken up, and left again where what its person wanted was refused."""
    try:
        yield
    except OnefoldError:
        row.in_flight = False
        raise


def windows_of(catalog: Catalog, otherwise: int | None) -> dict[str, int]:
    """How long ids count (ms), by module; a module for which nobody says so keeps them for ever."""
    said = {
        name: module.ids_for if module.ids_for is not None else otherwise for name, module in catalog.modules.items()
    }
    return {name: window for name, window in said.items() if window is not None}


def files_of(config: Config, space: str, point: Callable[[str], None] = nowhere) -> Files | None:
    """The folder of a space's blobs, beside its file; none for a store in memory or on Postgres."""
    moved = config.spaces.get(space)
    folder = config.folder if moved is None else None if on_postgres(moved) else Path(moved)
    return None if folder is None else Files(folder / "blobs" / space, point)


def asking(world: World, space: str) -> Callable[[Query], Awaitable[Sequence[Row]]]:
    """How to ask one thing of a space at rest, without opening it."""

    async def look(query: Query) -> Sequence[Row]:
        answers = await world.soonest(space, query)
        return answers[0] if answers else ()

    return look


class Place:
    """One space as the driver sees it: asked at rest, without being opened."""

    def __init__(self, home: Home, world: World, abroad: Callable[[str], Space | None]) -> None:
        self.name = home.name
        self._abroad = abroad
        self.kinds: Sequence[str] = home.kinds
        self.home = home
        self._world = world

    async def look(self, query: Query) -> Sequence[tuple[object, ...]]:
        abroad = self._abroad(self.name)
        answers = await (self._world.soonest(self.name, query) if abroad is None else abroad.look(query))
        return answers[0] if answers else ()

    @property
    def here(self) -> bool:
        """Whether no other process has its file."""
        return self._abroad(self.name) is None


class Core:
    """Everything that runs while an app is open."""

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        world: World,
        clock: Clock,
        point: Callable[[str], None] = nowhere,
        stand_in: StandIn | None = None,
        run_pass: Passing = run_pass,
        standing: Standing | None = None,
    ) -> None:
        """`point` is called by name where a crash must lose nothing: before-send, after-send, step-returned,
        before-reply. The store has points of its own. stand_in, run_pass: for tests. standing: in a fleet.
        """
        self.config = config
        self.catalog = catalog
        self.world = world
        self.clock = clock
        self.standing = standing
        self.router: Router | None = None
        self.node = Node(clock.now, self, config.node.capacity, standing)
        self.ports: dict[str, Port[Any, Any] | Local] = dict(catalog.ports)
        self.point = point
        self.stand_in = stand_in
        self.run_pass = run_pass
        self.sender = Sender(self.node, self.ports, clock.now, point, self.gave_up, self.fetch, stand_in)
        self.places: list[Place] = []
        self.at: dict[str, Place] = {}
        self.spaces: dict[str, AuthorSpace] = {}
        self.windows = windows_of(catalog, config.retention.ids)
        self.runs: Any = None  # the host's verbs for runs, once it is open
        self.blobs: dict[str, Blobs] = {}
        self.noted = Noted()
        self.singles: Callable[[], Sequence[ActorId]] = tuple  # actors owned apart from their slots
        self.driver = Driver(clock, self.node, self._places_here, self.ours, self._apart)
        self.closing: list[Callable[[], Awaitable[None]]] = []  # what runs beside, and must end before the store does
        self.last: list[Callable[[], Awaitable[None]]] = []  # once nothing is on its way any more
        self.beside_idle: list[Callable[[], bool]] = []
        self.heard: list[Heard] = []
        self.programs: Programs = NoCells()
        self.evicts: Callable[[ActorId], Awaitable[str]] = _absent
        self.admits: Callable[[ActorId], Awaitable[None]] = _anybody  # waits while somebody has a cell alone
        self.newest: Callable[[ActorId], Awaitable[None]] = _anybody  # before a pass: takes up what others deployed
        self.acts: dict[str, Act] = {}  # that only an actor's owner can do, by name
        self.gained: list[Callable[[], None]] = []  # told that other actors are this process's now
        self.nudged: list[Callable[[], None]] = []  # told that another node left something new in the store
        self.looks: list[Callable[[ActorId], None]] = []  # told that an actor may be otherwise than they saw

    @cached_property
    def postman(self) -> Postman:
        """Who carries letters. An app without cells, and of no fleet, never loads that room."""
        from onefold.host.handing import Handing
        from onefold.host.postman import Postman

        main, shared = partial(self.space, MAIN), self.standing is not None
        return Postman(self.clock, main, Handing(self).open, self.ours, self._apart, shared, of_boxes(self.standing))

    @cached_property
    def letterbox(self) -> Letterbox:
        """Where letters are posted, which tells whoever carries them."""
        from onefold.host.letterbox import Letterbox

        return Letterbox(self.postman.post, shared=self.standing is not None)

    def keep(
        self,
        name: str,
        modules: Sequence[Module[Any, Any, Any, Any, Any]],
        *,
        schemas: Sequence[Schema] = (),
        beside: Mapping[str, Beside] | None = None,
        resting: Container[str] = (),
        ready: Callable[[AuthorSpace], Any] | None = None,
        windows: Mapping[str, int] | None = None,
    ) -> None:
        """Serve these kinds from the space `name`. `ready`: a coroutine function run once it is opened.
        `windows`: how long ids count (ms), by kind.
        """
        counted = windows or {}

        async def opening() -> tuple[AuthorSpace, Folder]:
            with nullcontext() if self.standing is None else self.standing.opening(name):
                space = await self.world.open(name, (KERNEL, BLOBS, *schemas))
            if ready is not None:
                await ready(space)
            self.spaces[name] = space
            blobs = self.blobs[name] = self._blobs(name, space)
            folder = Folder(self.ports, lambda: space.mint(TURN), lambda: space.mint(OWED), digest, blobs, counted)
            if LEDGER in schemas:
                folder.publisher = publisher(space)
            if self.config.alerts and PORT in self.ports:
                write = self.ports[PORT].body.encode  # type: ignore[union-attr]
                folder.alerts = Alerts(self.config.alerts, name, lambda: space.mint(OWED), write)
            return space, folder

        place = Place(self.node.keep(name, opening, modules, beside, resting, counted), self.world, self.abroad)
        self.places.append(place)
        self.at[name] = place

    def _blobs(self, name: str, space: Space) -> Blobs:
        files = files_of(self.config, name, self.point)
        return Blobs(space, self.clock.now, files, filed=self.config.blobs == "files", noted=self.noted)

    async def space(self, name: str) -> AuthorSpace:
        """The opened space of one of the kinds kept there; where another process has its file, one to look at."""
        abroad = self.abroad(name)
        if abroad is not None:
            return abroad  # type: ignore[return-value]  # it says so itself, of what cannot be done there
        await self.at[name].home.open()
        return self.spaces[name]

    def abroad(self, name: str) -> Space | None:
        """A space whose file another process has; None for one that is opened here."""
        return None if self.standing is None else self.standing.abroad(name)

    def let_go(self, name: str) -> None:
        """Close a space that is another process's now."""
        place = self.at[name]
        if place.home.let_go() is not None:
            self.spaces.pop(name, None)
            self.blobs.pop(name, None)
            release = getattr(self.world, "let_go", None)
            if release is not None:
                release(name)

    def _places_here(self) -> list[Place]:
        return [place for place in self.places if place.here]

    async def fetch(self, at: ActorId, digest: bytes) -> bytes:
        """The bytes that a row of this actor points at. Raises: BlobDamaged, StoreUnavailable."""
        home = self.node.kind(at.kind).home
        abroad = self.abroad(home.name)
        if abroad is not None:
            return await self._blobs(home.name, abroad).fetch(at.principal, digest)
        await home.open()
        return await self.blobs[home.name].fetch(at.principal, digest)

    async def whole(self, at: ActorId, word: Any) -> Any:
        """A word of this actor with the values that it only points at. Raises: BlobDamaged, StoreUnavailable."""
        aside = pointers(word)
        return filled(word, {digest: await self.fetch(at, digest) for digest in aside}) if aside else word

    @property
    def slots(self) -> int:
        """Into how many the store's actors fall."""
        return SLOTS if self.standing is None else self.standing.slots

    @property
    def quiet(self) -> bool:
        """Whether nothing moves: no turn, no send, no alarm that is due."""
        idle = self.sender.idle and self.node.idle and self.driver.quiet
        return idle and all(rests() for rests in self.beside_idle)

    def start(self) -> None:
        self.driver.start()

    async def stop(self, grace_s: float) -> None:
        """No new claims, then drain: alarms ring no more, sends get `grace_s` seconds, turns finish."""
        await self.driver.stop()
        for close in self.closing:
            await close()
        await self.sender.close(grace_s)
        await self.node.settled()
        for close in self.last:
            await close()
        await self.world.close()

    async def abandon(self) -> None:
        """As `stop`, but nothing finishes: what a kill leaves behind. For tests."""
        self.driver.abandon()
        for close in self.closing:
            await close()
        await self.sender.close(0)
        self.world.abandon()

    def fold(self, at: ActorId, event: str, told: bytes, word: Any, decide: Decide, **more: Any) -> Awaitable[Any]:
        """`Node.fold` of what came from outside, wherever the actor is. `word`: the event that `decide` is about."""
        if self.router is None:
            return self.node.fold(at, event, told, decide, **more)
        return self.router.fold(at, event, told, word, decide, **more)

    async def at_owner(self, at: ActorId, word: Mapping[str, Any], here: Callable[[], Awaitable[Any]]) -> Any:
        """What only the owner of an actor can do. `word`: its name, under "do", and what it needs; `here` does it."""
        return await here() if self.router is None else await self.router.do(at, word, here)

    def reads(self, sent: Sent) -> Any:
        """The event or program that was brought, as this code reads it. Raises: OwnedElsewhere; what makes it neither."""
        self.node.mine(sent.at)
        if self.router is not None:
            self.router.knows(sent.at)
        if sent.is_program:
            return self.programs.read_program(sent)
        return read_by(self.node.kind(sent.at.kind).module, sent.word)

    async def received(self, sent: Sent, takes: Brought | None = None, read: Any = None) -> tuple[Any, bool]:
        """A turn that another node or a letter brought, of an actor of this process: its reply, and whether it was given
        before. `read`: what `reads` made of it. Raises: as `reads`, and what its turn raises.
        """
        if read is None:
            read = self.reads(sent)
        if sent.is_program:
            return await self.programs.programmed(sent, read, takes), False
        await self.admits(sent.at)
        deciding = Deciding(self.node.kind(sent.at.kind).module.decide, read)
        reply = await self.node.fold(sent.at, sent.event, sent.digest, deciding, takes=takes)
        return reply, not deciding.asked

    def _apart(self) -> Sequence[ActorId]:
        return self.singles()

    def ours(self, space: str = MAIN) -> Sequence[int] | None:
        """The slots whose alarms and letters in a space are this process's; None: all there are."""
        if self.standing is None or space in self.standing.apart:
            return None
        held = self.standing.held_slots()
        return held if len(held) < self.standing.slots else None

    def shared_slots(self) -> Sequence[int] | None:
        """The slots that are this process's, of a fleet; None where it has its store for itself."""
        return None if self.standing is None else self.standing.held_slots()

    async def once_more(self, at: ActorId, row: Outstanding) -> None:
        """A person wants a parked row tried again. One that another person has just taken up is theirs."""
        if take_up(row):
            change = again(row, self.clock.now())
            with left_as_it_was(row):
                await self.node.fold(at, None, b"", None, change=change, replies=False, probe=False)

    # --- told by the node -------------------------------------------------------------------

    def send(self, resident: Resident, item: Outstanding) -> None:
        hold = resident.hold
        if hold is None or (not hold.leaving and self.node.holds(resident)):
            self.sender.send(resident, item)  # else whoever has the actor next sends it

    def gave_up(self, at: ActorId) -> None:
        for told in self.looks:
            told(at)

    def dropped(self, resident: Resident) -> None:
        """What its commit came to is in the rows: whoever waits for the actor looks anew."""
        for told in self.looks:
            told(resident.at)

    def armed(self, space: str, at: int) -> None:
        self.driver.armed(space, at)

    def folded(self, resident: Resident, folded: Folded) -> None:
        if folded.unsaved:
            at = resident.at
            log.warning("the snapshot of %s %s is too large for a row: it wakes from an older one", at.kind, at.key)
        for heard in self.heard:
            heard(resident, folded)


async def _absent(at: ActorId) -> str:
    return "absent"


async def _anybody(at: ActorId) -> None:
    """Nobody has it alone."""
