"""store.postgres.reader - committed rows, read beside every commit.

For: looks of all spaces over one connection, many on their way at once.
Never: reads inside a body; locks anything.
Was wrong once: looks in the lanes. Each waited for the commit before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from onefold.store.contract import Answer
from onefold.store.postgres.engine import Connect, look
from onefold.store.postgres.failing import STORE, faulty, unavailable
from onefold.store.postgres.plan import Call
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire
from onefold.terms.errors import StoreUnavailable


class Reader:
    """One connection, opened when needed and again after it was lost."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._wire: Wire | None = None
        self._opening = asyncio.Lock()
        self.asking = 0  # how many wait for an answer

    async def look(self, calls: Sequence[Call]) -> list[Answer]:
        """Raises: StoreUnavailable, and what opening a connection raises."""
        if not any(call.statements for call in calls):
            return [call.answer([]) for call in calls]
        self.asking += 1
        try:
            return await self._look(calls)
        finally:
            self.asking -= 1

    async def _look(self, calls: Sequence[Call]) -> list[Answer]:
        for last in (False, True):
            wire = await self.wire()
            try:
                return await look(wire, calls)
            except Gone as gone:
                if last:
                    raise unavailable(gone.state) from gone
            except Stopped as stopped:
                raise faulty(stopped) from stopped
            except OSError as error:
                raise StoreUnavailable(STORE, f"its connection failed ({error.strerror or error})") from error
        raise AssertionError

    async def rows(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """The rows of each. Only for what may be asked twice. Raises: StoreUnavailable, and what opening one raises."""
        calls = [Call("", [statement], lambda results: results[0]) for statement in statements]
        return await self.look(calls)

    async def wire(self) -> Wire:
        """Raises: what opening a connection raises."""
        async with self._opening:
            if self._wire is None or not self._wire.open:
                self._wire = await self._connect()
            return self._wire

    def drop(self) -> None:
        if self._wire is not None:
            self._wire.drop()
            self._wire = None
