"""store.postgres.plan - verbs as statements, and results as answers.

For: a `Plan` for each declared table, its texts made once; a `Call` for each verb: what is sent, and what is made of
what comes back.
Never: sends anything; opens or ends a transaction.
Was wrong once: one statement a row. A verb is one statement for all its rows, or as many as a megabyte each needs
and as rows of it that touch one key in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from onefold.store.batch import Met
from onefold.store.contract import (
    Answer,
    Append,
    Cas,
    Cell,
    Claim,
    Condition,
    DbNow,
    Inc,
    Put,
    Query,
    Remove,
    Row,
    Still,
    Table,
    Value,
    Verb,
)
from onefold.store.postgres.arrays import array, faults, scalar, small
from onefold.store.postgres.ddl import EVERYBODYS
from onefold.store.postgres.sql import CLOCK, Texts, shape
from onefold.store.postgres.wire import Statement
from onefold.store.rows import check_row, narrowed, ordered

LARGEST = 1_000_000  # bytes of one statement's parameters, where a single row is not larger
_HOW = {Inc: "inc", DbNow: "now"}

Results: TypeAlias = "Sequence[list[tuple[Any, ...]]]"


@dataclass(slots=True)
class Call:
    """`answer` gets the rows of each statement's result, in order. Raises: Met, where the body must run again.

    clock: whether the statements read the instant of their body. table: whose key a statement may meet.
    """

    table: str
    statements: list[Statement]
    answer: Callable[[Results], Answer]
    clock: bool = False


def instant() -> Call:
    """Sets the instant that this body's verbs read."""
    return Call("", [Statement(CLOCK)], lambda results: None)


class Plans:
    """Of one schema of the database: a table that a thousand spaces declare alike has one."""

    def __init__(self, within: str) -> None:
        self._within = within
        self._made: dict[Table, Plan] = {}

    def of(self, table: Table) -> Plan:
        plan = self._made.get(table)
        if plan is None:
            plan = self._made[table] = Plan(table, self._within)
        return plan


