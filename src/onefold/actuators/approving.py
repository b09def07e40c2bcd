"""actuators.approving - who decides an approval, and what a decision too late is told.

For: one decision counts; a later one, or one after the timeout, changes nothing and says so.
Never: asks anybody (the owed notice does); takes a look for a decision.
Was wrong once: a decision found by its name alone. A link of the first question answered the second.
"""

from __future__ import annotations

from msgspec.json import decode

from onefold.actuators.parts import NULL
from onefold.actuators.rules import faults_in
from onefold.actuators.state import Open, State
from onefold.actuators.words import Approval, Decided, Fact, Rejection, Seconded, Verdict, WaitDue
from onefold.terms.errors import BadArguments, Fault


def decided(state: State, event: Decided, at: int) -> tuple[list[Fact], Verdict]:
    """The facts of a person's decision, and the verdict they are told."""
    wait = _open(state, event)
    if wait is None:
        return [], _late(state, event)
    if wait.until is not None and wait.until <= at:
        return [WaitDue(wait.call, wait.name, wait.digest, at, wait.until)], Verdict("expired", None, wait.until)
    if event.by in wait.agreed and event.approve:
        return [], Verdict("already_decided", event.by, None)
    if _faults(wait, event):
        return [], Verdict("refused", event.by, None)
    return [_fact(wait, event, at)], Verdict("decided", event.by, at)


def refusal(state: State, event: Decided) -> BadArguments | None:
    """Why an open approval cannot be decided so, to be raised at the door before anything is folded.

    Who may not decide, or an edit that breaks the offer's rules.
    """
    wait = _open(state, event)
    faults = _faults(wait, event) if wait is not None else []
    return BadArguments(faults, nothing_was="decided") if faults else None


def _faults(wait: Open, event: Decided) -> list[Fault]:
    asking = wait.asking
    if asking is None:
        return []
    if event.by in asking.not_by:
        return [Fault("by", "may not decide this approval", event.by)]
    if not event.approve or event.value == NULL:
        return []
    if asking.offer == NULL:
        return [Fault("value", "cannot be taken: nothing was offered to be edited")]
    return faults_in(decode(asking.rules), decode(event.value), "value")


def _fact(wait: Open, event: Decided, at: int) -> Fact:
    if not event.approve:
        return Rejection(wait.call, wait.name, wait.digest, at, event.by, event.reason or "")
    agreed = (*wait.agreed, event.by)
    if wait.asking is not None and len(agreed) < wait.asking.need:
        return Seconded(wait.call, event.by, at)
    return Approval(wait.call, wait.name, wait.digest, at, agreed, event.comment, event.value)


def _late(state: State, event: Decided) -> Verdict:
    for call in reversed(tuple(state.closed)):
        closed = state.closed[call]
        if not _meant(call, closed.name, event):
            continue
        match closed.outcome:
            case "approved" | "rejected":
                return Verdict("already_decided", closed.by, closed.at)
            case "expired":
                return Verdict("expired", None, closed.at)
            case _:
                return Verdict("cancelled", None, closed.at)
    return Verdict("unknown")


def _open(state: State, event: Decided) -> Open | None:
    return next((w for w in state.open.values() if w.kind == "approval" and _meant(w.call, w.name, event)), None)


def _meant(call: str, name: str, event: Decided) -> bool:
    return name == event.name and (event.wait is None or event.wait == call)
