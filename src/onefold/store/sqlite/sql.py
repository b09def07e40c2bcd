"""store.sqlite.sql - declarations and shapes of verbs as SQL text.

For: names, types, DDL, one text per shape of a verb. Every value is a bound parameter; only
declared names, which are code and checked by `store.schema`, become part of a text.
Never: runs anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from onefold.store.contract import AddColumn, AddIndex, Cell, Column, Condition, Create, Table, View

RESERVED = "_onefold_"
META = "_onefold__meta"
MIGRATION = "_onefold__migration"
_TYPES = {"int": "integer", "text": "text", "bytes": "blob"}


def quoted(name: str) -> str:
    return f'"{name}"'


def table_name(table: Table | str) -> str:
    return quoted(RESERVED + (table if isinstance(table, str) else table.name))


def key_table(table: Table) -> str:
    """The lookup of a chain's unique key; two underscores, which no declared name has."""
    return quoted(f"{RESERVED}{table.name}__key")


def head_table(table: Table) -> str:
    return quoted(f"{RESERVED}{table.name}__head")


def names(columns: Sequence[str]) -> str:
    return ",".join(quoted(c) for c in columns)


def marks(count: int) -> str:
    return ",".join("?" * count)


def equal(columns: Sequence[str]) -> str:
    return " and ".join(f"{quoted(c)}=?" for c in columns)


def all_names(table: Table) -> str:
    return names([c.name for c in table.columns])


def insert(table: Table) -> str:
    return f"insert into {table_name(table)}({all_names(table)}) values({marks(len(table.columns))})"


def put(table: Table) -> str:
    """Upsert by primary key that leaves an unchanged row alone."""
    rest = [c.name for c in table.columns if c.name not in table.key]
    if not rest:
        return f"{insert(table)} on conflict({names(table.key)}) do nothing"
    new = ",".join(f"{quoted(c)}=excluded.{quoted(c)}" for c in rest)
    differs = " or ".join(f"{table_name(table)}.{quoted(c)} is not excluded.{quoted(c)}" for c in rest)
    return f"{insert(table)} on conflict({names(table.key)}) do update set {new} where {differs}"


def select(table: Table) -> str:
    return f"select {all_names(table)} from {table_name(table)}"


def select_by(table: Table, on: Sequence[str]) -> str:
    return f"{select(table)} where {equal(on)}"


def delete(table: Table) -> str:
    return f"delete from {table_name(table)} where {equal(table.key)}"


def condition(column: str, op: str, value: object) -> str:
    if op == "null":
        return f"{quoted(column)} is {'' if value else 'not '}null"
    if op == "in":
        return f"{quoted(column)} in ({marks(len(value))})"  # type: ignore[arg-type]
    if op not in ("=", "!=", "<", "<=", ">", ">="):
        raise ValueError(f"no such condition: {op}")
    return f"{quoted(column)}{op}?"


def shape(where: Sequence[Condition]) -> tuple[tuple[str, str, object], ...]:
    """What of `where` goes into the text; the rest is bound."""
    return tuple([(c, op, len(v) if op == "in" else bool(v) if op == "null" else None) for c, op, v in where])


def bound(where: Sequence[Condition]) -> list[Cell]:
    """The parameters of `where`, in the order of its text."""
    out: list[Cell] = []
    for _, op, value in where:
        if op == "in":
            out.extend(value)
        elif op != "null":
            out.append(value)
    return out


def filtered(where: Sequence[Condition]) -> str:
    return " and ".join(condition(*c) for c in where) or "1"


def order_by(order: Sequence[str]) -> str:
    """None sorts first and, descending, last: SQLite's own rule."""
    if not order:
        return ""
    parts = [f"{quoted(o.lstrip('-'))} {'desc' if o.startswith('-') else 'asc'}" for o in order]
    return " order by " + ",".join(parts)


