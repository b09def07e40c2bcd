"""onefold - durable work in one small package: one key, one fold, one clock.

For: what a person imports. Each name is loaded when it is first used, so that a start stays small.
Never: does anything by being imported; exports what is not listed here.
Was wrong once: importing every room. An app of one module paid half a second for an agent protocol
that it did not offer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onefold import blocking, errors
    from onefold.actuators.declare import Actuator, actuator
    from onefold.actuators.outcomes import Approved, Expired, Rejected
    from onefold.actuators.run import Run
    from onefold.actuators.stepping import Retry
    from onefold.app import App
    from onefold.cell.shape import Cell
    from onefold.host.receipts import Receipt
    from onefold.kernel import port
    from onefold.kernel.module import Module
    from onefold.kernel.port import Port, Step
    from onefold.kernel.words import Answer, Decision, Owed
    from onefold.reflex.part import Reflexes
    from onefold.terms.errors import Failed, OnefoldError

__version__ = "0.1.0"

__all__ = [
    "Actuator",
    "Answer",
    "App",
    "Approved",
    "Cell",
    "Decision",
    "Expired",
    "Failed",
    "Module",
    "OnefoldError",
    "Owed",
    "Port",
    "Receipt",
    "Reflexes",
    "Rejected",
    "Retry",
    "Run",
    "Step",
    "__version__",
    "actuator",
    "blocking",
    "errors",
    "port",
]

_WHERE = {
    "Actuator": "actuators.declare",
    "Answer": "kernel.words",
    "App": "app",
    "Approved": "actuators.outcomes",
    "Cell": "cell.shape",
    "Decision": "kernel.words",
    "Expired": "actuators.outcomes",
    "Failed": "terms.errors",
    "Module": "kernel.module",
    "OnefoldError": "terms.errors",
    "Owed": "kernel.words",
    "Port": "kernel.port",
    "Receipt": "host.receipts",
    "Reflexes": "reflex.part",
    "Rejected": "actuators.outcomes",
    "Retry": "actuators.stepping",
    "Run": "actuators.run",
    "Step": "kernel.port",
    "actuator": "actuators.declare",
}
_ROOMS = {"blocking": "blocking", "errors": "errors", "port": "kernel.port"}


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Loaded when first asked for."""
    from importlib import import_module

    if name in _ROOMS:
        found = import_module(f"onefold.{_ROOMS[name]}")
    elif name in _WHERE:
        found = getattr(import_module(f"onefold.{_WHERE[name]}"), name)
    else:
        raise AttributeError(f"module 'onefold' has no attribute {name!r}")
    globals()[name] = found
    return found
