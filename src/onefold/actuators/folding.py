"""actuators.folding - what each fact does to a run.

For: `evolve`, by a table from fact to its small function.
Never: decides, or counts on a clock.
Was wrong once: one `match` over all facts. A step's result, the commonest, was asked for last.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from onefold.actuators.parts import Trouble
from onefold.actuators.state import Closed, Journal, Kept, Open, State
from onefold.actuators.words import (
    Admitted,
    Approval,
    CancelledFor,
    Changed,
    EventBack,
    EventKept,
    EventTaken,
    Fact,
    FailedFor,
    Finished,
    Followed,
    Parked,
    PassOver,
    Progressed,
    Rejection,
    Reopened,
    Seconded,
    Started,
    StepAgain,
    StepDone,
    StepFell,
    StepTrying,
    WaitDue,
    WaitOpened,
    WaitReleased,
)

WAKING = frozenset({StepDone, StepFell, StepAgain, WaitDue, EventTaken, Approval, Rejection})


def evolve(state: State, fact: Fact) -> State:
    after: State = state.__copy__()  # type: ignore[attr-defined]
    FOLDS[type(fact)](after, fact)
    return after


def _entry(state: State, fact: Any) -> None:
    """One more entry of the journal. A pass is owed for it where none is outstanding, but never to a parked run."""
    state.journal = state.journal.add(fact)
    state.updated_at = fact.at
    if not state.passing and state.status != "parked" and not state.held:
        state.passing = True
        state.passes += 1
        state.status = "running"


def _close(state: State, call: str) -> Open | None:
    """Take a wait out of the open ones and off the agenda."""
    if call not in state.open:
        return None
    still = dict(state.open)
    wait = still.pop(call)
    state.open = still
    if wait.until is not None:
        agenda = state.agenda
        place = bisect_left(agenda, (wait.until, call))
        state.agenda = agenda[:place] + agenda[place + 1 :]
    return wait


def _open(state: State, wait: Open) -> None:
    _close(state, wait.call)
    state.open = {**state.open, wait.call: wait}
    if wait.until is not None:
        agenda = list(state.agenda)
        insort(agenda, (wait.until, wait.call))
        state.agenda = tuple(agenda)


def _started(state: State, fact: Started) -> None:
    state.status = "running"
    state.run, state.program, state.key, state.principal = fact.run, fact.program, fact.key, fact.principal
    state.input, state.dedupe, state.seed = fact.input, fact.dedupe, fact.seed
    state.started_at = state.updated_at = state.begins = fact.at
    if fact.begins is not None:
        state.begins = fact.begins
    if fact.callback is not None:
        state.callbacks = (fact.callback,)
    state.limit, state.priority = fact.limit, fact.priority
    if fact.limit is not None:
        state.held = True
    else:
        state.passes, state.passing = 1, True


def _admitted(state: State, fact: Admitted) -> None:
    state.held = False
    if not state.passes:
        state.begins = fact.at
    state.passes, state.passing = state.passes + 1, True


def _fell(state: State, fact: StepFell) -> None:
    _entry(state, fact)
    _tried(state, fact.call)
    if fact.until is not None:
        wait = Open(
            fact.call, "retry", fact.name, fact.digest, fact.at, fact.until, attempt=fact.attempt, trouble=fact.trouble
        )
        _open(state, wait)


def _ended_wait(state: State, fact: Any) -> None:
    _entry(state, fact)
    _close(state, fact.call)


def _due(state: State, fact: WaitDue) -> None:
    _entry(state, fact)
    wait = _close(state, fact.call)
    if wait is not None and wait.kind == "approval":
        state.closed = {**state.closed, fact.call: Closed(fact.name, wait.message, "expired", None, fact.until)}


def _opened(state: State, fact: WaitOpened) -> None:
    _open(
        state,
        Open(fact.call, fact.kind, fact.name, fact.digest, fact.at, fact.until, fact.asking),
    )
    state.updated_at = fact.at


def _released(state: State, fact: WaitReleased) -> None:
    wait = _close(state, fact.call)
    if wait is not None and wait.kind == "approval":
        state.closed = {**state.closed, fact.call: Closed(wait.name, wait.message, "cancelled", None, fact.at)}


def _kept(state: State, fact: EventKept) -> None:
    state.kept = (*state.kept, Kept(fact.name, fact.body))
    state.updated_at = fact.at


def _taken(state: State, fact: EventTaken) -> None:
    if fact.kept:
        place = next(i for i, event in enumerate(state.kept) if event.name == fact.name)
        state.kept = state.kept[:place] + state.kept[place + 1 :]
    _ended_wait(state, fact)


def _back(state: State, fact: EventBack) -> None:
    state.kept = (Kept(fact.name, fact.body), *state.kept)
    state.returned |= {fact.call}


def _trying(state: State, fact: StepTrying) -> None:
    state.trying |= {fact.call}
    state.updated_at = fact.at


def _seconded(state: State, fact: Seconded) -> None:
    wait = state.open[fact.call]
    state.open = {**state.open, fact.call: replace(wait, agreed=(*wait.agreed, fact.by))}
    state.updated_at = fact.at


def _verdict(state: State, fact: Approval | Rejection) -> None:
    outcome, by = ("approved", ", ".join(fact.by)) if isinstance(fact, Approval) else ("rejected", fact.by)
    message = state.open[fact.call].message
    state.closed = {**state.closed, fact.call: Closed(fact.name, message, outcome, by, fact.at)}
    _ended_wait(state, fact)


def _rest(state: State) -> None:
    if not state.passing:
        state.status = "waiting"


def _over(state: State, fact: PassOver) -> None:
    state.updated_at = fact.at
    if len(state.journal) > fact.seen:
        state.passes += 1  # what it had not seen is seen by the next, owed in the same commit
    else:
        state.passing = False
        _rest(state)


def _end(state: State, status: str, at: int) -> None:
    """Nothing is waited for any more; an approval nobody needs is answered `cancelled`."""
    state.status, state.updated_at, state.passing, state.held = status, at, False, False
    asked = {call: wait for call, wait in state.open.items() if wait.kind == "approval"}
    lapsed = {call: Closed(wait.name, wait.message, "cancelled", None, at) for call, wait in asked.items()}
    if lapsed:
        state.closed = {**state.closed, **lapsed}
    state.open, state.agenda = {}, ()


def _finished(state: State, fact: Finished) -> None:
    _end(state, "done", fact.at)
    state.kept = ()
    state.result = fact.result


def _failed(state: State, fact: FailedFor) -> None:
    _end(state, "failed", fact.at)
    state.trouble = fact.trouble


def _cancelled(state: State, fact: CancelledFor) -> None:
    _end(state, "cancelled", fact.at)
    state.kept = ()
    state.reason = fact.reason


def _parked(state: State, fact: Parked) -> None:
    """The waits stay open: decisions and events still reach them, and are handed out once it is reopened."""
    state.status, state.updated_at, state.passing = "parked", fact.at, False
    state.trouble = Trouble(fact.code, fact.cause)


def _reopened(state: State, fact: Reopened) -> None:
    """A fresh pass over what succeeded: the step that ended the run loses its last failure, and is tried anew."""
    fatal = state.trouble.call if state.trouble is not None else None
    if fatal is not None:
        kept = [entry for entry in state.journal if entry.call != fatal or type(entry) is StepDone]
        state.journal = Journal(kept, len(kept))
    state.status, state.updated_at = "running", fact.at
    state.trouble = None
    state.trying = frozenset()  # a person has looked: what was doubtful is tried anew
    state.round += 1
    if state.limit is not None:
        state.held = True
    else:
        state.passes, state.passing = state.passes + 1, True


def _changed(state: State, fact: Changed) -> None:
    state.changes |= set(fact.places)


def _progressed(state: State, fact: Progressed) -> None:
    state.progress = fact
    state.updated_at = fact.at


def _followed(state: State, fact: Followed) -> None:
    state.callbacks = (*state.callbacks, fact.url)


def _done(state: State, fact: StepDone) -> None:
    _entry(state, fact)
    _tried(state, fact.call)
    if fact.call in state.open:
        _close(state, fact.call)


def _tried(state: State, call: str) -> None:
    if call in state.trying:
        state.trying -= {call}


FOLDS: dict[type, Callable[[State, Any], None]] = {
    StepDone: _done,
    Started: _started,
    StepFell: _fell,
    StepAgain: _ended_wait,
    WaitOpened: _opened,
    WaitDue: _due,
    WaitReleased: _released,
    EventKept: _kept,
    EventBack: _back,
    StepTrying: _trying,
    EventTaken: _taken,
    Approval: _verdict,
    Rejection: _verdict,
    Seconded: _seconded,
    PassOver: _over,
    Parked: _parked,
    Finished: _finished,
    FailedFor: _failed,
    CancelledFor: _cancelled,
    Reopened: _reopened,
    Followed: _followed,
    Admitted: _admitted,
    Changed: _changed,
    Progressed: _progressed,
}
