"""cell - named typed state that takes turns: a shape, its methods, and programs sent to it.

For: `class Room(Cell)`, read as a module of the kernel; drafts, captures, programs; what a turn gives back.
Imports: program, kernel, store's contract, terms.  Imported by: host, serve, testing, the front door.
Never: does I/O; runs an interpreter (host does, beside the loop).
"""

from onefold.cell.method import cost
from onefold.cell.shape import Cell
from onefold.cell.words import UNSET, Absent, Evicted, Letter, Resident, Spawned, Turn
from onefold.program.handles import Handle

__all__ = ["UNSET", "Absent", "Cell", "Evicted", "Handle", "Letter", "Resident", "Spawned", "Turn", "cost"]
