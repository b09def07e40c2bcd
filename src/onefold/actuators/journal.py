"""actuators.journal - what a run has done, a row an act, for people.

For: the rows of a run's journal page, made from its entries.
Never: decides anything; leaves an attempt out.
Was wrong once: only results. A step that failed four times before it worked looked like one that never failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from onefold.actuators.state import State
from onefold.actuators.words import Approval, Entry, EventTaken, Rejection, StepAgain, StepDone, StepFell, WaitDue


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry. path: the task and which of its calls. kind: what ended. at: milliseconds. error: kind and message."""

    path: str
    step: str
    kind: str
    attempt: int
    at: int
    result: Any = None
    error: Any = None


def rows(state: State) -> list[JournalEntry]:
    """The journal in the order of commits."""
    return [_row(entry) for entry in state.journal]


def _row(entry: Entry) -> JournalEntry:
    match entry:
        case StepDone():
            return _told(entry, "step", entry.attempt, msgspec.json.decode(entry.result))
        case StepFell(trouble=trouble):
            error = {"kind": trouble.kind, "message": trouble.message}
            return _told(entry, "failed" if entry.until is None else "retry", entry.attempt, error=error)
        case StepAgain():
            return _told(entry, "again")
        case WaitDue():
            return _told(entry, "due")
        case EventTaken():
            return _told(entry, "event", result=msgspec.json.decode(entry.body))
        case Approval():
            return _told(entry, "approved", result={"by": entry.by, "comment": entry.comment})
        case Rejection():
            return _told(entry, "rejected", result={"by": entry.by, "reason": entry.reason})


def _told(entry: Entry, kind: str, attempt: int = 0, result: Any = None, error: Any = None) -> JournalEntry:
    return JournalEntry(entry.call, entry.name, kind, attempt, entry.at, result, error)
