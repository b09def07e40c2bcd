"""node.home - where the rows of some kinds are: a space and its lane, opened when first needed.

For: opening once, whoever asks first, and trying again after an opening that failed.
Never: opens ahead; knows an actor.
Was wrong once: an opening awaited by its first caller alone. That one was cancelled, and the others
waited for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from onefold.kernel.fold import Folder
from onefold.kernel.module import Module
from onefold.node.lane import Lane
from onefold.store.contract import Space

Opening = Callable[[], Awaitable[tuple[Space, Folder]]]


class Home:
    """Where the rows of some kinds are: a space, opened when first needed, and its lane."""

    def __init__(self, name: str, opening: Opening, make: Callable[[Space, Folder], Lane]) -> None:
        self.name = name
        self.kinds: list[str] = []
        self.lane: Lane | None = None
        self._opening = opening
        self._make = make
        self._opened: asyncio.Task[Lane] | None = None

    async def open(self) -> Lane:
        """The lane; opens the space the first time. Raises: what opening raises; it is tried again then."""
        if self.lane is not None:
            return self.lane
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_task(self._open())
        try:
            return await asyncio.shield(self._opened)
        finally:
            self._forget_opening()

    def let_go(self) -> Lane | None:
        """The space is another process's: it is opened again when it is this one's again. The lane it had."""
        lane, self.lane = self.lane, None
        return lane

    def _forget_opening(self) -> None:
        if self._opened is not None and self._opened.done():
            self._opened = None

    async def _open(self) -> Lane:
        self.lane = self._make(*await self._opening())
        return self.lane


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of actor: how it decides, and where its rows are."""

    module: Module[Any, Any, Any, Any, Any]
    home: Home
