"""reflex.retention - what a sweep takes, a page at a time, and what it leaves so that nothing happens twice.

For: settled runs with their tasks, facts that were delivered, each older than a horizon that a person gave. Without one
everything is kept: the ledger is billing history.
Never: takes what is unsettled, or what something unsettled came of; frees a dedupe key, or an occurrence.
Was wrong once: horizons of their own for runs and tasks. A task swept before its run took along the row that said "this
unit was done", and a restore charged it again. And a key that went with its row: a webhook replayed after the horizon
fired once more.

A fact with a dedupe key, or with a run that is kept, is emptied and stays as a row of some hundred bytes: its key counts
for ever, and chains lead on through it. Any other goes whole. `state.swept_at` says up to which occurrence a reflex's
runs are gone: nothing makes one again up to there. docs/adr/0044 has why.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from onefold.reflex.birth import OCCURRENCE
from onefold.reflex.tables import INTAKE, REFLEX_RUN, STATE, TASK
from onefold.store.contract import Answer, Body, Cas, Condition, Last, Put, Query, Remove, Row, Table, Verb, Write
from onefold.terms.instant import Instant

PAGE: Final = 200
"""Runs or facts that one commit looks at. Everybody else waits for it meanwhile."""

TASKS_A_PAGE: Final = 2_000
"""Tasks that one commit takes. A run of more goes alone."""

SWEPT: Final = "swept"
_UNSETTLED: Final = ("pending", "fanned")

Place: TypeAlias = "tuple[int, int]"
"""Where a page ended: the instant and the number of its last row."""

Cells: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True)
class Swept:
    """What one page took. emptied: facts of which a row stays. `after`: where to go on; None at the end."""

    runs: int = 0
    tasks: int = 0
    facts: int = 0
    emptied: int = 0
    after: Place | None = None

    def plus(self, more: Swept) -> Swept:
        """Both together, as one sweep."""
        taken = (self.runs + more.runs, self.tasks + more.tasks, self.facts + more.facts, self.emptied + more.emptied)
        return Swept(*taken)


# --- runs -------------------------------------------------------------------------------------------


def sweeping_runs(before: Instant, after: Place | None = None, limit: int = PAGE) -> Body[Swept]:
    """Take settled and skipped runs from before an instant, with all their tasks."""

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Swept]]:
        rows = yield from _page(REFLEX_RUN, "settled_at", (), before, after, limit)
        if not rows:
            return Last((), Swept())
        runs = _bounded(_cells(REFLEX_RUN, rows))
        tasks, states = yield (
            Query(TASK, on=("run",), keys=[(run["n"],) for run in runs]),
            Query(
                STATE,
                on=STATE.key,
                keys=[(reflex,) for reflex in sorted({run["reflex"] for run in runs})],
                lock="update",
            ),
        )
        of_run: dict[int, list[int]] = {run["n"]: [] for run in runs}
        for task in _cells(TASK, tasks):
            of_run[task["run"]].append(task["n"])
        live = yield from _live(of_run)
        gone = [run for run in runs if run["n"] not in live]
        emptied = yield from _left_over(gone)
        last = runs[-1]
        more = len(rows) == limit or len(runs) < len(rows)
        numbers = [(n,) for run in gone for n in of_run[run["n"]]]
        told = Swept(len(gone), len(numbers), len(emptied), 0, (last["settled_at"], last["n"]) if more else None)
        return Last(_run_writes(gone, numbers, emptied, _cells(STATE, states)), told)

    return body


def _bounded(runs: list[Cells]) -> list[Cells]:
    """As many of them as have not too many tasks together, and at least one."""
    taken: list[Cells] = []
    tasks = 0
    for run in runs:
        tasks += run["total"]
        if taken and tasks > TASKS_A_PAGE:
            break
        taken.append(run)
    return taken


def _live(of_run: dict[int, list[int]]) -> Generator[tuple[Verb, ...], Any, set[int]]:
    """Those of these runs of which something came that is not settled yet: a fact that waits, or a run of such a fact.

    What follows may still ask for their tasks' outputs, and whoever asks why is led through them.
    """
    owner = {f"task:{n}": run for run, tasks in of_run.items() for n in tasks}
    owner |= {f"run:{run}": run for run in of_run}
    (rows,) = yield (Query(INTAKE, on=("cause",), keys=[(cause,) for cause in owner]),)
    facts = _cells(INTAKE, rows)
    busy = yield from _busy(fact["n"] for fact in facts)
    return {owner[fact["cause"]] for fact in facts if fact["state"] in ("waiting", "parked") or fact["n"] in busy}


def _left_over(gone: Sequence[Cells]) -> Generator[tuple[Verb, ...], Any, list[Row]]:
    """Facts that were emptied and stayed for the sake of these runs alone: they go with them."""
    numbers = sorted({run["fact"] for run in gone if run["fact"] is not None})
    if not numbers:
        return []
    keys: list[Row] = [(n,) for n in numbers]
    facts, runs = yield (
        Query(INTAKE, on=INTAKE.key, keys=keys, where=(("state", "=", SWEPT), ("dedupe", "null", True))),
        Query(REFLEX_RUN, on=("fact",), keys=keys),
    )
    leaving = {run["n"] for run in gone}
    kept = {run["fact"] for run in _cells(REFLEX_RUN, runs) if run["n"] not in leaving}
    return [(fact["n"],) for fact in _cells(INTAKE, facts) if fact["n"] not in kept]


def _run_writes(
    gone: Sequence[Cells], tasks: Sequence[Row], facts: Sequence[Row], states: Sequence[Cells]
) -> tuple[Write, ...]:
    newest: dict[str, int] = {}
    for run in gone:
        if str(run["cause"]).startswith(OCCURRENCE):
            newest[run["reflex"]] = max(run["occurred_at"], newest.get(run["reflex"], run["occurred_at"]))
    moved = [
        tuple({**state, "swept_at": newest[state["reflex"]]}.values())
        for state in states
        if state["reflex"] in newest and newest[state["reflex"]] > (state["swept_at"] or -1 << 62)
    ]
    writes: list[Write] = []
    if tasks:
        writes.append(Remove(TASK, keys=tasks))
    if gone:
        writes.append(Remove(REFLEX_RUN, keys=[(run["n"],) for run in gone]))
    if facts:
        writes.append(Remove(INTAKE, keys=facts))
    if moved:
        writes.append(Put(STATE, moved))
    return tuple(writes)


# --- facts ------------------------------------------------------------------------------------------


def sweeping_facts(before: Instant, after: Place | None = None, limit: int = PAGE) -> Body[Swept]:
    """Take delivered facts that happened before an instant and all of whose runs are over. One that is parked waits
    for a person and stays."""

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Swept]]:
        rows = yield from _page(INTAKE, "at", (("state", "=", "delivered"),), before, after, limit)
        facts = _cells(INTAKE, rows)
        end = _end(facts, limit)
        if not facts:
            return Last((), Swept(after=end))
        (runs,) = yield (Query(REFLEX_RUN, on=("fact",), keys=[(fact["n"],) for fact in facts]),)
        followed = {run["fact"]: False for run in _cells(REFLEX_RUN, runs)}
        followed |= {run["fact"]: True for run in _cells(REFLEX_RUN, runs) if run["state"] in _UNSETTLED}
        over = [fact for fact in facts if not followed.get(fact["n"], False)]
        stay = [fact["n"] for fact in over if fact["dedupe"] is not None or fact["n"] in followed]
        go = [fact["n"] for fact in over if fact["dedupe"] is None and fact["n"] not in followed]
        writes: list[Write] = []
        if stay:
            writes.append(Cas(INTAKE, [((n,), {}, {"state": SWEPT, "body": b"{}", "note": None}) for n in stay]))
        if go:
            writes.append(Remove(INTAKE, keys=[(n,) for n in go]))
        return Last(tuple(writes), Swept(facts=len(go), emptied=len(stay), after=end))

    return body


# --- both -------------------------------------------------------------------------------------------


def _page(
    table: Table, column: str, where: tuple[Condition, ...], before: Instant, after: Place | None, limit: int
) -> Generator[tuple[Verb, ...], Any, list[Row]]:
    """The next rows in the order of an instant: those of the last one's that come behind it, then later ones."""
    order = (column, "n")
    first: tuple[Condition, ...] = () if after is None else ((column, ">", after[0]),)
    asked: list[Verb] = [Query(table, (*where, *first, (column, "<", before)), order=order, limit=limit, lock="update")]
    if after is not None:
        same: tuple[Condition, ...] = ((column, "=", after[0]), ("n", ">", after[1]))
        asked.insert(0, Query(table, (*where, *same), order=order, limit=limit, lock="update"))
    answers = yield tuple(asked)
    return [row for rows in answers for row in rows][:limit]


def _end(facts: Sequence[Cells], limit: int) -> Place | None:
    """Where to go on, when the page was full."""
    return (facts[-1]["at"], facts[-1]["n"]) if len(facts) == limit else None


def _busy(facts: Iterable[int]) -> Generator[tuple[Verb, ...], Any, set[int]]:
    """Those of these facts of which a run is not settled."""
    keys: list[Row] = [(n,) for n in facts]
    if not keys:
        return set()
    (runs,) = yield (Query(REFLEX_RUN, on=("fact",), keys=keys, where=(("state", "in", _UNSETTLED),)),)
    return {run["fact"] for run in _cells(REFLEX_RUN, runs)}


def _cells(table: Table, rows: Sequence[Row]) -> list[Cells]:
    names = list(table.at)
    return [dict(zip(names, row, strict=True)) for row in rows]
