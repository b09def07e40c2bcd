"""node.node - actors resident in this process: activated when needed, evicted when not.

For: one actor in memory for each key in use, one lane a space, turns in order, room for others.
Never: owns the truth; sends; knows what a module means; evicts an actor in a turn.
Was wrong once: evicting any actor. The busiest one went as often as the one nobody asked for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Protocol

from onefold.kernel.alarm import LIMIT, Alarm
from onefold.kernel.alert import is_alert
from onefold.kernel.drain import looked_at
from onefold.kernel.fold import Folded, Folder, Outstanding
from onefold.kernel.module import Module
from onefold.kernel.prune import Pruned
from onefold.kernel.tables import ACTOR, TURN
from onefold.kernel.words import Decision
from onefold.node.batch import Beside
from onefold.node.brought import Brought
from onefold.node.home import Home, Kind, Opening
from onefold.node.lane import Lane, Retaken
from onefold.node.owning import Guard, Hold, Owning, of_actors
from onefold.node.resident import Resident, Turn
from onefold.node.told import UNHEARD, Told, on_ring, taken_back
from onefold.node.waking import Waits, pruned, woken
from onefold.store.contract import Query, Row, Space
from onefold.terms.errors import HostError, OutcomeUnknown, OwnedElsewhere, UnknownName
from onefold.terms.ids import ActorId, principal_of
from onefold.terms.instant import Instant
from onefold.terms.typed import Codec

_AT = TURN.at["at"]
LOOKED_AT = 64  # of the least recently used, for one to evict; those in a turn are passed over

Decide = Callable[[Any, datetime], Decision[Any, Any]]


class Outside(Protocol):
    """What the node tells its host, on the loop's thread; never raises."""

    def send(self, resident: Resident, item: Outstanding) -> None: ...
    def folded(self, resident: Resident, folded: Folded) -> None: ...
    def armed(self, space: str, at: int) -> None: ...
    def dropped(self, resident: Resident) -> None: ...


