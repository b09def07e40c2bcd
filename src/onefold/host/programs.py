"""host.programs - programs that came from elsewhere, as a host asks for them.

For: reading and running what another node or a letter brought to a cell; a host without cells, which says so.
Never: knows how either is done (host.cells does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from onefold.terms.errors import BadArguments, Fault

if TYPE_CHECKING:
    from onefold.fleet.wire import Sent
    from onefold.node.brought import Brought


class Programs(Protocol):
    """Who runs them."""

    def read_program(self, sent: Sent, /) -> Any:
        """As this code reads it. Raises: BadArguments, ParseFailed, UnknownCall, LimitHit."""

    async def programmed(self, sent: Sent, read: Any, takes: Brought | None, /) -> Any:
        """Run as a turn of a cell of this process."""


class NoCells:
    """Of a host that has none."""

    def read_program(self, sent: Sent, /) -> Any:
        raise BadArguments([Fault("program", "there are no cells here to run it", sent.at.kind)])

    async def programmed(self, sent: Sent, read: Any, takes: Brought | None, /) -> Any:
        return self.read_program(sent)
