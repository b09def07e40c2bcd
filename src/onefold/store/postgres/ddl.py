"""store.postgres.ddl - declarations as tables, indexes, sequences and views.

For: the store's own tables and what one step of a migration makes. `space` leads every key.
Never: runs anything; changes what is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onefold.store.contract import AddColumn, AddIndex, Column, Create, Table, View
from onefold.store.postgres.sql import column_ddl, listed, quoted

BLOCK = 4096  # numbers that a process takes at a time; why: one round trip so many rows, a gap of so many a process

NOBODYS = 0  # no space has this number
EVERYBODYS = -1  # nor this one: it is in the rows of a table that all spaces share
BALLAST = 100  # why: few enough to cost nothing, enough that one row by its key is cheaper than all of a space


def own(within: str) -> list[str]:
    """The schema, and what is the store's own. A leading underscore is in no declared name."""
    me = quoted(within)
    return [
        f"create schema if not exists {me}",
        f"create table {me}._space(id int4 generated always as identity primary key, name text unique not null)",
        (
            f"create table {me}._migration(room text, number int8, oldest int8 not null, checksum text not null,"
            " at timestamptz not null default clock_timestamp(), primary key(room, number))"
        ),
        (
            f"create table {me}._cluster(one bool primary key default true check(one), id uuid not null default"
            " gen_random_uuid(), incarnation int8 not null, system text not null, timeline int8 not null,"
            " since timestamptz not null default clock_timestamp(), held int8 not null default 0)"
        ),
        (
            f"create function {me}.stop(what text) returns bool language plpgsql as $$ begin"
            " raise exception 'a history of % was changed elsewhere than at its ends', what using errcode='OF001';"
            " end $$"
        ),
    ]


LATER: tuple[str, ...] = (
    # 1: a row that a body counts on is not as it was told; the code is `failing.OTHER`
    (
        "create or replace function {}.other(what text) returns bool language plpgsql as $$ begin"
        " raise exception 'a row of % is not as it was any more', what using errcode='OF003'; end $$"
    ),
    # 2, 3: in which table the store's own row was written; a dump that is read back makes another
    "alter table {}._cluster add column place int8",
    "update {}._cluster set place = tableoid::int8",
)
"""What is the store's own since it was first made: numbered, each applied once, and none that older code minds."""

OWN_ROOM = "_store"  # under which these are noted; no room has an underscore


def sequence(within: str, table: str) -> str:
    return f"{quoted(within)}.{quoted(f'{table}__n')}"


def changed(step: Create | AddColumn | AddIndex, declared: Mapping[str, Table], within: str) -> list[str]:
    """The statements of one step of a migration. `declared`: the tables as they are in the end."""
    if isinstance(step, Create):
        return _create(step.table, within)
    name = f"{quoted(within)}.{quoted(step.table)}"
    if isinstance(step, AddColumn):
        return [f"alter table {name} add column {column_ddl(step.column)}"]
    index = quoted(f"{step.table}__by_{'_'.join(step.columns)}")
    kinds = {c.name: c for c in declared[step.table].columns}
    return [f"create index {index} on {name}(space,{_sorted(step.columns, kinds)})"]


def _create(table: Table, within: str) -> list[str]:
    name = f"{quoted(within)}.{quoted(table.name)}"
    columns = ",".join(column_ddl(c) for c in table.columns)
    out = [f"create table {name}(space int4 not null,{columns},primary key(space,{listed(table.key)}))"]
    if table.serial:
        out.append(f"create sequence {sequence(within, table.name)} increment by {BLOCK} minvalue 1 cache 1")
    if table.chain is not None:
        out.append(
            f"create index {quoted(f'{table.name}__by')} on {name}(space,{listed((table.chain.by, *table.key))})"
        )
    kinds = {c.name: c for c in table.columns}
    for number, unique in enumerate(table.unique, start=1):
        out.append(f"create unique index {quoted(f'{table.name}__u{number}')} on {name}(space,{listed(unique)})")
    for number, index in enumerate(table.index, start=1):
        out.append(f"create index {quoted(f'{table.name}__i{number}')} on {name}(space,{_sorted(index, kinds)})")
    return out


def ballast(table: Table, within: str) -> list[str]:
    """Rows of no space, and statistics of them.

    Plans are made once and kept. Of a table that a vacuum found empty the server believes that it stays empty, takes
    any index that begins with `space` for as good as any other, and reads all of a space for each key.
    """
    name = f"{quoted(within)}.{quoted(table.name)}"
    chain = table.chain
    cells = []
    for column in table.columns:
        if chain is not None and column.name in (chain.by, chain.prev):
            value = "-(i%50)"  # histories of several rows, and several of them
        else:
            value = "-i"
        cells.append(
            {"int": value, "text": f"({value})::text", "bytes": f"convert_to(({value})::text,'UTF8')"}[column.kind]
        )
    fill = f"insert into {name} select {NOBODYS},{','.join(cells)} from generate_series(1,{BALLAST}) i"
    return [fill, f"analyze {name}"]


def _sorted(columns: Sequence[str], kinds: dict[str, Column]) -> str:
    """None sorts first, so that the index gives the order that a question asks for."""
    return ",".join(f"{quoted(c)}{' nulls first' if kinds[c].null else ''}" for c in columns)


def view(declared: View, table: Table, within: str) -> str:
    """The view's definition, each row under its space's name; elements of `each` come as JSON text with their place."""
    me = quoted(within)
    shown = listed(declared.columns, "t.")
    head = f"create view {me}.{quoted(declared.name)} as select s.name as space,{shown}"
    named = f"{me}._space s on s.id=t.space"
    if table.everywhere:
        named = f"(values('main',{EVERYBODYS})) as s(name,id) on s.id=t.space"
    rows = f"{me}.{quoted(table.name)} t join {named}"
    if declared.each is None:
        return f"{head} from {rows}"
    items = f"json_array_elements(convert_from(t.{quoted(declared.each)},'UTF8')::json) with ordinality as e(item,at)"
    return f"{head},e.at-1 as at,e.item::text as item from {rows} cross join lateral {items}"
