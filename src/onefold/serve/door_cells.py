"""serve.door_cells - what the doors ask of an application's cells, as Protocols.

For: the verbs on cells that serve may call, and what they give.
Never: a verb that only one page wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from onefold.host.caller import Caller

Json = Any


class Turn(Protocol):
    """What a turn came to."""

    @property
    def branch(self) -> str: ...
    @property
    def value(self) -> Json: ...
    @property
    def ran(self) -> int: ...


class Posted(Protocol):
    """A program that is committed to a box."""

    @property
    def id(self) -> str: ...
    @property
    def owner(self) -> str | None: ...


class Seen(Protocol):
    """A cell as it is."""

    @property
    def state(self) -> dict[str, Json]: ...


class CellVerbs(Protocol):
    """The verbs on cells, as far as the doors must know them."""

    async def spawn(self, shape: str, id: str, *, key: str | None = None, caller: Caller) -> str: ...
    async def retire(self, shape: str, id: str, *, key: str | None = None, caller: Caller) -> None: ...
    async def turn(
        self, shape: str, id: str, method: str, arguments: Json, *, key: str | None = None, caller: Caller
    ) -> Turn: ...
    async def program(self, shape: str, id: str, source: str, *, key: str | None = None, caller: Caller) -> Turn: ...
    async def post(self, shape: str, id: str, source: str, *, key: str, caller: Caller) -> Posted: ...
    async def read(self, shape: str, id: str, *, caller: Caller) -> Seen: ...
    async def get(self, shape: str, id: str, field: str, *, caller: Caller) -> tuple[bool, Json]: ...
    async def capture(
        self, shape: str, id: str, fields: Mapping[str, Json], *, key: str | None = None, caller: Caller
    ) -> Seen: ...
    async def evict(self, shape: str, id: str, *, caller: Caller) -> str: ...
    async def list(
        self, shape: str, *, prefix: str = "", limit: int = 100, after: str | None = None, caller: Caller
    ) -> Any: ...


class HasCells(Protocol):
    """A host, as far as these routes must know it."""

    @property
    def cells(self) -> CellVerbs: ...