class Plan:
    """One declared table within one schema of the database."""

    def __init__(self, table: Table, within: str) -> None:
        self.table = table
        self._texts = Texts(table, within)
        self._insert = self._texts.insert.encode()
        self._append = self._texts.append.encode()
        self._put = self._texts.put.encode()
        self._remove = self._texts.remove().encode()
        self._made: dict[Any, bytes] = {}
        self._kinds = [c.kind for c in table.columns]
        self._kind = {c.name: c.kind for c in table.columns}
        self._keys = [[table.at[c] for c in columns] for columns in (table.key, *table.unique)]
        chain = () if table.chain is None else (table.chain.by, table.chain.prev)
        self._fixed = frozenset((*table.key, *chain))
        self.number = table.at[table.key[0]] if table.chain is not None else None
        self._whose = small(EVERYBODYS) if table.everywhere else None  # the space in its rows, whoever asks

    def call(self, verb: Verb, space: bytes, *, last: bool, locks: bool) -> Call:
        """`last`: among the last writes. `locks`: whether a question may lock. Raises: ValueError and what `faults`
        names, for what does not fit the table."""
        space = self._whose or space
        if isinstance(verb, Query):
            return self._find(verb, space, locks)
        if isinstance(verb, Append):
            return self._appended(verb, space, plain=last and verb.met == "again")
        if isinstance(verb, Put):
            rounds = self._put_rounds([tuple(row) for row in verb.rows])
            written = [one for rows in rounds for one in self._written(self._put, rows, space)]
            return Call(self.table.name, written, lambda results: None)
        if isinstance(verb, Cas):
            return self._cas(verb, space)
        if isinstance(verb, Claim):
            return self._claim(verb, space)
        return self._still(verb, space) if isinstance(verb, Still) else self._removed(verb, space)

    def holders(self, verb: Append, space: bytes) -> list[tuple[tuple[int, ...], Call]]:
        """For each key, the primary one first: where its cells are in a row, and a look at who holds those."""
        out = []
        space = self._whose or space
        for columns, at in zip((self.table.key, *self.table.unique), self._keys, strict=True):
            query = Query(self.table, on=columns, keys=[tuple([row[i] for i in at]) for row in verb.rows])
            out.append((tuple(at), self._find(query, space, False)))
        return out

    def _put_rounds(self, rows: Sequence[Row]) -> list[list[Row]]:
        """No key twice in a statement. The last row of a key counts; one before it may still meet another's key."""
        rounds: list[dict[Row, Row]] = [{}]
        for row in rows:
            key = self._key(row)
            if key in rounds[-1] and self.table.unique:
                rounds.append({})
            rounds[-1][key] = row
        return [list(one.values()) for one in rounds]

    def _key(self, row: Row) -> Row:
        if len(row) != len(self.table.columns):
            check_row(self.table, row)
        return tuple([row[i] for i in self._keys[0]])

    # --- rows as parameters ---------------------------------------------------------------------

    def _written(self, text: bytes, rows: Sequence[Row], space: bytes) -> list[Statement]:
        return [Statement(text, values) for _, values in self._split(rows, space)] if rows else []

    def _split(self, rows: Sequence[Row], space: bytes) -> Iterable[tuple[Sequence[Row], list[bytes | None]]]:
        """The rows as arrays, in as many statements as their size needs."""
        try:
            values = self._columns(self._kinds, rows, space)
        except faults:
            for row in rows:
                check_row(self.table, row)
            raise
        yield from self._halved(rows, values, lambda some: self._columns(self._kinds, some, space))

    def _columns(self, kinds: Sequence[Any], rows: Sequence[Row], space: bytes) -> list[bytes | None]:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
        if len(columns) != len(kinds):
            raise ValueError(f"{self.table.name}: a row of {len(columns)} cells for {len(kinds)} columns")
        return [space, *map(array, kinds, columns)]

    def _some(self, kinds: Sequence[Any], space: bytes, rows: Sequence[Row]) -> list[bytes | None]:
        return self._columns(kinds, rows, space)

    def _halved(
        self, rows: Sequence[Row], values: list[bytes | None], again: Callable[[Sequence[Row]], list[bytes | None]]
    ) -> Iterable[tuple[Sequence[Row], list[bytes | None]]]:
        if len(rows) <= 1 or sum(len(v or b"") for v in values) <= LARGEST:
            yield rows, values
            return
        middle = len(rows) // 2
        for some in (rows[:middle], rows[middle:]):
            yield from self._halved(some, again(some), again)

    # --- writing --------------------------------------------------------------------------------

    def _appended(self, verb: Append, space: bytes, *, plain: bool) -> Call:
        rows = verb.rows
        if plain:
            nothing: list[Row | None] = [None] * len(rows)
            return Call(self.table.name, self._written(self._insert, rows, space), lambda results: nothing)
        statements: list[Statement] = []
        sizes: list[int] = []
        for group in self._apart(rows):
            for some, values in self._split(group, space):
                statements.append(Statement(self._append, values))
                sizes.append(len(some))

        def answer(results: Results) -> list[Row | None]:
            out: list[Row | None] = []
            for size, found in zip(sizes, results, strict=True):
                out += self._holders(size, found)
            return out

        return Call(self.table.name, statements, answer)

    def _apart(self, rows: Sequence[Row]) -> Iterable[Sequence[Row]]:
        """Runs of rows that have no key in common: the next run sees the one before."""
        if len(rows) <= 1:
            if rows:
                yield rows
            return
        start = 0
        seen: set[tuple[int, Row]] = set()
        for place, row in enumerate(rows):
            if len(row) != len(self.table.columns):
                check_row(self.table, row)
            keys = [(which, tuple([row[i] for i in at])) for which, at in enumerate(self._keys)]
            if not seen.isdisjoint(keys):
                yield rows[start:place]
                start = place
                seen.clear()
            seen.update(key for key in keys if None not in key[1])
        yield rows[start:]

    def _holders(self, size: int, found: list[tuple[Any, ...]]) -> list[Row | None]:
        """Per row None or the holder of its first key that is held. A holder too new to be seen: the body runs again."""
        out: list[Row | None] = [None] * size
        for row in sorted(found, key=lambda row: -row[1]):
            out[row[0] - 1] = row[2:] if row[1] != 9 else ()
        if () in out:
            raise Met(self.table.name)
        return out

    def _cas(self, verb: Cas, space: bytes) -> Call:
        statements: list[Statement] = []
        places: list[list[int]] = []
        clock = False
        for shaped in self._rounds(verb):
            for (expected, new), members in shaped.items():
                text = self._text(("cas", expected, new), partial(self._texts.cas, expected, new))
                kinds = [self._kind[c] for c in (*self.table.key, *expected, *(c for c, _ in new))]
                rows = [cells for _, cells in members]
                made = self._columns(kinds, rows, space)
                at = 0
                for some, values in self._halved(rows, made, partial(self._some, kinds, space)):
                    statements.append(Statement(text, values))
                    places.append([place for place, _ in members[at : at + len(some)]])
                    at += len(some)
                clock = clock or any(how == "now" for _, how in new)

        def answer(results: Results) -> list[Row | None]:
            out: list[Row | None] = [None] * len(verb.rows)
            for mine, found in zip(places, results, strict=True):
                for row in found:
                    out[mine[row[0] - 1]] = row[1:]
            return out

        return Call(self.table.name, statements, answer, clock)

    def _rounds(self, verb: Cas) -> Iterable[dict[Any, list[tuple[int, Row]]]]:
        """The rows by shape, with their places; a key that comes again begins another round."""
        shaped: dict[Any, list[tuple[int, Row]]] = {}
        seen: set[Row] = set()
        for place, (key, expected, new) in enumerate(verb.rows):
            key = tuple(key)
            if key in seen:
                yield shaped
                shaped = {}
                seen.clear()
            seen.add(key)
            if not self._fixed.isdisjoint(new):
                raise ValueError(f"{self.table.name}: the key and the chain columns of a row never change")
            what = (tuple(expected), tuple([(c, _HOW.get(type(v), "value")) for c, v in new.items()]))
            cells = (*key, *expected.values(), *map(_plain, new.values()))
            shaped.setdefault(what, []).append((place, cells))
        yield shaped

    def _claim(self, verb: Claim, space: bytes) -> Call:
        if not self._fixed.isdisjoint(verb.set):
            raise ValueError(f"{self.table.name}: the key and the chain columns of a row never change")
        new = tuple([(c, _HOW.get(type(v), "value")) for c, v in verb.set.items()])
        lists, rest = _spread(verb.where) if verb.order else ((), verb.where)
        spread = tuple([c for c, _, _ in lists])
        made = ("claim", spread, shape(rest), verb.order, new)
        text = self._text(made, lambda: self._texts.claim(spread, rest, verb.order, new))
        values = [space, *self._bound((*lists, *rest)), scalar("int", verb.limit)]
        values += [scalar(self._kind[c], _plain(v)) for c, v in verb.set.items()]
        return Call(
            self.table.name,
            [Statement(text, values)],
            lambda results: [row[1:] for row in sorted(results[0], key=lambda row: row[0])],
            any(how == "now" for _, how in new),
        )

    def _still(self, verb: Still, space: bytes) -> Call:
        shaped: dict[tuple[str, ...], list[Row]] = {}
        for key, expected in sorted(verb.rows, key=_first):  # whoever locks several rows locks them in one order
            shaped.setdefault(tuple(expected), []).append((*key, *expected.values()))
        statements: list[Statement] = []
        for expected_columns, rows in shaped.items():
            text = self._text(("still", expected_columns), partial(self._texts.still, expected_columns))
            again = partial(self._some, [self._kind[c] for c in (*self.table.key, *expected_columns)], space)
            statements += [Statement(text, values) for _, values in self._halved(rows, again(rows), again)]
        return Call(self.table.name, statements, lambda results: None)

    def _removed(self, verb: Remove, space: bytes) -> Call:
        if verb.keys is None:
            text = self._text(("remove", shape(verb.where)), lambda: self._texts.remove_where(verb.where))
            statements = [Statement(text, [space, *self._bound(verb.where)])]
        else:
            statements = self._keyed(self._remove, self.table.key, [tuple(k) for k in verb.keys], space, [])
        return Call(self.table.name, statements, lambda results: sum(rows[0][0] for rows in results))

    # --- reading --------------------------------------------------------------------------------

    def _find(self, query: Query, space: bytes, locks: bool) -> Call:
        lock = ""
        if locks and query.lock is not None:
            lock = f" for {query.lock} of t{' skip locked' if query.skip_locked else ''}"
        where = query.where
        if query.keys is not None:
            keys = [key for key in dict.fromkeys(tuple(k) for k in query.keys) if None not in key]
            if len(keys) != 1:
                return self._by_keys(query, keys, lock, space)
            where = (*((c, "=", v) for c, v in zip(query.on, keys[0], strict=True)), *where)
        each, limit = query.each, query.limit
        lists: tuple[Condition, ...] = ()
        if each is not None:
            lists, limit = ((each.column, "in", each.values),), each.k
        elif query.order and limit is not None:
            lists, where = _spread(where)
        spread = tuple([c for c, _, _ in lists])
        made = ("find", spread, shape(where), query.order, lock, each is None)
        cut = each is None
        text = self._text(made, lambda: self._texts.find(spread, where, query.order, lock=lock, cut=cut)[0])
        statement = Statement(text, [space, *self._bound((*lists, *where)), scalar("int", limit)])

        def answer(results: Results) -> list[Row]:
            rows = results[0]
            if each is not None or (lock and query.order):
                rows = ordered(self.table, rows, query.order)
            return rows if each is None else narrowed(query, rows)

        return Call(self.table.name, [statement], answer)

    def _by_keys(self, query: Query, keys: list[Row], lock: str, space: bytes) -> Call:
        if lock:
            keys.sort()  # whoever locks several rows locks them in one order
        made = ("keys", query.on, shape(query.where), lock)
        text = self._text(made, lambda: self._texts.by_keys(query.on, query.where, lock))
        statements = self._keyed(text, query.on, keys, space, self._bound(query.where))

        def answer(results: Results) -> list[Row]:
            rows = [row for found in results for row in found]
            return narrowed(query, ordered(self.table, rows, query.order) if query.order else rows)

        return Call(self.table.name, statements, answer)

    def _keyed(
        self, text: bytes, on: Sequence[str], keys: Sequence[Row], space: bytes, behind: list[bytes | None]
    ) -> list[Statement]:
        if not keys:
            return []
        kinds = [self._kind[c] for c in on]

        def columns(some: Sequence[Row]) -> list[bytes | None]:
            return self._columns(kinds, some, space)

        return [Statement(text, [*values, *behind]) for _, values in self._halved(keys, columns(keys), columns)]

    def _bound(self, where: Sequence[Condition]) -> list[bytes | None]:
        """What the conditions bind, in order."""
        out: list[bytes | None] = []
        for column, op, value in where:
            kind = self._kind[column]
            if op == "in":
                out.append(array(kind, [v for v in dict.fromkeys(value) if v is not None]))
            elif op != "null":
                out.append(scalar(kind, value))
        return out

    def _text(self, made: Any, make: Callable[[], str]) -> bytes:
        found = self._made.get(made)
        if found is None:
            found = self._made[made] = make().encode()
        return found


def _spread(where: Sequence[Condition]) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """The lists of values, which are looked at one value a time, and the other conditions."""
    return tuple([c for c in where if c[1] == "in"]), tuple([c for c in where if c[1] != "in"])


def _first(row: tuple[Row, Any]) -> Row:
    return tuple(row[0])


def _plain(value: Value) -> Cell:
    if isinstance(value, Inc):
        return value.by
    return value.plus_ms if isinstance(value, DbNow) else value
