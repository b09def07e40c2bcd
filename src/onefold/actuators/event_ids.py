"""actuators.event_ids - what the events of a pass are called, from the events themselves.

For: the id under which a pass folds an event, the same for the same act however often the pass is run.
Never: counts; takes an id from whoever tells the event.
Was wrong once: an id in which the round did not stand. An attempt made anew after a retry was a repeat of the first.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from onefold.actuators.carried import Change, Progress
from onefold.actuators.words import Stepped, Trying, Waiting


def attempt_id(call: str, attempt: int, round: int) -> str:
    """Of the outcome of an attempt."""
    return f"{call}/{round}.{attempt}"


def event_id(event: Stepped | Trying | Waiting | Change | Progress, round: int) -> str:
    """round: how often the run was reopened."""
    match event:
        case Stepped(call=call, attempt=attempt):
            return attempt_id(call, attempt, round)
        case Trying(call=call, attempt=attempt):
            return f"{attempt_id(call, attempt, round)}/try"
        case Waiting(waits=waits, released=released, unread=unread):
            told = msgspec.json.encode(([wait.call for wait in waits], released, unread))
            return f"w/{round}/{blake2b(told, digest_size=12).hexdigest()}"
        case Change(places=places):
            return f"v/{places[0]}/{round}"
        case Progress(n=n):
            return f"p/{n}/{round}"
