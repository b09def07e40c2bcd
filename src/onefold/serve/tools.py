"""serve.tools - calling an actuator over HTTP, and looking into its database.

For: POST /tools/{name}, the tables of its space as JSON and CSV.
Never: ends a run because its caller went away; writes; offers an export that host does not give.
Was wrong once: the wait inside the call. A proxy cut it at 30 s and the caller never saw the run's id.
"""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from urllib.parse import quote

from onefold.serve import bodies
from onefold.serve.door import Host, Json
from onefold.serve.problems import failure
from onefold.serve.receipts import POLL_SECONDS, worth_waiting
from onefold.serve.routes import LIST_LIMIT, LIST_MOST, NO_STORE, REPLAYED, Answer, Ask, Route, answer, number
from onefold.terms.codec import canonical

_FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # the full-width ones too: some spreadsheets read them alike
_BREAKS = ("\t", "\r", "\n")
CALL, OPERATE = frozenset({"call"}), frozenset({"operate"})


class Tools:
    """The routes of actuators."""

    def __init__(self, host: Host, waits: bodies.Waits) -> None:
        self.host = host
        self._waits = waits

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/tools/{name}", self.call, CALL),
            Route("GET", "/tools/{name}/tables", self.tables, OPERATE),
            Route("GET", "/tools/{name}/tables/{table}", self.rows, OPERATE),
        ]

    async def call(self, ask: Ask) -> Answer:
        """Start, then wait a little. The run is committed before the wait, so a cut loses nothing."""
        key, wait_ms = ask.key(), ask.wait_ms()
        raw = await bodies.read(ask.scope, ask.receive)
        arguments = bodies.json_of(raw) if raw else {}
        callback = ask.header(b"onefold-callback")
        started = await self.host.start(ask.params["name"], arguments, key=key, caller=ask.caller, callback=callback)
        receipt = started.receipt
        picture = receipt.to_json()
        if worth_waiting(picture, wait_ms, self.host.clock.now()):
            wait = self.host.receipt(receipt.run_id, wait_ms=wait_ms, caller=ask.caller)
            latest = await self._waits.on(wait, ask.receive)
            picture = picture if latest is None else latest.to_json()
        return called(picture, ask.base, replayed=started.replayed)

    async def tables(self, ask: Ask) -> Answer:
        ask.queries()
        return answer(list(await self.host.tables(ask.params["name"], caller=ask.caller)))

    async def rows(self, ask: Ask) -> Answer:
        queries = ask.queries("limit", "after")
        limit = number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST)
        columns, rows, after = await self.host.table_rows(
            ask.params["name"], ask.params["table"], limit=limit, after=queries.get("after"), caller=ask.caller
        )
        if wants_csv(ask.header(b"accept")):
            return Answer(200, csv_of(columns, rows), ((b"content-type", b"text/csv; charset=utf-8"), NO_STORE))
        return answer(
            {"columns": list(columns), "rows": [[_plain(cell) for cell in row] for row in rows], "next": after}
        )


def called(picture: Mapping[str, Any], base: str, *, replayed: bool) -> Answer:
    """A receipt as the answer to a call: 200 done, 202 not ended. Raises: RunFailed, RunCancelled, RunParked."""
    if (bad := failure(picture)) is not None:
        raise bad
    seen = (REPLAYED,) if replayed else ()
    if picture["status"] == "done":
        return answer(picture, 200, seen)
    again = str(picture.get("poll_after_seconds", POLL_SECONDS)).encode()
    where = f"{quote(base)}/runs/{quote(str(picture['run_id']), safe='')}".encode("ascii")
    return answer(picture, 202, ((b"location", where), (b"retry-after", again), *seen))


def wants_csv(accept: str | None) -> bool:
    return any(part.partition(";")[0].strip() == "text/csv" for part in (accept or "").lower().split(","))


def csv_of(columns: Sequence[str], rows: Sequence[Sequence[Json]]) -> bytes:
    """Rows as RFC 4180. Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([_cell(column) for column in columns])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue().encode()


def _plain(cell: Any) -> Json:
    """A cell as JSON has it: bytes are base64, what is no number is null."""
    if isinstance(cell, bytes):
        return b64encode(cell).decode("ascii")
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def _cell(value: Any) -> str:
    value = _plain(value)
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value[:1] in _BREAKS or value.lstrip()[:1] in _FORMULAS else value
    return canonical(value).decode()
