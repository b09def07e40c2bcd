"""serve.state - modules over HTTP: one event in, one reply out; views, facts, actors.

For: /modules and below. The door for events is also the front's short way; here is its long twin.
Never: decodes an event (host does, once, from the raw bytes); folds on a read.
Was wrong once: the body parsed here and written again for host. The digest of what arrived was then
taken over what we had written.
"""

from __future__ import annotations

from onefold.serve import bodies
from onefold.serve.door import Host
from onefold.serve.routes import JSON, LIST_LIMIT, LIST_MOST, NO_STORE, REPLAYED, Answer, Ask, Route, answer, number
from onefold.terms.errors import BadArguments

READ = frozenset({"read", "operate"})
LATEST = 2**63 - 1


class Modules:
    """The routes of modules."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/modules/{module}/events", self.event, frozenset({"call"})),
            Route("GET", "/modules/{module}", self.actors, READ),
            Route("GET", "/modules/{module}/{key}", self.view, READ),
            Route("GET", "/modules/{module}/{key}/facts", self.facts, READ),
        ]

    async def event(self, ask: Ask) -> Answer:
        raw = await bodies.read(ask.scope, ask.receive)
        try:
            told = await self.host.deliver_raw(ask.params["module"], raw, caller=ask.caller)
        except BadArguments:
            bodies.json_of(raw)  # no JSON at all is 400; a wrong event stays 422
            raise
        seen = (REPLAYED,) if told.replayed else ()
        return Answer(200, b'{"reply":%b}' % told.reply, (JSON, NO_STORE, *seen))

    async def actors(self, ask: Ask) -> Answer:
        queries = ask.queries("prefix", "limit", "after")
        page = await self.host.actors(
            ask.params["module"],
            prefix=queries.get("prefix", ""),
            limit=number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST),
            after=queries.get("after"),
            caller=ask.caller,
        )
        return answer({"items": list(page.items), "next": page.next})

    async def view(self, ask: Ask) -> Answer:
        ask.queries()
        return answer(await self.host.read_json(ask.params["module"], ask.params["key"], caller=ask.caller))

    async def facts(self, ask: Ask) -> Answer:
        queries = ask.queries("limit", "after")
        page = await self.host.facts(
            ask.params["module"],
            ask.params["key"],
            after=number(queries.get("after"), "after", 0, 0, LATEST),
            limit=number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST),
            caller=ask.caller,
        )
        begins = {} if page.begins is None else {"begins": page.begins}
        return answer({"items": list(page.items), "next": page.next, **begins})
