"""testing - a clock that is moved by hand, the real engine on it, and suites that any store must pass.

For: tests, ours and everybody's. What runs here is what runs in production but for time and the disk.
Never: is imported by the product; sleeps.
Was wrong once: a fake engine for tests. It shared no suite with the real one, and agreed with the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onefold.testing.clock import VirtualClock
from onefold.testing.stage import Killed, Stage, staged

if TYPE_CHECKING:
    from onefold.testing.store_suite import STORE_SUITE

__all__ = ["STORE_SUITE", "Killed", "Stage", "VirtualClock", "staged"]


def __getattr__(name: str) -> Any:
    """A suite is loaded when it is first asked for."""
    if name != "STORE_SUITE":
        raise AttributeError(f"module 'onefold.testing' has no attribute {name!r}")
    from onefold.testing.store_suite import STORE_SUITE

    globals()[name] = STORE_SUITE
    return STORE_SUITE
