"""reflex.materialize - the clock: occurrences that have come become runs, and the watermark moves on.

For: which reflexes a clock has come round for, what is done about what was missed, the body that writes both.
Never: makes a row for what is still to come; moves a watermark back; walks by instant. Pure.
Was wrong once: a pause that froze the watermark. Eight days off were eight runs at once when it came back.

The watermark is a key. It stops at the last one that got a row when the call is full, so that what is beyond is
still to come. A decision not to run is a row as well: `skipped`, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from onefold.almanac import START, Key, Occurrence, Rule, occurrences, tz_version
from onefold.reflex import birth
from onefold.reflex.tables import REFLEX_RUN, STATE
from onefold.reflex.watch import Loaded, held, is_newest
from onefold.reflex.words import OnClock, Reflex, run_id
from onefold.store.contract import Answer, Append, Body, Each, Last, Put, Query, Row, Verb, Write
from onefold.terms.instant import Instant

CAP = 500
"""Occurrences that one call makes rows of. A minute's rule after a night off has 480; what is more waits its turn."""


@dataclass(frozen=True, slots=True)
class Moved:
    """`runs`: how many were born, skipped ones too. `changed`: whether anything was written."""

    runs: int
    changed: bool
    behind: bool = False


@dataclass(slots=True)
class _Plan:
    """What is to become of one row of `state`, and the runs that go with it."""

    row: Row
    after: Row
    reflex: Reflex | None = None
    found: list[tuple[Occurrence, str | None]] = field(default_factory=list)


def due(now: Instant, limit: int) -> Query:
    """Reflexes whose clock has come round, the longest waiting first."""
    return Query(STATE, where=(("next_at", "<=", now),), order=("next_at", "reflex"), limit=limit)


def materializing(
    loaded: Loaded, rows: Sequence[Row], now: Instant, mint: Callable[[], int], cap: int = CAP
) -> Body[Moved]:
    """Runs for what these rows of `state` are due, at most `cap` in all. What was planned is checked against the rows
    under lock: one that somebody moved on meanwhile is left alone.
    """
    plans: list[_Plan] = []
    for row in rows:
        plan = _plan(loaded, row, now, cap)
        cap -= len(plan.found)
        plans.append(plan)
        if cap <= 0:
            break
    plans.sort(key=lambda plan: str(plan.row[0]))
    overlapping = [plan.reflex.id for plan in plans if plan.reflex and plan.reflex.policy.overlap == "skip"]

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Moved]]:
        asked: list[Verb] = [*held([str(plan.row[0]) for plan in plans])]
        if overlapping:
            asked.append(running(overlapping))
        newest, locked, *open_runs = yield tuple(asked)
        if not is_newest(loaded, newest):
            return Last((), Moved(0, False, behind=True))
        now_is = {row[0]: row for row in locked}
        busy = busy_with(open_runs[0] if open_runs else ())
        born: list[Row] = []
        states: list[Row] = []
        for plan in plans:
            if now_is.get(plan.row[0]) != plan.row:
                continue
            if plan.after != plan.row:
                states.append(plan.after)
            if plan.reflex is not None:
                born.extend(_runs(plan.reflex, plan.found, now, busy, mint))
        writes: tuple[Write, ...] = (Put(STATE, states),) if states else ()
        if born:
            writes = (Append(REFLEX_RUN, born, met="keep"), *writes)
        return Last(writes, Moved(len(born), bool(states)))

    return body


def running(reflexes: Sequence[str]) -> Query:
    """One run of each of these that is not settled, if there is one: what overlap asks."""
    return Query(REFLEX_RUN, each=Each("open", sorted(reflexes), 1), order=("n",))


def busy_with(runs: Sequence[Row]) -> dict[str, str]:
    """Why a repeat of these reflexes does not start, by reflex."""
    cell = REFLEX_RUN.at
    return {str(run[cell["open"]]): overlaps(run_id(int(run[cell["n"]] or 0))) for run in runs}


def overlaps(run: str) -> str:
    return f"overlap: {run} of this reflex has not settled yet"


def _runs(
    reflex: Reflex,
    found: Sequence[tuple[Occurrence, str | None]],
    now: Instant,
    busy: dict[str, str],
    mint: Callable[[], int],
) -> list[Row]:
    """The rows of what came; a repeat while one runs is skipped, and says so."""
    rows = []
    for occurrence, skipped in found:
        n = mint()
        if skipped is None and reflex.policy.overlap == "skip":
            skipped = busy.get(reflex.id)
            busy.setdefault(reflex.id, overlaps(run_id(n)))
        cause = birth.of_occurrence(occurrence.key, occurrence.at, tz_version())
        rows.append(birth.born(n, reflex, cause, now, skipped))
    return rows


def _plan(loaded: Loaded, row: Row, now: Instant, cap: int) -> _Plan:
    reflex = loaded.by_id.get(str(row[STATE.at["reflex"]]))
    if reflex is None or not isinstance(reflex.on, OnClock):
        return _Plan(row, _after(row, None, row[STATE.at["watermark"]]))  # it left the set, or has no clock any more
    rule, known = reflex.on.rule, row[STATE.at["watermark"]]
    last = rule.latest(now)
    if known is None:  # the first time it is looked at: a baseline, and no run
        return _Plan(row, _moved(row, rule, START if last is None else last.key))
    mark = Key(str(known))
    found = occurrences(rule, mark, now, cap)
    if not found:
        return _Plan(row, _moved(row, rule, mark))  # new zone data moved it away
    if not reflex.enabled:
        return _Plan(row, _moved(row, rule, found[-1].key if last is None else last.key))
    return _Plan(row, _moved(row, rule, found[-1].key), reflex, decided(reflex, found, now))


def decided(reflex: Reflex, found: Sequence[Occurrence], now: Instant) -> list[tuple[Occurrence, str | None]]:
    """Each occurrence, and why it does not run; None where it does.

    `latest` runs the one after which nothing is due, and none before it, however many calls it takes to get there.
    """
    assert isinstance(reflex.on, OnClock)
    policy = reflex.policy
    newest = found[-1]
    coming = reflex.on.rule.next(newest.key) if policy.catch_up == "latest" else None
    if coming is not None and coming.at <= now:
        newest = coming  # of a later call
    decided: list[tuple[Occurrence, str | None]] = []
    for occurrence in found:
        late = now - occurrence.at
        skipped = None
        if policy.catch_up == "latest" and occurrence.key != newest.key:
            skipped = f"catchUp latest: {occurrence.key} was missed, and a later one came"
        elif policy.catch_up == "skip" and late > policy.late_ms:
            skipped = f"catchUp skip: {occurrence.key} was {late // 1000} seconds late"
        decided.append((occurrence, skipped))
    return decided


def _moved(row: Row, rule: Rule, mark: Key) -> Row:
    coming = rule.next(mark)
    return _after(row, None if coming is None else coming.at, mark)


def _after(row: Row, next_at: int | None, mark: object) -> Row:
    cells = list(row)
    cells[STATE.at["watermark"]], cells[STATE.at["next_at"]] = mark, next_at  # type: ignore[call-overload]
    return tuple(cells)
