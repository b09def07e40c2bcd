"""reflex - automations as data: when this, for these rows, do one thing, and show why.

For: reflexes loaded from JSON, run over a ledger of four tables, on the verbs of any store.
Imports: kernel, store, almanac, fence, terms.  Imported by: ports, host, serve, cli, testing, the front door.
Never: reads a clock; holds anything between two commits that matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onefold.reflex.driver import Driver
    from onefold.reflex.effects import effect
    from onefold.reflex.engine import Engine
    from onefold.reflex.part import Reflexes
    from onefold.reflex.seams import Query, Row, Task
    from onefold.reflex.selects import select
    from onefold.reflex.templates import CelTransform
    from onefold.reflex.words import (
        Cause,
        Draft,
        Fired,
        Ingested,
        Loaded,
        Overdue,
        Preview,
        Report,
        Signal,
        Write,
    )

__all__ = [
    "Cause",
    "CelTransform",
    "Draft",
    "Driver",
    "Engine",
    "Fired",
    "Ingested",
    "Loaded",
    "Overdue",
    "Preview",
    "Query",
    "Reflexes",
    "Report",
    "Row",
    "Signal",
    "Task",
    "Write",
    "effect",
    "select",
]

_WHERE = {
    "Cause": "words",
    "CelTransform": "templates",
    "Draft": "words",
    "Driver": "driver",
    "Engine": "engine",
    "Fired": "words",
    "Ingested": "words",
    "Loaded": "words",
    "Overdue": "words",
    "Preview": "words",
    "Query": "seams",
    "Reflexes": "part",
    "Report": "words",
    "Row": "seams",
    "Signal": "words",
    "Task": "seams",
    "Write": "words",
    "effect": "effects",
    "select": "selects",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Loaded when first asked for: an app without reflexes starts without them."""
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module 'onefold.reflex' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"onefold.reflex.{_WHERE[name]}"), name)
    return found
