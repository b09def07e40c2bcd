"""serve.facts - facts over HTTP: signed signals of other systems, facts of people, what arrived, what is let pass.

For: POST /facts/{signal}, POST and GET /facts, the release of a parked fact.
Never: interprets a fact (it is kept first); says more than 401 of what is not signed; acts on a repeat.
Was wrong once: a signal's principal taken from its body. Whoever could sign for one tenant could speak for all.
"""

from __future__ import annotations

from typing import Final

from onefold.reflex.intake import parse
from onefold.reflex.words import Ingested, Signal
from onefold.serve import bodies
from onefold.serve.door import Caller, Host
from onefold.serve.reflex_json import fact_json
from onefold.serve.routes import LIST_LIMIT, LIST_MOST, REPLAYED, Answer, Ask, Route, answer, number
from onefold.serve.signed import delivered, delivery_id
from onefold.terms.errors import UnknownName
from onefold.terms.ids import nearest

INGEST: Final = frozenset({"call", "operate"})
LOOK: Final = frozenset({"read", "operate"})
OPERATE: Final = frozenset({"operate"})


class Facts:
    """The doors of facts."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/facts", self.ingest, INGEST),
            Route("GET", "/facts", self.list, LOOK),
            Route("POST", "/facts/{signal}", self.signal, None),
            Route("POST", "/facts/{id}/release", self.release, OPERATE),
        ]

    async def signal(self, ask: Ask) -> Answer:
        """202 with the fact's id, first time or again. Raises: UnknownName, BadSignature for whatever is not signed."""
        name = ask.params["signal"]
        setting = self.host.config.signals.get(name)
        if setting is None:
            raise UnknownName("signal", name, nearest(name, self.host.config.signals))
        told = await delivered(
            self.host,
            ask,
            scheme=setting.scheme,
            named=setting.secret_env,
            door=f"/facts/{name}",
            setting=f"signals.{name}",
        )
        if told.setup is not None and setting.scheme == "slack":
            return told.setup  # GitHub's ping is a fact like any: nothing has to fit it
        caller = Caller(principal=setting.principal, rights=frozenset({"call"}), name=f"signal {name}")
        fact = Signal(name, told.payload, dedupe_key=delivery_id(told, ask))
        return taken(await self.host.ingest(fact, caller=caller))

    async def ingest(self, ask: Ask) -> Answer:
        fact = parse(bodies.json_of(await bodies.read(ask.scope, ask.receive)))
        return taken(await self.host.ingest(fact, caller=ask.caller))

    async def list(self, ask: Ask) -> Answer:
        queries = ask.queries("kind", "subject", "state", "limit", "after")
        page = await self.host.facts_list(
            kind=queries.get("kind"),
            subject=queries.get("subject"),
            state=queries.get("state"),
            limit=number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST),
            after=queries.get("after"),
            caller=ask.caller,
        )
        return answer({"items": [fact_json(row) for row in page.items], "next": page.next})

    async def release(self, ask: Ask) -> Answer:
        bodies.object_of(await bodies.read(ask.scope, ask.receive), ())
        released = await self.host.fact_release(ask.params["id"], caller=ask.caller)
        return answer({"id": ask.params["id"], "released": released})


def taken(ingested: Ingested) -> Answer:
    told = {"id": ingested.id, "duplicate": ingested.duplicate}
    return answer(told, 202, (REPLAYED,) if ingested.duplicate else ())
