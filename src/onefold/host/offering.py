"""host.offering - actuators taken into an app that runs, and out of it again.

For: the one place that knows what of a host depends on which actuators there are: spaces, ports, limits, effects.
Never: knows where an actuator came from; closes a space that was opened.
Was wrong once: a tool put into the catalog alone. It was listed, and its first run waited for a limit that nobody kept.

What only looks into the catalog (lists, documents, hooks) makes its own anew when `catalog.generation` has grown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from onefold.actuators.declare import Actuator
from onefold.actuators.tables import RUNS, beside
from onefold.host.core import MAIN, Core
from onefold.host.limiting import limit_ports, limits_module
from onefold.host.settings import on_postgres
from onefold.kernel.port import CALL, EVENT
from onefold.kernel.tables import KERNEL
from onefold.store.contract import AuthorSpace, Schema

AnyActuator: TypeAlias = "Actuator[Any, Any]"


class Offering:
    """Of one host. `taken` and `withdrawn`: its verbs for runs; `changed`: told once what there is has changed."""

    def __init__(
        self,
        core: Core,
        taken: Callable[..., None],
        withdrawn: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self._core = core
        self._taken = taken
        self._withdrawn = withdrawn
        self._changed = changed
        self.shared: Sequence[Schema] = ()
        """The tables that a space has beside those of runs, where all spaces are one database."""

    def keep(self, actuators: Iterable[AnyActuator]) -> None:
        """A space for each, opened when it is first needed; one that has its own keeps it."""
        core = self._core
        for one in actuators:
            place = core.at.get(one.name)
            if place is None:
                core.keep(
                    one.name,
                    [one.module],
                    schemas=(RUNS, *self.shared),
                    beside={one.name: beside},
                    resting={one.name},
                    ready=partial(self._migrate, one.name),
                )
            elif place not in core.places:
                core.places = [*core.places, place]

    def taken(self) -> Callable[[str], str | None]:
        """Tells what of this app has a name; None for a name that is free."""
        core, catalog = self._core, self._core.catalog
        kinds = core.at[MAIN].home.kinds
        effects = {getattr(effect, "name", "") for part in catalog.reflexes for effect in part.effects}
        tools: Collection[str] = ()
        if catalog.cells:
            from onefold.cell.naming import tools as tools_of

            tools = tools_of([each.shape for each in catalog.cells.values()])

        def where(name: str) -> str | None:
            if name in catalog.actuators or name == MAIN or name in kinds:
                return "the app's own code"
            if name in tools:
                return "the tools of its cells"
            return "the effects of its reflexes" if effects & {CALL + name, EVENT + name} else None

        return where

    async def tried(self, actuator: AnyActuator) -> None:
        """Where a space is still to be made for it: its migrations on a database in memory, so that a refusal leaves no
        file behind. Raises: LoadRefused.
        """
        core = self._core
        if not actuator.migrations or actuator.name in core.at or on_postgres(core.config.store):
            return
        from onefold.store.memory import MemoryWorld

        world = MemoryWorld(clock=core.clock.now)
        try:
            await (await world.open(actuator.name, (KERNEL,))).author_migrate(actuator.migrations)
        finally:
            await world.close()

    async def migrate(self, actuator: AnyActuator) -> None:
        """Run those of its migrations that its space has not seen. Raises: LoadRefused; nothing of them is kept then."""
        core = self._core
        self.keep([actuator])
        try:
            space = await core.space(actuator.name)
            if actuator.migrations:
                await space.author_migrate(actuator.migrations)
        finally:
            if actuator.name not in core.catalog.actuators:
                self._rest(actuator.name)

    def change(self, away: Iterable[str], here: Sequence[AnyActuator]) -> None:
        """Take these in, each in the place of one of its name, and those of other names out: in one go."""
        core, catalog = self._core, self._core.catalog
        for name in away:
            self._withdrawn(name)
            del catalog.actuators[name]
            self._rest(name)
        first = not catalog.actuators
        catalog.actuators.update({one.name: one for one in here})
        main = core.at[MAIN].home
        if first and (lacking := [one for one in limits_module(catalog) if one.name not in main.kinds]):
            core.ports.update(limit_ports(core))
            core.node.keep(MAIN, main, lacking)
        self.keep(here)
        self._taken(*here)
        catalog.generation += 1
        self._changed()
        core.driver.look()

    def _rest(self, name: str) -> None:
        """Ring no more alarms of it: its runs wait for code that has it."""
        self._core.places = [place for place in self._core.places if place.name != name]

    async def _migrate(self, name: str, space: AuthorSpace) -> None:
        actuator = self._core.catalog.actuators.get(name)
        if actuator is not None and actuator.migrations:
            await space.author_migrate(actuator.migrations)
