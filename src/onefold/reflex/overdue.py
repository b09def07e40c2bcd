"""reflex.overdue - what should have happened by now and did not.

For: silence as a question of two indexes: runs that wait past their time, clocks that nobody read.
Never: costs more with a longer ledger; counts a reflex that is paused, or that left the set.
Was wrong once: alarms only on failures. The night in which nothing ran at all had none.

A run that a database in trouble put off has a due time in the future; what it missed is the instant it was for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from onefold.reflex.birth import OCCURRENCE
from onefold.reflex.tables import REFLEX_RUN, STATE
from onefold.reflex.words import Overdue, run_id
from onefold.store.contract import Answer, Query, Row, Table
from onefold.terms.ids import Principal, principal_of
from onefold.terms.instant import Instant, moment


def questions(now: Instant, limit: int = 1_000) -> tuple[Query, ...]:
    """What to look up: pending runs, clocks whose next occurrence has come, and the set's own row."""
    return (
        Query(REFLEX_RUN, where=(("due_at", "null", False),), order=("due_at", "n"), limit=limit),
        Query(STATE, where=(("next_at", "<=", now),), order=("next_at",), limit=limit),
        Query(STATE, on=STATE.key, keys=[("",)]),
    )


def overdue(answers: Sequence[Answer], now: Instant, principals: Collection[Principal] | None = None) -> list[Overdue]:
    """What these rows say is late at `now`, the longest first. `principals`: whose; None is everybody's."""
    runs, clocks, head = answers
    generation = head[0][STATE.at["gen"]] if head else None
    late = [(_due(run), _cells(REFLEX_RUN, run)) for run in runs]
    late += [
        (cells["next_at"], cells)
        for cells in (_cells(STATE, row) for row in clocks)
        if cells["enabled"] and cells["gen"] == generation and cells["reflex"]
    ]
    return [
        _told(due, cells, now)
        for due, cells in sorted(late, key=lambda pair: pair[0])
        if due < now and (principals is None or principal_of(cells["principal"]) in principals)
    ]


def _due(run: Row) -> int:
    """When it was to be: an occurrence's own instant; else that of its birth, since a fact may be kept for later."""
    cells = _cells(REFLEX_RUN, run)
    at: int = cells["occurred_at" if str(cells["cause"]).startswith(OCCURRENCE) else "at"]
    return at


def _told(due: int, cells: dict[str, Any], now: Instant) -> Overdue:
    what = "an occurrence" if "n" not in cells else f"{run_id(cells['n'])}, {cells['cause']}"
    if cells.get("note"):
        what = f"{what}: {cells['note']}"
    return Overdue(cells["reflex"], what, moment(due), (now - due) / 1000)


def _cells(table: Table, row: Row) -> dict[str, Any]:
    return dict(zip(table.at, row, strict=True))
