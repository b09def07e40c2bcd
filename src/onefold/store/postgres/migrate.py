"""store.postgres.migrate - a database brought to the tables this code declares, in one commit, by one process at a time.

For: the store's own tables, what `store.schema` says is missing, views, the number of a space.
Never: goes back; changes a table that newer code made; waits for a lock where nothing is missing.
Was wrong once: a check before the lock alone. Two processes that started together both made the first table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from onefold.store.contract import Create, Schema
from onefold.store.postgres import ddl
from onefold.store.postgres.arrays import scalar
from onefold.store.postgres.cluster import BEGINNING
from onefold.store.postgres.connect import Server
from onefold.store.postgres.sql import quoted
from onefold.store.postgres.wire import Statement, Wire
from onefold.store.schema import Applied, check, check_names, checksum, missing


async def there(wire: Wire, within: str, table: str = "_cluster") -> bool:
    """Whether this database has the table; without one, whether it has the store's own."""
    name = f"{quoted(within)}.{quoted(table)}"
    results = await wire.send([Statement(b"select to_regclass($1::text) is not null", [name.encode()])])
    return bool(wire.rows(results[0])[0][0])


def checked(schemas: Sequence[Schema]) -> None:
    """Raises: LoadRefused for declarations that do not add up."""
    check_names(schemas)
    for schema in schemas:
        check(schema)


async def lacking(wire: Wire, schemas: Sequence[Schema], within: str) -> bool:
    """Whether anything is to be applied. Raises: StoreTooNew, LoadRefused."""
    applied, shown = await _state(wire, within)
    if _later(applied):
        return True
    if [schema for schema in schemas if missing(schema, applied, within)]:
        return True
    return any(
        shown.get(view.name) != _mark(text)
        for schema in schemas
        if not _newer(schema, applied)
        for view, text in _views(schema, within)
    )


async def migrate(wire: Wire, schemas: Sequence[Schema], within: str, server: Server) -> None:
    """Apply what is missing, in a transaction of its own on this connection. Raises: StoreTooNew, LoadRefused."""
    lock = int.from_bytes(hashlib.sha256(b"onefold " + within.encode()).digest()[:8], "big", signed=True)
    begin = [
        Statement(b"begin"),
        Statement(b"set local lock_timeout='60s'"),
        Statement(b"set local statement_timeout='0'"),
        Statement(b"select pg_advisory_xact_lock($1::int8)", [scalar("int", lock)]),
    ]
    await wire.send(begin)
    if not await there(wire, within):
        own = [Statement(text.encode()) for text in ddl.own(within)]
        start = BEGINNING.format(quoted(within)).encode()
        own.append(Statement(start, [server.system.encode(), scalar("int", server.timeline)]))
        await wire.send(own)
    applied, shown = await _state(wire, within)
    for number, later in _later(applied):
        note = f"insert into {quoted(within)}._migration(room,number,oldest,checksum) values($1,$2,1,$3)".encode()
        cells = [ddl.OWN_ROOM.encode(), scalar("int", number), _mark(later).encode()]
        await wire.send([Statement(later.format(quoted(within)).encode()), Statement(note, cells)])
    for schema, steps in [(s, missing(s, applied, within)) for s in schemas]:
        declared = {table.name: table for table in schema.tables}
        texts = [text for one in steps for step in one.steps for text in ddl.changed(step, declared, within)]
        made = [step.table.name for one in steps for step in one.steps if isinstance(step, Create)]
        texts += [text for name in made for text in ddl.ballast(declared[name], within)]
        if not _newer(schema, applied):
            for view, text in _views(schema, within):
                if shown.get(view.name) != _mark(text):
                    name = f"{quoted(within)}.{quoted(view.name)}"
                    texts += [f"drop view if exists {name}", text, f"comment on view {name} is '{_mark(text)}'"]
        statements = [Statement(text.encode()) for text in texts]
        note = f"insert into {quoted(within)}._migration(room,number,oldest,checksum) values($1,$2,$3,$4)".encode()
        for one in steps:
            cells = [schema.room.encode(), scalar("int", one.number), scalar("int", one.oldest), checksum(one).encode()]
            statements.append(Statement(note, cells))
        if statements:
            await wire.send(statements)
    await wire.send([Statement(b"commit")])


async def number_of(wire: Wire, name: str, within: str, *, make: bool) -> int | None:
    """The number of a space; with `make` it gets one where it has none."""
    find = Statement(f"select id from {quoted(within)}._space where name=$1::text".encode(), [name.encode()])
    text = f"insert into {quoted(within)}._space(name) values($1::text) on conflict do nothing"
    for statements in ([find], [Statement(text.encode(), [name.encode()]), find]):
        found = wire.rows((await wire.send(statements))[-1])
        if found or not make:
            return found[0][0] if found else None
    raise AssertionError(f"the space {name!r} has no number")


async def numbers(wire: Wire, within: str) -> dict[str, int]:
    """Every space there is, with its number."""
    (result,) = await wire.send([Statement(f"select name,id from {quoted(within)}._space".encode())])
    return dict(wire.rows(result))


def _later(applied: Sequence[Applied]) -> list[tuple[int, str]]:
    """What of the store's own is not there yet, in order."""
    there = {one.number for one in applied if one.room == ddl.OWN_ROOM}
    return [(number, text) for number, text in enumerate(ddl.LATER, 1) if number not in there]


def _views(schema: Schema, within: str) -> list[tuple[Any, str]]:
    tables = {table.name: table for table in schema.tables}
    return [(view, ddl.view(view, tables[view.table], within)) for view in schema.views]


def _newer(schema: Schema, applied: Sequence[Applied]) -> bool:
    return any(a.room == schema.room and a.number > len(schema.migrations) for a in applied)


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


async def _state(wire: Wire, within: str) -> tuple[list[Applied], dict[str, str]]:
    """The migrations it went through, and each view's mark."""
    applied = f"select room,number,oldest,checksum from {quoted(within)}._migration".encode()
    views = (
        "select c.relname::text,obj_description(c.oid,'pg_class') from pg_class c join pg_namespace n"
        " on n.oid=c.relnamespace where n.nspname=$1::text and c.relkind='v'"
    )
    results = await wire.send([Statement(applied), Statement(views.encode(), [within.encode()])])
    return [Applied(*row) for row in wire.rows(results[0])], dict(wire.rows(results[1]))
