"""serve.http - everything that is served, put together once.

For: `asgi_app(host)`: the table of all routes over an opened host, and the document that describes it.
Never: opens or closes the host; a route that stands nowhere else.
Was wrong once: routes that registered themselves when imported. What was served depended on who had
imported what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from onefold.serve import pages
from onefold.serve.access import Access
from onefold.serve.approvals import Approvals
from onefold.serve.bodies import Waits
from onefold.serve.cells import Cells
from onefold.serve.console import Console
from onefold.serve.deployed import Deployed
from onefold.serve.door import Host
from onefold.serve.facts import Facts
from onefold.serve.fleet import Fleet
from onefold.serve.front import Front, agents
from onefold.serve.health import Health
from onefold.serve.hooks import Hooks
from onefold.serve.keeping import Keeping
from onefold.serve.mcp.agents import Agents
from onefold.serve.openapi import Document
from onefold.serve.reflexes import Reflexes
from onefold.serve.routes import Answer, Ask, Route, Table
from onefold.serve.runs import Runs
from onefold.serve.state import Modules
from onefold.serve.tools import Tools
from onefold.terms.errors import OnefoldError

ANY_RIGHT = frozenset({"call", "read", "operate", "deploy"})
AGENT = frozenset({"call", "read"})


def asgi_app(host: Host, *, allowed_hosts: Sequence[str] = ()) -> Front:
    """Everything Onefold serves over the opened `host`, as an ASGI application.

    allowed_hosts: Host names beside the listen address, loopback names and `public_url`, with or
    without a port. Its lifespan ends what runs beside the requests; whoever opened the host closes it.
    Raises: LoadRefused when a key's variable is unset.
    """
    counts = Counter[tuple[str, int]]()
    waits = Waits()
    fleet = host.fleet
    access = Access(host, [*allowed_hosts, *(() if fleet is None else fleet.reached)])
    console = Console(host, access)
    document = Document(host)
    door = Agents(host, waits)

    def page_of(error: OnefoldError, ask: Ask) -> Answer:
        return console.fault(error, ask) or pages.fault(error, ask, now_ms=host.clock.now())

    table = Table(
        [
            *Tools(host, waits).routes(),
            *Hooks(host).routes(),
            *Runs(host, waits).routes(),
            *Modules(host).routes(),
            *Cells(host).routes(),
            *Keeping(host).routes(),
            *Approvals(host).routes(),
            *Facts(host).routes(),
            *Reflexes(host).routes(),
            *Deployed(host).routes(),
            *Fleet(host).routes(),
            *Health(host, counts).routes(),
            Route("GET", "/openapi.json", document.show, ANY_RIGHT),
            Route("POST", "/mcp", agents, AGENT),
            Route("POST", "/tools/{name}/mcp", agents, AGENT),
            *console.routes(),
        ]
    )
    return Front(host, access, table, agents=door, page_of=page_of, counts=counts, waits=waits, close=door.aclose)
