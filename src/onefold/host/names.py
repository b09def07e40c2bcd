"""host.names - `app.fleet`: who owns a slot or an actor, asked, taken and let go of.

For: the verbs of a fleet as a program calls them.
Never: keeps a claim alive by itself: whoever gave a lease renews it.
Was wrong once: verbs on an app that is no node, which claimed for nobody. They say that there is no fleet.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from onefold.fleet.words import Claimed, Contended, Done, Fenced, Free, HeldBy, Member, Owner, Seized
from onefold.host.automations import Waiting
from onefold.host.caller import Caller
from onefold.terms.errors import NotOpen

if TYPE_CHECKING:
    from onefold.host.fleet import Fleet
    from onefold.host.host import Host


class Names:
    """`name`: a slot, `slot/17`, or one actor, `Room/room-7`, of the caller's principal. `lease`: how long it is held
    without `renew`, like "30 seconds"; None: as long as this node lives. Each raises NotOpen where the app is no node,
    BadArguments and UnknownName for what is no such name, StoreUnavailable and OutcomeUnknown.
    """

    def __init__(self, host: Host, caller: Caller) -> None:
        self._host = host
        self._caller = caller

    @property
    def _fleet(self) -> Fleet:
        if self._host.fleet is None:
            raise NotOpen("The fleet", "This app is no node of one: give it a `node` name.")
        return self._host.fleet

    async def claim(self, name: str, *, lease: str | timedelta | None = None) -> Claimed | HeldBy:
        """Own what nobody alive owns. An actor claimed apart from its slot falls back to it when the lease is over."""
        return await self._fleet.claim(name, lease=lease, caller=self._caller)

    async def seize(self, name: str, *, lease: str | timedelta | None = None) -> Seized | Free | Contended:
        """Own it whoever owns it. What that one still writes is refused."""
        return await self._fleet.seize(name, lease=lease, caller=self._caller)

    async def renew(self, name: str, *, epoch: int, lease: str | timedelta | None = None) -> Claimed | Fenced | Free:
        """Hold it for `lease` from now."""
        return await self._fleet.renew(name, epoch=epoch, lease=lease, caller=self._caller)

    async def release(self, name: str, *, epoch: int) -> Free | Fenced:
        """Own it no longer."""
        return await self._fleet.release(name, epoch=epoch, caller=self._caller)

    async def guard(self, name: str, *, epoch: int) -> Owner | Fenced | Free:
        """Whether this node owns it under that epoch. Commits ask by themselves: this is for what happens outside."""
        return await self._fleet.guard(name, epoch=epoch, caller=self._caller)

    async def drain(self, name: str) -> Done | HeldBy | Free | Contended:
        """Deliver every letter that is due to an actor of this node."""
        return await self._fleet.drain(name, caller=self._caller)

    async def nodes(self) -> list[Member]:
        """The nodes, with what they own."""
        return await self._fleet.nodes(caller=self._caller)


class BlockingNames:
    """`app.fleet`, without `await`."""

    def __init__(self, app: Waiting) -> None:
        self._app = app

    @property
    def _awaited(self) -> Names:
        awaited: Names = self._app.awaited.fleet
        return awaited

    def claim(self, name: str, *, lease: str | timedelta | None = None) -> Claimed | HeldBy:
        return self._app.wait_for(self._awaited.claim(name, lease=lease))

    def seize(self, name: str, *, lease: str | timedelta | None = None) -> Seized | Free | Contended:
        return self._app.wait_for(self._awaited.seize(name, lease=lease))

    def renew(self, name: str, *, epoch: int, lease: str | timedelta | None = None) -> Claimed | Fenced | Free:
        return self._app.wait_for(self._awaited.renew(name, epoch=epoch, lease=lease))

    def release(self, name: str, *, epoch: int) -> Free | Fenced:
        return self._app.wait_for(self._awaited.release(name, epoch=epoch))

    def guard(self, name: str, *, epoch: int) -> Owner | Fenced | Free:
        return self._app.wait_for(self._awaited.guard(name, epoch=epoch))

    def drain(self, name: str) -> Done | HeldBy | Free | Contended:
        return self._app.wait_for(self._awaited.drain(name))

    def nodes(self) -> list[Member]:
        return self._app.wait_for(self._awaited.nodes())
