"""store.postgres.space - a part of the shared tables as a `contract.Space`.

For: verbs under the number of the space, reads beside its lane, numbers.
Never: opens a connection; knows another space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from onefold.store.contract import Answer, Append, Query, Schema, Table, Verb
from onefold.store.postgres.arrays import small
from onefold.store.postgres.lane import Gate, Lane
from onefold.store.postgres.mint import Numbers
from onefold.store.postgres.plan import Call, Plan, Plans
from onefold.store.postgres.reader import Reader

T = TypeVar("T")


class PostgresSpace(Gate):
    """See `contract.Space`. One lane serves several spaces; their bodies share its commits."""

    far = True

    def __init__(
        self,
        name: str,
        number: int,
        schemas: Sequence[Schema],
        plans: Plans,
        lane: Lane,
        reader: Reader,
        numbers: Numbers,
    ) -> None:
        """`number`: the space in each row."""
        super().__init__(name, lane)
        self.number = number
        self._number = small(number)
        self._reader = reader
        self._numbers = numbers
        self._by_name = {t.name: plans.of(t) for s in schemas for t in s.tables}
        self._plans = {id(plan.table): plan for plan in self._by_name.values()}
        self._aliases: list[Table] = []

    async def look(self, *queries: Query) -> tuple[Answer, ...]:
        self._check_open()
        answers = await self._reader.look([self.call(q, last=False, locks=False) for q in queries])
        for query, answer in zip(queries, answers, strict=True):
            await self.seen(query.table, answer)
        return tuple(answers)

    def mint(self, table: Table) -> int:
        return self._numbers.mint(table.name)

    def call(self, verb: Verb, *, last: bool, locks: bool = True) -> Call:
        plan = self._plans.get(id(verb.table)) or self._plan(verb.table)
        return plan.call(verb, self._number, last=last, locks=locks)

    def holders(self, verb: Append) -> list[tuple[tuple[int, ...], Call]]:
        return self._by_name[verb.table.name].holders(verb, self._number)

    async def seen(self, table: Table, answer: Answer) -> None:
        """Numbers of a history grow, also where another process wrote the last of them."""
        at = self._by_name[table.name].number
        if at is None or not isinstance(answer, list):
            return
        newest = max((int(str(row[at])) for row in answer if row is not None), default=0)
        if newest and self._numbers.behind(table.name, newest):
            await self._numbers.above(table.name, newest)

    def _plan(self, table: Table) -> Plan:
        plan = self._by_name.get(table.name)
        if plan is None or plan.table != table:
            raise ValueError(f"the space {self.name!r} has no table {table.name!r} declared like this")
        self._plans[id(table)] = plan
        self._aliases.append(table)  # keeps an equal declaration alive, so that its identity stays its own
        return plan
