"""actuators.approving - who decides an approval, and what a decision too late is told.

For: one decision counts; a later one, or one after the timeout, changes nothing and says so.
Never: asks anybody (the owed notice does); takes a look for a decision.
Was wrong once: a decision found by its name alone. A link of the first question answered the second.
"""

from __future__ import annotations

from onefold.actuators.state import Open, State
from onefold.actuators.words import Approval, Decided, Fact, Rejection, Verdict, WaitDue


def decided(state: State, event: Decided, at: int) -> tuple[list[Fact], Verdict]:
    """The facts of a person's decision, and the verdict they are told."""
    wait = next((w for w in state.open.values() if w.kind == "approval" and _meant(w.call, w.name, event)), None)
    if wait is None:
        return [], _late(state, event)
    if wait.until is not None and wait.until <= at:
        return [WaitDue(wait.call, wait.name, wait.digest, at, wait.until)], Verdict("expired", None, wait.until)
    return [_fact(wait, event, at)], Verdict("decided", event.by, at)


def _fact(wait: Open, event: Decided, at: int) -> Fact:
    if event.approve:
        return Approval(wait.call, wait.name, wait.digest, at, event.by, event.comment, event.value)
    return Rejection(wait.call, wait.name, wait.digest, at, event.by, event.reason or "")


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


def _meant(call: str, name: str, event: Decided) -> bool:
    return name == event.name and (event.wait is None or event.wait == call)
