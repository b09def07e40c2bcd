"""reflex.selects - rows by the name of a question that the host has written.

For: `@select` on a function, `select.sql` for a text, and `Selects`, which a reflex's `{"name": …, "with": {…}}` is put
to.
Imports: terms; databases are handed in by host.
Never: takes SQL, or who asks, from a reflex. `:principal` is bound from the run, and nothing else can set it.
Was wrong once: row security by a variable of the session. A query that set the variable read another tenant's rows.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, overload

from onefold.reflex.rows import as_row, rows_of, within
from onefold.reflex.seams import Query, Row
from onefold.reflex.words import Json
from onefold.store.statement import problem_of, values_of
from onefold.terms.codec import below
from onefold.terms.duration import duration_ms
from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused, UnknownName
from onefold.terms.ids import NAME, Principal, check_name, nearest
from onefold.terms.places import place_of_call, place_of_function, placed

PRINCIPAL: Final = "principal"
"""The value that the engine binds. A reflex that has a parameter of this name is refused."""
PARTS: Final = ("name", "with")
LONGEST: Final = "60 seconds"
"""How long a function may take over its rows. An advance waits for all its selections."""
_ON: Final = re.compile(rf"env:[A-Za-z_][A-Za-z0-9_]{{0,127}}|tool:{NAME.pattern}", re.ASCII)
R = TypeVar("R")

Answers: TypeAlias = "AsyncIterator[R] | Awaitable[Iterable[R]] | Iterable[R]"


class Database(Protocol):
    """Where a text is asked. Read-only; off the loop's thread; `values` are bound, never spelled into the text."""

    def rows(
        self, sql: str, values: Mapping[str, Json], *, timeout_ms: int, named: str
    ) -> AsyncIterator[Mapping[str, object]]:
        """Rows by column name, a chunk at a time. Raises: HostError when the database fails or takes too long."""


Databases: TypeAlias = "Callable[[str], Database]"
"""The database behind an `on`. Raises: LoadRefused where there is none."""


class Selected(Generic[R]):
    """A function that gives rows: `@select(name)`. `function`: the plain function. `takes`: the parameters it must
    have; None: nobody said. `may`: those that it may have.
    """

    shared = False

    def __init__(
        self,
        name: str,
        function: Callable[[Query], Answers[R]],
        *,
        takes: frozenset[str] | None = None,
        may: frozenset[str] = frozenset(),
        timeout: str | timedelta = LONGEST,
    ) -> None:
        self.name = _named(name, place_of_function(function))
        self.function = function
        self.timeout_ms = duration_ms(timeout)
        self.takes = takes
        self.may = may

    def __repr__(self) -> str:
        return f"<select {self.name}>"

    def rows(self, query: Query) -> AsyncIterator[Row]:
        return within(rows_of(self.function, query, self.name), self.timeout_ms, self.name)


class SqlSelect:
    """A text that gives rows: `select.sql(…)`. `on`: which database. `shared`: it gives everybody the same rows."""

    may: frozenset[str] = frozenset()

    def __init__(self, name: str, sql: str, *, on: str, timeout: str | timedelta = "30 seconds") -> None:
        place = place_of_call()
        self.name = _named(name, place)
        problem = problem_of(sql)
        if problem:
            raise _refused(name, f"its SQL {problem}", place)
        if not _ON.fullmatch(on):
            raise _refused(name, f'on={on!r} is neither "env:NAME", a variable with an address, nor "tool:NAME"', place)
        self.sql = sql
        self.on = on
        self.timeout_ms = duration_ms(timeout)
        asked = values_of(sql)
        self.takes: frozenset[str] | None = frozenset(asked) - {PRINCIPAL}
        self.shared = PRINCIPAL not in asked

    def __repr__(self) -> str:
        return f"<select {self.name} on {self.on}>"

    async def rows(self, query: Query, database: Database) -> AsyncIterator[Row]:
        values = dict(query.params) if self.shared else {**query.params, PRINCIPAL: query.principal}
        given = database.rows(self.sql, values, timeout_ms=self.timeout_ms, named=self.name)
        try:
            async for row in given:
                yield as_row(row, self.name)
        finally:
            if hasattr(given, "aclose"):
                await given.aclose()


AnySelect: TypeAlias = "Selected[Any] | SqlSelect"


class _Select:
    """`select`: a decorator, and `select.sql`."""

    def __call__(self, name: str, *, timeout: str | timedelta = LONGEST) -> _Selecting:
        """`@select("subscriptions.overdue")` on a function of a Query: an async generator, or a plain one or a function
        that gives a list, which run in a thread. timeout: for all its rows. Raises: LoadRefused."""
        if callable(name):
            raise TypeError(f'@select needs the name of the selection: @select("{getattr(name, "__name__", "it")}")')
        return _Selecting(name, timeout)

    def sql(self, name: str, sql: str, *, on: str, timeout: str | timedelta = "30 seconds") -> SqlSelect:
        """A question in SQL. `:name` stands for a value that the reflex gives in `with`, `:principal` for whoever the
        reflex runs as. on: "env:NAME", a variable that holds postgres://… or sqlite:///path, or "tool:NAME", an
        actuator's own database. Raises: LoadRefused, and BadArguments for a timeout that is no duration.
        """
        return SqlSelect(name, sql, on=on, timeout=timeout)


