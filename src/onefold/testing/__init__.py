"""testing - a clock that is moved by hand, the real engine on it, and suites that any store and port must pass.

For: tests, ours and everybody's. What runs here is what runs in production but for time and the disk.
Never: is imported by the product; sleeps; loads a test tool that a test does not use.
Was wrong once: a fake engine for tests. It shared no suite with the real one, and agreed with the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onefold.testing.app import AwaitedApp, DurableApp
    from onefold.testing.check import Check
    from onefold.testing.clock import VirtualClock
    from onefold.testing.host_suite import HOST_SUITE
    from onefold.testing.laws import LAWS, Law, LawBroken, module_laws
    from onefold.testing.opening import Durable, every_crash, open
    from onefold.testing.port_suite import PORT_SUITE, PortUnderTest
    from onefold.testing.stage import Killed, Stage, staged
    from onefold.testing.store_suite import STORE_SUITE
    from onefold.testing.stuck import Stuck, Unsettled

__all__ = [
    "HOST_SUITE",
    "LAWS",
    "PORT_SUITE",
    "STORE_SUITE",
    "AwaitedApp",
    "Check",
    "Durable",
    "DurableApp",
    "Killed",
    "Law",
    "LawBroken",
    "PortUnderTest",
    "Stage",
    "Stuck",
    "Unsettled",
    "VirtualClock",
    "every_crash",
    "module_laws",
    "open",
    "staged",
]

_WHERE = {
    "HOST_SUITE": "host_suite",
    "Check": "check",
    "PORT_SUITE": "port_suite",
    "PortUnderTest": "port_suite",
    "LAWS": "laws",
    "Law": "laws",
    "LawBroken": "laws",
    "module_laws": "laws",
    "STORE_SUITE": "store_suite",
    "AwaitedApp": "app",
    "Durable": "opening",
    "DurableApp": "app",
    "Killed": "stage",
    "Stage": "stage",
    "Stuck": "stuck",
    "Unsettled": "stuck",
    "VirtualClock": "clock",
    "every_crash": "opening",
    "open": "opening",
    "staged": "stage",
}


def __getattr__(name: str) -> Any:
    """Loaded when first asked for."""
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module 'onefold.testing' has no attribute {name!r}")
    found = getattr(import_module(f"onefold.testing.{_WHERE[name]}"), name)
    globals()[name] = found
    return found
