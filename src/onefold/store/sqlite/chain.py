"""store.sqlite.chain - a history's head and the ids it has, written late.

For: the tables with a `chain`. Rows go to the table at once; their unique keys and their
histories' heads stay in memory for up to two generations and follow in sorted slices with
later commits, so that many of them share a page. What a crash cuts off is read again from
the end of the table.
Never: answers from memory alone: what memory does not hold, the tables do.
Was wrong once: a marker at the highest number written. Numbers are minted before they are
committed, so that a lower one could come after the marker and be forgotten by a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import apsw

from onefold.store.batch import Met
from onefold.store.contract import Append, Cas, Cell, Claim, Condition, Put, Query, Remove, Row, Table
from onefold.store.rows import changed, check_row, holds, narrowed, ordered
from onefold.store.sqlite import sql
from onefold.store.sqlite.lag import MISSING, Lag
from onefold.store.sqlite.tables import Plan

GENERATION = 16_384  # keys and heads; why: docs/adr/0002 has the figures
PACE = 2  # entries written for each row appended: the old generation is through before the young one is full
LUMP = 64  # why: single commits carry their share together every so often, so that it shares pages


class ChainPlan(Plan):
    """A `Plan` whose unique key and heads lag. `marker`: the lookup tables know every row up to it."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert table.chain is not None
        self._by = table.chain.by
        self._unique = table.unique[0] if table.unique else ()
        self._by_of = itemgetter(table.at[self._by])
        self._prev_of = itemgetter(table.at[table.chain.prev])
        self._key_of = cells_of([table.at[c] for c in self._unique])
        self._partial = any(table.columns[table.at[c]].null for c in self._unique)
        fixed = dict.fromkeys((*table.key, self._by, table.chain.prev))
        self._fixed_of = cells_of([table.at[c] for c in fixed])
        self._sql = sql.ChainTexts(table)
        self._keys, self._heads = Lag(), Lag()
        self._absent: set[Any] = set()  # keys that the lookup table does not hold, from `ready` to the commit's end
        self._asking = False
        self._before: list[tuple[int, int, int, bool]] = []  # what `back` goes back to, a savepoint each
        self.cut = False
        self.appended = 0
        self._credit = 0
        self._lowest = self._young_lowest = NEVER
        self.new_top = 0
        self._old_top = 0
        self.marker = 0
        self.top = 0

    # --- opening and the transaction -----------------------------------------------------------

    def load(self, marker: int) -> None:
        """Read the keys and heads of rows behind `marker`: what a crash cut off."""
        keys: dict[Any, int] = {}
        heads: dict[Any, int] = {}
        self.marker = self.top = marker
        for n, by, *cells in self.db.execute(self._sql.tail, (marker,)):
            if cells and None not in cells:
                keys[tuple(cells)] = n
            heads[by] = n
            self.top = n
        self._keys.start(keys)
        self._heads.start(heads)
        self._old_top = self.top
        self._young_lowest = NEVER
        self._credit = 0

    def ready(self) -> None:
        """A key that is asked for now need not be asked for again when it is appended: nothing comes between."""
        self._asking = True

    def begin(self) -> None:
        self._keys.layers = [{}]
        self._heads.layers = [{}]
        self._before.clear()
        self.cut = False
        self.appended = 0
        self._lowest = NEVER
        self.new_top = self.top

    def mark(self) -> None:
        self._keys.layers.append({})
        self._heads.layers.append({})
        self._before.append((self.new_top, self._lowest, self.appended, self.cut))

    def keep(self) -> None:
        self._keys.keep()
        self._heads.keep()
        self._before.pop()

    def back(self) -> None:
        self._keys.layers.pop()
        self._heads.layers.pop()
        self.new_top, self._lowest, self.appended, self.cut = self._before.pop()
        self._absent.clear()

    def before_commit(self, everything: bool = False) -> int | None:
        """Write this commit's share of the lookups. Returns: the new marker, when it moves with this commit."""
        behind = self._keys.left + self._heads.left
        self._credit = self._credit + PACE * self.appended if behind else 0
        moved = False
        if everything:
            self._share(self._keys.left + self._heads.left)
            self._old_top = max(self.new_top, self._old_top)
            moved = True
        elif behind and self._credit >= LUMP:
            self._share(self._credit)
            moved = not self._keys.left and not self._heads.left
        bound = self._old_top if moved else self.marker
        if self._lowest <= bound or (moved and self._young_lowest <= bound):
            self._write(self._keys.below(bound), self._heads.below(bound))
        return bound if moved else None

    def committed(self, moved: int | None) -> None:
        self._keys.commit(self.cut)
        self._heads.commit(self.cut)
        self._forget()
        self.top = self.new_top
        self._young_lowest = min(self._young_lowest, self._lowest)
        if moved is not None:
            self.marker = moved
        behind = self._keys.left + self._heads.left
        if not behind and len(self._keys.young) + len(self._heads.young) >= GENERATION:
            self._keys.rotate()
            self._heads.rotate()
            self._old_top, self._young_lowest = self.top, NEVER

    def rolled_back(self) -> None:
        self._keys.drop()
        self._heads.drop()
        self._forget()

    def _forget(self) -> None:
        self._asking = False
        self._absent.clear()

    # --- reading ---------------------------------------------------------------------------------

    def find(self, query: Query) -> list[Row]:
        if query.keys is not None and query.on == self._unique and not self.lookup(query.keys):
            return []  # the common case: none of these ids has come before
        rows = self._by_chain(query)
        if rows is None:
            return super().find(query)
        if len(rows) > 1 and query.order:
            rows = ordered(self.table, rows, query.order)
        return narrowed(query, rows)

    def lookup(self, keys: Sequence[Row]) -> dict[Row, int]:
        """The numbers of the rows that hold `keys`, as far as there are any."""
        found: dict[Row, int] = {}
        rest: Sequence[Row] = keys
        if len(keys) != 1 and self._absent.issuperset(keys) and self._keys.unknown(keys):
            return found
        if len(keys) == 1 or not self._keys.unknown(keys):
            rest = []
            for key in keys:
                number = self._keys.get(key)
                if number is MISSING:
                    rest.append(key)
                elif number is not None:
                    found[key] = number
        if rest and not self._absent.issuperset(rest):
            for *cells, number in self.db.executemany(self._sql.probe, rest):
                found[tuple(cells)] = number
            if self._asking or self._keys.layers:
                self._absent.update(rest)
                self._absent.difference_update(found)
        return found

    def _by_chain(self, query: Query) -> list[Row] | None:
        """Rows found through keys or histories; None when the table itself must be asked."""
        where = query.where
        if query.keys is not None:
            on, keys = tuple(query.on), dict.fromkeys(tuple(k) for k in query.keys)
            if on == self._unique:
                found = self.lookup(list(keys))
                return [r for r in self.get([(found[k],) for k in keys if k in found]) if holds(self.table, r, where)]
            if on == (self._by,):
                return [row for (by,) in keys for row in self._walk(by, where, query.order, None)]
            return None
        if query.each is not None:
            if query.each.column != self._by:
                return None
            values = dict.fromkeys(query.each.values)
            return [row for by in values for row in self._walk(by, where, query.order, query.each.k)]
        exact = {c: v for c, op, v in where if op == "="}
        if self._unique and exact.keys() >= set(self._unique):
            found = self.lookup([tuple([exact[c] for c in self._unique])])
            return [r for r in self.get([(n,) for n in found.values()]) if holds(self.table, r, where)]
        if self._by in exact:
            return self._walk(exact[self._by], where, query.order, query.limit)
        for column, op, several in where:
            if column == self._by and op == "in":
                bys = dict.fromkeys(several)
                return [row for by in bys for row in self._walk(by, where, query.order, query.limit)]
        return None

    def _walk(self, by: Cell, where: tuple[Condition, ...], order: tuple[str, ...], limit: int | None) -> list[Row]:
        """One history, newest first, or in `order`."""
        head = self._head(by)
        if head is None:
            return []
        rest = tuple([c for c in where if c != (self._by, "=", by)])
        head = self._first_of(by, head, rest)
        natural = order in ((), (f"-{self.table.key[0]}",))
        if limit == 1 and natural and not rest:
            return self.get([(head,)])
        floor = max((v - (op == ">=") for c, op, v in rest if c == self.table.key[0] and op in (">", ">=")), default=0)
        shape = ("walk", sql.shape(rest), None if natural else order, limit is None)
        text = self._texts.get(shape)
        if text is None:
            text = self._texts[shape] = (
                f"{self._sql.walk} where {sql.filtered(rest)}{'' if natural else sql.order_by(order)}"
                f"{'' if limit is None else ' limit ?'}"
            )
        values = [head, floor, *sql.bound(rest), *(() if limit is None else (limit,))]
        return self.db.execute(text, values).fetchall()  # type: ignore[no-any-return]

    def _first_of(self, by: Cell, head: int, rest: tuple[Condition, ...]) -> int:
        """Where a walk begins that wants rows up to a number: at that row, when it is one of this history."""
        for column, op, number in rest:
            if op == "<=" and column == self.table.key[0] and number < head:
                found = self.get([(number,)])
                if found and self._by_of(found[0]) == by:
                    return number  # type: ignore[no-any-return]
        return head

    def _head(self, by: Cell) -> int | None:
        if by is None:
            return None
        number = self._heads.get(by)
        if number is MISSING:
            found = self.db.execute(self._sql.head, (by,)).fetchall()
            number = found[0][0] if found else None
        return number  # type: ignore[no-any-return]

    # --- writing ---------------------------------------------------------------------------------

    def append(self, verb: Append) -> list[Row | None]:
        rows = verb.rows
        keys: list[Any] = list(map(self._key_of, rows))
        if self._unique and (self._partial or len(set(keys)) < len(keys) or self.lookup(keys)):
            return [self._append_one(row) for row in rows]
        before = self.db.total_changes()
        try:
            self.db.executemany(self.insert, rows)
        except apsw.ConstraintError:
            done = self.db.total_changes() - before
            self._noted(rows[:done], keys[:done])
            return [None] * done + [self._append_one(row) for row in rows[done:]]
        self._noted(rows, keys)
        return [None] * len(rows)

    def put(self, verb: Put) -> None:
        for row in verb.rows:
            held = self.get([self.primary(row)])
            if held:
                self._change(held[0], tuple(row))
            elif self._append_one(row) is not None:
                raise Met(self.table.name)

    def cas(self, verb: Cas, now: int) -> list[Row | None]:
        answer: list[Row | None] = []
        for key, expected, new in verb.rows:
            found = self.get([tuple(key)])
            if found and all(found[0][self.table.at[c]] == v for c, v in expected.items()):
                answer.append(self._change(found[0], changed(self.table, found[0], new, now)))
            else:
                answer.append(None)
        return answer

    def claim(self, verb: Claim, now: int) -> list[Row]:
        rows = self.find(Query(self.table, verb.where, order=verb.order, limit=verb.limit))
        return [self._change(row, changed(self.table, row, verb.set, now)) for row in rows]

    def remove(self, verb: Remove) -> int:
        if verb.keys is None:
            rows = self.find(Query(self.table, verb.where))
        else:
            rows = self.get(list(dict.fromkeys(tuple(k) for k in verb.keys)))
        gone = {self.latest(r) for r in rows}
        before = [(self._prev_of(r),) for r in rows if self._prev_of(r) not in (None, *gone)]
        if before and self.get(before):
            raise ValueError(f"{self.table.name}: a row leaves only together with everything before it")
        heads = [(by,) for by in {self._by_of(r) for r in rows} if self._head(by) in gone]
        keys = [k for k in map(self._key_of, rows) if k and None not in k]
        self.db.executemany(self._delete, [(n,) for n in gone])
        self.db.executemany(self._sql.forget_head, heads)
        if keys:
            self.db.executemany(self._sql.forget_key, keys)
        self._keys.note((k, None) for k in keys)
        self._heads.note((by, None) for (by,) in heads)
        self.cut = True
        return len(rows)

    def _append_one(self, row: Row) -> Row | None:
        key = self._key_of(row)
        held = self.get([self.primary(row)])
        if not held and key and None not in key:
            held = self.get([(n,) for n in self.lookup([key]).values()])
        if held:
            return held[0]
        check_row(self.table, row)
        self.db.execute(self.insert, row)
        self._noted([row], [key])
        return None

    def _noted(self, rows: Sequence[Row], keys: Sequence[Any]) -> None:
        """Rows were inserted: their keys and heads belong to the innermost open layer."""
        if not rows:
            return
        numbers: list[Any] = list(map(self.latest, rows))
        self.appended += len(rows)
        self._lowest = min(self._lowest, *numbers)
        self.new_top = max(self.new_top, *numbers)
        if self._unique:
            pairs = zip(keys, numbers, strict=True)
            self._keys.note(((k, n) for k, n in pairs if None not in k) if self._partial else pairs)
        self._heads.note(zip(map(self._by_of, rows), numbers, strict=True))

    def _change(self, old: Row, new: Row) -> Row:
        if self._fixed_of(old) != self._fixed_of(new):
            raise ValueError(f"{self.table.name}: the key and the chain columns of a row never change")
        if old != new:
            before, after = self._key_of(old), self._key_of(new)
            if before != after and after and self.lookup([after]):
                raise Met(self.table.name)
            self._write_rows(self._put, [new])
            if before != after:
                self._rekeyed(before, after, self.latest(new))
        return new

    def _rekeyed(self, before: Any, after: Any, number: int) -> None:
        """A row has another unique key now: the old one is free, the new one is noted as if just appended."""
        if None not in before:
            self.db.execute(self._sql.forget_key, before)
            self._keys.note([(before, None)])
        if None not in after:
            self._keys.note([(after, number)])
            self._lowest = min(self._lowest, number)
        self.cut = True

    def _share(self, size: int) -> None:
        keys = self._keys.share(size)
        self._write(keys, self._heads.share(max(0, size - len(keys))))
        self._credit = 0

    def _write(self, keys: list[tuple[Any, int]], heads: list[tuple[Any, int]]) -> None:
        if keys:
            self.db.executemany(self._sql.note_key, [(*k, n) for k, n in keys])
        if heads:
            self.db.executemany(self._sql.note_head, heads)


NEVER = 2**63 - 1


def cells_of(at: Sequence[int]) -> Callable[[Row], Row]:
    """A function from a row to the tuple of its cells at `at`."""
    if len(at) >= 2:
        return itemgetter(*at)
    if len(at) == 1:
        (only,) = at
        return lambda row: (row[only],)
    return lambda row: ()
