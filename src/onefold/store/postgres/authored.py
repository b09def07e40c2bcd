"""store.postgres.authored - a space whose author has tables of their own, as a `contract.AuthorSpace`.

For: the space's verbs beside the author's door, and the journal of a step within the step's own transaction.
Never: commits the one without the other; makes a schema for a space whose author has no tables.
Was wrong once: the journal over the space's lane, behind the step's commit. A crash between the two ran the step twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from onefold.store.batch import Lost, Unusable, told
from onefold.store.contract import Body, Outcome, Refused, Row, Tx
from onefold.store.postgres.author import Door
from onefold.store.postgres.engine import Engine
from onefold.store.postgres.space import PostgresSpace
from onefold.store.postgres.together import Together
from onefold.store.postgres.wire import Wire

T = TypeVar("T")


class AuthoredSpace(PostgresSpace):
    """The door opens its connection when somebody first needs it."""

    def give(self, door: Door, engine: Callable[[], Engine], failpoint: Callable[[str], None] | None) -> None:
        """`engine`: one that commits what it is lent."""
        self._door = door
        self._engine = engine
        self._fail = failpoint

    async def author(
        self, step: Callable[[Tx], T], journal: Callable[[T], Body[Any]], *, budget_ms: int
    ) -> Outcome[Any]:
        async def finish(wire: Wire, result: T) -> Outcome[Any]:
            return await self._journal(wire, journal(result))

        async with self.held():
            return await self._door.run(step, budget_ms, finish)

    async def author_migrate(self, statements: Sequence[str]) -> None:
        async with self.held():
            await self._door.migrate(statements)

    async def author_tables(self) -> list[str]:
        async with self.held():
            return await self._door.tables()

    async def author_rows(
        self, table: str, *, limit: int, after: int | None
    ) -> tuple[list[str], list[Row], int | None]:
        async with self.held():
            return await self._door.rows(table, limit, after)

    async def author_export(self, into: str, *, sql: bool) -> None:
        self._check_open()
        await self._door.export(into, sql=sql)

    @property
    def stepping(self) -> bool:
        """Whether a step of the author runs."""
        return self._door.stepping

    async def close(self) -> None:
        await super().close()
        self._door.close()

    def abandon(self) -> None:
        super().abandon()
        self._door.close()

    def let_go(self) -> None:
        """Close the author's connection; a step under way is fenced."""
        self._door.close()

    async def _journal(self, wire: Wire, body: Body[Any]) -> Outcome[Any]:
        """Run `body` in the transaction that is open on `wire`, and commit it."""
        engine = self._engine()
        engine.lend(wire)
        together = Together(engine, [(self, body)], self._fail)
        try:
            (outcome,) = await together.run(begun=True)
        except Unusable as fell:
            return Refused(fell.error)
        except Lost as lost:
            return together.lost(lost.error)[0]
        except Exception as fault:  # noqa: BLE001 - the door: a fault of the store itself must not leave its party waiting
            engine.drop()
            return together.lost(told(fault))[0] if together.sent else Refused(told(fault))
        finally:
            engine.part(wire)
        return outcome
