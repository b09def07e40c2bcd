"""reflex.due - when the engine wants to be woken next.

For: the soonest instant at which an advance has something to do: a clock's occurrence, a fact's day, a run that was
put off, a task's backoff, a lease that lapses.
Never: names an instant for what only waits for others: for reflexes that are not loaded, for an effect that is not
known here, for a baton. Pure.
Was wrong once: a run that was put off kept its instant, which had passed. The driver asked, heard "now", and asked
again, for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from onefold.reflex.tables import INTAKE, REFLEX_RUN, STATE, TASK
from onefold.store.contract import Condition, Each, Query, Row, Table


def questions(effects: Sequence[str], *, matches: bool) -> tuple[Query, ...]:
    """What to look up. `effects`: those known here. `matches`: whether this engine holds the newest set, and it is not
    empty; otherwise facts and clocks wait for one that does.
    """
    asked = [Query(REFLEX_RUN, where=(("due_at", "null", False),), order=("due_at", "n"), limit=1)]
    if effects:
        waits: tuple[Condition, ...] = (("ready_at", "null", False),)
        each = Each("effect", tuple(effects), 1)  # by itself, so that what others leave behind is not looked through
        asked.append(Query(TASK, where=waits, order=("ready_at", "n"), each=each, limit=1))
    if matches:
        asked.append(Query(INTAKE, where=(("due_at", "null", False),), order=("due_at", "n"), limit=1))
        asked.append(Query(STATE, where=(("next_at", "null", False),), order=("next_at", "reflex"), limit=1))
    return tuple(asked)


def soonest(asked: Sequence[Query], answers: Sequence[Sequence[Row]]) -> int | None:
    """The soonest of them, in ms; None when only a new fact or a person can bring work."""
    found = [rows[0][_column(query.table)] for query, rows in zip(asked, answers, strict=True) if rows]
    return min((at for at in found if isinstance(at, int)), default=None)


def _column(table: Table) -> int:
    return table.at[{"task": "ready_at", "state": "next_at"}.get(table.name, "due_at")]
