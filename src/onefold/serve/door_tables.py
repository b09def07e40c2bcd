"""serve.door_tables - what the doors ask of an actuator's own tables, as a Protocol.

For: looking into them, and taking them along.
Never: a verb that writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, Protocol

from onefold.host.caller import Caller
from onefold.serve.door_deployed import HasDeployed

Json = Any


class HasTables(HasDeployed, Protocol):
    """The tables of an actuator, which are its author's. Every verb needs `operate`."""

    async def tables(self, name: str, *, caller: Caller) -> Sequence[str]: ...
    async def table_rows(
        self, name: str, table: str, *, limit: int = 100, after: str | None = None, caller: Caller
    ) -> tuple[Sequence[str], Sequence[Sequence[Json]], str | None]: ...
    async def export(self, name: str, *, sql: bool, caller: Caller) -> BinaryIO: ...
