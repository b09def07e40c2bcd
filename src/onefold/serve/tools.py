"""serve.tools - calling an actuator over HTTP, and looking into its database.

For: POST /tools/{name}, the tables of its space as JSON and CSV, all of them as a file.
Never: ends a run because its caller went away; writes; takes one page of a table for the table.
Was wrong once: the wait inside the call. A proxy cut it at 30 s and the caller never saw the run's id.
"""

from __future__ import annotations

import csv
import io
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import isfinite
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from onefold.serve import bodies
from onefold.serve.door import Host, Json
from onefold.serve.pieces import file_answer
from onefold.serve.problems import failure
from onefold.serve.receipts import POLL_SECONDS, worth_waiting
from onefold.serve.routes import LIST_LIMIT, LIST_MOST, NO_STORE, REPLAYED, Answer, Ask, Route, answer, number
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments, Fault

_FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # the full-width ones too: some spreadsheets read them alike
_BREAKS = ("\t", "\r", "\n")
CSV = (b"content-type", b"text/csv; charset=utf-8")
EXPORTS: Mapping[str, bytes] = {"sql": b"application/sql; charset=utf-8", "sqlite": b"application/vnd.sqlite3"}
IN_MEMORY = 1 << 20  # of a table as CSV; more goes to a file
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
            Route("GET", "/tools/{name}/export", self.export, OPERATE),
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
            wait = self.host.receipt(receipt.run_id, wait_ms=wait_ms, seen=receipt, caller=ask.caller)
            latest = await self._waits.on(wait, ask.receive)
            picture = picture if latest is None else latest.to_json()
        return called(picture, ask.base, replayed=started.replayed)

    async def tables(self, ask: Ask) -> Answer:
        ask.queries()
        return answer(list(await self.host.tables(ask.params["name"], caller=ask.caller)))

    async def rows(self, ask: Ask) -> Answer:
        queries = ask.queries("limit", "after")
        csv_wanted = wants_csv(ask.header(b"accept"))
        if csv_wanted and not queries:
            return await self._whole(ask)
        limit = number(queries.get("limit"), "limit", LIST_LIMIT, 1, LIST_MOST)
        columns, rows, after = await self.host.table_rows(
            ask.params["name"], ask.params["table"], limit=limit, after=queries.get("after"), caller=ask.caller
        )
        if csv_wanted:
            return Answer(200, csv_of(columns, rows), (CSV, NO_STORE, *_next(ask, limit, after)))
        return answer(
            {"columns": list(columns), "rows": [[_plain(cell) for cell in row] for row in rows], "next": after}
        )

    async def _whole(self, ask: Ask) -> Answer:
        """All of a table as CSV. It is written down first: what fails on the way is a problem, not half a table."""
        with ExitStack() as stack:
            file = stack.enter_context(tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))
            after: str | None = None
            while True:
                columns, rows, following = await self.host.table_rows(
                    ask.params["name"], ask.params["table"], limit=LIST_MOST, after=after, caller=ask.caller
                )
                file.write(csv_of(columns, rows, head=after is None))
                if following is None:
                    break
                after = following
            stack.pop_all()
        return file_answer(cast("BinaryIO", file), CSV[1])

    async def export(self, ask: Ask) -> Answer:
        form = ask.queries("as").get("as", "sql")
        if form not in EXPORTS:
            raise BadArguments([Fault("as", f"must be {' or '.join(EXPORTS)}", form)], nothing_was="done")
        name = ask.params["name"]
        file = await self.host.export(name, sql=form == "sql", caller=ask.caller)
        return file_answer(file, EXPORTS[form], f"{name}.{form}")


def _next(ask: Ask, limit: int, after: str | None) -> list[tuple[bytes, bytes]]:
    """Where the page behind this one is: CSV has no place to say so."""
    if after is None:
        return []
    name, table = (quote(ask.params[part], safe="") for part in ("name", "table"))
    where = f"{quote(ask.base)}/tools/{name}/tables/{table}?limit={limit}&after={quote(after, safe='')}"
    return [(b"link", f'<{where}>; rel="next"'.encode("ascii"))]


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


def csv_of(columns: Sequence[str], rows: Sequence[Sequence[Json]], *, head: bool = True) -> bytes:
    """Rows as RFC 4180, below the columns' names. Text that a spreadsheet would run as a formula gets an apostrophe in
    front.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    if head:
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
