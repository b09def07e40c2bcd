"""serve.reflexes - reflexes over HTTP: loaded, drafted, tried out, fired, looked into.

For: /reflexes and below.
Never: arms by a draft; takes definitions where the code gave a file: two sources would undo each other.
Was wrong once: previews as GET. A fact to try does not fit an address, and proxies kept the answers.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from onefold.serve import bodies
from onefold.serve import reflex_json as shown
from onefold.serve.door import Host
from onefold.serve.routes import (
    LIST_LIMIT,
    LIST_MOST,
    Answer,
    Ask,
    Route,
    answer,
    number,
    page_of,
)
from onefold.terms.errors import BadArguments, Fault

LOOK: Final = frozenset({"read", "operate"})
OPERATE: Final = frozenset({"operate"})
DEPLOY: Final = frozenset({"deploy"})
DRAFT: Final = frozenset({"call", "read", "operate", "deploy"})
NEXT_MOST: Final = 100


class Reflexes:
    """The routes of reflexes, their runs and their tasks."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/reflexes", self.list, LOOK),
            Route("PUT", "/reflexes", self.load, DEPLOY),
            Route("POST", "/reflexes/draft", self.draft, DRAFT),
            Route("GET", "/reflexes/graph", self.graph, LOOK),
            Route("GET", "/reflexes/overdue", self.overdue, LOOK),
            Route("GET", "/reflexes/explain/{id}", self.explain, LOOK),
            Route("GET", "/reflexes/runs", self.runs, LOOK),
            Route("GET", "/reflexes/runs/{id}/tasks", self.tasks, LOOK),
            Route("POST", "/reflexes/tasks/{id}/retry", self.retry, OPERATE),
            Route("GET", "/reflexes/{id}", self.show, LOOK),
            Route("GET", "/reflexes/{id}/runs", self.runs, LOOK),
            Route("POST", "/reflexes/{id}/preview", self.preview, LOOK),
            Route("POST", "/reflexes/{id}/fire", self.fire, OPERATE),
            Route("POST", "/reflexes/{id}/backfill", self.backfill, OPERATE),
        ]

    # --- definitions -------------------------------------------------------------------------------

    async def list(self, ask: Ask) -> Answer:
        rows, more = page_of(ask, await self.host.reflexes_list(caller=ask.caller))
        return answer({"items": [shown.reflex_json(row) for row in rows], "next": more})

    async def show(self, ask: Ask) -> Answer:
        ask.queries()
        row = await self.host.reflex_show(ask.params["id"], caller=ask.caller)
        return answer({**shown.reflex_json(row), "definition": dict(row.definition)})

    async def load(self, ask: Ask) -> Answer:
        """The whole set: a list of definitions, or one alone. What is not in it is not armed any more."""
        given = bodies.json_of(await bodies.read(ask.scope, ask.receive))
        definitions = given if isinstance(given, list) else [given]
        return answer(shown.loaded_json(await self.host.reflexes_load(definitions, caller=ask.caller)))

    async def draft(self, ask: Ask) -> Answer:
        given = bodies.json_of(await bodies.read(ask.scope, ask.receive))
        return answer(shown.draft_json(await self.host.reflex_draft(given, caller=ask.caller)))

    async def graph(self, ask: Ask) -> Answer:
        ask.queries()
        return answer(shown.drawn_json(await self.host.reflex_graph(caller=ask.caller)))

    # --- looking -----------------------------------------------------------------------------------

    async def overdue(self, ask: Ask) -> Answer:
        late, more = page_of(ask, await self.host.reflex_overdue(caller=ask.caller))
        return answer({"items": [shown.overdue_json(one) for one in late], "next": more})

    async def explain(self, ask: Ask) -> Answer:
        chain, more = page_of(ask, await self.host.reflex_explain(ask.params["id"], caller=ask.caller))
        return answer({"items": [shown.cause_json(link) for link in chain], "next": more})

    async def runs(self, ask: Ask) -> Answer:
        queries = ask.queries("limit", "after")
        page = await self.host.reflex_runs(
            ask.params.get("id"),
            limit=number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST),
            after=queries.get("after"),
            caller=ask.caller,
        )
        return answer({"items": [shown.run_json(row) for row in page.items], "next": page.next})

    async def tasks(self, ask: Ask) -> Answer:
        queries = ask.queries("limit", "after")
        page = await self.host.reflex_tasks(
            ask.params["id"],
            limit=number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST),
            after=queries.get("after"),
            caller=ask.caller,
        )
        return answer({"items": [shown.task_json(row) for row in page.items], "next": page.next})

    async def preview(self, ask: Ask) -> Answer:
        """What would happen now, or at `at`, or upon `fact`. Writes nothing."""
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("fact", "at", "next"))
        seen = await self.host.reflex_preview(
            ask.params["id"],
            fact=body.get("fact"),
            at=instant_in(body, "at", "previewed"),
            next=_count_in(body),
            caller=ask.caller,
        )
        return answer(shown.preview_json(seen))

    # --- acting ------------------------------------------------------------------------------------

    async def fire(self, ask: Ask) -> Answer:
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("input", "by"))
        by = bodies.text_in(body, "by") or ask.caller.name
        fired = await self.host.reflex_fire(ask.params["id"], input=body.get("input"), by=by, caller=ask.caller)
        return answer({"id": fired.id}, 202)

    async def backfill(self, ask: Ask) -> Answer:
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("since", "until"))
        times = [instant_in(body, name, "backfilled") for name in ("since", "until")]
        since, until = times
        if since is None or until is None:
            missing = [name for name, at in zip(("since", "until"), times, strict=True) if at is None]
            faults = [Fault(name, "is needed: an instant with an offset") for name in missing]
            raise BadArguments(faults, nothing_was="backfilled")
        count = await self.host.reflex_backfill(ask.params["id"], since=since, until=until, caller=ask.caller)
        return answer({"count": count}, 202)

    async def retry(self, ask: Ask) -> Answer:
        bodies.object_of(await bodies.read(ask.scope, ask.receive), ())
        row = await self.host.reflex_retry(ask.params["id"], caller=ask.caller)
        return answer(shown.task_json(row))


def _count_in(body: dict[str, Any]) -> int | None:
    """How many of the next occurrences are shown. Raises: BadArguments."""
    count = body.get("next")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= NEXT_MOST):
        raise BadArguments([Fault("next", f"must be a whole number from 0 to {NEXT_MOST}", count)], nothing_was="done")
    return count


def instant_in(body: dict[str, Any], field: str, was: str) -> datetime | None:
    """An instant of a body, with its offset; None where it is left out. Raises: BadArguments."""
    value = bodies.text_in(body, field)
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        at = None
    if at is None or at.utcoffset() is None:
        problem = "must be an instant with an offset, such as 2026-09-14T09:00:00Z"
        raise BadArguments([Fault(field, problem, value)], nothing_was=was)
    return at
