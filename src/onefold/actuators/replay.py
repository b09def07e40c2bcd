"""actuators.replay - a run's function from its top, over what was journaled, and not a step further.

For: whether code does what a journal holds: beside a pass in tests, and over the histories of a store that is elsewhere.
Never: runs a step; asks for a blob; writes.
Was wrong once: the pass itself with a store in memory. What the journal did not know was begun: it sent.
"""

from __future__ import annotations

import asyncio
from typing import Any

from onefold.actuators.calls import Known, StepCall
from onefold.actuators.carried import Change, Diverged, PassEnded, Progress
from onefold.actuators.declare import Actuator
from onefold.actuators.executing import Actor, Execution
from onefold.actuators.parts import Wait
from onefold.actuators.passing import told
from onefold.actuators.state import State
from onefold.actuators.words import Waiting


class Noting(Execution):
    """An execution that keeps what was called: id to how it is told, and its digest."""

    def __init__(self, actor: Actor, actuator: Actuator[Any, Any], known: dict[bytes, bytes]) -> None:
        super().__init__(actor, actuator, known)
        self.made: dict[str, tuple[str, str]] = {}
        add = self.home.add

        def noted(call: Known) -> None:
            self.made[call.id] = (told(call), call.digest)
            add(call)

        self.home.add = noted  # type: ignore[method-assign]


class Replay(Noting):
    """The same function from its top, over what was journaled. It starts nothing."""

    def __init__(self, state: State, actuator: Actuator[Any, Any], known: dict[bytes, bytes]) -> None:
        super().__init__(_Looking(state), actuator, known)
        self.blocked: asyncio.Future[None] = self.host.create_future()

    def begin_whole(self) -> None:
        """Until every task is blocked; with a thread, `blocked` says when."""
        self._launch(self._arguments())
        self._advance()

    def _advance(self) -> None:
        super()._advance()
        if not self.home.away and not self.blocked.done():
            self.blocked.set_result(None)

    def leave(self) -> None:
        """Let its tasks go."""
        self.own.close()
        self.home.stop()
        if self.crossing is not None:
            self.crossing.close()

    def begin(self, call: StepCall, attempt: int) -> None:
        """The pass itself does."""

    def abandon(self, call: StepCall) -> None:
        """There is nothing to abandon."""

    def tell(self, event: Waiting | Change | Progress) -> None:
        """The pass itself does."""

    def register(self, waits: tuple[Wait, ...], released: tuple[str, ...], unread: tuple[str, ...]) -> None:
        """The pass itself does."""


class _Looking:
    """An actor that only shows its state."""

    stand_in = None
    children: Any = None

    def __init__(self, state: State) -> None:
        self.state = state

    def watch(self, callback: Any, /) -> Any:
        return lambda: None

    async def fold(self, event: Any, id: str, /) -> Any:
        raise AssertionError("a replay folds nothing")

    async def blob(self, digest: bytes, /) -> bytes:
        raise AssertionError("a replay asks nobody: the pass knows every value")

    async def author(self, step: Any, event_of: Any, /, *, id: str, budget_ms: int) -> Any:
        raise AssertionError("a replay writes nothing")


async def replayed(state: State, actuator: Actuator[Any, Any]) -> PassEnded | None:
    """How the function goes over this journal: how it ended, or None where it would now begin something new."""
    replay = Replay(state, actuator, {})
    try:
        try:
            replay.begin_whole()
        except ValueError as refused:
            why = " ".join(str(refused).split())
            return Diverged(0, "the input it was started with", f"an input model that refuses it: {why[:500]}")
        await replay.blocked
        return replay.home.outcome
    finally:
        replay.leave()
        if replay.crossing is not None:
            await replay.crossing.left
