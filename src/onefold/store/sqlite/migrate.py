"""store.sqlite.migrate - a file brought to the tables this code declares, in one commit.

For: the store's own two tables, applying what `store.schema` says is missing, views.
Never: goes back; changes a table that newer code made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onefold.store.contract import Schema
from onefold.store.schema import Applied, check, check_names, checksum, missing
from onefold.store.sqlite import sql

_OWN = (
    f"create table {sql.META}(name text primary key, value any not null) strict, without rowid",
    (
        f"create table {sql.MIGRATION}(room text not null, number integer not null, oldest integer not null,"
        " checksum text not null, at integer not null, primary key(room, number)) strict, without rowid"
    ),
)


def migrate(db: Any, schemas: Sequence[Schema], space: str, now: int) -> None:
    """Apply what is missing. Runs inside the caller's transaction. Raises: StoreTooNew, LoadRefused."""
    check_names(schemas)
    for schema in schemas:
        check(schema)
    if not _exists(db, "table", sql.META):
        for statement in _OWN:
            db.execute(statement)
        db.execute(f"insert into {sql.META} values('id', randomblob(16)), ('commits', 0)")
    rows = db.execute(f"select room, number, oldest, checksum from {sql.MIGRATION}").fetchall()
    applied = [Applied(*row) for row in rows]
    for schema, steps in [(s, missing(s, applied, space)) for s in schemas]:
        for migration in steps:
            for step in migration.steps:
                for statement in sql.changed(step):
                    db.execute(statement)
            done = (schema.room, migration.number, migration.oldest, checksum(migration), now)
            db.execute(f"insert into {sql.MIGRATION} values(?,?,?,?,?)", done)
        newer = any(a.room == schema.room and a.number > len(schema.migrations) for a in applied)
        if not newer:
            _views(db, schema)


def notes(db: Any) -> dict[str, Any]:
    """The store's own notes: id, commits, the bound of each serial key, the marker and top of each chain."""
    return dict(db.execute(f"select name, value from {sql.META}").fetchall())


def _views(db: Any, schema: Schema) -> None:
    tables = {t.name: t for t in schema.tables}
    for view in schema.views:
        text = sql.view(view, tables[view.table])
        name = sql.RESERVED + view.name
        found = db.execute("select sql from sqlite_schema where type='view' and name=?", (name,)).fetchall()
        if found and found[0][0].lower() == text.lower():
            continue
        if found:
            db.execute(f"drop view {sql.quoted(name)}")
        db.execute(text)


def _exists(db: Any, kind: str, name: str) -> bool:
    return bool(db.execute("select 1 from sqlite_schema where type=? and name=?", (kind, name)).fetchall())
