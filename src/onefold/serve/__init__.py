"""serve - the doors: HTTP, MCP, signed webhooks, approval pages, console, the document of all of it.

For: turning a request into one verb of host, and what the verb gives into an answer. `asgi_app`
serves an opened application, `opening` one that its server's lifespan opens, `mounted` puts either
beside another; `serve.run` listens.
Never: decides, waits on behalf of a run, or stores; a client that goes away ends a wait, nothing else.
Was wrong once: every door with words of its own. One agent was told "must be at most 500", the
command line "less_than_equal". All sentences come from terms.errors, through serve.problems.
"""

from __future__ import annotations

from onefold.serve.door import Host
from onefold.serve.front import Front
from onefold.serve.http import asgi_app
from onefold.serve.lifespan import opening
from onefold.serve.mount import mounted

__all__ = ["Front", "Host", "asgi_app", "mounted", "opening"]
