"""serve.door_fleet - what the doors ask of an application's part in a fleet, as Protocols.

For: turns that other nodes send, and a look at the nodes.
Never: a verb that changes who owns what: those are for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from onefold.fleet.wire import Answer, Sent
from onefold.fleet.words import Member
from onefold.host.caller import Caller
from onefold.serve.door_cells import HasCells


class FleetVerbs(Protocol):
    """A node's, as far as the doors must know it."""

    @property
    def reached(self) -> Sequence[str]: ...
    async def received(self, sent: Sent) -> Answer: ...
    async def looked(self, space: str, queries: Any) -> Any: ...
    def nudge(self) -> None: ...
    async def learn(self) -> None: ...
    async def reach(self) -> None: ...
    async def nodes(self, *, caller: Caller) -> list[Member]: ...
    async def mail(self) -> dict[str, Any]: ...


class HasFleet(HasCells, Protocol):
    """A host, as far as these routes must know it."""

    @property
    def fleet(self) -> FleetVerbs | None: ...
    @property
    def signing(self) -> Sequence[bytes]: ...
