"""host.enlisting - from settings to a node of a fleet: its standing, its lease, its worlds.

For: what an app with a `node.name` has beside one without: the store's clock, a second connection that renews.
Never: lets a store be shared that cannot be.
Was wrong once: the renewal through the world of the app. Where that waited for a lock, the node was taken for dead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from onefold.fleet.ownership import FLEET
from onefold.fleet.standing import Standing
from onefold.host.clock import Clock, StoreClock
from onefold.host.config import Config
from onefold.host.core import MAIN, Core
from onefold.host.fleet import Fleet
from onefold.host.lease import Lease, Renewal, Transact
from onefold.host.membership import Membership
from onefold.host.peers import Peers
from onefold.host.settings import on_postgres
from onefold.kernel.tables import KERNEL
from onefold.store.contract import World
from onefold.terms.errors import Finding, LoadRefused


@dataclass(frozen=True, slots=True)
class Enlisted:
    """A node that is about to join."""

    config: Config
    clock: Clock
    lease: Lease
    standing: Standing
    renewing: Callable[[], World]

    def fleet(self, core: Core, secrets: Any) -> Fleet:
        """Its part in the fleet, over the core that was made with its standing."""
        config = self.config
        renewal = Renewal(self.lease, self._opening)

        def incarnation() -> int:
            return int(getattr(core.world, "incarnation", 1)) or 1

        async def main() -> Any:
            return await core.space(MAIN)

        membership = Membership(
            str(config.node.name),
            config.node.advertise,
            config.slots,
            self.standing,
            self.lease,
            renewal,
            self.clock,
            main,
            lambda: core.node,
            incarnation,
            sorted(self.standing.apart),
        )
        return Fleet(core, membership, Peers(secrets, lambda: self.clock.now() // 1000), incarnation)

    async def _opening(self) -> tuple[Transact, Callable[[], None]]:
        world = self.renewing()
        try:
            space = await world.open(MAIN, (KERNEL, FLEET))  # a file's end is judged by its turns
        except BaseException:
            world.abandon()
            raise
        return space.transact, world.abandon


def enlisted(
    config: Config, clock: Clock | None, actuators: Collection[str], renewing: Callable[[], World]
) -> Enlisted | None:
    """None for an app that has its store for itself. Raises: LoadRefused for a store that no fleet can share."""
    if config.node.name is None:
        return None
    if config.store == "memory:":
        told = "a fleet shares a folder or a database; name one here, or leave `node.name` out"
        raise LoadRefused([Finding("store", told)])
    if config.spaces:
        raise LoadRefused([Finding("spaces", "a fleet has all of its spaces in one database; leave them out")])
    lease = Lease(config.node.lease)
    if clock is None:
        follows = StoreClock()
        follows.follow(lease.now)
        clock = follows
    apart = () if on_postgres(config.store) else actuators  # a file of its own belongs to one process
    return Enlisted(config, clock, lease, Standing(lease.left_ms, apart), renewing)
