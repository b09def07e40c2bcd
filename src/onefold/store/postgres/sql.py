"""store.postgres.sql - shapes of verbs as SQL text.

For: one text per shape of a verb. Every value is a bound parameter, `$1` the space; only declared names, which are
code and checked by `store.schema`, become part of a text.
Never: runs anything; writes DDL (ddl does).
Was wrong once: rows locked and found by their place (`ctid`), then updated there. Whoever waited for the lock found the
new place, which the update's own snapshot did not see yet: an increment was lost, and nobody was told.
"""

from __future__ import annotations

from collections.abc import Sequence

from onefold.store.contract import Column, Condition, Table

TYPES = {"int": "int8", "text": "text", "bytes": "bytea"}
NOW = "current_setting('onefold.now')::int8"
CLOCK = b"select set_config('onefold.now', floor(extract(epoch from clock_timestamp()) * 1000)::int8::text, true)"
_MINE = "t.space=$1::int4"


def quoted(name: str) -> str:
    return f'"{name}"'


def listed(names: Sequence[str], of: str = "") -> str:
    return ",".join(f"{of}{quoted(n)}" for n in names)


def unnested(kinds: Sequence[str], letter: str = "c", first: int = 2, *, numbered: bool = False) -> str:
    """Columns as parameters from `$first` on, as the rows of `u`: c0, c1, .. and, numbered, their place i."""
    arrays = ",".join(f"${first + i}::{TYPES[kind]}[]" for i, kind in enumerate(kinds))
    names = ",".join([*(f"{letter}{i}" for i in range(len(kinds))), *(["i"] if numbered else [])])
    return f"unnest({arrays}){' with ordinality' if numbered else ''} as u({names})"


