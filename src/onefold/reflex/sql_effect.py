"""reflex.sql_effect - one statement that changes rows of an actuator, as the one thing that a reflex does.

For: a host-written INSERT, UPDATE or DELETE with bound values, and the rows that it returns as facts.
Never: SQL from a reflex; a value spelled into the text; another's name in `:principal`.
Was wrong once: facts made of what a statement was told to change. It had changed nothing, and the chain went on.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol, TypeAlias

from onefold.reflex.rows import as_row
from onefold.reflex.seams import Task
from onefold.reflex.words import Json, Write
from onefold.store.statement import Change, change_of, values_of
from onefold.terms.duration import duration_ms
from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused
from onefold.terms.ids import NAME, check_name, nearest
from onefold.terms.places import place_of_call, placed

BOUND: Final = ("principal", "key")
"""Values that the engine binds. An input that has one of these is refused."""
_ON: Final = re.compile(rf"tool:({NAME.pattern})", re.ASCII)


class Changing(Protocol):
    """Runs one statement in an actuator's own database, alone in its commit. Raises: HostError; nothing was changed."""

    def __call__(
        self, sql: str, values: Mapping[str, Any], *, returns: bool, timeout_ms: int, named: str
    ) -> Awaitable[int | Sequence[Mapping[str, object]]]:
        """How many rows it changed; with `returns`, the rows that it gives back."""


Changers: TypeAlias = "Callable[[str], Changing]"
"""Who changes rows behind an `on`. Raises: LoadRefused where there is nobody."""


class SqlEffect:
    """A statement by its name: `effect.sql(…)`. Host joins it with the database behind `on`."""

    def __init__(
        self, name: str, sql: str, *, on: str, writes: str | None = None, timeout: str | timedelta = "30 seconds"
    ) -> None:
        self._place = place_of_call()
        self.name = check_name(name, "effect", dots=True)
        change = change_of(sql)
        if isinstance(change, str):
            raise self._refused(f"its SQL {change}")
        match = _ON.fullmatch(on)
        if match is None:
            raise self._refused(f'on={on!r} must be "tool:NAME": rows of an actuator are what can be changed')
        if writes is not None and not change.returns:
            raise self._refused("writes names an entity, and its SQL returns no rows to make facts of; add RETURNING")
        self.sql, self.on, self.change = sql, on, change
        self.timeout_ms = duration_ms(timeout)
        self.entity = writes or f"{match[1]}.{change.table}"
        self.writes: Sequence[str] | None = (self.entity,) if change.returns else ()
        asked = values_of(sql)
        self.takes = frozenset(asked) - set(BOUND)
        self._binds = frozenset(asked) & set(BOUND)

    def __repr__(self) -> str:
        return f"<effect {self.name} on {self.on}>"

    def joined(self, changing: Changing) -> Joined:
        """The effect itself."""
        return Joined(self, changing)

    def values(self, input: Json) -> dict[str, Json]:
        """The values of an input. Raises: BadArguments."""
        given = {} if input is None else input
        if not isinstance(given, dict):
            raise BadArguments([Fault("", "must be an object of the values that its SQL asks for")])
        faults = [self._strange(name) for name in given if name not in self.takes]
        faults += [Fault(name, f"is missing: its SQL asks for :{name}") for name in sorted(self.takes - given.keys())]
        if faults:
            raise BadArguments(faults)
        return dict(given)

    def bound(self, task: Task) -> dict[str, Json]:
        """What the engine binds."""
        return {
            name: value for name, value in zip(BOUND, (task.principal, task.key), strict=True) if name in self._binds
        }

    def _strange(self, name: str) -> Fault:
        if name in BOUND:
            return Fault(name, "is bound by the engine; leave it out")
        near = nearest(name, self.takes)
        return Fault(name, f"is not known; did you mean {near!r}?" if near else "is not known")

    def _refused(self, problem: str) -> LoadRefused:
        return LoadRefused([Finding(placed(f"effect {self.name}", self._place), problem)])


class Joined:
    """A statement with the database that it changes, as the engine has it."""

    def __init__(self, of: SqlEffect, changing: Changing) -> None:
        self.name = of.name
        self.writes = of.writes
        self._of = of
        self._changing = changing

    def __repr__(self) -> str:
        return repr(self._of)

    async def run(self, task: Task, input: Json, /) -> Json:
        """{"rows": how many}. Each row that it returns is emitted. Raises: BadArguments, HostError."""
        of = self._of
        values = {**of.values(input), **of.bound(task)}
        answer = await self._changing(
            of.sql, values, returns=of.change.returns, timeout_ms=of.timeout_ms, named=of.name
        )
        if isinstance(answer, int):
            return {"rows": answer}
        for row in answer:
            task.emit(Write(of.entity, of.change.op, as_row(row, of.name)))
        return {"rows": len(answer)}

    def show(self, input: Json, /) -> str | None:
        self._of.values(input)
        change: Change = self._of.change
        return f"{change.op} rows of {self._of.entity}"