class Node:
    """Keeps up to `capacity` actors resident; the least recently used idle one makes room."""

    def __init__(
        self, now: Callable[[], Instant], outside: Outside, capacity: int = 10_000, owning: Owning | None = None
    ) -> None:
        """`owning`: the node's standing in a fleet; None where this process has the store for itself."""
        self._owning = owning
        self._now = now
        self._outside = outside
        self._capacity = capacity
        self._kinds: dict[str, Kind] = {}
        self._residents: OrderedDict[ActorId, Resident] = OrderedDict()
        self._by_number: dict[tuple[str, int], Resident] = {}
        self._arriving: dict[ActorId, asyncio.Future[Resident]] = {}
        self.waits = Waits()
        self.evictions = 0

    # --- spaces and kinds -------------------------------------------------------------------

    def keep(
        self,
        name: str,
        opening: Opening | Home,
        modules: Sequence[Module[Any, Any, Any, Any, Any]],
        beside: Mapping[str, Beside] | None = None,
        resting: Container[str] = (),
        windows: Mapping[str, int] | None = None,
    ) -> Home:
        """Serve these kinds from the space `name`, which `opening` opens when first needed; or from a home it has by now."""
        rows, told, guard = beside or {}, Told(self, name), self._owning

        def lane(space: Space, folder: Folder) -> Lane:
            return Lane(space, folder, self._now, told, rows, resting, windows, guard)

        home = opening if isinstance(opening, Home) else Home(name, opening, lane)
        for module in modules:
            home.kinds.append(module.name)
            self._kinds[module.name] = Kind(module, home)
        return home

    def kind(self, name: str) -> Kind:
        """Raises: UnknownName."""
        found = self._kinds.get(name)
        if found is None:
            raise UnknownName("module", name)
        return found

    @property
    def resident_count(self) -> int:
        return len(self._residents)

    @property
    def idle(self) -> bool:
        """Whether no turn is queued or committing, and nobody is being read from the store."""
        lanes = [kind.home.lane for kind in self._kinds.values()]
        return not self._arriving and all(lane is None or lane.idle for lane in lanes)

    async def settled(self) -> None:
        """Wait until no turn is queued or committing in any space."""
        for kind in tuple(self._kinds.values()):
            if kind.home.lane is not None:
                await kind.home.lane.settled()

    # --- turns ------------------------------------------------------------------------------

    async def fold(
        self,
        at: ActorId,
        event: str | None,
        digest: bytes,
        decide: Decide | None,
        *,
        replies: bool = True,
        probe: bool = True,
        removes: int | None = None,
        change: Outstanding | None = None,
        reads: Codec[Any] | None = None,
        takes: Brought | None = None,
    ) -> Any:
        """Fold one thing; its reply, after the commit. `change` rides along, `takes` (what brought it) goes. `reads`: its codec.

        Raises: UnknownName, KeyConflict, AlreadyDone, TooLarge, DecideFailed, HostError, OwnedElsewhere; a module's own.
        """
        unknown: OutcomeUnknown | None = None
        while True:
            try:
                resident = await self._wanted(at, event)
                if removes is not None and removes not in resident.owed:
                    return None  # it was confirmed or dropped meanwhile
                if change is not None and change.n not in resident.owed:
                    if decide is None:
                        return None
                    change = None
                future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                asks = probe or unknown is not None
                turn = Turn(resident, event, digest, decide, future, replies, asks, removes, change, None, reads, takes)
                lane = self._kinds[at.kind].home.lane
                assert lane is not None  # the actor was activated from it
                lane.submit(turn)
                return await future
            except Retaken:
                taken_back(decide)
            except OutcomeUnknown as lost:
                # Looked up by id, not retried blindly: the id is asked before it is folded again.
                if unknown is not None or event is None:
                    raise
                unknown = lost
            except HostError:
                if unknown is not None:
                    raise unknown from None  # it could not be looked up: no refusal, though this one is
                raise

    async def _wanted(self, at: ActorId, event: str | None) -> Resident:
        """The actor, for something to fold. Raises: as `activate`."""
        resident = self._here(at)
        if resident is None:
            resident = await self.activate(at)
        else:
            self._residents.move_to_end(at)
        if resident.hold is not None:
            resident.hold.admit(event)
        return resident

    def remove(self, resident: Resident, n: int) -> bool:
        """Take away an owed row that its module hears nothing of; nobody waits. False when it cannot be now."""
        lane = self._kinds[resident.at.kind].home.lane
        if resident.gone or n not in resident.owed or lane is None:
            return False
        lane.submit(Turn(resident, None, b"", None, UNHEARD, False, False, n))
        return True

    async def read(self, at: ActorId) -> Any:
        """The durable state; the initial one for an actor without history. Never folds."""
        return (await self.shown(at)).durable

    async def ring(self, resident: Resident) -> None:
        """The actor's alarm: fold its wake if that is due, write the row exactly, send what is due."""
        module, at = resident.module, resident.at
        given_up = resident.alarm.given_up and resident.failed_wake is not None
        decide = partial(on_ring, module, resident.failed_wake if given_up else None)
        await self.fold(at, None, b"", decide, replies=False, probe=False)
        if (current := self._residents.get(at)) is not None:
            self.send_due(current)

    async def rearm(self, at: ActorId) -> None:
        """Ring an alarm that was parked, with a fresh count."""
        resident = await self.activate(at)
        resident.failed_wake = None
        resident.alarm = Alarm(self._now(), 0, None, True)
        await self.ring(resident)

    async def disarm(self, at: ActorId) -> None:
        """Take a parked alarm away. The actor's next event arms it again if its wake is still due."""
        resident, lane = await self.activate(at), await self.kind(at.kind).home.open()
        resident.failed_wake = None
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        rings = [looked_at(row, self._now()) for row in resident.owed.values() if row.next_at is not None]
        # What is owed beside it still rings; the wake, which nobody sees any more, is not tried then.
        alarm = Alarm(min(rings), LIMIT, None, True) if rings else Alarm()
        lane.submit(Turn(resident, None, b"", None, future, replies=False, probe=False, alarm=alarm))
        await future

    def send_due(self, resident: Resident) -> None:
        """Hand every owed row that is due and not on its way to the sender."""
        now = self._now()
        for item in list(resident.owed.values()):
            if item.next_at is not None and item.next_at <= now and not item.in_flight:
                self._outside.send(resident, item)

    # --- residency --------------------------------------------------------------------------

    async def activate(self, at: ActorId) -> Resident:
        """The actor, read from its rows if it is not there. Raises: UnknownName, WaitsForCode, StoreUnavailable, OwnedElsewhere."""
        while (resident := self._here(at)) is None:
            arriving = self._arriving.get(at)
            if arriving is None:
                return await self._arrive(at)
            await asyncio.wait((arriving,))  # not awaited itself: whoever gives up must not take the others along
            if not arriving.cancelled():
                return arriving.result()
        return resident

    async def seen(self, at: ActorId) -> Resident:
        """The actor to be looked at. Where another node owns it: as its rows are now, and nothing is to be folded on it."""
        try:
            return await self.activate(at)
        except OwnedElsewhere:
            resident = await self._read_rows(at)
            resident.gone = True
            return resident

    async def shown(self, at: ActorId) -> Resident:
        """As `seen`, for a look alone: from its rows while a commit is on its way, which another node may have shown."""
        resident = await self.seen(at)
        return await self._read_rows(at) if resident.hold is not None and resident.pending else resident

    def _here(self, at: ActorId) -> Resident | None:
        """The actor if it is in memory and still this node's."""
        resident = self._residents.get(at)
        if resident is not None and resident.hold is not None and not self.holds(resident):
            self._forget(resident, at)
            return None
        return resident

    def mine(self, at: ActorId) -> None:
        """Raises: OwnedElsewhere where this process does not own the actor."""
        if self._owning is not None:
            self._owning.hold(at)

    def holds(self, resident: Resident) -> bool:
        """Whether this node may send and answer for the actor now."""
        return resident.hold is None or (self._owning is not None and self._owning.valid(resident.hold))

    async def _arrive(self, at: ActorId) -> Resident:
        """Read the actor for all who want it now. When this one gives up, one of the others reads."""
        arriving = self._arriving[at] = asyncio.get_running_loop().create_future()
        try:
            hold = None if self._owning is None else self._owning.hold(at)
            resident = await self._read_rows(at)
            resident.hold = hold
        except asyncio.CancelledError:
            arriving.cancel()
            raise
        except BaseException as fault:
            self.waits.note(at, fault, self._now())
            arriving.set_exception(fault)
            arriving.exception()
            raise
        finally:
            del self._arriving[at]
        self.waits.over(at)
        self._residents[at] = resident
        self._by_number[(resident.base.kind, resident.base.actor)] = resident
        arriving.set_result(resident)
        self._make_room(resident)
        return resident

    async def behind(self, kind: str, numbers: Sequence[int]) -> list[tuple[int, ActorId]]:
        """The actors behind these row numbers, none of them activated."""
        known = [(n, self._by_number.get((kind, n))) for n in numbers]
        found = [(n, resident.at) for n, resident in known if resident is not None]
        missing: list[Row] = [(n,) for n, resident in known if resident is None]
        if missing:
            lane = await self.kind(kind).home.open()
            (rows,) = await lane.space.look(Query(ACTOR, on=("n",), keys=missing))
            found.extend((n, ActorId(of, principal_of(who), key)) for n, of, who, key, _slot in rows)
        return found

    async def _read_rows(self, at: ActorId) -> Resident:
        kind = self.kind(at.kind)
        if self._owning is None:
            return await woken((await kind.home.open()).space, kind.module, at)
        space = self._owning.abroad(kind.home.name) or (await kind.home.open()).space
        return await woken(space, kind.module, at, self._owning.slots)

    async def prune(self, at: ActorId) -> Pruned:
        """Take the facts behind the actor's latest snapshot. Raises: StoreUnavailable, OutcomeUnknown, OwnedElsewhere."""
        kind, guard = self._kinds[at.kind], self.guard(at)
        return await pruned((await kind.home.open()).space, guard, kind.module, at)

    def guard(self, *actors: ActorId) -> Guard:
        """Of a commit in these actors' space that is no turn. Raises: OwnedElsewhere."""
        return of_actors(self._owning, actors)

    @contextmanager
    def apart(self, actors: Sequence[ActorId]) -> Iterator[set[ActorId]]:
        """Keep these actors out of memory for the block; whoever wants one waits for its end. Gives those
        that could be: not one in a turn, or just being read."""
        held: dict[ActorId, asyncio.Future[Resident]] = {}
        for at in actors:
            resident = self._residents.get(at)
            if at not in self._arriving and at not in held and (resident is None or self.evict(at)):
                held[at] = self._arriving[at] = asyncio.get_running_loop().create_future()
        try:
            yield set(held)
        finally:
            for at, arriving in held.items():
                del self._arriving[at]
                arriving.cancel()

    def _make_room(self, newest: Resident | None = None) -> None:
        over = len(self._residents) - self._capacity
        if over > 0:
            for resident in tuple(islice(self._residents.values(), LOOKED_AT)):
                if resident.idle and resident is not newest:
                    self.evict(resident.at)
                    over -= 1
                    if not over:
                        return

    def evict(self, at: ActorId) -> bool:
        """Drop an idle actor from memory; its rows stay. Returns whether it was there and idle."""
        resident = self._residents.get(at)
        if resident is None or not resident.idle:
            return False
        self._forget(resident, at)
        self.evictions += 1
        return True

    def let_go(self, holds: Container[Hold]) -> bool:
        """Drop the actors held by these; False while one of them is in a turn or a send of it is on its way."""
        mine = [one for one in self._residents.values() if one.hold is not None and one.hold in holds]
        for resident in mine:
            if not (resident.pending or resident.sending):
                self._forget(resident, resident.at)
        return all(resident.gone for resident in mine)

    def _forget(self, resident: Resident, at: ActorId) -> None:
        resident.gone = True
        if self._residents.get(at) is resident:
            del self._residents[at]
            self._by_number.pop((at.kind, resident.base.actor), None)

    def resident(self, at: ActorId) -> Resident | None:
        """The actor if it is in memory."""
        return self._residents.get(at)

    # --- told by the lanes --------------------------------------------------------------------

    def folded(self, resident: Resident, folded: Folded) -> None:
        if len(self._residents) > self._capacity:
            self._make_room()
        if folded.facts:
            for watch in tuple(resident.watchers):
                watch(folded.facts)
        now = folded.turn[_AT]
        for item in folded.owed:
            if item.n in resident.owed and item.next_at is not None and item.next_at <= now:  # type: ignore[operator]
                self._outside.send(resident, item)
        if resident.module.may_void and folded.facts:
            for item in list(resident.owed.values()):
                if not item.in_flight and not is_alert(item) and resident.module.voids(resident.durable, item.name):
                    self._outside.send(resident, item)  # which finds that nothing is to be sent, and says so
        self._outside.folded(resident, folded)

    def armed(self, space: str, at: int) -> None:
        self._outside.armed(space, at)

    def owes(self, resident: Resident, item: Outstanding) -> None:
        self._outside.send(resident, item)

    def dropped(self, resident: Resident) -> None:
        self._forget(resident, resident.at)
        self._outside.dropped(resident)
