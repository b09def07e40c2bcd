"""host.membership - one process as a node of its fleet: it joins, lives, takes what is its own, hands over, leaves.

For: a beat that looks at the fleet's rows and does what the plan says; a new life where another node closed this one.
Never: decides who owns what (fleet.planning does); lets go of an actor in a turn; answers for what it holds no longer.
Was wrong once: slots handed over at once. A step that was being paid for was paid for again by the next owner. And nodes
closed by the store's clock alone: it was set two minutes ahead, and the first that renewed closed all the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from onefold.fleet.claims import inheriting, lapsing
from onefold.fleet.ownership import (
    CLOSED,
    LEAVING,
    LIVE,
    NODE,
    OWNER,
    Me,
    NodeRow,
    OwnerRow,
    actor_name,
    closing,
    handing,
    joining,
    looked,
    seen,
    slot_name,
    space_name,
    taking,
    telling,
)
from onefold.fleet.planning import Plan, plan
from onefold.fleet.standing import Standing
from onefold.host.clock import Clock
from onefold.host.lease import PART, Lease, Renewal
from onefold.node.node import Node
from onefold.node.owning import Hold
from onefold.store.contract import Body, Done, Query, Refused, Space
from onefold.terms.errors import Finding, LoadRefused, OnefoldError, OutcomeUnknown
from onefold.terms.ids import SLOTS, ActorId, slot_of

T = TypeVar("T")
HAND_MS = 2_000  # how long what is on its way may take before its actor moves; at the end of a process its grace counts
PATIENT_MS = 3_000  # while a node stops; less than a server waits for its answers
LOOK_MS = 10
SILENT_PART = 2  # of a lease, for which a node is not closed by another: two renewals of it
AT_ONCE = 256  # names of one hand-over: those of one wait for the slowest of them
log = logging.getLogger("onefold.fleet")

Gained = Callable[[Collection[str]], None]
Told = Callable[[Iterable[str]], None]


class Membership:
    """This process in the fleet. `space`: where the fleet's rows are. `incarnation`: of the store's history."""

    def __init__(
        self,
        name: str,
        url: str | None,
        slots: int | None,
        standing: Standing,
        lease: Lease,
        renewal: Renewal,
        clock: Clock,
        space: Callable[[], Awaitable[Space]],
        node: Callable[[], Node],
        incarnation: Callable[[], int],
        spaces: Sequence[str] = (),
    ) -> None:
        """`spaces`: those that one process has for itself, spread like slots."""
        self.name = name
        self.standing = standing
        self.lease = lease
        self.gained: Gained = _ignored
        self.lost: Callable[[], None] = lambda: None  # names may be another's now
        self.ended: Callable[[], None] = lambda: None  # a life that was seen is over
        self._lives: frozenset[tuple[str, int]] = frozenset()
        self._seen_at: dict[
            str, tuple[tuple[int, int], int]
        ] = {}  # each life's lease as it stands, and since when (boot)
        self.told: Told = _ignored  # nodes that something was handed to
        self.patient_until: int | None = None  # while it stops, turns wait for other nodes until then (boot)
        self._url = url
        self._slots = slots
        self._renewal = renewal
        self._clock = clock
        self._space = space
        self._node = node
        self._incarnation = incarnation
        self._spaces = spaces
        self._names: tuple[str, ...] = ()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()

    @property
    def reached(self) -> Sequence[str]:
        return () if self._url is None else (urlsplit(self._url).netloc,)

    # --- joining and leaving ------------------------------------------------------------------------

    async def join(self) -> None:
        """A new life, and what nobody has. Raises: LoadRefused where the store has other slots, StoreUnavailable."""
        sent = self.lease.boot()
        joined = await self.transact(
            joining(self.name, self._url, self.lease.ms, self._slots or SLOTS, strict=self._slots is not None),
            f"joining as {self.name}",
        )
        if self._slots is not None and joined.slots != self._slots:
            told = f"the store has {joined.slots}, since it was made; leave this out, or say the same"
            raise LoadRefused([Finding("slots", told)])
        self.lease.closed, self.lease.state = False, LIVE
        self.lease.renewed(sent, joined.now)
        self._names = (*map(slot_name, range(joined.slots)), *map(space_name, self._spaces))
        self.standing.joined(joined.me, joined.slots, self._names)
        self._renewal.begin(joined.me)
        await self.look()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._live(), name="onefold fleet")
        self._task.add_done_callback(self._fell)

    def _fell(self, task: asyncio.Task[None]) -> None:
        """A node that looks no more must not go on as if it did: its lease ends by itself, and others take its place."""
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("node %s cannot look at its fleet any more, and lets its lease end", self.name, exc_info=fault)
            self._renewal.end()

    async def leave(self, grace_ms: int) -> None:
        """Hand everything over, to whoever stays, and close this life."""
        self.patient_until = self.lease.boot() + PATIENT_MS
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        me = self.standing.me
        try:
            if self.lease.left_ms() > 0 and await self._tell(me, LIVE, LEAVING):
                await self._look(grace_ms)
        except OnefoldError as fault:
            log.warning("node %s could not hand over what it owns: %s", self.name, fault)
        self._renewal.end()
        await self._renewal.ended()

    async def close(self) -> None:
        """Nothing is on its way any more: what is still owned is anybody's at once."""
        try:
            await self._tell(self.standing.me, self.lease.state, CLOSED)
        except OnefoldError as fault:
            log.warning("node %s could not say that it is gone: %s", self.name, fault)
        self.standing.over()

    def abandon(self) -> None:
        """As a kill would leave it. For tests."""
        if self._task is not None:
            self._task.cancel()
        self._renewal.end()

    async def _tell(self, me: Me, before: str, state: str) -> bool:
        self.lease.state = state
        return await self.transact(telling(me, before, state), f"the state of node {self.name}")

    # --- living -------------------------------------------------------------------------------------

    def nudge(self) -> None:
        """Something changed: look now."""
        self._woken.set()

    async def look(self) -> None:
        """Look at the fleet's rows, and do what is this node's to do. Raises: StoreUnavailable."""
        await self._look(HAND_MS)

    async def learn(self) -> None:
        """Learn what the fleet's rows say, and do nothing about it. Raises: StoreUnavailable."""
        self._learned(self.standing.look(seen(await (await self._space()).look(*looked()), self.lease.now())))

    async def refresh(self, at: ActorId) -> None:
        """Learn who has one actor now. What cannot be read is left to the next look.

        A slot that is ours under a newer epoch is learned with all names: an actor may have been claimed apart from it.
        """
        standing = self.standing
        own = actor_name(at)
        names = {own, standing.name_of(at), slot_name(slot_of(at, standing.slots))}
        try:
            space = await self._space()
            nodes, rows = await space.look(
                Query(NODE), Query(OWNER, on=("name",), keys=[(name,) for name in sorted(names)])
            )
            known = standing.seen.owners
            newer = [r for r in map(OwnerRow.of, rows) if r.name not in known or known[r.name].epoch < r.epoch]
            if any(row.belongs(standing.me) and row.name != own for row in newer):
                await self.learn()
                return
        except OnefoldError as fault:
            log.warning("who owns %s %s could not be read: %s", at.kind, at.key, fault)
            return
        standing.met({row[0]: NodeRow.of(row) for row in nodes}, self.lease.now())
        self._learned(standing.changed(newer))

    async def _look(self, grace_ms: int) -> None:
        async with self._looking:
            now = self.lease.now()
            self._learned(self.standing.look(seen(await (await self._space()).look(*looked()), now)))
            todo = plan(self.standing.me, self.standing.seen, self._names)
            silent = self._silent(todo.close)
            if silent:
                closed = await self._try(closing(self.standing.me, self.lease.ms, list(silent), silent))
                if closed:
                    log.warning("the lease of node %s is over: it is closed", " and ".join(closed))
                    self._learned(self.standing.look(seen(await (await self._space()).look(*looked()), now)))
                    todo = plan(self.standing.me, self.standing.seen, self._names)
            self._mourn()
            await self._do(todo, grace_ms)

    def _silent(self, names: Collection[str]) -> dict[str, int]:
        """Of these, whose lease seems over, those that have not renewed it for half a lease by the clock of this machine,
        each with its end. Where the store's clock goes ahead all seem over at once, until they renew it.
        """
        now, nodes, before = self.lease.boot(), self.standing.seen.nodes, self._seen_at
        lives = {name: (node.incarnation, node.until) for name, node in nodes.items()}
        self._seen_at = {
            name: before[name] if name in before and before[name][0] == life else (life, now)
            for name, life in lives.items()
        }
        return {
            name: nodes[name].until for name in names if now - self._seen_at[name][1] >= self.lease.ms // SILENT_PART
        }

    def _mourn(self) -> None:
        """Tell of lives that are over since the last look."""
        nodes = self.standing.seen.nodes.values()
        lives = frozenset((row.name, row.incarnation) for row in nodes if row.state != CLOSED)
        before, self._lives = self._lives, lives
        if before - lives:
            self.ended()

    async def _live(self) -> None:
        while True:
            self._woken.clear()
            await self._clock.wait(self._clock.now() + self.lease.ms // PART, self._woken)
            try:
                self.lost()
                if self.lease.closed:
                    self.standing.over()
                    self.lost()
                    if await self._ousted():
                        return
                    await self.join()
                else:
                    await self.look()
            except OnefoldError as fault:
                log.warning("node %s could not look at its fleet: %s", self.name, fault)

    async def _ousted(self) -> bool:
        """Whether another process lives under this node's name: then this one does not come back."""
        (rows,) = await (await self._space()).look(Query(NODE, on=("name",), keys=[(self.name,)]))
        ousted = bool(rows) and NodeRow.of(rows[0]).incarnation != self.standing.me.incarnation
        if ousted and NodeRow.of(rows[0]).state != CLOSED:
            self._renewal.end()
            log.error(
                "another process joined as node %s: this one takes no further part. Stop it, or rename it", self.name
            )
            return True
        return False

    async def _do(self, todo: Plan, grace_ms: int) -> None:
        me, incarnation = self.standing.me, self._incarnation()
        if todo.lapsed:
            await self._try(lapsing(dict(todo.lapsed), incarnation))
            self._woken.set()
        if todo.take:
            taken = await self._try(taking(me, todo.take, incarnation)) or {}
            self._learned(
                self.standing.changed(OwnerRow(name, me.name, me.incarnation, epoch) for name, epoch in taken.items())
            )
            claimed = {name: epoch for name, epoch in taken.items() if self.standing.seen.leases.get(name)}
            if claimed:
                await self._try(inheriting(me, claimed))
        names = list(todo.hand)
        for at in range(0, len(names), AT_ONCE):
            await self._hand({name: todo.hand[name] for name in names[at : at + AT_ONCE]}, grace_ms)

    async def _hand(self, names: Mapping[str, tuple[int, Me]], grace_ms: int) -> None:
        """Take nothing new for these names, let what is on its way finish, and give them to their next owners."""
        holds = self.standing.leave(names)
        try:
            await self._rested(holds, grace_ms)
            for hold in holds:
                hold.over = True
            self.lost()
            given = await self._try(handing(self.standing.me, names, self._incarnation())) or []
        except BaseException:
            for hold in holds:
                hold.leaving = False
            raise
        self.standing.changed(given)
        self.told({row.node for row in given})

    async def _rested(self, holds: Collection[Hold], grace_ms: int) -> None:
        """Until none of their actors is in a turn, or in a send, or the grace is over."""
        until = self.lease.boot() + grace_ms
        held = set(holds)
        while not self._node().let_go(held) and self.lease.boot() < until:
            await self._clock.wait(self._clock.now() + LOOK_MS, asyncio.Event())

    def _learned(self, gained: Collection[str]) -> None:
        if gained:
            self.gained(gained)

    # --- the store ------------------------------------------------------------------------------------

    async def transact(self, body: Body[T], what: str) -> T:
        """Raises: what refused it, OutcomeUnknown."""
        outcome = await (await self._space()).transact(body)
        if isinstance(outcome, Refused):
            raise outcome.error
        if not isinstance(outcome, Done):
            raise OutcomeUnknown(what)
        return outcome.value

    async def _try(self, body: Body[T]) -> T | None:
        """What came of it. None where that is not known, or somebody else was faster: the next look shows."""
        try:
            return await self.transact(body, "a change of owners")
        except OnefoldError as fault:
            log.warning("owners could not be changed: %s", fault)
            return None


def _ignored(_: Any) -> None:
    """Nobody listens yet."""
