"""host.routing - a turn of an actor, wherever it lives.

For: the turn here where the actor is ours; else over HTTP to the node that owns it; as a letter under the same id where
nobody knows whether it arrived, or where its owner cannot be reached.
Never: folds for another node; sends a second turn to an actor while one of this node's is on its way to it as a letter.
Was wrong once: an ambiguous turn sent again over HTTP. Its sender's next one had gone on ahead of it.
And a wait for the answer of a node that another had replaced meanwhile: its caller waited half a minute for nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from onefold.fleet.mailbox import MAIL, answered, letter, refusal
from onefold.fleet.ownership import NodeRow
from onefold.fleet.wire import Answer, Sent
from onefold.host.clock import Clock
from onefold.host.connection import Ambiguous, NotReached
from onefold.host.deciding import Deciding, read_by
from onefold.host.lease import PART
from onefold.host.letterbox import Letterbox
from onefold.host.membership import Membership
from onefold.host.peers import Peers
from onefold.kernel.blob import pointed
from onefold.kernel.module import Module
from onefold.kernel.tables import ACTOR, TURN
from onefold.node.node import Decide, Node
from onefold.node.waking import row_of
from onefold.store.contract import Done, Query, Space
from onefold.terms.codec import parse
from onefold.terms.errors import (
    AlreadyDone,
    BadArguments,
    NotFound,
    OnefoldError,
    OutcomeUnknown,
    OwnedElsewhere,
    UnknownName,
)
from onefold.terms.ids import ActorId, principal_text
from onefold.terms.typed import Codec

LEASES = 3  # how long a turn waits for somebody to own its actor: a node that died is replaced within one
FIRST_MS, LONGEST_MS = 5, 250  # between two looks
WATCH_MS = 1_000  # how long a change may stay unseen that came between a look and the watch
TRIES = 2  # to reach a node that the store says is alive, before its box is used
log = logging.getLogger("onefold.fleet")

SpaceOf = Callable[[str], Awaitable[Space]]


class Router:
    """Of one node. `space_of`: the opened space of a kind. `fetch`: a value that lies aside."""

    def __init__(
        self,
        node: Node,
        membership: Membership,
        peers: Peers,
        clock: Clock,
        space_of: SpaceOf,
        fetch: Callable[[ActorId, bytes], Awaitable[bytes]],
        letterbox: Letterbox,
    ) -> None:
        self._node = node
        self._membership = membership
        self._peers = peers
        self._clock = clock
        self._space_of = space_of
        self._fetch = fetch
        self._letterbox = letterbox
        self._by_mail: Counter[ActorId] = Counter()  # turns of ours that are letters by now
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._more: set[str] = set()  # nodes that something is to be told of, once they have heard the last
        self._newer: set[str] = set()  # kinds that this node's code is too old for, once it was said

    async def fold(
        self,
        at: ActorId,
        event: str,
        told: bytes,
        word: Any,
        decide: Decide,
        *,
        reads: Codec[Any] | None = None,
        **more: Any,
    ) -> Any:
        """`Node.fold`, wherever the actor is. `word`: its event, as its module knows it."""
        try:
            return await self._node.fold(at, event, told, decide, reads=reads, **more)
        except OwnedElsewhere as elsewhere:
            first = elsewhere
        module = self._node.kind(at.kind).module
        sent = Sent(at, event, told, module.codecs.event.to_json(word))

        async def here() -> Any:
            return await self._node.fold(at, event, told, decide, reads=reads, **more)

        answer = await self.ask(sent, here, first)
        if not isinstance(answer, Answer):
            return answer
        if isinstance(decide, Deciding):
            decide.asked = not answer.replayed
        return (reads or module.codecs.reply).decode(answer.reply)

    async def ask(self, sent: Sent, here: Callable[[], Awaitable[Any]], first: OwnedElsewhere) -> Any:
        """An `Answer` of another node, or what `here` gives once the actor is ours. Raises: what its turn raises there;
        OwnedElsewhere when nobody took it for a while, OutcomeUnknown.
        """
        until = self._membership.lease.boot() + LEASES * self._membership.lease.ms
        pause, missed, elsewhere = FIRST_MS, 0, first
        while True:
            peer = self._membership.standing.node_of(sent.at)
            if peer is not None and peer.name != self._membership.name:
                if self._by_mail[sent.at] or peer.url is None or missed >= TRIES:
                    return await self._by_letter(sent, peer)
                answer = await self._asked(peer, sent)
                if isinstance(answer, Answer):
                    return answer
                if isinstance(answer, Ambiguous):
                    return await self._by_letter(sent, peer)
                if isinstance(answer, OwnedElsewhere):
                    elsewhere = answer
                elif isinstance(answer, OnefoldError):
                    raise answer
                missed += isinstance(answer, NotReached)
            if self._late(until):
                raise elsewhere
            await self._clock.wait(self._clock.now() + pause, asyncio.Event())
            pause = min(2 * pause, LONGEST_MS)
            await self._membership.refresh(sent.at)
            try:
                return await here()
            except OwnedElsewhere as again:
                elsewhere = again

    async def _asked(self, peer: NodeRow, sent: Sent) -> Answer | OnefoldError | NotReached | Ambiguous:
        """What a node says to a turn. It is given up on once the node is known not to have the actor any more: one that
        stands still, or hears nothing of its database, keeps who asked it for as long as it can.
        """
        assert peer.url is not None
        asking = asyncio.get_running_loop().create_task(self._peers.ask(peer.url, sent), name="onefold ask")
        try:
            while True:
                await asyncio.wait((asking,), timeout=self._membership.lease.ms / PART / 1000)
                if asking.done():
                    return asking.result()
                owner = self._membership.standing.node_of(sent.at)
                if owner is None or (owner.name, owner.incarnation) != (peer.name, peer.incarnation):
                    return Ambiguous()
        finally:
            asking.cancel()

    async def program(self, sent: Sent, here: Callable[[], Awaitable[Any]]) -> Any:
        """The reply to a program of a cell, wherever it runs."""
        try:
            return await here()
        except OwnedElsewhere as elsewhere:
            answer = await self.ask(sent, here, elsewhere)
        if not isinstance(answer, Answer):
            return answer
        return self._node.kind(sent.at.kind).module.codecs.reply.decode(answer.reply)

    async def evict(self, at: ActorId, here: Callable[[], Awaitable[str]]) -> str:
        """Let it leave memory, where it is. One that nobody has is nowhere in memory."""
        peer = self._membership.standing.node_of(at)
        if peer is None or peer.name == self._membership.name or peer.url is None:
            return await here()
        answer = await self._peers.ask(peer.url, Sent(at, "d/evict", b"", {"do": "evict"}))
        return str(parse(answer.reply)) if isinstance(answer, Answer) else "absent"

    async def do(self, at: ActorId, word: Mapping[str, Any], here: Callable[[], Awaitable[Any]]) -> Any:
        """What is no turn, where the actor is: `here`, or the act that `word` names. Raises: what it raises there;
        OwnedElsewhere when nobody took the actor for a while, OutcomeUnknown where it may have been done.
        """
        until, pause = self._membership.lease.boot() + LEASES * self._membership.lease.ms, FIRST_MS
        while True:
            try:
                return await here()
            except OwnedElsewhere as elsewhere:
                last = elsewhere
            peer = self._membership.standing.node_of(at)
            if peer is not None and peer.name != self._membership.name and peer.url is not None:
                answer = await self._peers.ask(peer.url, Sent(at, f"d/{word['do']}", b"", dict(word)))
                if isinstance(answer, Answer):
                    return parse(answer.reply)
                if isinstance(answer, Ambiguous):
                    raise OutcomeUnknown(f"{word['do']} of {at.kind} {at.key}")
                if isinstance(answer, OnefoldError) and not isinstance(answer, OwnedElsewhere):
                    raise answer
            if self._late(until):
                raise last
            await self._clock.wait(self._clock.now() + pause, asyncio.Event())
            pause = min(2 * pause, LONGEST_MS)
            await self._membership.refresh(at)

    def _late(self, until: int) -> bool:
        """Whether to wait no longer. A node that stops answers before its server cuts off whoever still waits."""
        return self._membership.lease.boot() >= min(until, self._membership.patient_until or until)

    def node_of(self, at: ActorId) -> str | None:
        """Who has an actor, as far as is known."""
        peer = self._membership.standing.node_of(at)
        return None if peer is None else peer.name

    def knows(self, at: ActorId, word: Any = None) -> Module[Any, Any, Any, Any, Any]:
        """The module of an actor of ours. Raises: OwnedElsewhere where this code does not know it, or this word of it:
        whoever sent it has newer code, and this node is about to be replaced.
        """
        try:
            module = self._node.kind(at.kind).module
            if word is not None:
                read_by(module, word)
        except (UnknownName, BadArguments, NotFound) as fault:
            raise self.newer(at, fault) from fault
        return module

    def newer(self, at: ActorId, fault: OnefoldError) -> OwnedElsewhere:
        """What is said of a turn that this node's code cannot read, and whoever sent it could."""
        if at.kind not in self._newer:
            self._newer.add(at.kind)
            log.warning("%s %s is of newer code than this node's: %s", at.kind, at.key, fault)
        held = self._membership.standing.hold(at).epoch
        return OwnedElsewhere(self._membership.standing.name_of(at), self._membership.name, held, held)

    def elsewhere(self, at: ActorId) -> bool:
        """Whether another node has the actor, or nobody."""
        try:
            self._node.mine(at)
        except OwnedElsewhere:
            return True
        return False

    async def watch(self, at: ActorId, seen: int) -> None:
        """Until an actor of another node has other facts than the `seen` ones, WATCH_MS at the longest."""
        peer = self._membership.standing.node_of(at)
        if peer is not None and peer.url is not None:
            sent = Sent(at, "d/watch", b"", {"do": "watch", "after": seen})
            if isinstance(await self._peers.ask(peer.url, sent), Answer):
                return
        await self._clock.wait(self._clock.now() + LONGEST_MS, asyncio.Event())

    def told(self, at: ActorId) -> str | None:
        """Tell whoever has an actor that a letter is there; who that is."""
        peer = self._membership.standing.node_of(at)
        self.tell(peer)
        return None if peer is None else peer.name

    def tell_all(self) -> None:
        """Let every other node know that something is new in the store."""
        for peer in self._membership.standing.seen.nodes.values():
            self.tell(peer)

    # --- as a letter --------------------------------------------------------------------------------

    async def _by_letter(self, sent: Sent, peer: NodeRow) -> Answer:
        """Put it into the actor's box, and wait for its turn. Raises: KeyConflict, Busy, OutcomeUnknown; what refuses it."""
        self._by_mail[sent.at] += 1
        try:
            sender = f"node {self._membership.name}"
            if await self.post(sent, sender=sender) and await self._refused(sent) is not None:
                await self.post(sent, sender=sender)  # nobody had waited for the answer of the first
            self.tell(peer)
            return await self._reply(sent, self._membership.lease.boot() + LEASES * self._membership.lease.ms)
        finally:
            self._by_mail[sent.at] -= 1
            if not self._by_mail[sent.at]:
                del self._by_mail[sent.at]

    async def post(self, sent: Sent, *, sender: str) -> bool:
        """Commit it to the box; whether it was there already. Raises: KeyConflict, Busy, OutcomeUnknown."""
        apart, space = sent.at.kind in self._membership.standing.apart, await self._box_of(sent)
        slots = self._membership.standing.slots
        row = letter(space.mint(MAIL), sent.at, sent.event, sender, sent.body, self._clock.now(), slots)
        return await self._letterbox.post(space, row, None if apart else sent.digest)

    async def _box_of(self, sent: Sent) -> Space:
        """The space of its actor's box."""
        return await self._space_of("" if sent.at.kind in self._membership.standing.apart else sent.at.kind)

    async def _refused(self, sent: Sent) -> OnefoldError | None:
        """What refused its letter where its owner has it, and the letter is gone; None while that is not so."""
        space = await self._box_of(sent)
        key = (sent.at.kind, principal_text(sent.at.principal), sent.at.key, sent.event)
        (rows,) = await space.look(Query(MAIL, on=("kind", "principal", "key", "event"), keys=[key]))
        fault = refusal(rows[0]) if rows else None
        if fault is not None:
            outcome = await space.transact(answered(rows[0]))
            if not isinstance(outcome, Done):
                log.warning("the letter %s was refused, and is parked still: %s", sent.event[2:], fault)
        return fault

    def tell(self, peer: NodeRow | None) -> None:
        """Let the owner know that there is a letter. It would find it by itself, a little later."""
        if peer is not None and peer.url is not None and peer.name != self._membership.name:
            self._more.add(peer.url)
            if peer.url not in self._telling:
                nudging = asyncio.get_running_loop().create_task(self._nudge(peer.url), name="onefold nudge")
                self._telling[peer.url] = nudging

    async def _nudge(self, url: str) -> None:
        """One at a time: whoever posts meanwhile is told of by one more."""
        try:
            while url in self._more:
                self._more.discard(url)
                await self._peers.nudge(url)
        finally:
            del self._telling[url]

    async def _reply(self, sent: Sent, until: int) -> Answer:
        """What the turn of this id came to, once there is one."""
        space, pause = await self._space_of(sent.at.kind), FIRST_MS
        while True:
            try:
                turn = await self._turn_of(space, sent)
            except OwnedElsewhere:  # nobody answers for its file just now, and the letter is in its box
                turn = None
            if turn is not None:
                reply = turn[TURN.at["reply"]]
                if reply is None:
                    raise AlreadyDone(sent.event[2:])
                aside = pointed(reply)
                return Answer(reply if aside is None else await self._fetch(sent.at, aside))
            if (fault := await self._refused(sent)) is not None:
                raise fault
            if self._late(until):
                raise OutcomeUnknown(sent.event[2:])
            await self._clock.wait(self._clock.now() + pause, asyncio.Event())
            pause = min(2 * pause, LONGEST_MS)

    async def _turn_of(self, space: Space, sent: Sent) -> Any:
        (actors,) = await space.look(row_of(sent.at))
        if not actors:
            return None
        key = (actors[0][ACTOR.at["n"]], sent.event)
        (turns,) = await space.look(Query(TURN, on=("actor", "event"), keys=[key]))
        return turns[0] if turns else None
