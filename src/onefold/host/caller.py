"""host.caller - who asks, and what they may do.

For: one value that every verb of the host takes. The doors make it: from a bearer key, from the
loopback, or from code that runs in the process.
Never: reads a request; grants what it was not given.
Was wrong once: a principal alone. Whoever could call could also approve what they had called for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onefold.terms.errors import Forbidden
from onefold.terms.ids import principal_text

Right = Literal["call", "read", "operate", "deploy"]
ALL: frozenset[Right] = frozenset(("call", "read", "operate", "deploy"))


@dataclass(frozen=True, slots=True)
class Caller:
    """`principal`: who it acts as. `name`: how it is called where people read it, such as in a verdict."""

    principal: str | None
    rights: frozenset[Right]
    name: str = ""

    def need(self, right: Right, what: str) -> None:
        """Raises: Forbidden, naming the right that is missing."""
        if right not in self.rights:
            raise Forbidden(right, what)

    def sees(self, principal: str | None) -> bool:
        """Whether what belongs to `principal` may be shown: its own, or everything with `operate`."""
        return principal == self.principal or "operate" in self.rights

    @property
    def whose(self) -> tuple[str | None, ...] | None:
        """Whose facts, runs and tasks it sees; None: everybody's."""
        return None if "operate" in self.rights else (self.principal,)


def inside(principal: str | None) -> Caller:
    """Code of the application itself: all rights, under one principal. Raises: BadArguments for one that is no text."""
    principal_text(principal)
    return Caller(principal, ALL, principal or "the application")
