"""What the machine has found, kept: each case is the lines it printed, and is played on every store.

For: `CASES`, by name.
Never: loses a case because its rule was renamed: it would not run any more, and say so.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.jar import Jam, Light, Move, Put, Take
from tests.simulation.machine import Machine
from tests.simulation.play import Fault


def a_commit_whose_answer_was_lost_leaves_an_alarm_that_nobody_knows(state: Machine) -> None:
    """The driver was told of alarms by commits that were done, and by nobody of one that may have been."""
    fault = Fault("disk", "after-commit", 1, 1)
    state.deliver_under(
        fault=fault,
        sent=[(None, Take("e3", "y", 8, "ask")), (None, Light("e5", "y", "pay")), (None, Move("e1", "y", 0))],
    )


def a_look_that_failed_leaves_the_store_in_a_transaction(state: Machine) -> None:
    """Its end failed as well, and each look after it met a transaction that was open."""
    state.deliver(event=Put("e0", "x", 3), who="anna")
    for hit in range(1, 12):
        state.deliver_under(fault=Fault("disk", "statement", hit, 2), sent=[("anna", Put(f"f{hit}", "x", 3))])


def a_dropped_alarm_and_the_next_event(state: Machine) -> None:
    """While its actor stayed in memory, no event armed it again."""
    state.deliver(event=Jam("e1", "x", "raises"), who="anna")
    state.deliver(event=Move("e5", "x", 10), who="anna")
    state.wear_out()
    state.person(drop=True, pick=0)
    state.deliver(event=Put("e6", "x", 1), who="anna")


def a_parked_alarm_whose_wake_is_taken_back(state: Machine) -> None:
    """It stayed in the list of what waits for a person, for ever."""
    state.deliver(event=Move("e3", "x", 10), who=None)
    state.deliver(event=Jam("e0", "x", "idle"), who=None)
    state.wear_out()
    state.deliver(event=Move("e5", "x", None), who=None)


CASES: dict[str, Callable[[Machine], None]] = {
    case.__name__: case
    for case in (
        a_commit_whose_answer_was_lost_leaves_an_alarm_that_nobody_knows,
        a_look_that_failed_leaves_the_store_in_a_transaction,
        a_dropped_alarm_and_the_next_event,
        a_parked_alarm_whose_wake_is_taken_back,
    )
}
