"""store.postgres.wire - one connection as a pipeline: statements go out in trips, answers come back in order.

For: `Wire.send`, one round trip for any number of statements of any size; noticing at once that the peer is gone.
Never: knows SQL or what an error means to a caller (failing does); connects (connect does).
Was wrong once: the driver's own pipeline, whose `sync()` sends and waits for nothing else. Behind a statement of 2 MB
over a socket the server waited for us to read, and we for the server.

A trip ends with a Sync, of which an error's effect ends too: what stood behind the failed statement was not run.
Several trips may be on their way; each is answered apart. Statements are prepared under a name of their own the
first time they are sent, and used by it once the server confirmed it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import AsyncConnection, pq
from psycopg.adapt import Transformer

PATIENCE_S = 30.0  # why: longer than the server's own limits on a statement and on a wait for a lock
CANCEL_S = 2.0
_BAD = pq.ConnStatus.BAD
_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
_SYNC, _ABORTED = pq.ExecStatus.PIPELINE_SYNC, pq.ExecStatus.PIPELINE_ABORTED


@dataclass(slots=True)
class Statement:
    """One text, and its parameters in binary. `flush`: its answer is sent before the next statement runs.

    described: it is not run; the result says what it is made of (see `described`).
    """

    text: bytes
    values: Sequence[bytes | None] = ()
    flush: bool = False
    described: bool = False


class Gone(Exception):
    """The connection ended, or its peer does not answer. `state`: the SQLSTATE the server gave, if it said one.

    results: those that came before. refused: whether a statement behind them was answered with the end, so that
    nothing after it ran.
    """

    def __init__(self, state: str = "", results: Sequence[Any] = (), refused: bool = False) -> None:
        super().__init__(state)
        self.state = state
        self.results = results
        self.refused = refused


class Stopped(Exception):
    """A statement of the trip failed; those before it ran, with `results`, and none behind it."""

    def __init__(self, at: int, state: str, message: str, results: list[Any]) -> None:
        super().__init__(f"{state}: {message}")
        self.at = at
        self.state = state
        self.message = message
        self.results = results


@dataclass(slots=True)
class _Trip:
    """`sent`: per command on the wire its statement's place, or the text that was to be prepared."""

    sent: deque[int | bytes]
    answer: asyncio.Future[list[Any]]
    bound: asyncio.TimerHandle | None = None
    results: list[Any] = field(default_factory=list)
    stopped: Stopped | None = None


