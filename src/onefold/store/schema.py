"""store.schema - which migrations a store still needs, and whether this code may use it at all.

For: the canonical rendering and checksum of a migration, the check that declarations and
migrations agree, the decision what to apply; the same decision on an author's own statements.
Never: renders SQL; touches a database. Pure.
Was wrong once: checksums over rendered SQL. A store that rendered an index better refused
every database written before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from onefold.store.contract import AddColumn, AddIndex, Column, Create, Migration, Schema, Table
from onefold.terms.errors import Finding, LoadRefused, StoreTooNew


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that a store says it went through."""

    room: str
    number: int
    oldest: int
    checksum: str


def checksum(migration: Migration) -> str:
    """32 hex digits over everything that a migration declares; stable across releases."""
    return hashlib.sha256(_canonical(migration).encode()).hexdigest()[:32]


def missing(schema: Schema, applied: Iterable[Applied], space: str) -> list[Migration]:
    """The migrations of `schema` that are still to be applied, in order.

    Raises: StoreTooNew when newer code went through a migration beside which this code may
    not go on; LoadRefused when a migration that was applied reads otherwise now.
    """
    before = {a.number: a for a in applied if a.room == schema.room}
    known = max((m.number for m in schema.migrations), default=0)
    for number, met in sorted(before.items()):
        if number > known and met.oldest > known:
            raise StoreTooNew(space, number, known)
    for migration in schema.migrations:
        met_ = before.get(migration.number)
        if met_ is not None and met_.checksum != checksum(migration):
            where = f"migration {migration.number} of {schema.room} in {space}"
            raise LoadRefused([Finding(where, "it was changed after it was applied; add a new migration instead")])
    newest = max(before, default=0)
    return [m for m in schema.migrations if m.number > newest]


@dataclass(frozen=True, slots=True)
class Written:
    """One statement of an author's migrations, which stand in the order in which they run."""

    number: int
    sql: str
    checksum: str


def still_to_run(statements: Sequence[str], ran: Sequence[str], space: str) -> list[Written]:
    """The statements of an author that did not run yet, behind those that did. `ran`: the checksums of these, in order.

    Raises: LoadRefused for one that reads otherwise than when it ran.
    """
    all_of_them = [
        Written(number, sql, hashlib.sha256(sql.encode()).hexdigest()[:32])
        for number, sql in enumerate(statements, start=1)
    ]
    for one, before in zip(all_of_them, ran, strict=False):
        if one.checksum != before:
            where = f"migration {one.number} of {space}"
            raise LoadRefused([Finding(where, "it was changed after it ran; add a new one behind it instead")])
    return all_of_them[len(ran) :]


def check(schema: Schema) -> None:
    """Raises: LoadRefused when the migrations do not add up to the declared tables."""
    where = f"the tables of {schema.room}"
    built: dict[str, Table] = {}
    for expected, migration in enumerate(schema.migrations, start=1):
        if migration.number != expected:
            raise LoadRefused([Finding(where, f"migration {expected} is missing or out of order")])
        if not 0 <= migration.oldest <= migration.number:
            raise LoadRefused([Finding(where, f"migration {expected} has oldest {migration.oldest}")])
        for step in migration.steps:
            _apply(step, built, where)
    declared = {t.name: t for t in schema.tables}
    if len(declared) != len(schema.tables):
        raise LoadRefused([Finding(where, "two tables have one name")])
    for name in built.keys() | declared.keys():
        if built.get(name) != declared.get(name):
            raise LoadRefused([Finding(where, f"the migrations do not add up to table {name!r} as it is declared")])
    for view in schema.views:
        table = declared.get(view.table)
        if table is None or not set(view.columns) | ({view.each} - {None}) <= set(table.at):
            raise LoadRefused([Finding(where, f"view {view.name!r} shows a column that is not there")])


def check_names(schemas: Sequence[Schema]) -> None:
    """Raises: LoadRefused when two rooms declare one table or view, or one room comes twice."""
    names = [n for s in schemas for n in (*(t.name for t in s.tables), *(v.name for v in s.views))]
    rooms = [s.room for s in schemas]
    for kind, given in (("table", names), ("room", rooms)):
        twice = sorted({n for n in given if given.count(n) > 1})
        if twice:
            raise LoadRefused([Finding("the tables of a space", f"{kind} {twice[0]!r} is declared twice")])


def _apply(step: Create | AddColumn | AddIndex, built: dict[str, Table], where: str) -> None:
    if isinstance(step, Create):
        if step.table.name in built:
            raise LoadRefused([Finding(where, f"table {step.table.name!r} is created twice")])
        _check_table(step.table, where)
        built[step.table.name] = step.table
        return
    table = built.get(step.table)
    if isinstance(step, AddIndex):
        if table is None or not set(step.columns) <= set(table.at) or not step.columns:
            raise LoadRefused(
                [Finding(where, f"no index over {', '.join(step.columns)} can be added to {step.table!r}")]
            )
        built[step.table] = replace(table, index=(*table.index, step.columns))
        return
    if table is None or step.column.name in table.at or not step.column.null:
        raise LoadRefused([Finding(where, f"column {step.column.name!r} cannot be added to {step.table!r}")])
    built[step.table] = replace(table, columns=(*table.columns, step.column))


def _check_table(table: Table, where: str) -> None:
    wrong = None
    if len(table.at) != len(table.columns):
        wrong = "two columns have one name"
    used = {*table.key, *(c for u in (*table.unique, *table.index) for c in u)}
    if table.chain is not None:
        used |= {table.chain.by, table.chain.prev}
        if not table.serial or len(table.unique) > 1:
            wrong = "a chain needs a serial key and at most one unique key"
    if not table.key or not used <= set(table.at):
        wrong = "a key names a column that is not there"
    elif table.serial and (len(table.key) != 1 or table.columns[table.at[table.key[0]]].kind != "int"):
        wrong = "a serial key is one int column"
    elif any(table.columns[table.at[k]].null for k in table.key):
        wrong = "a column of the primary key may be None"
    if wrong:
        raise LoadRefused([Finding(where, f"table {table.name!r}: {wrong}")])


def _canonical(migration: Migration) -> str:
    lines = [f"migration {migration.number} oldest {migration.oldest}"]
    for step in migration.steps:
        if isinstance(step, AddColumn):
            lines.append(f"add {step.table} {_column(step.column)}")
            continue
        if isinstance(step, AddIndex):
            lines.append(f"index {step.table} {','.join(step.columns)}")
            continue
        table = step.table
        lines.append(f"create {table.name} key {','.join(table.key)}{' serial' if table.serial else ''}")
        lines.extend(f"  {_column(c)}" for c in table.columns)
        lines.extend(f"  unique {','.join(u)}" for u in table.unique)
        lines.extend(f"  index {','.join(i)}" for i in table.index)
        if table.chain is not None:
            lines.append(f"  chain by {table.chain.by} prev {table.chain.prev}")
        if table.narrow:
            lines.append("  narrow")
        if table.everywhere:
            lines.append("  everywhere")
    return "\n".join(lines)


def _column(column: Column) -> str:
    return f"{column.name} {column.kind}{' null' if column.null else ''}"