class Texts:
    """The texts on one table. `within` is the schema that it is in."""

    def __init__(self, table: Table, within: str) -> None:
        self._within = quoted(within)
        self.name = f"{self._within}.{quoted(table.name)}"
        self._table = table
        self._kinds = [c.kind for c in table.columns]
        self._names = [c.name for c in table.columns]
        self._columns = {c.name: c for c in table.columns}
        self.all = listed(self._names, "t.")
        into = f"insert into {self.name} as t (space,{listed(self._names)})"
        given = ",".join(f"u.c{i}" for i in range(len(self._names)))
        self.insert = f"{into} select $1::int4,{given} from {unnested(self._kinds)}"
        self.append = self._append(into, given)
        self.put = f"{self.insert} on conflict(space,{listed(table.key)}) do {self._put()}"

    def _kind(self, column: str) -> str:
        return TYPES[self._columns[column].kind]

    def _kinds_of(self, columns: Sequence[str]) -> list[str]:
        return [self._columns[c].kind for c in columns]

    def _held(self, rows: str, columns: Sequence[str], wants: str, more: str = "", lock: str = "") -> str:
        """`rows` of `u`, each with the row as `x` whose `columns` are c0, c1, .. `offset 0` keeps it from becoming a
        join: one row is looked up at a time, by an index."""
        same = "".join(f" and t.{quoted(c)}=u.c{i}" for i, c in enumerate(columns))
        look = f"select {wants} from {self.name} t where {_MINE}{same}{more}{lock} offset 0"
        return f"{rows} cross join lateral ({look}) x"

    # --- writing --------------------------------------------------------------------------------

    def _append(self, into: str, given: str) -> str:
        """Insert what meets nothing; answer with place, which key (9: none that is seen), and holder of the others."""
        at = self._table.at
        key = ",".join(f"c{at[k]}" for k in self._table.key)
        left = f"(select * from u where ({key}) not in (select {listed(self._table.key)} from done))"
        nothing = ",".join(f"null::{TYPES[kind]}" for kind in self._kinds)
        looks = [f"select u.i,9::int8,{nothing} from {left} u"]
        for which, columns in enumerate((self._table.key, *self._table.unique)):
            same = ",".join(f"c{at[c]} as c{i}" for i, c in enumerate(columns))
            rows = self._held(f"(select i,{same} from {left} u) u", columns, self.all)
            looks.append(f"select u.i,{which}::int8,x.* from {rows}")
        return (
            f"with u as materialized (select * from {unnested(self._kinds, numbered=True)}),"
            f" done as ({into} select $1::int4,{given} from u order by u.i on conflict do nothing"
            f" returning {listed(self._table.key)}) {' union all '.join(looks)}"
        )

    def _put(self) -> str:
        rest = [n for n in self._names if n not in self._table.key]
        if not rest:
            return "nothing"
        new = ",".join(f"{quoted(n)}=excluded.{quoted(n)}" for n in rest)
        differs = f"({listed(rest, 't.')}) is distinct from ({listed(rest, 'excluded.')})"
        chain = self._table.chain
        if chain is not None:
            same = " and ".join(
                f"t.{quoted(n)} is not distinct from excluded.{quoted(n)}" for n in (chain.by, chain.prev)
            )
            differs += f" and (({same}) or {self._within}.stop('{self._table.name}'))"
        return f"update set {new} where {differs}"

    def cas(self, expected: Sequence[str], new: Sequence[tuple[str, str]]) -> str:
        """`new`: columns, and how each is set (see `_set`)."""
        key = self._table.key
        kinds = self._kinds_of([*key, *expected, *(c for c, _ in new)])
        first = len(key) + len(expected)
        same = "".join(f" and t.{quoted(c)} is not distinct from u.c{len(key) + i}" for i, c in enumerate(expected))
        if not new:
            rows = self._held(unnested(kinds, numbered=True), key, self.all, same, " for no key update of t")
            return f"select u.i,x.* from {rows}"
        sets = ",".join(self._set(c, how, f"u.c{first + i}") for i, (c, how) in enumerate(new))
        return (
            f"with {self._given(unnested(kinds, numbered=True))} update {self.name} as t set {sets} from u"
            f" where {self._joined('u')}{same} returning u.i,{self.all}"
        )

    def still(self, expected: Sequence[str]) -> str:
        """Fails on the server (see `ddl.LATER`) unless each row is as expected, and keeps all as they are."""
        key = self._table.key
        same = "".join(f" and t.{quoted(c)} is not distinct from u.c{len(key) + i}" for i, c in enumerate(expected))
        rows = self._held("u", key, "1 as one", same, " for share of t")
        return (
            f"with u as materialized (select * from {unnested(self._kinds_of([*key, *expected]))}),"
            f" x as materialized (select x.one from {rows}) select case when (select count(*) from x)"
            f"<>(select count(*) from u) then {self._within}.other('{self._table.name}') end"
        )

    def _given(self, rows: str) -> str:
        """The rows `u`, each with the space."""
        return f"u as materialized (select $1::int4 as space,u.* from {rows})"

    def _joined(self, to: str, letter: str = "c") -> str:
        """By key, in words that leave one way to do it: for each row, the index. Any other way to join may read all of
        a space, or of the table, and be chosen while that is small."""
        same = "".join(f" and t.{quoted(k)}=any(array[{to}.{letter}{i}])" for i, k in enumerate(self._table.key))
        return f"t.space=any(array[{to}.space]){same}"

    def _set(self, column: str, how: str, value: str) -> str:
        """`how`: value, inc (add to it), now (add to the clock)."""
        if how == "inc":
            value = f"coalesce(t.{quoted(column)},0)+{value}"
        elif how == "now":
            value = f"{NOW}+{value}"
        return f"{quoted(column)}={value}"

    def claim(
        self, spread: Sequence[str], where: Sequence[Condition], order: Sequence[str], new: Sequence[tuple[str, str]]
    ) -> str:
        """As `find`; the new values are bound behind the limit."""
        key = self._table.key
        keys = ",".join(f"t.{quoted(k)} as k{i}" for i, k in enumerate(key))
        sorts = listed(list(dict.fromkeys(o.lstrip("-") for o in order)), "t.")
        wants = f"t.space,{keys}{',' if sorts else ''}{sorts}"
        found, first = self.find(spread, where, order, wants=wants, lock=" for update of t skip locked")
        sets = ",".join(self._set(c, how, f"${first + i}::{self._kind(c)}") for i, (c, how) in enumerate(new))
        return (
            f"with c as materialized ({found}), o as materialized (select c.*,row_number() over () as i from c)"
            f" update {self.name} as t set {sets or f'{quoted(key[0])}=t.{quoted(key[0])}'} from o"
            f" where {self._joined('o', 'k')} returning o.i,{self.all}"
        )

    def remove(self) -> str:
        rows = unnested(self._kinds_of(self._table.key))
        return self._gone(f"using u where {self._joined('u')}", f"{self._given(rows)},")

    def remove_where(self, where: Sequence[Condition]) -> str:
        conditions, _ = self._filtered(where, 2)
        return self._gone(f"where {conditions}")

    def _gone(self, how: str, before: str = "") -> str:
        """How many were deleted. Of a history, nothing whose row before it stays."""
        chain = self._table.chain
        count = "select count(*)::int8"
        if chain is None:
            return f"with {before} gone as (delete from {self.name} as t {how} returning 1) {count} from gone"
        n, prev = quoted(self._table.key[0]), quoted(chain.prev)
        stays = f"x.{n} not in (select {n} from gone)"
        rows = self._held(f"(select {prev} as c0 from gone) u", self._table.key, f"t.{n}")
        return (
            f"with {before} gone as (delete from {self.name} as t {how} returning t.{n},t.{prev}) {count},"
            f"case when exists(select from {rows} where {stays}) then {self._within}.stop('{self._table.name}') end"
            " from gone"
        )

    # --- reading --------------------------------------------------------------------------------

    def by_keys(self, on: Sequence[str], where: Sequence[Condition], lock: str) -> str:
        """Rows by their `on` cells; the conditions are bound behind the keys."""
        conditions, _ = self._filtered(where, 2 + len(on))
        rows = self._held(unnested(self._kinds_of(on)), on, self.all, conditions.removeprefix(_MINE), lock)
        return f"select x.* from {rows}"

    def find(
        self,
        spread: Sequence[str],
        where: Sequence[Condition],
        order: Sequence[str],
        *,
        wants: str = "",
        lock: str = "",
        cut: bool = True,
    ) -> tuple[str, int]:
        """Rows by condition, and the number of the next parameter. Bound: a list of values for each `spread` column,
        the conditions, the limit. One value of each list is looked at a time, so that an index gives the order, and
        the limit counts for each; with `cut` for all together too."""
        wanted = wants or self.all
        conditions, limit = self._filtered(where, 2 + len(spread))
        conditions += "".join(f" and t.{quoted(c)}=v{i}.x" for i, c in enumerate(spread))
        ends = f" limit ${limit}::int8"
        text = f"select {wanted} from {self.name} t where {conditions}{self._order(order, 't.')}{ends}{lock}"
        if spread:
            lists = " cross join ".join(f"unnest(${2 + i}::{self._kind(c)}[]) as v{i}(x)" for i, c in enumerate(spread))
            text = f"select x.* from {lists} cross join lateral ({text}) x"
            if cut:
                text += self._order(order, "x.") + ends
        return text, limit + 1

    def _order(self, order: Sequence[str], of: str) -> str:
        """None first and, descending, last. Where there is none, the plain order is that of the index."""
        parts = []
        for one in order:
            name, down = one.lstrip("-"), one.startswith("-")
            nulls = (" nulls last" if down else " nulls first") if self._columns[name].null else ""
            parts.append(f"{of}{quoted(name)}{' desc' if down else ''}{nulls}")
        return f" order by {','.join(parts)}" if parts else ""

    def _filtered(self, where: Sequence[Condition], first: int) -> tuple[str, int]:
        """The conditions, whose values are bound from `$first` on, and the number of the next parameter."""
        parts = [_MINE]
        for column, op, value in where:
            if op == "null":
                parts.append(f"t.{quoted(column)} is {'' if value else 'not '}null")
                continue
            mark = f"${first}::{self._kind(column)}"
            first += 1
            if op == "in":
                parts.append(f"t.{quoted(column)}=any({mark}[])")
            elif op in ("=", "!=", "<", "<=", ">", ">="):
                parts.append(f"t.{quoted(column)}{op}{mark}")
            else:
                raise ValueError(f"no such condition: {op}")
        return " and ".join(parts), first


def shape(where: Sequence[Condition]) -> tuple[tuple[str, str, bool], ...]:
    """What of `where` goes into a text; the rest is bound."""
    return tuple([(c, op, bool(v) if op == "null" else False) for c, op, v in where])


# --- DDL --------------------------------------------------------------------------------------------


def column_ddl(column: Column) -> str:
    collate = ' collate "C"' if column.kind == "text" else ""
    return f"{quoted(column.name)} {TYPES[column.kind]}{collate}{'' if column.null else ' not null'}"
