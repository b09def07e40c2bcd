"""cell - named typed state that takes turns: a shape, its methods, and programs sent to it.

For: `class Room(Cell)`, read as a module of the kernel; drafts, captures, programs; what a turn gives back.
Imports: program, kernel, store's contract, terms, host (two names to annotate with).  Imported by: host, serve, testing, the front door.
Never: does I/O; runs an interpreter (host does, beside the loop).
"""

from typing import TYPE_CHECKING, Any

from onefold.cell.method import cost
from onefold.cell.shape import Cell
from onefold.cell.words import UNSET, Absent, Evicted, Letter, Resident, Spawned, Turn
from onefold.program.handles import Handle

if TYPE_CHECKING:
    from onefold.host.borrow import Borrow, Custody

__all__ = [
    "UNSET",
    "Absent",
    "Borrow",
    "Cell",
    "Custody",
    "Evicted",
    "Handle",
    "Letter",
    "Resident",
    "Spawned",
    "Turn",
    "cost",
]

if not TYPE_CHECKING:  # else any name would pass for one of these

    def __getattr__(name: str) -> Any:
        """`Borrow` and `Custody`, to annotate with: they live on the host's floor, and are looked up there by name alone."""
        if name not in ("Borrow", "Custody"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module("onefold.host.borrow"), name)
