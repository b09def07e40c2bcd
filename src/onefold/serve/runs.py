"""serve.runs - looking at runs, and what may be said to one: an event, cancel, retry, a decision.

For: /runs and below, and the list of what is parked.
Never: holds a read against the run; a `?wait=` ends with its client and consumes nothing.
Was wrong once: asking for a result removed it. The client that lost the answer never got another.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from onefold.actuators.schema import STATUSES
from onefold.serve import bodies
from onefold.serve.door import Host, JournalRow, Json, ParkedDetail, ParkedItem, Verdict
from onefold.serve.routes import (
    LIST_LIMIT,
    LIST_MOST,
    WAIT_MOST,
    Answer,
    Ask,
    Route,
    answer,
    number,
    page_of,
)
from onefold.serve.times import written
from onefold.terms.errors import BadArguments, Fault, NotFound
from onefold.terms.faults import FIRST_PAGE
from onefold.terms.instant import up

CALL, OPERATE = frozenset({"call"}), frozenset({"operate"})
LOOK = frozenset({"read", "operate"})
CANCEL = frozenset({"call", "operate"})
ONE = LOOK | CALL  # who may start a run may follow it: repeating the call under its key tells no less
_MOMENT: Final = re.compile("[0-9]{1,15}", re.ASCII)


class Runs:
    """The routes of runs and of parked items."""

    def __init__(self, host: Host, waits: bodies.Waits) -> None:
        self.host = host
        self._waits = waits

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/runs", self.list, LOOK),
            Route("GET", "/runs/{id}", self.show, ONE),
            Route("GET", "/runs/{id}/journal", self.journal, LOOK),
            Route("POST", "/runs/{id}/events/{event}", self.send, CALL),
            Route("POST", "/runs/{id}/cancel", self.cancel, CANCEL),
            Route("POST", "/runs/{id}/retry", self.retry, OPERATE),
            Route("POST", "/runs/{id}/fork", self.fork, CALL),
            Route("POST", "/runs/{id}/approvals/{name}", self.decide, OPERATE),
            Route("GET", "/parked", self.parked, OPERATE),
            Route("GET", "/parked/{id}", self.parked_show, OPERATE),
            Route("POST", "/parked/{id}/retry", self.parked_retry, OPERATE),
            Route("POST", "/parked/{id}/drop", self.parked_drop, OPERATE),
        ]

    async def list(self, ask: Ask) -> Answer:
        queries = ask.queries("program", "status", "key", "limit", "after")
        page = await self.host.runs_list(
            program=queries.get("program"),
            status=status_of(queries.get("status")),
            key=queries.get("key"),
            limit=number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST),
            after=queries.get("after"),
            caller=ask.caller,
        )
        return answer({"items": [receipt.to_json() for receipt in page.items], "next": page.next})

    async def show(self, ask: Ask) -> Answer:
        """The receipt, 200 in any status. `?wait=` seconds at most, ended by the client going away."""
        wait = number(ask.queries("wait").get("wait"), "wait", 0, 0, WAIT_MOST)
        latest = None
        if wait:
            await bodies.read(ask.scope, ask.receive)
            looking = self.host.receipt(ask.params["id"], wait_ms=wait * 1000, caller=ask.caller)
            latest = await self._waits.on(looking, ask.receive)
        if latest is None:
            latest = await self.host.receipt(ask.params["id"], wait_ms=0, caller=ask.caller)
        return answer(latest.to_json())

    async def journal(self, ask: Ask) -> Answer:
        """All of it, with what a replay needs; or a page of it, without."""
        rows, history = await self.host.run_history(ask.params["id"], caller=ask.caller)
        items, more = page_of(ask, rows)
        told = {"items": [journal_row(row) for row in items], "next": more}
        return answer(told if len(items) < len(rows) else told | {"history": history})

    async def send(self, ask: Ask) -> Answer:
        key = ask.key()
        body = bodies.json_of(await bodies.read(ask.scope, ask.receive))
        receipt = await self.host.run_send(ask.params["id"], ask.params["event"], body, key=key, caller=ask.caller)
        return answer(receipt.to_json())

    async def cancel(self, ask: Ask) -> Answer:
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("reason",))
        reason = bodies.text_in(body, "reason")
        receipt = await self.host.run_cancel(ask.params["id"], reason, caller=ask.caller)
        return answer(receipt.to_json())

    async def retry(self, ask: Ask) -> Answer:
        bodies.object_of(await bodies.read(ask.scope, ask.receive), ())
        return answer((await self.host.run_retry(ask.params["id"], caller=ask.caller)).to_json())

    async def fork(self, ask: Ask) -> Answer:
        key = ask.key()
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("from",))
        step = bodies.text_in(body, "from")
        if not step:
            raise BadArguments([Fault("from", "must name the step to go on from")], nothing_was="forked")
        return answer((await self.host.run_fork(ask.params["id"], step, key=key, caller=ask.caller)).to_json())

    async def decide(self, ask: Ask) -> Answer:
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("approve", "reason", "comment", "value"))
        approve = body.get("approve")
        if not isinstance(approve, bool):
            raise BadArguments([Fault("approve", "must be true or false", approve)], nothing_was="decided")
        verdict = await self.host.approvals_decide(
            ask.params["id"],
            ask.params["name"],
            approve=approve,
            by=ask.caller.name,
            reason=bodies.text_in(body, "reason"),
            comment=bodies.text_in(body, "comment"),
            value=body.get("value"),
            caller=ask.caller,
        )
        return answer(verdict_json(verdict))

    async def parked(self, ask: Ask) -> Answer:
        queries = ask.queries("limit", "after")
        limit = number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST)
        behind = _place(queries.get("after"))
        items = [one for one in await self.host.parked_list(caller=ask.caller) if _at(one) > behind]
        shown = sorted(items, key=_at)[:limit]
        more = "{}.{}".format(*_at(shown[-1])) if len(items) > limit else None
        return answer({"items": [parked_item(item) for item in shown], "next": more})

    async def parked_show(self, ask: Ask) -> Answer:
        ask.queries()
        return answer(parked_detail(await self.host.parked_show(ask.params["id"], caller=ask.caller)))

    async def parked_retry(self, ask: Ask) -> Answer:
        bodies.object_of(await bodies.read(ask.scope, ask.receive), ())
        await self.host.parked_retry(ask.params["id"], caller=ask.caller)
        return Answer(204, headers=())

    async def parked_drop(self, ask: Ask) -> Answer:
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("reason",))
        reason = bodies.text_in(body, "reason")
        if not reason:
            raise BadArguments([Fault("reason", "must say why it is dropped")], nothing_was="dropped")
        await self.host.parked_drop(ask.params["id"], reason=reason, caller=ask.caller)
        return Answer(204, headers=())


def _at(item: ParkedItem) -> tuple[int, str]:
    """Where an item stands in the list: a page begins behind it, also once it was dealt with."""
    return up(item.since), item.id


def _place(after: str | None) -> tuple[int, str]:
    since, _, id = (after if after is not None else "0.").partition(".")
    if not _MOMENT.fullmatch(since) or (after is not None and not id):
        raise NotFound(
            "page", after or "", FIRST_PAGE
        )  # not the first page: whoever follows `next` would go in circles
    return int(since), id


def status_of(given: str | None) -> str | None:
    if given is not None and given not in STATUSES:
        raise BadArguments([Fault("status", f"must be one of {', '.join(STATUSES)}", given)], nothing_was="done")
    return given


def journal_row(row: JournalRow) -> dict[str, Any]:
    told: dict[str, Any] = {
        "seq": row.seq,
        "path": row.path,
        "step": row.step,
        "kind": row.kind,
        "attempt": row.attempt,
        "at": written(row.at),
    }
    return told | ({"result": as_json(row.result)} if row.error is None else {"error": as_json(row.error)})


def as_json(value: Json) -> Json:
    """A journaled value as JSON has it: a tuple of names is a list."""
    return msgspec.json.decode(msgspec.json.encode(value))


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    by = verdict.by if verdict.by is None or isinstance(verdict.by, str) else list(verdict.by)
    told = {"outcome": verdict.outcome, "by": by, "at": written(verdict.at), "way": verdict.way}
    return {name: value for name, value in told.items() if value is not None}


def parked_item(item: ParkedItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "program": item.program,
        "cause": item.cause,
        "since": written(item.since),
    }


def parked_detail(item: ParkedDetail) -> dict[str, Any]:
    """The item, and what is known of it; absent fields are left out."""
    known = {"key": item.key, "principal": item.principal, "port": item.port, "owed": item.owed, "tries": item.tries}
    told: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    if item.next_at is not None:
        told["next_at"] = written(item.next_at)
    if item.port is not None:
        told["body"] = item.body
    return {**parked_item(item), **told, "retry": item.retry, "drop": item.drop}
