"""Facts in plain words: what a row of a run says to whoever reads a transcript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onefold.actuators import words as w
from onefold.terms.instant import text


def plain(key: str) -> str:
    return f"under the key {key}"


def in_words(fact: Any) -> str:
    """One fact, or "" for what only the engine reads."""
    say = SAID.get(type(fact))
    return repr(fact) if say is None else say(fact)


def _json(raw: Any) -> str:
    told = bytes(raw).decode()
    return told if len(told) < 80 else f"{told[:79]}…"


def _until(fact: Any, words: str) -> str:
    return "" if fact.until is None else f"{words} {text(fact.until)}"


def _fell(fact: w.StepFell) -> str:
    then = _until(fact, "and is tried again at") or "for the last time"
    return f"attempt {fact.attempt} of {fact.name} raised {fact.trouble.kind}: {fact.trouble.message}, {then}"


def _opened(fact: w.WaitOpened) -> str:
    return f"waits for {'sleep' if fact.kind == 'sleep' else f'{fact.kind} {fact.name}'}{_until(fact, ' until')}"


SAID: dict[type, Callable[[Any], str]] = {
    w.Started: lambda fact: f"the run begins with {_json(fact.input)}",
    w.StepDone: lambda fact: f"{fact.name} gave {_json(fact.result)}",
    w.StepFell: _fell,
    w.StepAgain: lambda fact: f"it is time to try {fact.name} again",
    w.StepTrying: lambda fact: f"attempt {fact.attempt} of {fact.call} is about to leave",
    w.WaitOpened: _opened,
    w.WaitDue: lambda fact: f"the time of {fact.name} has come",
    w.WaitReleased: lambda fact: "a wait is no longer needed",
    w.EventKept: lambda fact: f"{fact.name} {_json(fact.body)} came before anything waited for it, and is kept",
    w.EventTaken: lambda fact: (
        f"{fact.name} {_json(fact.body)} is taken by its wait{', as it was kept' if fact.kept else ''}"
    ),
    w.Approval: lambda fact: f"{', '.join(fact.by)} approved {fact.name}",
    w.Rejection: lambda fact: f"{fact.by} rejected {fact.name}: {fact.reason}",
    w.PassOver: lambda fact: "",
    w.Parked: lambda fact: f"parked as {fact.code}: {fact.cause}",
    w.Finished: lambda fact: f"done: {_json(fact.result)}",
    w.FailedFor: lambda fact: f"failed: {fact.trouble.kind}: {fact.trouble.message}",
    w.CancelledFor: lambda fact: f"cancelled: {fact.reason}",
    w.Reopened: lambda fact: "reopened by a person",
}
