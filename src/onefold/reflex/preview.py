"""reflex.preview - what would happen: the engine's own stages up to the effect, over rows that are never written.

For: the run that the clock or a fact would make now, each task's resolved input, what the effect says of it, the
occurrences to come, and why nothing would happen where nothing would.
Never: a second reading of a rule (the run, its environment, its units and its truth come from the stages that do the
work); a row; an effect. Pure: the engine asks the selection in between.
Was wrong once: a preview that read `when` with a truth of its own. An empty list passed there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from onefold.almanac import Key, Occurrence, occurrences, tz_version
from onefold.reflex import birth, fanout, intake
from onefold.reflex.execute import Setting
from onefold.reflex.intake import Incoming
from onefold.reflex.materialize import CAP, decided
from onefold.reflex.seams import Effect, Transform
from onefold.reflex.tables import STATE
from onefold.reflex.words import (
    ByHand,
    Fact,
    Json,
    OnClock,
    OnRun,
    OnSignal,
    OnWrite,
    Preview,
    PreviewTask,
    Reflex,
    Signal,
    Write,
)
from onefold.store.contract import Row
from onefold.terms import codec
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.faults import says
from onefold.terms.ids import Principal
from onefold.terms.instant import LAST, Instant, moment

NEXT: Final = 5
"""Occurrences shown, where nobody said how many."""

RUN_WORDS: Final = ("reflex", "runId", "occurrence", "stats")


@dataclass(frozen=True, slots=True)
class Planned:
    """`run`: the row that would be born, None when none would; `cause` says which or why not; `now`: at what instant."""

    reflex: Reflex
    cause: str
    now: Instant
    run: Row | None = None


# --- the stimulus -------------------------------------------------------------------------------------


def given(fact: Write | Signal | Mapping[str, Json], reflex: Reflex, principal: Principal, now: Instant) -> Incoming:
    """The fact that somebody wants to try, as the intake would take it. JSON may also be `{"kind": "manual",
    "payload"}`, as `fire` would make it, and `{"kind": "run", "stats"}`, as a settled run would. Raises: BadArguments.
    """
    if not isinstance(fact, Mapping):
        return intake.taken(fact, principal, now)
    kind = fact.get("kind")
    if kind == "manual":
        _only(fact, ("kind", "payload", "by"))
        return intake.by_hand(reflex.id, fact.get("payload", {}), fact.get("by"), principal, now)
    if kind == "run":
        _only(fact, ("kind", *RUN_WORDS))
        subject = fact.get("reflex", reflex.on.reflex if isinstance(reflex.on, OnRun) else "")
        own = {name: value for name, value in fact.items() if name != "kind"} | {"reflex": subject}
        own.setdefault("stats", {"total": 0, "done": 0, "failed": 0})
        return intake.whole(Incoming(principal, "run", str(subject), None, own, now, now))
    return intake.taken(intake.parse(fact), principal, now)


def _only(fact: Mapping[str, Json], known: Sequence[str]) -> None:
    strange = [
        Fault(f"fact.{name}", f"is no word of it; it has {', '.join(known)}") for name in fact if name not in known
    ]
    if strange:
        raise BadArguments(strange, nothing_was="previewed")


def by_clock(reflex: Reflex, state: Row | None, now: Instant, at: Instant | None, busy: str | None) -> Planned:
    """The run that the clock makes next: of what is due now, or of the next occurrence. `at`: of the first one not
    before it, as though it were then. `busy`: why a repeat would not start now.
    """
    if not isinstance(reflex.on, OnClock):
        return Planned(reflex, f"nothing by itself: it waits for {_hears(reflex)}; give it a fact to see", now)
    if at is not None:
        coming = reflex.on.rule.next(Instant(at - 1))
        return _of(reflex, coming, at)
    mark = None if state is None or not reflex.enabled else state[STATE.at["watermark"]]
    if mark is None:
        return _of(reflex, reflex.on.rule.next(now), now)
    due = occurrences(reflex.on.rule, Key(str(mark)), now, CAP)
    runs = [occurrence for occurrence, skipped in decided(reflex, due, now) if skipped is None] if due else []
    if runs and busy is not None and reflex.policy.overlap == "skip":
        return Planned(reflex, f"nothing: {busy}", now)
    coming = runs[0] if runs else reflex.on.rule.next(due[-1].key if due else Key(str(mark)))
    return _of(reflex, coming, now)


def _of(reflex: Reflex, coming: Occurrence | None, now: Instant) -> Planned:
    if coming is None:
        return Planned(reflex, "nothing: its clock has come to its end", now)
    now = Instant(max(now, coming.at))
    cause = birth.of_occurrence(coming.key, coming.at, tz_version())
    return Planned(reflex, cause.cause, now, birth.born(0, reflex, cause, now))


def by_fact(
    reflex: Reflex, fact: Incoming, now: Instant, busy: str | None, passes: Callable[[Fact], str | None]
) -> Planned:
    """The run that a fact would make, if it hears it. `passes`: what the engine's own `when` says of it: None where it
    lets it pass, else why not.
    """
    now = Instant(max(now, fact.due_at))
    deaf = _deaf(reflex, fact)
    if deaf is not None:
        return Planned(reflex, f"nothing: {deaf}", now)
    why = passes(intake.fact_of(intake.row_of(0, fact)))
    if why is not None:
        return Planned(reflex, f"nothing: {why}", now)
    if fact.kind == "manual" and busy is not None and reflex.policy.overlap == "skip":
        return Planned(reflex, f"nothing: {busy}", now)
    return Planned(reflex, "fact", now, birth.born(0, reflex, birth.of_fact(0, fact.at, fact.raw, 0), now))


def _deaf(reflex: Reflex, fact: Incoming) -> str | None:
    """Why a fact does not reach it; None when it does."""
    if fact.principal != reflex.principal:
        return "the fact is another principal's"
    on = reflex.on
    heard = {
        "manual": fact.kind == "manual",
        "write": isinstance(on, OnWrite) and on.entity == fact.subject and on.op in (None, fact.op),
        "signal": isinstance(on, OnSignal) and on.name == fact.subject,
        "run": isinstance(on, OnRun) and on.reflex == fact.subject,
    }[fact.kind]
    what = f"{fact.op} of {fact.subject}" if fact.kind == "write" else f"{fact.kind} {fact.subject}"
    return None if heard else f"it waits for {_hears(reflex)}, and this fact is {_one(what)}"


def _one(what: str) -> str:
    return f"{'an' if what[0] in 'iu' else 'a'} {what}"


def _hears(reflex: Reflex) -> str:
    match reflex.on:
        case OnWrite(entity, op):
            return f"a write of {entity}" if op is None else _one(f"{op} of {entity}")
        case OnSignal(name):
            return f"the signal {name}"
        case OnRun(other):
            return f"a settled run of {other}"
        case ByHand():
            return "a person who fires it"
        case OnClock():
            return "its clock"


# --- what comes of it ---------------------------------------------------------------------------------


def following(reflex: Reflex, state: Row | None, now: Instant, at: Instant | None, count: int) -> tuple[datetime, ...]:
    """The next occurrences, by the walk that the clock itself takes; those that are due and not made yet come first."""
    if not isinstance(reflex.on, OnClock):
        return ()
    mark = None if state is None or not reflex.enabled else state[STATE.at["watermark"]]
    since: Instant | Key = Instant(at - 1) if at is not None else Key(str(mark)) if mark is not None else now
    return tuple(moment(each.at) for each in occurrences(reflex.on.rule, since, LAST, count))


def shown(
    planned: Planned,
    units: Sequence[fanout.Unit],
    transform: Transform,
    effect: Effect | None,
    coming: tuple[datetime, ...],
) -> Preview:
    """The run as it would be, task by task. `units`: what fan-out makes of the selected rows."""
    assert planned.run is not None
    tasks = [_task(planned, planned.run, unit, transform, effect) for unit in units]
    rows: list[Json] = []
    for unit in units:
        if unit.row is not None:
            row = codec.parse(unit.row)
            rows.extend(row if isinstance(row, list) else [row])
    return Preview(planned.reflex.id, planned.cause, tuple(rows), tuple(tasks), coming)


def nothing(planned: Planned, coming: tuple[datetime, ...], why: str | None = None) -> Preview:
    """No tasks, and a sentence that says why: of the plan, or of its selection."""
    cause = planned.cause if why is None else f"nothing: {why}"
    return Preview(planned.reflex.id, cause, (), (), coming)


def _task(planned: Planned, run: Row, unit: fanout.Unit, transform: Transform, effect: Effect | None) -> PreviewTask:
    reflex = planned.reflex
    task = fanout.task_row(0, run, reflex, unit, planned.now, serial=False, first=False)
    try:
        resolved = transform(reflex.input, Setting(run, reflex, planned.now).env(task))
    except Exception as fault:  # noqa: BLE001 - the door: what a template raises is what the task would fail with
        return PreviewTask(unit.key, None, error=says(fault))
    if effect is None:
        return PreviewTask(unit.key, resolved, error=f"there is no effect named {reflex.effect!r}")
    try:
        return PreviewTask(unit.key, resolved, shows=effect.show(resolved))
    except Exception as fault:  # noqa: BLE001 - the door: an effect that cannot take its input says so here
        return PreviewTask(unit.key, resolved, error=says(fault))
