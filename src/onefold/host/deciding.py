"""host.deciding - a decision on an event, as the node asks for it.

For: an event and its module's `decide` in one, for a fold; an event of another process, read.
Never: decides by itself; keeps a state.
Was wrong once: a lambda at each door. None of them could say afterwards whether it had been asked.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any


class Deciding:
    """The decision on an event, as the node asks for it, and whether it did: it does not for an id it knows."""

    __slots__ = ("_decide", "_event", "asked")

    def __init__(self, decide: Callable[[Any, Any, datetime], Any], event: Any) -> None:
        self._decide = decide
        self._event = event
        self.asked = False

    def __call__(self, state: Any, now: datetime) -> Any:
        self.asked = True
        return self._decide(state, self._event, now)

    def taken_back(self) -> None:
        """What it decided came to nothing; the event is taken again, and may be known by then."""
        self.asked = False


def decided(decide: Any, event: Any, state: Any, now: datetime) -> Any:
    """The decision on an event, as the node asks for it."""
    return decide(state, event, now)


def read_by(module: Any, word: Any) -> Any:
    """An event of another process as this code reads it. Raises: BadArguments; NotFound for a method it has not."""
    event = module.codecs.event.from_json(word)
    knows = getattr(module, "knows", None)
    if knows is not None:
        knows(event)
    return event
