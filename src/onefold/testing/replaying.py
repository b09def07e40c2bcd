"""testing.replaying - `replay="every-await"`: each pass is replayed from its top whenever something was journaled.

For: a function that gives two answers found where it does, and not when a process happens to die there.
Never: runs a step a second time: a replay is handed what the journal holds, and asks for nothing new.
Was wrong once: ending the pass after each entry, so that the next began from the top. Steps side by side were cut
off, and ran twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from onefold.actuators.carried import Diverged, PassEnded, Raised, Returned
from onefold.actuators.declare import Actuator
from onefold.actuators.executing import Actor, kept_aside
from onefold.actuators.replay import Noting, Replay
from onefold.actuators.state import GOING
from onefold.actuators.words import ENTRIES, Fact
from onefold.kernel.blob import note


async def run_pass(actor: Actor, actuator: Actuator[Any, Any]) -> PassEnded:
    """A pass as the host runs it, replayed after each commit. A replay that differs parks the run by name."""
    return await Replayed(actor, actuator, await kept_aside(actor)).whole()


class Replayed(Noting):
    """The pass itself."""

    def __init__(self, actor: Actor, actuator: Actuator[Any, Any], known: dict[bytes, bytes]) -> None:
        super().__init__(actor, actuator, known)
        self._found: Diverged | None = None
        self._threads: list[asyncio.Task[None]] = []

    async def whole(self) -> PassEnded:
        outcome = await super().whole()
        for task in self._threads:
            await task
        return self._found or outcome

    def _committed(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            note(fact, self.known)
        super()._committed(facts)
        state = self.actor.state
        if self._found is not None or state.status not in GOING or not any(type(fact) in ENTRIES for fact in facts):
            return
        replay = Replay(state, self.actuator, self.known)
        if self.actuator.is_async:
            replay.begin_whole()
            self._compare(replay, self.made)
        else:
            self._threads.append(self.host.create_task(self._in_thread(replay)))

    async def _in_thread(self, replay: Replay) -> None:
        """A plain function's replay takes its own thread; by then the pass has gone on, so only the journal is compared."""
        replay.begin_whole()
        await replay.blocked
        self._compare(replay, None)
        if replay.crossing is not None:
            await replay.crossing.left

    def _compare(self, replay: Replay, made: dict[str, tuple[str, str]] | None) -> None:
        found = replay.home.outcome
        if not isinstance(found, Diverged):
            found = _differing(self.home.seen, made, replay.made) if made is not None else None
        if found is None and made is not None:
            found = _ended_otherwise(self.home.outcome, replay.home.outcome)
        replay.leave()
        if found is not None and self._found is None:
            self._found = found
            if self.home.outcome is None:
                self.home.end(found)


def _differing(seen: int, made: dict[str, tuple[str, str]], again: dict[str, tuple[str, str]]) -> Diverged | None:
    """The first call that only one of the two made, or that both made otherwise."""
    for id in (*made, *(id for id in again if id not in made)):
        first, then = made.get(id), again.get(id)
        if first == then:
            continue
        if first is None or then is None:
            return Diverged(
                seen, "nothing more" if first is None else first[0], then[0] if then else "nothing of the kind"
            )
        return Diverged(seen, first[0], then[0] + (" with other arguments" if first[0] == then[0] else ""))
    return None


def _ended_otherwise(first: PassEnded | None, then: PassEnded | None) -> Diverged | None:
    """Whether the function ended in two ways: results and faults of one journal are the same each time."""
    ends = (Returned, Raised)
    if not (isinstance(first, ends) or isinstance(then, ends)) or first == then:
        return None
    return Diverged(getattr(first, "seen", 0), _end(first), _end(then))


def _end(outcome: PassEnded | None) -> str:
    if isinstance(outcome, Returned):
        return f"the result {bytes(outcome.result).decode()[:200]}"
    return f"the fault {outcome.trouble.kind}" if isinstance(outcome, Raised) else "nothing yet"
