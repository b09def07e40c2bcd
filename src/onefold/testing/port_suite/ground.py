"""testing.port_suite.ground - what the checks of a port stand on: the port, two bodies, and a count of its effects.

For: `PortUnderTest`, which a port's author fills in, and `Check`.
Never: knows a provider; counts for itself: only the other side knows what happened there.
Was wrong once: counting the calls. A port that was called twice and acted once failed, and it was the sound one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4  # noqa: TID251 - the one thing of a test that must not be seeded

from onefold.kernel.port import Port, Promise, Step

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Unfulfilled(AssertionError):
    """A promise that the port does not keep."""


@dataclass(frozen=True)
class PortUnderTest:
    """A port and its world.

    make: the port as a new process would have it; what it keeps in memory is gone. body, other: two inputs that
    differ. effects: how many effects the other side has seen since it was made.
    """

    make: Callable[[], Port[Any, Any]]
    body: Any
    other: Any
    effects: Callable[[], int]

    def key(self) -> str:
        """A key that was never used before, in no earlier run either: a sandbox remembers them."""
        return f"port-suite/{uuid4().hex}"


@dataclass(frozen=True, slots=True)
class Check:
    """One promise. promises: of which ports; for any other `run` has nothing to hold and returns. Raises: Unfulfilled."""

    name: str
    promises: frozenset[Promise]
    _held: Callable[[PortUnderTest], Awaitable[None]]

    async def run(self, subject: PortUnderTest) -> None:
        if subject.make().promise in self.promises:
            await self._held(subject)


def promise(name: str, *promises: Promise) -> Callable[[Callable[[PortUnderTest], Awaitable[None]]], Check]:
    """Makes a `Check` of a function; without `promises` it is for every port."""
    told: frozenset[Promise] = frozenset(promises or ("dedupes", "lookup", "neither"))
    return lambda held: Check(name, told, held)


async def send(port: Port[Any, Any], key: str, body: Any, *, attempt: int = 1) -> Any:
    """One call, as the host makes it."""
    step = Step(key, NOW, attempt, None)
    if port.is_async:
        return await port.function(step, body)
    return await asyncio.to_thread(port.function, step, body)


async def find(port: Port[Any, Any], key: str, body: Any) -> Any:
    """Ask, as the host does after a doubtful send. Raises: Unfulfilled when the port cannot be asked."""
    if port.find is None:
        raise Unfulfilled(f"the port {port.name!r} promises lookup and has no find")
    return await port.find(Step(key, NOW, 2, None), body)


def expect(got: object, promised: object, what: str) -> None:
    """Raises: Unfulfilled unless both are equal."""
    if got != promised:
        raise Unfulfilled(f"{what}: {got!r}; promised was {promised!r}")
