"""serve.console - what happens here, for a person: runs, one run, what is parked.

For: pages that work without script, filters in the address, actions as posted forms.
Never: shows what the caller may not read; acts by GET; takes a form from another page.
Was wrong once: a single-page application. Its second test stack found fewer faults than its own
build broke, and nobody could open it on a phone without script.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from onefold.actuators.schema import STATUSES
from onefold.serve import bodies
from onefold.serve.access import SESSION, SESSION_MS, Access
from onefold.serve.console_reflexes import Automations
from onefold.serve.door import Host, JournalRow, ParkedItem
from onefold.serve.pages import own_page, page, static_route
from onefold.serve.routes import NO_STORE, Answer, Ask, Route, redirect
from onefold.serve.runs import CANCEL, LOOK, OPERATE, status_of
from onefold.serve.times import read
from onefold.terms.errors import BadArguments, Fault, OnefoldError, Unauthenticated

PAGE_ROWS: Final = 50
NEWS_GAP_S: Final = 0.5  # a page is fetched at most this often, however much happens


class Console:
    """The routes of the console."""

    def __init__(self, host: Host, access: Access) -> None:
        self.host = host
        self.access = access

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/", self.start, None),
            Route("GET", "/console", self.home, LOOK, page=True),
            Route("GET", "/console/runs/{id}", self.run, LOOK, page=True),
            Route("POST", "/console/runs/{id}/cancel", self.cancel, CANCEL, page=True),
            Route("POST", "/console/runs/{id}/retry", self.retry, OPERATE, page=True),
            Route("GET", "/console/parked", self.parked, OPERATE, page=True),
            Route("POST", "/console/parked/{id}/retry", self.parked_retry, OPERATE, page=True),
            Route("POST", "/console/parked/{id}/drop", self.parked_drop, OPERATE, page=True),
            *Automations(self.host, self._form).routes(),
            Route("GET", "/console/login", self.login_page, None, page=True),
            Route("POST", "/console/login", self.login, None, page=True),
            Route("POST", "/console/logout", self.logout, None, page=True),
            Route("GET", "/console/events", self.news, OPERATE),
            static_route(),
        ]

    async def start(self, ask: Ask) -> Answer:
        return redirect(f"{quote(ask.base)}/console")

    # --- looking -----------------------------------------------------------------------------------

    async def home(self, ask: Ask) -> Answer:
        """Runs, newest first, by the filters in the address; above them what waits for a person."""
        queries = ask.chosen("program", "status", "key", "after")
        found = await self.host.runs_list(
            program=queries.get("program"),
            status=status_of(queries.get("status")),
            key=queries.get("key"),
            limit=PAGE_ROWS,
            after=queries.get("after"),
            caller=ask.caller,
        )
        operates = "operate" in ask.caller.rights
        values = {
            "nav": "runs",
            "runs": [_timed(receipt.to_json()) for receipt in found.items],
            "older": urlencode({**queries, "after": found.next}) if found.next else None,
            "filters": queries,
            "programs": list(self.host.catalog.actuators),
            "statuses": STATUSES,
            "approvals": await self.host.approvals_list(caller=ask.caller) if operates else [],
            "parked": await self.host.parked_list(caller=ask.caller) if operates else [],
            "title": self.host.catalog.title,
        }
        return page("home.html", ask, values, now_ms=self.host.clock.now())

    async def run(self, ask: Ask) -> Answer:
        """One run: what it is, what it waits for, every act of it with what went in and came out."""
        ask.queries()
        run_id = ask.params["id"]
        receipt = (await self.host.receipt(run_id, wait_ms=0, caller=ask.caller)).to_json()
        journal = await self.host.run_journal(run_id, caller=ask.caller)
        operates = "operate" in ask.caller.rights
        values = {
            "nav": "runs",
            "run": _timed(receipt),
            "journal": _with_lengths(journal, receipt),
            "may_cancel": receipt["status"] in ("running", "waiting", "parked") and bool(ask.caller.rights & CANCEL),
            "may_retry": receipt["status"] in ("failed", "parked") and operates,
            "may_decide": operates,
        }
        return page("run.html", ask, values, now_ms=self.host.clock.now())

    async def parked(self, ask: Ask) -> Answer:
        ask.queries()
        items: Sequence[ParkedItem] = await self.host.parked_list(caller=ask.caller)
        return page("parked.html", ask, {"nav": "parked", "items": items}, now_ms=self.host.clock.now())

    async def news(self, ask: Ask) -> Answer:
        """A line whenever something happened, as server-sent events. The page then asks again, with its own rights."""
        headers = ((b"content-type", b"text/event-stream"), NO_STORE, (b"x-accel-buffering", b"no"))
        return Answer(200, headers=headers, stream=self._news())

    async def _news(self) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        async for _ in self.host.watch():
            yield b"data: changed\n\n"
            await asyncio.sleep(NEWS_GAP_S)

    # --- acting ------------------------------------------------------------------------------------

    async def cancel(self, ask: Ask) -> Answer:
        fields = await self._form(ask)
        await self.host.run_cancel(ask.params["id"], fields.get("reason") or None, caller=ask.caller)
        return self._to_run(ask)

    async def retry(self, ask: Ask) -> Answer:
        await self._form(ask)
        await self.host.run_retry(ask.params["id"], caller=ask.caller)
        return self._to_run(ask)

    async def parked_retry(self, ask: Ask) -> Answer:
        await self._form(ask)
        await self.host.parked_retry(ask.params["id"], caller=ask.caller)
        return redirect(f"{quote(ask.base)}/console/parked")

    async def parked_drop(self, ask: Ask) -> Answer:
        reason = (await self._form(ask)).get("reason", "").strip()
        if not reason:
            raise BadArguments([Fault("reason", "must say why it is dropped")], nothing_was="dropped")
        await self.host.parked_drop(ask.params["id"], reason=reason, caller=ask.caller)
        return redirect(f"{quote(ask.base)}/console/parked")

    async def _form(self, ask: Ask) -> dict[str, str]:
        """A form of our own pages. Raises: OriginRefused for one that does not say where it comes from."""
        own_page(ask)
        return await bodies.form(ask.scope, ask.receive)

    @staticmethod
    def _to_run(ask: Ask) -> Answer:
        return redirect(f"{quote(ask.base)}/console/runs/{quote(ask.params['id'], safe='')}")

    # --- coming and going --------------------------------------------------------------------------

    async def login_page(self, ask: Ask) -> Answer:
        queries = ask.queries("next")
        return self._login(ask, queries.get("next", ""), wrong=False, status=200)

    async def login(self, ask: Ask) -> Answer:
        """Show a key, get a session. The key itself is not kept, neither here nor in the browser."""
        fields = await self._form(ask)
        session = self.access.open_session(fields.get("key", ""))
        if session is None:
            return self._login(ask, fields.get("next", ""), wrong=True, status=401)
        cookie = self._cookie(ask, session, SESSION_MS // 1000)
        return redirect(own_path(ask, fields.get("next", "")), headers=(cookie,))

    async def logout(self, ask: Ask) -> Answer:
        await self._form(ask)
        return redirect(f"{quote(ask.base)}/console/login", headers=(self._cookie(ask, "", 0),))

    def _login(self, ask: Ask, then: str, *, wrong: bool, status: int) -> Answer:
        values = {"nav": False, "next": then, "wrong": wrong, "keyed": self.access.keyed}
        return page("login.html", ask, values, now_ms=self.host.clock.now(), status=status)

    def _cookie(self, ask: Ask, value: str, seconds: int) -> tuple[bytes, bytes]:
        here = self.access.names.local(ask.host.encode("latin-1"))  # plain HTTP on this machine, and nowhere else
        https = ask.scope.get("scheme") == "https" or (self.host.config.public_url.startswith("https:") and not here)
        where = quote(ask.base) or "/"
        secure = "; Secure" if https else ""
        text = f"{SESSION.decode()}={value}; Path={where}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
        return b"set-cookie", text.encode("ascii")

    def fault(self, error: OnefoldError, ask: Ask) -> Answer | None:
        """Where a page asks for a key it did not get, somebody is sent to show one."""
        if not isinstance(error, Unauthenticated) or not self.access.keyed or ask.scope["method"] == "POST":
            return None
        query: bytes = ask.scope.get("query_string", b"")
        there = ask.scope["path"] + (f"?{query.decode('latin-1')}" if query else "")
        return redirect(f"{quote(ask.base)}/console/login?{urlencode({'next': there})}")


def own_path(ask: Ask, wanted: str) -> str:
    """Where to go after signing in: a path of ours, whatever the address said."""
    home = f"{ask.base}/console"
    mine = wanted == home or wanted.startswith((f"{home}/", f"{home}?", f"{ask.base}/approve"))
    return quote(wanted if mine and "\\" not in wanted else home, safe="/?=&%+:,@;~!$'()*-._")


def _timed(receipt: dict[str, Any]) -> dict[str, Any]:
    """A receipt with its instants as such, for templates."""
    waits = [
        {"message": "", **wait, "since": read(wait.get("since")), "until": read(wait.get("until"))}
        for wait in receipt.get("waits", ())
    ]
    blank = {"key": None, "error": None, "result": None, "has_result": "result" in receipt}
    times = {name: read(receipt.get(name)) for name in ("started_at", "updated_at")}
    return {**blank, **receipt, **times, "waits": waits}


def _with_lengths(journal: Sequence[JournalRow], receipt: dict[str, Any]) -> list[tuple[JournalRow, float]]:
    """Each row with the part of the run's time, 0 to 100, after which it came."""
    start = read(receipt.get("started_at"))
    if not journal or start is None:
        return [(row, 0.0) for row in journal]
    whole = max((max(row.at for row in journal) - start).total_seconds(), 0.001)
    return [(row, round(min(100.0, max(0.0, (row.at - start).total_seconds() * 100 / whole)), 1)) for row in journal]
