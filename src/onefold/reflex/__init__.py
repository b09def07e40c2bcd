"""reflex - automations as data: when this, for these rows, do one thing, and show why.

For: reflexes loaded from JSON, run over a ledger of four tables, on the verbs of any store.
Imports: kernel, store, almanac, terms.  Imported by: host, serve, cli, testing.
Never: reads a clock; holds anything between two commits that matters.
"""

from onefold.reflex.part import Reflexes
from onefold.reflex.seams import Query, Task
from onefold.reflex.words import Signal, Write

__all__ = ["Query", "Reflexes", "Signal", "Task", "Write"]