class _Selecting:
    def __init__(self, name: str, timeout: str | timedelta) -> None:
        self._name = name
        self._timeout = timeout

    @overload
    def __call__(self, function: Callable[[Query], AsyncIterator[R]], /) -> Selected[R]: ...
    @overload
    def __call__(self, function: Callable[[Query], Awaitable[Iterable[R]]], /) -> Selected[R]: ...
    @overload
    def __call__(self, function: Callable[[Query], Iterable[R]], /) -> Selected[R]: ...
    def __call__(self, function: Callable[[Query], Any], /) -> Selected[Any]:
        return Selected(self._name, function, timeout=self._timeout)


select = _Select()


class Selects:
    """The selections of an app, as the engine asks them. Raises, when made: LoadRefused, with all that is wrong."""

    def __init__(self, parts: Iterable[Any], databases: Databases | None = None) -> None:
        self._parts: dict[str, AnySelect] = {}
        self._databases: dict[str, Database] = {}
        findings: list[Finding] = []
        for part in parts:
            if not isinstance(part, Selected | SqlSelect):
                told = "is no selection; write @select(name) over its function, or select.sql(name, …)"
                findings.append(Finding(f"selects: {part!r}", told))
            elif part.name in self._parts:
                findings.append(Finding(f"select {part.name}", "stands twice; give one of them another name"))
            else:
                self._parts[part.name] = part
                findings += self._connect(part, databases)
        if findings:
            raise LoadRefused(findings)

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._parts)

    def _connect(self, part: AnySelect, databases: Databases | None) -> Sequence[Finding]:
        if isinstance(part, Selected) or part.on in self._databases:
            return ()
        if databases is None:
            return [Finding(f"select {part.name}", f"asks {part.on}, and no database was given")]
        try:
            self._databases[part.on] = databases(part.on)
        except LoadRefused as refused:
            return refused.findings
        return ()

    # --- at load ----------------------------------------------------------------------------------

    def findings(self, query: Json, path: str = "select.query", principal: Principal = None) -> list[Finding]:
        """What is wrong with a reflex's query, as far as it can be known before it runs."""
        problem = _shape(query)
        if problem:
            return [Finding(path, problem)]
        part = self._parts.get(query["name"])
        if part is None:
            near = nearest(query["name"], self._parts)
            told = f"; did you mean {near!r}?" if near else f"; there is {', '.join(self._parts) or 'none'}"
            return [Finding(below(path, "name"), f"there is no selection {query['name']!r}{told}")]
        given = query.get("with", {})
        found = []
        if not isinstance(given, Mapping) or "$" in given:
            if part.takes is not None:
                found.append(Finding(below(path, "with"), "is an object of names and values"))
        else:
            found += [Finding(below(path, fault.field), fault.problem) for fault in _faults(part, given)]
        if part.shared and principal is not None and isinstance(part, SqlSelect):
            told = f"{part.name} does not ask for :principal, so everybody gets the same rows"
            found.append(Finding(path, told, "warning"))
        return found

    # --- when it runs -----------------------------------------------------------------------------

    async def __call__(self, query: Json, principal: Principal, now: datetime, /) -> AsyncIterator[Row]:
        """The rows, one after another. Raises: UnknownName, BadArguments; and whatever the function or database does."""
        problem = _shape(query)
        if problem:
            raise BadArguments([Fault("query", problem)], nothing_was="selected")
        part = self._parts.get(query["name"])
        if part is None:
            raise UnknownName("selection", query["name"], nearest(query["name"], self._parts))
        params = query.get("with", {})
        faults = _faults(part, params) if isinstance(params, Mapping) else [Fault("with", "must be an object")]
        if faults:
            raise BadArguments(faults, nothing_was="selected")
        asked = Query(params, principal, now)
        given = part.rows(asked) if isinstance(part, Selected) else part.rows(asked, self._databases[part.on])
        try:
            async for row in given:
                yield row
        finally:
            if hasattr(given, "aclose"):
                await given.aclose()


def _shape(query: Json) -> str | None:
    """What is wrong with the form of a query, or None."""
    if not isinstance(query, Mapping):
        return 'is an object: {"name": "…", "with": {…}}'
    for key in query:
        if key not in PARTS:
            near = nearest(key, PARTS)
            return f"does not know {key!r}" + (f"; did you mean {near!r}?" if near else '; it has "name" and "with"')
    if not isinstance(query.get("name"), str):
        return '"name" must be the name of a selection, written out'
    return None


def _faults(part: AnySelect, given: Mapping[str, Json]) -> list[Fault]:
    """What is wrong with the parameters. Only a text in SQL says which it takes; nobody sets who asks."""
    found = []
    known = None if part.takes is None else part.takes | part.may
    for name in given:
        if name == PRINCIPAL:
            found.append(Fault(below("with", name), "is bound by the engine to whom the reflex runs as; leave it out"))
        elif known is not None and name not in known:
            near = nearest(name, known)
            told = f"; did you mean {near!r}?" if near else f"; {part.name} takes {_listed(known)}"
            found.append(Fault(below("with", name), f"is not known{told}"))
    missing = sorted((part.takes or frozenset()) - given.keys())
    return found + [Fault(below("with", name), f"is missing: {part.name} asks for it") for name in missing]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no parameters"


def _named(name: str, place: str | None) -> str:
    try:
        return check_name(name, "select", dots=True)
    except LoadRefused as refused:
        told = [Finding(placed(one.where, place), one.problem) for one in refused.findings]
        raise LoadRefused(told) from None


def _refused(name: object, problem: str, place: str | None) -> LoadRefused:
    return LoadRefused([Finding(placed(f"select {name}", place), problem)])
