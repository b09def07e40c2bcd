"""serve.fleet - the doors between the nodes of a fleet, and a look at all of them.

For: POST /fleet/turns, a turn for an actor of this node; POST /fleet/nudge; GET /fleet for people.
Never: sends a turn on to a third node: whoever sent it looks again and routes it anew; lets in what is not signed.
Was wrong once: a turn passed on by whoever got it. Two nodes that each believed the other to be its owner passed it to
and fro.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from onefold.fleet.wire import LOOK, NUDGE, PATH, SIGNED, Sent, answered, is_signed, refused, sents_of
from onefold.fleet.wire import Answer as Told
from onefold.fleet.words import Member
from onefold.serve import bodies
from onefold.serve.door import Host
from onefold.serve.door_fleet import FleetVerbs
from onefold.serve.problems import NoFleet, Unexpected
from onefold.serve.routes import NO_STORE, Answer, Ask, Route, answer
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import BadSignature, OnefoldError
from onefold.terms.instant import down, text

READ: Final = frozenset({"read", "operate"})
LINES: Final = (b"content-type", b"application/x-ndjson")
log = logging.getLogger("onefold.fleet")


class Fleet:
    """The routes of a node. Where this process is none, they are not there."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [
            Route("POST", PATH, self.turn, None),
            Route("POST", LOOK, self.look, None),
            Route("POST", NUDGE, self.nudge, None),
            Route("GET", "/fleet", self.show, READ),
        ]

    async def turn(self, ask: Ask) -> Answer:
        """A line a turn, each as soon as it is there: the reply, or the fault in a form from which the other node makes the
        same one. Raises: BadSignature, BadArguments.
        """
        sents = sents_of(await self._signed(ask, PATH))
        if len(sents) == 1:
            return Answer(200, await self._line(0, sents[0]), (LINES, NO_STORE))
        return Answer(200, headers=(LINES, NO_STORE), stream=self._lines(sents))

    async def _lines(self, sents: Sequence[Sent]) -> AsyncIterator[bytes]:
        for line in asyncio.as_completed([self._line(n, sent) for n, sent in enumerate(sents)]):
            yield await line

    async def _line(self, n: int, sent: Sent) -> bytes:
        try:
            return answered(n, await self._fleet.received(sent))
        except OnefoldError as fault:
            return refused(n, fault)
        except Exception as fault:  # the door: one turn that raises must not keep its neighbours' answers back
            log.exception("a turn of %s %s that another node sent raised", sent.at.kind, sent.at.key)
            return refused(n, Unexpected(type(fault).__name__, PATH))

    async def look(self, ask: Ask) -> Answer:
        """Rows of a file that this process has. Raises: BadSignature."""
        raw = await self._signed(ask, LOOK)
        try:
            told = parse(raw, "a look")
            line = answered(0, Told(canonical(await self._fleet.looked(told["space"], told["queries"]))))
        except OnefoldError as fault:
            line = refused(0, fault)
        return Answer(200, line, (LINES, NO_STORE))

    async def nudge(self, ask: Ask) -> Answer:
        """Look into the store: something of this node's is new there. With {"learn": true}, answered after that look."""
        raw = await self._signed(ask, NUDGE)
        self._fleet.nudge()
        if parse(raw, "a nudge") == {"learn": True}:
            await self._fleet.learn()
        return Answer(204, b"", (NO_STORE,))

    async def show(self, ask: Ask) -> Answer:
        """The nodes with what they own, the mail that waits, and how late the oldest alarm is that nobody has rung."""
        ask.queries()
        fleet = self._fleet
        await fleet.reach()
        mail, ready = await fleet.mail(), await self.host.ready()
        nodes = [shown(node) for node in await fleet.nodes(caller=ask.caller)]
        return answer({"nodes": nodes, "mail": mail, "oldest_overdue_seconds": ready["oldest_overdue_seconds"]})

    async def _signed(self, ask: Ask, path: str) -> bytes:
        raw = await bodies.read(ask.scope, ask.receive)
        now_s = self.host.clock.now() // 1000
        if not is_signed(self.host.signing, ask.header(SIGNED.encode()), now_s, path, raw):
            raise BadSignature(path, "it was not signed by a node of this fleet, or minutes ago")
        return raw

    @property
    def _fleet(self) -> FleetVerbs:
        fleet = self.host.fleet
        if fleet is None:
            raise NoFleet
        return fleet


def shown(node: Member) -> dict[str, Any]:
    """A node as JSON."""
    told: dict[str, Any] = {
        "name": node.name,
        "state": node.state,
        "incarnation": node.incarnation,
        "until": text(down(node.until)),
        "slots": node.slots,
        "names": dict(node.names),
    }
    if node.url is not None:
        told["url"] = node.url
    if node.reached is not None:
        told["reached"] = node.reached
    if node.epochs is not None:
        told["epochs"] = list(node.epochs)
    return told
