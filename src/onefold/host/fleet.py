"""host.fleet - a process's part in a fleet, put together, and the verbs on names: claim, seize, renew, release, drain.

For: the standing, the lease, the membership and the router of one opened app, taken down in the order in which what is
on its way can finish; turns that other nodes send here.
Never: decides who owns what; answers for an actor of another node.
Was wrong once: verbs that took a node's name. A caller could claim for another, and that one knew nothing of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from onefold.actuators.tables import RUNS
from onefold.fleet import claims
from onefold.fleet.abroad import read, shown
from onefold.fleet.mailbox import MAIL, due
from onefold.fleet.mailbox import parked as parked_mail
from onefold.fleet.ownership import (
    CLOSED,
    CODE,
    NODE,
    OWNER,
    NodeRow,
    OwnerRow,
    actor_name,
    slot_name,
    space_name,
    telling_code,
)
from onefold.fleet.wire import Answer, Sent
from onefold.fleet.words import Claimed, Contended, Done, Fenced, Free, HeldBy, Member, Owner, Seized
from onefold.host.caller import Caller
from onefold.host.code import reads
from onefold.host.core import MAIN, Core
from onefold.host.lending import Lending
from onefold.host.membership import Membership
from onefold.host.peers import Peers
from onefold.host.routing import WATCH_MS, Router
from onefold.kernel.blob import BLOBS
from onefold.kernel.tables import KERNEL
from onefold.store.contract import Query
from onefold.terms.codec import canonical, parse
from onefold.terms.duration import duration_ms
from onefold.terms.errors import BadArguments, Fault, OnefoldError, OwnedElsewhere
from onefold.terms.ids import ActorId, check_text, slot_of
from onefold.terms.instant import Instant, moment, text
from onefold.terms.turns import TurnFailed

SHOWN = 1_000
TRIES, AGAIN_MS = 5, 200  # to find whoever has a file now


class Fleet:
    """This process as a node. Made with its core; `open` once the space `main` is."""

    def __init__(self, core: Core, membership: Membership, peers: Peers, incarnation: Any) -> None:
        self._core = core
        self._incarnation = incarnation
        self._leaving: asyncio.Task[None] | None = None
        self._reads = ""
        self._singles: dict[str, ActorId] = {}  # actors that were claimed here, by the names of their rows
        self.membership = membership
        self.peers = peers
        self._lending = Lending(lambda: f"{membership.name}/{membership.standing.me.incarnation}")
        self.router = core.router = Router(
            core.node, membership, peers, core.clock, self._space_of, core.fetch, core.letterbox
        )
        core.singles = self.singles
        core.postman.files = membership.standing.files
        core.postman.others = self._others
        membership.gained = self._gained
        membership.lost = self._lost
        membership.ended = self._ended
        membership.standing.ask = self._asked
        membership.told = self._told

    @property
    def reached(self) -> Sequence[str]:
        """The names, with ports, under which other nodes reach this process."""
        return self.membership.reached

    # --- opening and closing ------------------------------------------------------------------------

    async def open(self) -> None:
        """Join the fleet, and take what nobody has. Raises: StoreUnavailable."""
        self._reads = reads(self._core.catalog)
        await self.membership.transact(telling_code(self.membership.name, self._reads), "what a node's code reads")
        await self.membership.join()
        self.membership.start()

    def rest(self, grace_ms: int) -> None:
        """The process is about to stop: hand over while calls are still answered."""
        if self._leaving is None:
            leaving = self.membership.leave(grace_ms)
            self._leaving = asyncio.get_running_loop().create_task(leaving, name="onefold leaving")

    async def leave(self, grace_ms: int) -> None:
        self.rest(grace_ms)
        assert self._leaving is not None
        await self._leaving

    async def close(self) -> None:
        """The last word to the store, and to nobody after it."""
        await self._lending.close()
        await self.membership.close()
        await self.peers.close()

    async def abandon(self) -> None:
        self.membership.abandon()
        await self.peers.close()

    def nudge(self) -> None:
        """Another node says that something of ours is new in the store."""
        self.membership.nudge()
        self._core.postman.look()
        for told in self._core.nudged:
            told()

    # --- turns of other nodes -------------------------------------------------------------------------

    async def received(self, sent: Sent) -> Answer:
        """A turn that another node sent. Raises: OwnedElsewhere, before anything happened, also where this one's code is
        too old for it; what its turn raises.
        """
        self._core.node.mine(sent.at)
        is_event = isinstance(sent.word, dict) and "type" in sent.word
        module = self.router.knows(sent.at, sent.word if is_event else None)
        if sent.is_act:
            act = self._core.acts.get(str(sent.word["do"]))
            if act is not None:
                return Answer(canonical(await act(sent.at, sent.word)))
        if sent.word == {"do": "evict"}:
            return Answer(b'"%b"' % (await self._core.evicts(sent.at)).encode())
        if isinstance(sent.word, dict) and sent.word.get("do") == "watch":
            await self._watch(sent.at, sent.word.get("after"))
            return Answer(b"null")
        read = None
        if sent.is_program:
            try:
                read = self._core.reads(sent)
            except TurnFailed as fault:  # whoever sent it could read it
                raise self.router.newer(sent.at, fault) from fault
        reply, replayed = await self._core.received(sent, read=read)
        return Answer(module.codecs.reply.encode(reply), replayed)

    async def _others(self) -> bool:
        """Whether a node lives whose code reads something else than this one's."""
        (rows,) = await (await self._core.space(MAIN)).look(Query(CODE))
        known, seen = dict(rows), self.membership.standing.seen
        live = [node.name for node in seen.nodes.values() if seen.alive(node.name, node.incarnation)]
        return any(known.get(name) != self._reads for name in live if name != self.membership.name)

    async def _watch(self, at: ActorId, after: object) -> None:
        """Until the actor has other facts than so many, or WATCH_MS."""
        resident = await self._core.node.activate(at)
        if resident.durable_seq != after:
            return
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def told(_: object) -> None:
            if not changed.done():
                changed.set_result(None)

        resident.watchers.append(told)
        try:
            await asyncio.wait((changed,), timeout=WATCH_MS / 1000)
        finally:
            resident.watchers.remove(told)

    # --- the verbs ------------------------------------------------------------------------------------

    async def claim(self, name: str, *, lease: Any = None, caller: Caller) -> Claimed | HeldBy:
        """Own a slot, `slot/17`, or one actor, `Room/room-7`, that nobody alive owns."""
        row, slot, at = self._named(name, caller)
        body = claims.claiming(row, slot, self.membership.standing.me, _ms(lease), self._incarnation())
        return await self._taking(row, slot, at, body, f"the claim of {name}")  # type: ignore[no-any-return]

    async def seize(self, name: str, *, lease: Any = None, caller: Caller) -> Seized | Free | Contended:
        """Own it whoever owns it: that one's writes are refused from now on. It is told before this node takes a turn."""
        row, slot, at = self._named(name, caller)
        seen = await self._owner(row)
        epoch = 0 if seen is None else seen.epoch
        body = claims.seizing(row, slot, self.membership.standing.me, _ms(lease), epoch, self._incarnation())
        return await self._taking(row, slot, at, body, f"the seizure of {name}")  # type: ignore[no-any-return]

    async def _taking(self, row: str, slot: str | None, at: ActorId | None, body: Any, what: str) -> Any:
        """Take a name. Who had it until now shows what is in its memory: it hears of this before a turn is taken here."""
        standing = self.membership.standing
        before = [await self._owner(name) for name in (row, slot) if name is not None]
        standing.unheard.add(row)
        try:
            told = await self.membership.transact(body, what)
            if isinstance(told, Claimed | Seized):
                urls = {peer.url for one in before if one is not None and (peer := self._living(one)) is not None}
                await asyncio.gather(*(self.peers.learns(url) for url in urls if url is not None))
        finally:
            standing.unheard.discard(row)
        if isinstance(told, Claimed | Seized):
            await self._took(row, at)
        return told

    def _living(self, owner: OwnerRow) -> NodeRow | None:
        """The other node that owns it, as far as is known to live."""
        seen = self.membership.standing.seen
        lives = seen.alive(owner.node, owner.incarnation) and not owner.belongs(self.membership.standing.me)
        return seen.nodes[owner.node] if lives else None

    async def learn(self) -> None:
        """Learn who owns what by now."""
        await self.membership.learn()

    async def renew(self, name: str, *, epoch: int, lease: Any = None, caller: Caller) -> Claimed | Fenced | Free:
        """Keep it for longer, from now."""
        row, _, _ = self._named(name, caller)
        body = claims.renewing(row, self.membership.standing.me, epoch, _ms(lease))
        return await self.membership.transact(body, f"the lease of {name}")

    async def release(self, name: str, *, epoch: int, caller: Caller) -> Free | Fenced:
        """Own it no longer."""
        row, slot, _ = self._named(name, caller)
        me, incarnation = self.membership.standing.me, self._incarnation()
        body = claims.releasing(row, slot, me, epoch, incarnation)
        standing = self.membership.standing
        standing.take_from(row)
        try:
            told = await self.membership.transact(body, f"the release of {name}")
        finally:
            standing.unheard.discard(row)
        self._singles.pop(row, None)
        await self.membership.look()  # what is in memory of it may be old from now on
        return told

    async def guard(self, name: str, *, epoch: int, caller: Caller) -> Owner | Fenced | Free:
        """Whether this node owns it under that epoch."""
        row, _, _ = self._named(name, caller)
        return claims.judged(await self._owner(row), self.membership.standing.me, epoch)

    async def drain(self, name: str, *, caller: Caller) -> Done | HeldBy | Free | Contended:
        """Deliver every letter that is due to an actor of this node. A stale owner consumes nothing. Raises: BadArguments."""
        row, slot, at = self._named(name, caller)
        if at is None:
            raise BadArguments([Fault("name", "must be an actor's, like Room/room-7: boxes belong to actors", name)])
        space = await self._core.space(MAIN)
        owners, nodes = await space.look(Query(OWNER, on=("name",), keys=[(row,), (slot,)]), Query(NODE))
        rows = {each[0]: OwnerRow.of(each) for each in owners}
        owner = rows.get(row) if row in rows and rows[row].node else rows.get(slot or "")
        lives = {each[0]: NodeRow.of(each) for each in nodes}
        node = None if owner is None else lives.get(owner.node)
        if owner is None or node is None or node.incarnation != owner.incarnation or node.state == "closed":
            return Free()
        if not owner.belongs(self.membership.standing.me):
            return HeldBy(owner.node, moment(node.until))
        try:
            self._core.node.mine(at)
        except OwnedElsewhere:
            return Contended()
        return Done(await self._core.postman.drain(at))

    async def reach(self) -> None:
        """Try whether every node that lives is met at its address."""
        others = [node for node in self.membership.standing.seen.nodes.values() if node.name != self.membership.name]
        urls = {node.url for node in others if node.url is not None and node.state != CLOSED}
        await asyncio.gather(*map(self.peers.nudge, urls))

    async def nodes(self, *, caller: Caller) -> list[Member]:
        """The nodes, dead ones too until their name comes back."""
        caller.need("read", "looking at the fleet")
        space = await self._core.space(MAIN)
        nodes, owners = await space.look(Query(NODE), Query(OWNER))
        members = []
        for node in sorted(map(NodeRow.of, nodes), key=lambda row: row.name):
            mine = [
                row for row in map(OwnerRow.of, owners) if (row.node, row.incarnation) == (node.name, node.incarnation)
            ]
            slots = [row.epoch for row in mine if row.name.startswith("slot/")]
            names = {row.name: row.epoch for row in mine if not row.name.startswith("slot/")}
            state = node.state if node.until > self.membership.lease.now() or node.state == "closed" else "lapsed"
            epochs = (min(slots), max(slots)) if slots else None
            members.append(
                Member(
                    node.name,
                    node.incarnation,
                    state,
                    moment(node.until),
                    node.url,
                    len(slots),
                    epochs,
                    names,
                    None if node.url is None else self.peers.reached(node.url),
                )
            )
        return members

    async def mail(self) -> dict[str, Any]:
        """{"waiting", "parked", "oldest"}: letters in all boxes, the first so many, and since when the oldest is due."""
        space = await self._core.space(MAIN)
        waiting, parked = await space.look(due(self._core.clock.now(), SHOWN), parked_mail())
        told: dict[str, Any] = {"waiting": len(waiting), "parked": len(parked)}
        if waiting:
            told["oldest"] = text(Instant(int(waiting[0][MAIL.at["due_at"]])))
        return told

    # --- inside ---------------------------------------------------------------------------------------

    def singles(self) -> Sequence[ActorId]:
        """Actors that this node owns by their own name."""
        return [self._singles[name] for name in self.membership.standing.singles if name in self._singles]

    def _named(self, name: str, caller: Caller) -> tuple[str, str | None, ActorId | None]:
        """The name of its row, the slot of an actor, and that actor. Raises: BadArguments, UnknownName."""
        caller.need("operate", "changing who owns what")
        kind, slash, key = check_text(name, "name").partition("/")
        if kind == "slot" and key.isascii() and key.isdigit():
            if int(key[:9]) >= self.membership.standing.slots:
                raise BadArguments([Fault("name", f"there are slots 0 to {self.membership.standing.slots - 1}", name)])
            return slot_name(int(key)), None, None
        if not slash or not key:
            raise BadArguments([Fault("name", "is slot/N or an actor's, like Room/room-7", name)])
        at = ActorId(self._core.node.kind(kind).module.name, caller.principal, key)
        return actor_name(at), slot_name(slot_of(at, self.membership.standing.slots)), at

    async def _owner(self, row: str) -> OwnerRow | None:
        space = await self._core.space(MAIN)
        (found,) = await space.look(Query(OWNER, on=("name",), keys=[(row,)]))
        return OwnerRow.of(found[0]) if found else None

    async def _took(self, row: str, at: ActorId | None) -> None:
        if at is not None:
            self._singles[row] = at
        await self.membership.look()
        self._told(node for node in self.membership.standing.seen.nodes)

    def _lost(self) -> None:
        """Files that are another process's by now."""
        for space in self.membership.standing.apart:
            if self._core.abroad(space) is not None:
                self._core.let_go(space)

    def _ended(self) -> None:
        """A node is gone: what it had in hand is anybody's."""
        for told in self._core.nudged:
            told()

    def _gained(self, names: Collection[str]) -> None:
        for told in self._core.gained:
            told()
        self._core.driver.look()
        self._core.postman.look()

    def _told(self, nodes: Any) -> None:
        """Let nodes know that owners changed."""
        for name in nodes:
            peer = self.membership.standing.seen.nodes.get(name)
            self.router.tell(peer)

    async def _space_of(self, kind: str) -> Any:
        """The space of a kind; of none, the one with the boxes."""
        return await self._core.space(self._core.node.kind(kind).home.name if kind else MAIN)

    async def _asked(self, space: str, queries: Any) -> Any:
        """Questions about a file that another process has, put to that one. Raises: OwnedElsewhere."""
        name = space_name(space)
        for _ in range(TRIES):
            peer = self.membership.standing.node_with(name)
            if peer is not None and peer.url is not None and peer.name != self.membership.name:
                told = await self.peers.look(peer.url, space, queries)
                if isinstance(told, Answer):
                    return parse(told.reply)
                if isinstance(told, OnefoldError) and not isinstance(told, OwnedElsewhere):
                    raise told
            await self._core.clock.wait(self._core.clock.now() + AGAIN_MS, asyncio.Event())
            await self.membership.look()
        row, peer = self.membership.standing.owner(name), self.membership.standing.node_with(name)
        raise OwnedElsewhere(name, None if peer is None else peer.name, 0, 0 if row is None else row.epoch)

    async def looked(self, space: str, queries: Any) -> Any:
        """The rows that another node asks for, of a file that this process has. Raises: OwnedElsewhere, BadArguments."""
        standing = self.membership.standing
        if space not in standing.apart or standing.abroad(space) is not None:
            raise OwnedElsewhere(space_name(space), None, 0, 0)
        opened = await self._core.space(space)
        if isinstance(queries, dict):
            return await self._lending.told(opened, queries)
        tables = {table.name: table for schema in (KERNEL, BLOBS, RUNS) for table in schema.tables}
        return shown(await opened.look(*(read(query, tables) for query in queries)))


def _ms(lease: Any) -> int | None:
    """Milliseconds; None: as long as the node lives. Raises: BadArguments."""
    if lease is None:
        return None
    return duration_ms(lease) or None
