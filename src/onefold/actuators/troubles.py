"""actuators.troubles - exceptions as data, and data as StepFailed.

For: what a row keeps of an exception, and what the program meets instead of it.
Never: builds a class it read; keeps what is no JSON.
Was wrong once: pickled exceptions. A class that had moved could not be read, and the run with it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from onefold.actuators.parts import NULL, Trouble
from onefold.actuators.words import StepFell
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments, StepFailed
from onefold.terms.faults import says
from onefold.terms.places import place_of

MESSAGE_LIMIT = 4_000
"""Characters of an exception's message: enough to tell, too little to fill a row."""
DATA_LIMIT = 4_000
"""Bytes of an exception's attributes; more are left out."""


class Unfit(Exception):
    """A result that cannot be written. `fault` says why."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault
        super().__init__(says(fault))


def told(fault: BaseException) -> Trouble:
    """An exception as data: its class's name, its message, and those of its attributes that are JSON."""
    data = {name: value for name, value in vars(fault).items() if not name.startswith("_") and _is_json(value)}
    raw = canonical(data) if data else b"null"
    kept = Raw(raw) if len(raw) <= DATA_LIMIT else NULL
    return Trouble(type(fault).__name__, _message(fault), data=kept, place=place_of(fault))


def trouble_of(fault: BaseException) -> Trouble:
    """An exception that ended the function. Of a group, its first; a failed step names itself."""
    if isinstance(fault, Unfit):
        fault = fault.fault
    while isinstance(fault, BaseExceptionGroup) and fault.exceptions:
        fault = fault.exceptions[0]
    if isinstance(fault, StepFailed):
        call, place = getattr(fault, "call", None), getattr(fault, "place", None)
        return Trouble(fault.kind, fault.message, fault.step, fault.attempts, call, place=place)
    return Trouble(type(fault).__name__, _message(fault), place=place_of(fault))


def failure(entry: StepFell) -> StepFailed:
    """What a step's own exception becomes: data, never its class."""
    trouble = entry.trouble
    failed = StepFailed(entry.name, entry.attempt, trouble.kind, trouble.message, msgspec.json.decode(trouble.data))
    failed.call = entry.call  # type: ignore[attr-defined]  # so that a retry of the run knows which to take back
    failed.place = trouble.place  # type: ignore[attr-defined]  # where the step raised, not where it was awaited
    return failed


def _message(fault: BaseException) -> str:
    return says(fault).encode("utf-8", "replace").decode().replace("\0", "\ufffd")[:MESSAGE_LIMIT]


def _is_json(value: Any) -> bool:
    try:
        canonical(value)
    except BadArguments:
        return False
    return True
