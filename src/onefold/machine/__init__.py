"""machine - state charts: a definition as data, one pure step, and the way into a Module.

For: charts shaped as XState's (nested and parallel states, `always`, guards and actions by name, invoked
children, history, output), read from a dict or JSON, stepped without memory, drawn from their table.
Imports: kernel, terms.  Imported by: timers.
Never: a delay, a clock, a thread, inline code. What a chart waits for is an alarm or an event.
Was wrong once: a library's interpreter. None steps a child within its parent's step, and all keep
something in memory that no restart brings back.
"""

from onefold.machine.adapter import from_machine
from onefold.machine.words import Moved, Snapshot, Stepped

__all__ = ["Moved", "Snapshot", "Stepped", "from_machine"]
