"""store.postgres.author - the one narrow door for an author's SQL.

For: a database step in a thread of its own, on a connection of its own, inside one physical commit with its journal;
the author's migrations; looking at the author's tables.
Never: lets two steps in at once (the lane holds everybody else); commits without the journal; runs an author's text but
through the home's way in, as the author's role.
Was wrong once: the connection given back as it was. What a step had set with `set_config` counted for its own commit,
and for those after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from onefold.store.contract import Tx
from onefold.store.postgres.arrays import small
from onefold.store.postgres.asking import Asking, told_of
from onefold.store.postgres.export import exported
from onefold.store.postgres.handle import Handle, shown
from onefold.store.postgres.home import Home, looked_for, made
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire
from onefold.store.schema import Written, still_to_run
from onefold.store.worker import Worker, heard
from onefold.terms.errors import BadStatement, Finding, LoadRefused, NotFound, StepFenced, StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")
Finish = Callable[[Wire, T], Awaitable[R]]

MIGRATE_MS = 60_000
LOOK_MS = 2_000
CANCELS = 40  # tries to end a statement before its connection is dropped
_NOT_ALLOWED = "42501"


class Door:
    """The author's way into one space. `connect` lends a connection for as long as it is used, `back` takes it back."""

    def __init__(
        self, space: str, within: str, connect: Callable[[], Awaitable[Wire]], back: Callable[[Wire], None]
    ) -> None:
        self._space = space
        self._home = Home(space, within)
        self._connect = connect
        self._back = back
        self._wire: Wire | None = None
        self._reading: set[Wire] = set()
        self._there = False
        self._asking = Asking(self._home)
        self._handle: Handle | None = None
        self._worker: Worker | None = None

    async def run(
        self,
        step: Callable[[Tx], T],
        budget_ms: int,
        finish: Finish[T, R],
        *,
        named: str = "",
        first: Callable[[Wire], Awaitable[None]] | None = None,
    ) -> R:
        """Run `step` in a thread inside a transaction, then `finish` on the loop, which commits. `first`: done before it.

        Whatever raises, the transaction is rolled back first. Raises: StepFenced past `budget_ms`
        milliseconds; StoreUnavailable; whatever `step` or `finish` raised.
        """
        name = named or str(getattr(step, "__name__", "step"))
        async with self._lent() as wire:
            one = await self._begin(wire, budget_ms)
            if first is not None:
                await first(wire)
            handle = self._handle = Handle(name, partial(self._asking.answer, wire))
            try:
                result = await self._inside(wire, handle, partial(step, handle), budget_ms / 1000, name)
                if handle.fallen is not None:
                    raise handle.fallen
                if handle.fenced:
                    raise StepFenced(name)  # the space was closed meanwhile
                await self._settle(wire, one)
                return await finish(wire, result)
            finally:
                handle.fenced = True
                self._handle = None
                await self._leave(wire)

    async def migrate(self, statements: Sequence[str]) -> None:
        """Run each of `statements` once, in order, all in one commit. Raises: LoadRefused, StoreUnavailable.

        Was wrong once: what is to be run found before the transaction. Two nodes found the same, and the second was told
        that its author's table exists already.
        """
        if not statements:
            return
        todo: list[Written] = []

        async def ask(wire: Wire) -> None:
            asked = f"select checksum from {self._home.migrations} where space=$1::text order by number"
            done = [d for (d,) in await self._rows(wire, asked, self._space)]
            todo[:] = still_to_run(statements, done, self._space)

        async def alone(wire: Wire) -> None:
            await wire.send([Statement(self._home.alone.encode())])
            await ask(wire)

        def run(tx: Tx) -> None:
            for one in todo:
                tx.execute(one.sql)

        async def note(wire: Wire, _: None) -> None:
            text = f"insert into {self._home.migrations} values($1::text,$2::int4,$3::text)".encode()
            lines = [[self._space.encode(), small(one.number), one.checksum.encode()] for one in todo]
            await wire.send([*[Statement(text, line) for line in lines], Statement(b"commit")])

        async with self._lent() as wire:
            await ask(wire)
        if not todo:
            return
        try:
            await self.run(run, MIGRATE_MS, note, named="migrations", first=alone)
        except BadStatement as bad:
            raise LoadRefused([Finding(f"the migrations of {self._space}", str(bad))]) from bad

    async def tables(self) -> list[str]:
        async with self._lent(make=False) as wire:
            found = await self._rows(wire, _TABLES, self._home.schema)
        return [name for (name,) in found]

    async def rows(self, table: str, limit: int, after: int | None) -> tuple[list[str], list[Any], int | None]:
        """A page of one table, by its key where that is one whole number. Raises: NotFound; StepFenced when computing
        its columns takes too long."""
        if table not in await self.tables():
            raise NotFound("table", table)
        async with self._lent() as wire:
            columns = [name for (name,) in await self._rows(wire, _COLUMNS, self._home.schema, table)]
            key = await self._rows(wire, _KEY, self._home.schema, table)
        text, place = _page(table, key)
        start = after if after is not None else -(2**63) if place else 0

        async def over(wire: Wire, rows: list[dict[str, object]]) -> list[dict[str, object]]:
            return rows

        values = {"start": start, "size": limit + 1}
        found = await self.run(lambda tx: tx.fetch(text, **values), LOOK_MS, over, named=f"look at {table}")
        page = found[:limit]
        following = None
        if len(found) > limit:
            following = int(str(page[-1][place])) if place and page else start + len(page)
        return columns, [tuple([shown(row[c]) for c in columns]) for row in page], following

    async def export(self, into: str, *, sql: bool) -> None:
        """On a connection of its own, so that steps go on. Raises: StoreUnavailable."""
        wire = None
        try:
            wire = await self._connect()
            self._reading.add(wire)
            await exported(wire, self._home, self._space, into, sql=sql)
        except (Gone, Stopped) as fault:
            raise told_of(fault) from fault
        finally:
            if wire is not None:
                self._reading.discard(wire)
                wire.drop()  # with its transaction, and the texts that it prepared

    @property
    def stepping(self) -> bool:
        return self._handle is not None

    def close(self) -> None:
        """Let go of a connection in use. A step under way is fenced, an export is cut off."""
        for reading in list(self._reading):
            reading.drop()
        if self._handle is not None:
            self._handle.fenced = True
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.drop()
        if self._worker is not None:
            self._worker.leave()
            self._worker = None

    # --- the connection -------------------------------------------------------------------------

    @asynccontextmanager
    async def _lent(self, *, make: bool = True) -> AsyncIterator[Wire]:
        """A connection for as long as it is needed, with the home made; what the driver says of it as ours."""
        try:
            wire = self._wire = await self._connect()
            if make and not self._there:
                await self._make(wire)
                self._there = True
            yield wire
        except (Gone, Stopped, OSError) as fault:
            self._lose()
            self._there = False
            raise told_of(fault) from fault
        finally:
            lent, self._wire = self._wire, None
            if lent is not None:
                self._back(lent)

    def _lose(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.drop()

    async def _make(self, wire: Wire) -> None:
        """The home, where it is not there or not as it must be. Raises: StoreUnavailable for who may not make it."""
        if await self._is_made(wire):
            return
        try:
            await wire.send([Statement(b"begin"), Statement(_ONE_AT_A_TIME)])
            found = await self._rows(wire, looked_for(self._home))
            role, foreign = (str(found[0][0]).strip('"'), bool(found[0][1])) if found else ("", True)
            if foreign:
                ((role,),) = await self._rows(wire, _NEW_ROLE, self._space[:32])
            texts = made(self._home, role, new_role=foreign, there=bool(found) and foreign)
            await wire.send([Statement(text.encode()) for text in [*texts, "commit"]])
        except Stopped as stopped:
            await wire.send([Statement(b"rollback")])
            if stopped.state != _NOT_ALLOWED:
                raise
            why = "the user of its database may not make it a schema and a role; grant CREATE on the database and CREATEROLE"
            raise StoreUnavailable(self._space, why) from stopped

    async def _is_made(self, wire: Wire) -> bool:
        found = await self._rows(wire, looked_for(self._home))
        return bool(found) and not found[0][1] and found[0][2] is True

    async def _rows(self, wire: Wire, text: str, *values: str) -> list[tuple[Any, ...]]:
        (result,) = await wire.send([Statement(text.encode(), [value.encode() for value in values])])
        return wire.rows(result)

    # --- the transaction ------------------------------------------------------------------------

    async def _begin(self, wire: Wire, budget_ms: int) -> str:
        """Begin; the name of the transaction."""
        budget = str(max(1, budget_ms)).encode()
        sent = [
            Statement(b"begin"),
            Statement(_SET, [b"statement_timeout", budget]),
            Statement(_SET, [b"idle_in_transaction_session_timeout", budget]),  # the step may compute meanwhile
            Statement(_WHICH),
        ]
        results = await wire.send(sent)
        return str(wire.rows(results[-1])[0][0])

    async def _settle(self, wire: Wire, one: str) -> None:
        """The author is through: their settings are gone, what they put off is looked at, and it is the same transaction."""
        try:
            sent = [Statement(b"set constraints all immediate"), Statement(b"reset all"), wire.prepare]
            results = await wire.send([*sent, Statement(_WHICH)])
        except Stopped as stopped:
            raise BadStatement(f"{stopped.message}, found at the end of its step", "") from stopped
        if wire.at_rest or str(wire.rows(results[-1])[0][0]) != one:
            raise BadStatement("it ended the transaction of its step, which therefore failed", "")

    async def _leave(self, wire: Wire) -> None:
        """Leave the transaction of a step, unless its commit did, and whatever the step left in the session."""
        if not wire.open:
            return
        try:
            ending = [] if wire.at_rest else [Statement(b"rollback")]
            await wire.send([*ending, *[Statement(text) for text in _LEFT], wire.prepare])
        except (Gone, Stopped, OSError):
            self._lose()

    async def _inside(self, wire: Wire, handle: Handle, call: Callable[[], T], budget_s: float, name: str) -> T:
        """Run `call` in the worker's thread; past the budget, or cancelled, fence it and wait for its statement's end."""
        if self._worker is None:
            self._worker = Worker(self._space)
        answer = self._worker.ask(call)
        try:
            async with asyncio.timeout(budget_s):
                return await asyncio.shield(answer)
        except (TimeoutError, asyncio.CancelledError) as late:
            if answer.done() and not answer.cancelled() and isinstance(late, TimeoutError):
                return answer.result()
            if self._worker is not None:
                self._worker.leave()
                self._worker = None
            answer.add_done_callback(heard)
            handle.fenced = True
            await _ground(wire, handle)
            if isinstance(late, TimeoutError):
                raise StepFenced(name) from None
            raise


async def _ground(wire: Wire, handle: Handle) -> None:
    """Wait until nothing of the step is on its way; a statement that does not end takes its connection along."""
    for tried in range(CANCELS):
        flying = handle.flying
        if flying is None:
            return
        await wire.cancel()
        await asyncio.wait([flying], timeout=0.01 * (tried + 1))
    wire.drop()


_SET = b"select set_config($1::text, $2::text, true)"
_WHICH = b"select pg_current_xact_id()::text"
_LEFT = (b"discard temp", b"reset all", b"select pg_advisory_unlock_all()", b"unlisten *")
_ONE_AT_A_TIME = b"select pg_advisory_xact_lock(hashtext('onefold author'))"
_NEW_ROLE = "select 'onefold_' || $1::text || '_' || substr(md5(gen_random_uuid()::text), 1, 8)"
_TABLES = (
    "select relname::text from pg_catalog.pg_class where relnamespace=to_regnamespace(quote_ident($1::text))"
    " and relkind in ('r','p') order by relname collate \"C\""
)
_OF_TABLE = "to_regclass(quote_ident($1::text) || '.' || quote_ident($2::text))"
_COLUMNS = (
    f"select attname::text from pg_catalog.pg_attribute where attrelid={_OF_TABLE} and attnum>0 and not attisdropped"
    " order by attnum"
)
_KEY = (
    "select a.attname::text, a.atttypid in (20,21,23) from pg_catalog.pg_index i cross join lateral"
    " unnest(i.indkey) with ordinality as k(attnum, at) join pg_catalog.pg_attribute a"
    f" on a.attrelid=i.indrelid and a.attnum=k.attnum where i.indrelid={_OF_TABLE} and i.indisprimary order by k.at"
)


def _page(table: str, key: Sequence[tuple[Any, ...]]) -> tuple[str, str | None]:
    """The text of one page, and the column that its place is counted by; None for an offset."""
    name = _quoted(table)
    if len(key) == 1 and key[0][1]:
        by = _quoted(key[0][0])
        return f"select * from {name} where {by} > :start::int8 order by {by} limit :size", str(key[0][0])
    order = ", ".join([_quoted(column) for column, _ in key]) or "ctid"
    return f"select * from {name} order by {order} limit :size offset :start", None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