class Wire:
    """An open connection. Everything here happens on the loop's thread."""

    def __init__(self, conn: AsyncConnection[Any], failpoint: Callable[[str], None] | None = None) -> None:
        self._conn = conn
        self._pg = conn.pgconn
        self._fail = failpoint
        self._loop = asyncio.get_running_loop()
        self._reader = Transformer(conn)
        for oid in (20, 25, 17):  # made now: they ask the connection for its encoding, and answers outlive it
            self._reader.get_loader(oid, pq.Format.BINARY)
        self._trips: deque[_Trip] = deque()
        self._names: dict[bytes, bytes] = {}  # texts that the server has prepared
        self._coming: dict[bytes, bytes] = {}  # texts that it was told to prepare
        self._made = 0
        self._state = ""
        self._fd = self._pg.socket
        self._writing = False
        self.open = True
        self.ended: Callable[[], None] | None = None  # called when it is no longer
        self.trips = 0
        self.warned = False  # whether the server warned of something since this was last set to False
        self.pid = self._pg.backend_pid
        self.prepare = Statement(b"select 1")  # makes the settings of this connection anew
        self._pg.notice_handler = self._noticed
        self._pg.enter_pipeline_mode()
        self._loop.add_reader(self._fd, self._readable)

    @property
    def at_rest(self) -> bool:
        """Whether no transaction is open."""
        return self.open and self._pg.transaction_status == pq.TransactionStatus.IDLE

    def rows(self, result: Any) -> list[tuple[Any, ...]]:
        self._reader.set_pgresult(result)
        return self._reader.load_rows(0, result.ntuples, tuple)

    async def send(self, statements: Sequence[Statement]) -> list[Any]:
        """Their results, in one round trip. Raises: Stopped, Gone; OSError of a failpoint, with nothing sent."""
        if self._fail is not None:
            for _ in statements:
                self._fail("statement")
        if self.open and not self._trips:
            self._readable()  # a server that said goodbye meanwhile is heard before anything is sent to it
        if not self.open:
            raise Gone(self._state, refused=True)
        trip = _Trip(deque(), self._loop.create_future())
        self._trips.append(trip)
        self.trips += 1
        try:
            for place, statement in enumerate(statements):
                self._put(trip, place, statement)
            self._pg.pipeline_sync()
            self._flush()
        except psycopg.Error:
            self.drop()
        if self.open:
            trip.bound = self._loop.call_later(PATIENCE_S, self.drop)
        return await trip.answer

    async def cancel(self) -> None:
        """Ask the server to end the statement that runs. Nothing is known when this returns. Never raises."""
        with suppress(psycopg.Error, OSError):
            await self._conn.cancel_safe(timeout=CANCEL_S)

    def drop(self) -> None:
        """Close it as a kill would. Who waits for an answer hears Gone."""
        if not self.open:
            return
        self.open = False
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._pg.notice_handler = None
        self._pg.finish()
        trips, self._trips = self._trips, deque()
        for trip in trips:
            if trip.bound is not None:
                trip.bound.cancel()
            if not trip.answer.done():
                trip.answer.set_exception(Gone(self._state, trip.results, trip.stopped is not None))
                trip.answer.exception()  # somebody who stopped waiting must not be reported as deaf
        if self.ended is not None:
            self.ended()

    # --- sending --------------------------------------------------------------------------------

    def _put(self, trip: _Trip, place: int, statement: Statement) -> None:
        text, values = statement.text, statement.values
        if statement.described:
            self._pg.send_prepare(b"", text)
            self._pg.send_describe_prepared(b"")
            trip.sent.extend((b"", place))
            return
        name = self._names.get(text)
        if name is None and text not in self._coming:
            self._made += 1
            name = self._coming[text] = b"s%d" % self._made
            self._pg.send_prepare(name, text)
            trip.sent.append(text)
        if name is None:
            self._pg.send_query_params(text, values, param_formats=[1] * len(values), result_format=1)
        else:
            self._pg.send_query_prepared(name, values, param_formats=[1] * len(values), result_format=1)
        trip.sent.append(place)
        if statement.flush:
            self._pg.send_flush_request()

    def _flush(self) -> None:
        if self._pg.flush():
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._fd, self._writable)
        elif self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)

    def _writable(self) -> None:
        try:
            self._flush()
        except psycopg.Error:
            self.drop()

    # --- hearing --------------------------------------------------------------------------------

    def _readable(self) -> None:
        try:
            self._pg.consume_input()
            while self._trips and not self._pg.is_busy():
                result = self._pg.get_result()
                if result is not None:
                    self._heard(self._trips[0], result)
                elif self._pg.status == _BAD:
                    break
            if not self._trips:  # at rest the driver reads what the server says last only where it is asked
                self._pg.get_result()
                self._pg.is_busy()
        except psycopg.Error:
            self.drop()
        else:
            if self.open and self._pg.status == _BAD:
                self.drop()

    def _heard(self, trip: _Trip, result: Any) -> None:
        status = result.status
        if status == _SYNC:
            self._trips.popleft()
            self._over(trip)
            return
        if not trip.sent:
            raise psycopg.OperationalError("an answer that nobody asked for")
        what = trip.sent.popleft()
        if status in _GOOD:
            if isinstance(what, int):
                trip.results.append(result)
            elif what:
                self._names[what] = self._coming.pop(what)
            return
        if isinstance(what, bytes) and what:
            self._coming.pop(what)
        if status != _ABORTED and trip.stopped is None:
            state = _field(result, pq.DiagnosticField.SQLSTATE)
            self._noticed(result)
            at = what if isinstance(what, int) else trip.sent[0]
            assert isinstance(at, int)
            trip.stopped = Stopped(at, state, _field(result, pq.DiagnosticField.MESSAGE_PRIMARY), trip.results)

    def _over(self, trip: _Trip) -> None:
        if trip.bound is not None:
            trip.bound.cancel()
        if trip.answer.done():
            return
        if trip.stopped is not None:
            trip.answer.set_exception(trip.stopped)
        else:
            trip.answer.set_result(trip.results)

    def _noticed(self, result: Any) -> None:
        severity = _field(result, pq.DiagnosticField.SEVERITY_NONLOCALIZED)
        if severity == "WARNING":
            self.warned = True
        elif severity in ("FATAL", "PANIC"):
            self._state = _field(result, pq.DiagnosticField.SQLSTATE)


def described(result: Any) -> tuple[list[int], list[tuple[str, int]]]:
    """Of a statement that was not run: the types of its parameters, and its columns with theirs, as OIDs."""
    types = [result.param_type(i) for i in range(result.nparams)]
    return types, [((result.fname(i) or b"").decode(), result.ftype(i)) for i in range(result.nfields)]


def _field(result: Any, field: pq.DiagnosticField) -> str:
    with suppress(psycopg.Error):
        return (result.error_field(field) or b"").decode(errors="replace")
    return ""
