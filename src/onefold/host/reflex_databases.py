"""host.reflex_databases - the databases that selections and changes name: a variable's address, or an actuator's own.

For: what turns `on="env:SHOP_DB"` and `on="tool:refund_order"` into something that can be asked, or changed.
Never: tells an address; opens anything before it is asked; changes anything but an actuator's own tables.
Was wrong once: an actuator's file opened a second time, beside its owner. On Postgres there was no file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import unquote, urlsplit

from onefold.host.config import Config
from onefold.reflex.selects import Database
from onefold.reflex.sql_effect import Changing
from onefold.store.contract import AuthorSpace, Body, Done, Last, Tx
from onefold.store.statement import bound
from onefold.terms.errors import BadStatement, Finding, LoadRefused, StepFenced, StoreUnavailable
from onefold.terms.ids import nearest

T = TypeVar("T")


class Databases:
    """By their `on`. space: an actuator's own, opened. tools: the actuators there are."""

    def __init__(self, config: Config, space: Callable[[str], Awaitable[AuthorSpace]], tools: Collection[str]) -> None:
        self._config = config
        self._space = space
        self._tools = tools

    def asked(self, on: str) -> Database:
        """Raises: LoadRefused, naming a variable and not what it holds."""
        kind, _, name = on.partition(":")
        return _addressed(name, self._config) if kind == "env" else self._tool(name)

    def changed(self, on: str) -> Changing:
        """Raises: LoadRefused for a tool that is not there."""
        return self._tool(on.partition(":")[2]).change

    def _tool(self, name: str) -> Tool:
        if name not in self._tools:
            near = nearest(name, self._tools)
            told = f"; did you mean 'tool:{near}'?" if near else ""
            raise LoadRefused([Finding(f"tool:{name}", f"there is no tool {name!r} in this app{told}")])
        return Tool(lambda: self._space(name))


def _addressed(name: str, config: Config) -> Database:
    url = config.secret(name, f'on="env:{name}"', least=1)
    parts = urlsplit(url)
    if parts.scheme in ("postgres", "postgresql"):
        from onefold.store.postgres import outside as elsewhere

        return elsewhere.Outside(url)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        from onefold.store.sqlite.outside import Outside

        path = Path(unquote(parts.path[1:]))  # sqlite:///shop.db is beside the settings, sqlite:////srv/shop.db is not
        return Outside(path if path.is_absolute() or config.file is None else config.file.parent / path)
    told = "this variable holds no address of a database: postgres://… or sqlite:///path"
    raise LoadRefused([Finding(name, told)])


class _Rows(Exception):
    """What was found. Raised, so that the step's transaction is rolled back whatever its statement did."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        super().__init__("rows")
        self.rows = rows


class Tool:
    """An actuator's own database, through the door that its steps go through: one question at a time."""

    def __init__(self, space: Callable[[], Awaitable[AuthorSpace]]) -> None:
        self._space = space

    async def rows(
        self, sql: str, values: Mapping[str, Any], *, timeout_ms: int, named: str
    ) -> AsyncIterator[Mapping[str, object]]:
        """Rows by column name. Lists and objects are bound as JSON text. Raises: StoreUnavailable."""
        taken = {name: bound(value) for name, value in values.items()}

        def ask(tx: Tx) -> NoReturn:
            raise _Rows(tx.fetch(sql, **taken))

        try:
            await self._act(ask, timeout_ms, named)
        except _Rows as found:
            for row in found.rows:
                yield row

    async def change(
        self, sql: str, values: Mapping[str, Any], *, returns: bool, timeout_ms: int, named: str
    ) -> int | Sequence[Mapping[str, object]]:
        """See `Changing`. Raises: StoreUnavailable; OutcomeUnknown, when it may have been committed."""
        taken = {name: bound(value) for name, value in values.items()}

        def act(tx: Tx) -> int | Sequence[Mapping[str, object]]:
            return tx.fetch(sql, **taken) if returns else tx.execute(sql, **taken)

        return await self._act(act, timeout_ms, named)

    async def _act(self, step: Callable[[Tx], T], timeout_ms: int, named: str) -> T:
        space = await self._space()
        try:
            outcome = await space.author(step, _nothing_else, budget_ms=timeout_ms)
        except BadStatement as bad:
            raise StoreUnavailable(named, f"its SQL cannot be run: {bad.reason}") from bad
        except StepFenced:
            raise StoreUnavailable(named, f"it took longer than its {timeout_ms / 1000:g} s") from None
        if isinstance(outcome, Done):
            return outcome.value  # type: ignore[no-any-return]
        raise outcome.error


def _nothing_else(value: T) -> Body[T]:
    def body() -> Generator[Any, Any, Last[T]]:
        yield from ()
        return Last((), value)

    return body
