"""serve.console_reflexes - automations on the console: what is armed, what ran, what each run did and why.

For: pages of reflexes, of one with its runs, of a run with its tasks, of a chain of causes, of a preview; fire and retry.
Never: arms anything; shows what the caller may not read; acts by GET.
Was wrong once: a page that said "12 failed" and led nowhere. Each number here is a link to its rows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote, urlencode

from onefold.serve.door import Host
from onefold.serve.pages import page
from onefold.serve.reflexes import LOOK, OPERATE
from onefold.serve.routes import Answer, Ask, Route, redirect

PAGE_ROWS: Final = 50
AGAIN: Final = ("failed", "parked")  # what a person may open again


class Automations:
    """The pages. `form` reads a form of our own pages."""

    def __init__(self, host: Host, form: Callable[[Ask], Awaitable[dict[str, str]]]) -> None:
        self.host = host
        self._form = form

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/console/reflexes", self.all, LOOK, page=True),
            Route("GET", "/console/reflexes/{id}", self.one, LOOK, page=True),
            Route("GET", "/console/reflexes/{id}/preview", self.preview, LOOK, page=True),
            Route("POST", "/console/reflexes/{id}/fire", self.fire, OPERATE, page=True),
            Route("GET", "/console/reflex-runs/{id}", self.run, LOOK, page=True),
            Route("POST", "/console/reflex-runs/{id}/tasks/{task}/retry", self.retry, OPERATE, page=True),
            Route("GET", "/console/explain/{id}", self.explain, LOOK, page=True),
        ]

    async def all(self, ask: Ask) -> Answer:
        """What is loaded; above it what should have happened and did not; below it the newest runs."""
        queries = ask.queries("after")
        runs = await self.host.reflex_runs(limit=PAGE_ROWS, after=queries.get("after"), caller=ask.caller)
        values = {
            "reflexes": await self.host.reflexes_list(caller=ask.caller),
            "overdue": await self.host.reflex_overdue(caller=ask.caller),
            "runs": runs.items,
            "older": _older(runs.next),
        }
        return self._page("reflexes.html", ask, values)

    async def one(self, ask: Ask) -> Answer:
        """One reflex: its definition and its runs, also those of one that is loaded no more."""
        queries, id = ask.queries("after"), ask.params["id"]
        known = {row.id: row for row in await self.host.reflexes_list(caller=ask.caller)}
        runs = await self.host.reflex_runs(id, limit=PAGE_ROWS, after=queries.get("after"), caller=ask.caller)
        if id not in known and not runs.items:
            await self.host.reflex_show(id, caller=ask.caller)
        row = known.get(id)
        may_fire = "operate" in ask.caller.rights and row is not None and row.principal == ask.caller.principal
        values = {"id": id, "reflex": row, "runs": runs.items, "older": _older(runs.next), "may_fire": may_fire}
        return self._page("reflex.html", ask, values)

    async def preview(self, ask: Ask) -> Answer:
        """What it would do now. Nothing is done or written."""
        ask.queries()
        seen = await self.host.reflex_preview(ask.params["id"], caller=ask.caller)
        return self._page("preview.html", ask, {"seen": seen})

    async def run(self, ask: Ask) -> Answer:
        """One run and its tasks, what each got and gave."""
        queries = ask.queries("after")
        run = await self.host.reflex_run(ask.params["id"], caller=ask.caller)
        tasks = await self.host.reflex_tasks(run.id, limit=PAGE_ROWS, after=queries.get("after"), caller=ask.caller)
        operates = "operate" in ask.caller.rights
        values = {"run": run, "tasks": tasks.items, "more": _older(tasks.next), "again": AGAIN if operates else ()}
        return self._page("reflex_run.html", ask, values)

    async def explain(self, ask: Ask) -> Answer:
        """From a fact, a run or a task to its first cause."""
        ask.queries()
        chain = await self.host.reflex_explain(ask.params["id"], caller=ask.caller)
        return self._page("explain.html", ask, {"id": ask.params["id"], "chain": chain})

    # --- acting ------------------------------------------------------------------------------------

    async def fire(self, ask: Ask) -> Answer:
        await self._form(ask)
        fired = await self.host.reflex_fire(ask.params["id"], by=ask.caller.name, caller=ask.caller)
        return redirect(f"{quote(ask.base)}/console/explain/{quote(fired.id, safe='')}")

    async def retry(self, ask: Ask) -> Answer:
        await self._form(ask)
        await self.host.reflex_retry(ask.params["task"], caller=ask.caller)
        return redirect(f"{quote(ask.base)}/console/reflex-runs/{quote(ask.params['id'], safe='')}")

    def _page(self, template: str, ask: Ask, values: dict[str, Any]) -> Answer:
        return page(template, ask, {"nav": "reflexes", **values}, now_ms=self.host.clock.now())


def _older(after: str | None) -> str | None:
    return None if after is None else urlencode({"after": after})
