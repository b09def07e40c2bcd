"""actuators.database - `run.db`: the actuator's own database, each verb a step of its own.

For: statements and database steps that commit together with their journal row, exactly once.
Never: opens a connection; builds SQL. The store runs the statement and says what an author may not.
Was wrong once: a write and then its journal row. A crash between the two wrote it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import msgspec

from onefold.actuators.calls import StepCall
from onefold.actuators.passing import Pass
from onefold.actuators.stepping import StepFunction, digest_of, read, step_name
from onefold.store.contract import Tx
from onefold.terms.instant import down, text

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseActing:
    """A database step: a plain function of the handle. write, read: the bytes of its result, and the value in them."""

    __slots__ = ("function", "name", "read", "write")
    kind = "db"
    limit: int | None = None

    def __init__(
        self, name: str, function: Callable[[Tx], Any], write: Callable[[Any], bytes], read: Callable[[bytes], Any]
    ) -> None:
        self.name = name
        self.function = function
        self.write = write
        self.read = read


class Database:
    """The actuator's own database. Values are bound, never spelled into the text; Decimal and instants are stored as text."""

    def __init__(self, home: Pass) -> None:
        self._home = home

    def execute(self, sql: str, /, **values: object) -> Coroutine[Any, Any, int]:
        """Run one statement; gives the number of rows it changed. Raises, when awaited: StepFailed."""
        verb: Coroutine[Any, Any, int] = self._verb(
            "db.execute", sql, values, lambda tx, bound: tx.execute(sql, **bound)
        )
        return verb

    def fetch(self, sql: str, /, **values: object) -> Coroutine[Any, Any, list[dict[str, Any]]]:
        """All rows of one query. Raises, when awaited: StepFailed."""
        rows: Coroutine[Any, Any, list[dict[str, Any]]]
        rows = self._verb("db.fetch", sql, values, lambda tx, bound: tx.fetch(sql, **bound))
        return rows

    def fetch_one(self, sql: str, /, **values: object) -> Coroutine[Any, Any, dict[str, Any] | None]:
        """The first row of one query, or None. Raises, when awaited: StepFailed."""
        row: Coroutine[Any, Any, dict[str, Any] | None]
        row = self._verb("db.fetch_one", sql, values, lambda tx, bound: tx.fetch_one(sql, **bound))
        return row

    def step(
        self, f: Callable[Concatenate[Tx, P], T], *, name: str | None = None
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        """`f` as one database step: a plain function whose first argument is the handle. All it wrote commits, or nothing."""
        info = _handle_function(f)
        label = step_name(name, f, info)

        def call(*args: P.args, **values: P.kwargs) -> Any:
            bound, named = info.bind(args, values)
            digest = digest_of(label, bound, named)
            return self._add(
                label, digest, lambda tx: f(Bound(tx), *bound, **named), info.result.encode, info.result.decode
            )

        return call

    def _verb(self, name: str, sql: str, values: Mapping[str, object], run: Callable[[Tx, dict[str, Any]], Any]) -> Any:
        if not isinstance(sql, str):
            raise TypeError(f"run.{name}: the statement must be text, not {type(sql).__name__}")
        bound = {key: storable(value, key) for key, value in values.items()}
        digest = digest_of(name, sql, bound)
        return self._add(name, digest, lambda tx: run(tx, bound), write_cells, read_cells)

    def _add(
        self,
        name: str,
        digest: str,
        run: Callable[[Tx], Any],
        write: Callable[[Any], bytes],
        back: Callable[[Any], Any],
    ) -> StepCall:
        home = self._home
        acting = DatabaseActing(name, run, write, back)
        call = StepCall(home, home.next_id(), digest, acting, (), {}, home.which(name))
        home.add(call)
        return call


class Bound:
    """The handle of a database step, taking the same values as `run.db`."""

    __slots__ = ("_tx",)

    def __init__(self, tx: Tx) -> None:
        self._tx = tx

    def execute(self, sql: str, /, **values: object) -> int:
        return self._tx.execute(sql, **{key: storable(value, key) for key, value in values.items()})

    def fetch(self, sql: str, /, **values: object) -> list[dict[str, object]]:
        return self._tx.fetch(sql, **{key: storable(value, key) for key, value in values.items()})

    def fetch_one(self, sql: str, /, **values: object) -> dict[str, object] | None:
        return self._tx.fetch_one(sql, **{key: storable(value, key) for key, value in values.items()})


def _handle_function(f: Callable[..., Any]) -> StepFunction:
    """The signature without its first parameter, the handle. Raises: TypeError for an async function."""
    info = read(f)
    if info.is_async:
        raise TypeError(
            f"run.db.step({info.name}): a database step is a plain function; it holds the writer while it runs"
        )
    parameters = list(info.signature.parameters.values())
    if not parameters:
        raise TypeError(f"run.db.step({info.name}): its first parameter is the handle")
    shorter = object.__new__(StepFunction)
    shorter.name, shorter.is_async, shorter.takes_step, shorter.arity = info.name, False, False, -1
    shorter.annotations, shorter.result = info.annotations, info.result
    shorter.signature = info.signature.replace(parameters=parameters[1:])
    return shorter


def storable(value: object, name: str) -> int | float | str | bytes | None:
    """A bound value as a database holds it. Raises: TypeError naming the value."""
    if value is None or isinstance(value, bool):
        return value if value is None else int(value)
    if isinstance(value, Enum):
        return storable(value.value, name)
    if isinstance(value, int | float | str | bytes):
        return value
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, datetime):
        return text(down(value, what=name))
    raise TypeError(
        f":{name} is a {type(value).__name__}; a database takes numbers, text, bytes, Decimal, UUID and instants"
    )


# --- rows in the journal: JSON, with bytes marked -------------------------------------------------


def _mark(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$bytes": msgspec.to_builtins(value)}
    if isinstance(value, float) and not -1.8e308 < value < 1.8e308:
        return {"$float": str(value)}
    if isinstance(value, dict):
        return {key: _mark(item) for key, item in value.items()}
    return [_mark(item) for item in value] if isinstance(value, list) else value


def _unmark(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmark(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and "$bytes" in value:
        return msgspec.convert(value["$bytes"], bytes)
    if len(value) == 1 and "$float" in value:
        return float(value["$float"])
    return {key: _unmark(item) for key, item in value.items()}


def write_cells(value: Any) -> bytes:
    return msgspec.json.encode(_mark(value))


def read_cells(raw: Any) -> Any:
    return _unmark(msgspec.json.decode(raw))
