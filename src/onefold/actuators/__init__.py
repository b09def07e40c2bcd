"""actuators - one durable function: its runs, their steps, waits and approvals.

For: `@actuator`, the `Run` handed to its function, the run as an actor, and the pass that replays it.
Imports: kernel, store's contract, terms.  Imported by: ports, host, serve, cli, testing, the front door.
Never: opens a store; sends a notice; reads a clock but the one handed to a pass.
Was wrong once: a step found again by its name and a counter. Two tasks that finished in another
order the second time got each other's results, and one order was paid with the other's money.

    words       what a run hears, decides and answers          declare    the decorator and its value
    state       a run as folded, its journal a shared list     schema     a model as a flat JSON schema
    module      decide, on_answer, on_alarm, wake; pure        arguments  bad arguments in plain words
    folding     evolve; pure                                   outcomes   Approved, Rejected, Expired
    passloop    a loop that knows only its own tasks           run        the verbs a function has
    passing     hands out the journal, one entry at a time     database   `run.db`
    unwinding   lets an ended pass's tasks go                  blocking   the same verbs for plain functions
    stepping    one step function, read once                   receipt    a run as JSON
    executing   a pass: the only file that awaits the world    journal    what a run has done, for people
    event_ids   what the events of a pass are called
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onefold.actuators.declare import Actuator, actuator
    from onefold.actuators.outcomes import Approved, Expired, Rejected
    from onefold.actuators.receipt import Receipt
    from onefold.actuators.run import Run
    from onefold.actuators.stepping import Retry

__all__ = ["Actuator", "Approved", "Expired", "Receipt", "Rejected", "Retry", "Run", "actuator"]

_HOME = {
    "Actuator": "declare",
    "Approved": "outcomes",
    "Expired": "outcomes",
    "Receipt": "receipt",
    "Rejected": "outcomes",
    "Retry": "stepping",
    "Run": "run",
    "actuator": "declare",
}


def __getattr__(name: str) -> Any:
    """Loaded when first asked for: a store's tables need none of it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
