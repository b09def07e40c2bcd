"""testing - a clock that is moved by hand, the real engine on it, and suites that any store must pass.

For: tests, ours and everybody's. What runs here is what runs in production but for time and the disk.
Never: is imported by the product; sleeps.
Was wrong once: a fake engine for tests. It shared no suite with the real one, and agreed with the tests.
"""

from __future__ import annotations

from onefold.testing.clock import VirtualClock
from onefold.testing.stage import Killed, Stage, staged

__all__ = ["Killed", "Stage", "VirtualClock", "staged"]
