"""host.live - what happens, as lines for `onefold dev` and the live page.

For: turning committed facts into one line each, and handing them to whoever watches now.
Never: keeps a line; slows a commit down: a watcher that does not keep up misses lines.
Was wrong once: an unbounded queue to each watcher. One sleeping browser tab held all of a night's lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onefold.actuators.words import FailedFor, Parked, PassOver, StepFell
from onefold.host.clock import Clock
from onefold.kernel.fold import Folded
from onefold.node.resident import Resident
from onefold.terms.faults import short
from onefold.terms.instant import moment, text
from onefold.terms.places import at_place

WHY_CHARS = 600  # of a message: the place stands behind it
KEPT = 1_000  # lines that may wait for one watcher


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that just happened, in one line."""

    at: datetime
    what: str
    run_id: str | None
    program: str | None
    text: str


class Live:
    """Lines to watchers. Costs nothing while nobody watches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watchers: list[asyncio.Queue[Happening | None]] = []

    @property
    def watched(self) -> bool:
        """Whether anybody watches now."""
        return bool(self._watchers)

    def heard(self, resident: Resident, folded: Folded) -> None:
        if not self._watchers:
            return
        at = resident.at
        run = at.key if at.key.startswith("run_") else None
        when = moment(self._clock.now())
        for fact in folded.facts:
            if isinstance(fact, PassOver):
                continue  # a pass is how a run is carried on, and nothing that happened to it
            what = type(fact).__name__
            self.tell(Happening(when, what, run, at.kind, f"{at.kind} {at.key} {_said(what, fact)}"))

    def tell(self, happening: Happening) -> None:
        for queue in self._watchers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(happening)

    async def watch(self) -> AsyncIterator[Happening]:
        queue: asyncio.Queue[Happening | None] = asyncio.Queue(KEPT)
        self._watchers.append(queue)
        try:
            while (happening := await queue.get()) is not None:
                yield happening
        finally:
            self._watchers.remove(queue)

    def close(self) -> None:
        """End every watch."""
        for queue in self._watchers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)


def _said(what: str, fact: Any) -> str:
    """A fact in a few words: its class, and the names in it that people know."""
    parts = [what]
    for field in ("name", "kind", "attempt", "status", "by", "reason"):
        value = getattr(fact, field, None) if field in _fields(type(fact)) else None
        if isinstance(value, str | int) and value != "":
            parts.append(f"{field}={value}")
    return " ".join(parts) + _why(fact)


def _why(fact: Any) -> str:
    """Why something failed or stopped: the kind and message of what was raised, and the author's line."""
    if isinstance(fact, StepFell | FailedFor):
        trouble = fact.trouble
        again = "" if isinstance(fact, FailedFor) or fact.until is None else f", tried again at {text(fact.until)}"
        return f": {short(f'{trouble.kind}: {trouble.message}', WHY_CHARS)}{at_place(trouble.place)}{again}"
    return f": {fact.cause}" if isinstance(fact, Parked) else ""


def _fields(kind: type) -> Container[str]:
    """What a fact holds. A property of its class is its author's code, which may raise, and is not called here."""
    for listed in ("__dataclass_fields__", "__struct_fields__", "__pydantic_fields__"):
        found: Container[str] | None = getattr(kind, listed, None)
        if found is not None:
            return found
    return ()
