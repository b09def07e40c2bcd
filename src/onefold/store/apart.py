"""store.apart - spaces in several stores: most in one, some moved to another.

For: `spaces.NAME = "postgres://…"`: the space of one actuator in a database of its own, beside a folder of files.
Never: commits over two of them; opens a store that no space asks for.
Was wrong once: one store after another closed, the first raise ending it. The lock of the others stayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onefold.store.contract import Answer, AuthorSpace, Query, Schema, World


class Apart:
    """See `contract.World`. A world may stand for several names."""

    def __init__(self, main: World, moved: Mapping[str, World]) -> None:
        self._main = main
        self._moved = moved

    async def open(self, name: str, schemas: Sequence[Schema]) -> AuthorSpace:
        return await self._of(name).open(name, schemas)

    async def soonest(self, name: str, query: Query) -> tuple[Answer, ...]:
        return await self._of(name).soonest(name, query)

    async def close(self) -> None:
        faults = []
        for world in self._all():
            try:
                await world.close()
            except Exception as fault:  # noqa: BLE001 - the door: what one of them raises must not keep the others open
                faults.append(fault)
        if faults:
            raise faults[0]

    @property
    def busy(self) -> bool:
        """Whether anything is on its way to one of them or back."""
        return any(getattr(world, "busy", False) for world in self._all())

    def abandon(self) -> None:
        for world in self._all():
            world.abandon()

    def _of(self, name: str) -> World:
        return self._moved.get(name, self._main)

    def _all(self) -> list[World]:
        return list({id(world): world for world in (self._main, *self._moved.values())}.values())