class ChainTexts:
    """The statements on a chain's two lookups and its histories."""

    def __init__(self, table: Table) -> None:
        assert table.chain is not None
        me, n, by = table_name(table), quoted(table.key[0]), quoted(table.chain.by)
        unique = table.unique[0] if table.unique else ()
        key, head = key_table(table), head_table(table)
        newer = 'on conflict do update set "_n"=excluded."_n"'
        self.tail = f"select {names([table.key[0], table.chain.by, *unique])} from {me} where {n}>? order by 1"
        self.probe = f'select {names(unique)},"_n" from {key} where {equal(unique)}'
        self.note_key = f'insert into {key}({names(unique)},"_n") values({marks(len(unique) + 1)}) {newer}'
        self.forget_key = f"delete from {key} where {equal(unique)}"
        self.head = f'select "_n" from {head} where {by}=?'
        self.note_head = f'insert into {head}({by},"_n") values(?,?) {newer} where excluded."_n">"_n"'
        self.forget_head = f"delete from {head} where {by}=?"
        prev = quoted(table.chain.prev)
        # Numbers shrink along the walk, so that a floor under them ends it. Where somebody changed a row by hand and
        # they do not, it ends there: a row that names itself was read for ever, and the process with it.
        self.walk = (
            f"with recursive h(here) as (select ? union all"
            f" select t.{prev} from h cross join {me} t on t.{n}=h.here where t.{prev}>? and t.{prev}<t.{n})"
            f" select {','.join(f't.{quoted(c.name)}' for c in table.columns)} from h cross join {me} t on t.{n}=h.here"
        )


# --- DDL --------------------------------------------------------------------------------------


def column_ddl(column: Column) -> str:
    return f"{quoted(column.name)} {_TYPES[column.kind]}{'' if column.null else ' not null'}"


def create(step: Create) -> list[str]:
    """The statements that make a table with its indexes or, for a chain, its two lookups."""
    table = step.table
    kinds = {c.name: c for c in table.columns}
    alone = len(table.key) == 1 and kinds[table.key[0]].kind == "int"
    columns = [
        f"{quoted(c.name)} integer primary key" if alone and c.name == table.key[0] else column_ddl(c)
        for c in table.columns
    ]
    if not alone:
        columns.append(f"primary key({names(table.key)})")
    narrow = table.narrow and not alone
    out = [f"create table {table_name(table)}({', '.join(columns)}) strict{', without rowid' if narrow else ''}"]
    for number, index in enumerate(table.index, start=1):
        out.append(
            f"create index {quoted(f'{RESERVED}{table.name}__i{number}')} on {table_name(table)}({names(index)})"
        )
    if table.chain is None:
        for number, unique in enumerate(table.unique, start=1):
            name = quoted(f"{RESERVED}{table.name}__u{number}")
            out.append(f"create unique index {name} on {table_name(table)}({names(unique)})")
        return out
    for unique in table.unique:
        parts = [f"{quoted(c)} {_TYPES[kinds[c].kind]} not null" for c in unique]
        out.append(
            f'create table {key_table(table)}({", ".join(parts)}, "_n" integer not null, '
            f"primary key({names(unique)})) strict, without rowid"
        )
    by = kinds[table.chain.by]
    how = "integer primary key" if by.kind == "int" else f"{_TYPES[by.kind]} not null primary key"
    tail = "strict" if by.kind == "int" else "strict, without rowid"
    out.append(f'create table {head_table(table)}({quoted(by.name)} {how}, "_n" integer not null) {tail}')
    return out


def add_column(step: AddColumn) -> str:
    return f"alter table {table_name(step.table)} add column {column_ddl(step.column)}"


def add_index(step: AddIndex) -> str:
    name = quoted(f"{RESERVED}{step.table}__by_{'_'.join(step.columns)}")
    return f"create index {name} on {table_name(step.table)}({names(step.columns)})"


def changed(step: Create | AddColumn | AddIndex) -> list[str]:
    """The statements of one step of a migration."""
    if isinstance(step, Create):
        return create(step)
    return [add_column(step) if isinstance(step, AddColumn) else add_index(step)]


def view(declared: View, table: Table) -> str:
    """The view's definition; elements of `each` come as JSON text with their place."""
    shown = ",".join(f"t.{quoted(c)}" for c in declared.columns)
    head = f"create view {quoted(RESERVED + declared.name)} as select {shown}"
    if declared.each is None:
        return f"{head} from {table_name(table)} t"
    items = f"json_each(cast(t.{quoted(declared.each)} as text)) e"
    kinds = "case when e.type in ('object','array') then e.value else json_quote(e.value) end"
    return f"{head}, e.key as at, {kinds} as item from {table_name(table)} t, {items}"
