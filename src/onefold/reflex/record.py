"""reflex.record - how attempts are written down, runs settle and are announced, batons pass, and tasks open again.

For: one body for any number of landings; one for a retry.
Never: overwrites what a later claim owns; announces a run twice; leaves a serial reflex without its next task.
Was wrong once: a run read before its count was written. Two last landings each saw the other's missing, and the run was
never settled. And a retry that came down with the rewind only: the second of two left a failure counted that was none,
so that the run settled a task early, with false counts.

Runs are locked before the rows of their reflexes, and these before tasks: whoever takes two of them takes them so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from onefold.reflex import intake
from onefold.reflex.claim import policy_of
from onefold.reflex.execute import Landing
from onefold.reflex.parking import ASIDE
from onefold.reflex.tables import INTAKE, REFLEX_RUN, REFLEX_TEXT, STATE, TASK
from onefold.reflex.words import run_id, task_id
from onefold.store.contract import Answer, Append, Body, Each, Last, Put, Query, Row, Verb, Write
from onefold.terms.errors import BadArguments, Fault, NotFound
from onefold.terms.ids import Principal, principal_of
from onefold.terms.instant import Instant

Turn = Generator[tuple[Verb, ...], tuple[Answer, ...], Any]
Cells = dict[str, Any]

FAILED = ("failed", "parked")
"""What a run counts as failed, and what alone is left through a retry."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was written. late: tasks whose answer came when they were somebody else's already. settled: runs that
    ended with this commit. emitted: facts that were appended, run facts too."""

    kept: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    settled: tuple[int, ...] = ()
    emitted: int = 0


@dataclass(slots=True)
class _Book:
    """The rows of one recording, as they are to be after it."""

    now: Instant
    tasks: dict[int, Cells]
    runs: dict[int, Cells]
    queued: dict[str, Cells]  # the next task of each serial reflex
    kept: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    freed: list[str] = field(default_factory=list)  # reflexes whose baton came free
    counted: dict[int, None] = field(default_factory=dict)  # runs that one of their tasks left
    settled: list[int] = field(default_factory=list)
    facts: list[intake.Incoming] = field(default_factory=list)


def recording(landings: Sequence[Landing], now: Instant, mint: Callable[[], int]) -> Body[Recorded]:
    """Write these attempts down. `mint`: a number for a row of the intake."""

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Recorded]]:
        if not landings:
            return Last((), Recorded())
        serial = sorted({landing.reflex for landing in landings if landing.serial})
        answers = yield _questions(landings, serial)
        book = _Book(now, _by_number(TASK, answers[-1]), _by_number(REFLEX_RUN, answers[0]), {})
        if serial:
            book.queued = {str(cells["queue"]): cells for cells in _by_number(TASK, answers[2]).values()}
        for landing in landings:
            _land(book, landing)
        for n in book.counted:
            _settle(book, book.runs[n])
        return Last(_writes(book, mint), _told(book))

    return body


def _questions(landings: Sequence[Landing], serial: Sequence[str]) -> tuple[Verb, ...]:
    runs = Query(REFLEX_RUN, on=REFLEX_RUN.key, keys=_keys(landing.run for landing in landings), lock="update")
    tasks = Query(TASK, on=TASK.key, keys=_keys(landing.task for landing in landings), lock="update")
    if not serial:
        return (runs, tasks)
    states = Query(STATE, on=STATE.key, keys=[(reflex,) for reflex in serial], lock="update")
    queued = Query(TASK, order=("n",), each=Each("queue", serial, 1))
    return (runs, states, queued, tasks)


def _land(book: _Book, landing: Landing) -> None:
    task = book.tasks.get(landing.task)
    if task is None or task["state"] != "claimed" or task["token"] != landing.token:
        book.late.append(landing.task)
        return
    book.kept.append(landing.task)
    ended = landing.ready_at is None
    task.update(state=landing.state, ready_at=landing.ready_at, token=None, holder=None, error=landing.error)
    if landing.state == "parked":
        task["queue"] = ASIDE
    else:
        task["claims"] = 0
    if not ended:
        return
    if task["baton"] is not None:
        book.freed.append(str(task["baton"]))
    task.update(output=landing.output, baton=None, ended_at=book.now)
    book.facts.extend(landing.emits)
    run = book.runs.get(landing.run)
    if run is not None:
        run["failed" if landing.state in FAILED else "done"] += 1
        book.counted[landing.run] = None


def _settle(book: _Book, run: Cells) -> None:
    """A run whose last task has ended is settled, and says so once in its life."""
    if run["state"] != "fanned" or run["done"] + run["failed"] < run["total"]:
        return
    run.update(state="settled", settled_at=book.now, open=None)
    book.settled.append(run["n"])
    if not run["drained"]:
        run["drained"] = 1
        book.facts.append(intake.settling(_row(run), book.now))


def _writes(book: _Book, mint: Callable[[], int]) -> tuple[Write, ...]:
    """The baton is let go of before it is passed on: only one row at a time may hold it."""
    writes: list[Write] = [Put(TASK, [_row(book.tasks[n]) for n in book.kept])]
    given = [_row(_handed(book.queued[reflex], book.now)) for reflex in book.freed if reflex in book.queued]
    if given:
        writes.append(Put(TASK, given))
    if book.counted:
        writes.append(Put(REFLEX_RUN, [_row(book.runs[n]) for n in book.counted]))
    if book.facts:
        writes.append(Append(INTAKE, [intake.row_of(mint(), fact) for fact in book.facts], met="keep"))
    return tuple(writes) if book.kept else ()


def _handed(task: Cells, now: Instant) -> Cells:
    """A serial task that waited, now that it is its turn."""
    return task | {"state": "ready", "baton": task["queue"], "queue": None, "ready_at": now}


def _told(book: _Book) -> Recorded:
    return Recorded(tuple(book.kept), tuple(book.late), tuple(book.settled), len(book.facts))


# --- opening a task again ---------------------------------------------------------------------------


def retrying(n: int, now: Instant, principals: Collection[Principal] | None = None) -> Body[bool]:
    """Open a failed or parked task again, with all its attempts before it. False: it is not over, so nothing was done.

    `principals`: whose it may be; None is anybody's. Its failure leaves the count whatever its run is doing; a run that
    had settled goes on, and is not announced again. Raises, as the body's refusal: NotFound; BadArguments for a task
    that is done.
    """

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[bool]]:
        task = yield from _failed_task(n, principals)
        if task is None:
            return Last((), False)
        reflex = str(task["reflex"])
        runs, _, holders, tasks = yield (
            Query(REFLEX_RUN, on=REFLEX_RUN.key, keys=[(task["run"],)], lock="update"),
            Query(STATE, on=STATE.key, keys=[(reflex,)], lock="update"),
            Query(TASK, on=("baton",), keys=[(reflex,)]),
            Query(TASK, on=TASK.key, keys=[(n,)], lock="update"),
        )
        again = _by_number(TASK, tasks).get(n)
        if again is None or again["state"] not in FAILED:
            return Last((), False)
        (texts,) = yield (Query(REFLEX_TEXT, on=REFLEX_TEXT.key, keys=[(task["version"],)]),)
        serial = bool(texts) and policy_of(texts[0][1]).order == "serial"
        return Last(_reopened(again, runs, serial, bool(holders), now), True)

    return body


def _failed_task(n: int, principals: Collection[Principal] | None) -> Generator[tuple[Verb, ...], Any, Cells | None]:
    """The task as it stands, unlocked: which run and reflex are to be locked before it."""
    (rows,) = yield (Query(TASK, on=TASK.key, keys=[(n,)]),)
    task = _by_number(TASK, rows).get(n)
    if task is None or (principals is not None and principal_of(task["principal"]) not in principals):
        raise NotFound("task", task_id(n))
    if task["state"] == "done":
        problem = f"is done, and only a task that failed or is parked can be retried; its run is {run_id(task['run'])}"
        raise BadArguments([Fault("task", problem, task_id(n))], nothing_was="retried")
    return task if task["state"] in FAILED else None


def _reopened(task: Cells, runs: Sequence[Row], serial: bool, held: bool, now: Instant) -> tuple[Write, ...]:
    task = task | {"state": "ready", "queue": None, "ready_at": now, "attempt": 0, "claims": 0, "ended_at": None}
    if serial:
        task |= {"state": "queued", "ready_at": None, "queue": task["reflex"]} if held else {"baton": task["reflex"]}
    writes: list[Write] = [Put(TASK, [_row(task)])]
    for run in _by_number(REFLEX_RUN, runs).values():
        run["failed"] -= 1
        if run["state"] == "settled":
            run.update(state="fanned", settled_at=None, open=run["reflex"])
        writes.append(Put(REFLEX_RUN, [_row(run)]))
    return tuple(writes)


def _keys(numbers: Iterable[int]) -> list[Row]:
    return [(n,) for n in sorted(set(numbers))]


def _by_number(table: Any, rows: Sequence[Row]) -> dict[int, Cells]:
    names = list(table.at)
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}  # type: ignore[misc]


def _row(cells: Cells) -> Row:
    return tuple(cells.values())
