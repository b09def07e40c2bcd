"""testing.check - what every suite is a list of.

For: `Check`, by which a test runs a suite that it does not know.
Never: says what a check stands on: a store's takes worlds, a host's hosts, a port's a `PortUnderTest`.
Was wrong once: one class of checks for all suites. What its `run` took was then anything.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Check(Protocol):
    """One promise by name. `run(ground)` is awaited and raises an AssertionError where the promise is not kept."""

    @property
    def name(self) -> str: ...

    def run(self, ground: Any, /) -> Awaitable[None]: ...
