"""host.passes - the port `pass`: a run's function, replayed on its actor.

For: handing a pass its actor: the durable state, the facts as they are committed, and a way to fold.
Never: decides; keeps a pass that its actor no longer knows.
Was wrong once: a queue of passes beside the kernel. A pass is an owed row like any other: retried,
counted, parked, and gone only when its answer is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from onefold.actuators.carried import PassEnded, RunPass
from onefold.actuators.state import State
from onefold.actuators.words import Event, Fact, Stepped
from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.host.kin import Kin
from onefold.kernel.drain import moved
from onefold.kernel.port import Inner
from onefold.node.author import author
from onefold.node.resident import ReadAnew, Resident
from onefold.store.contract import Tx
from onefold.terms.ids import ActorId, step_id

T = TypeVar("T")


class RunActor:
    """One run's actor, as its pass sees it."""

    def __init__(self, core: Core, at: ActorId, resident: Resident) -> None:
        self._core = core
        self._at = at
        self._resident = resident
        self._decide = resident.module.decide
        self.stand_in = core.stand_in
        self._found = next((row for row in resident.owed.values() if row.port == "pass" and row.found), None)

    @property
    def state(self) -> State:
        state: State = self._resident.durable
        return state

    @property
    def children(self) -> Kin:
        return Kin(self._core.runs, self._at, self.state.limit)

    def watch(self, callback: Callable[[Sequence[Fact]], None], /) -> Callable[[], None]:
        watchers = self._resident.watchers
        watchers.append(callback)
        return lambda: watchers.remove(callback)

    def fold(self, event: Event, id: str, /) -> Awaitable[Any]:
        """Fold as the source `step`. The pass reads the rows anew after a failure, so no id is asked twice."""
        if self._resident.gone:
            raise ReadAnew(self._at.kind)
        return self._folded(event, id)

    async def _folded(self, event: Event, id: str) -> Any:
        if isinstance(event, Stepped):
            self._core.point("step-returned")
        decide = partial(decided, self._decide, event)
        found, self._found = self._found, None
        change = None if found is None else moved(found)
        reply = await self._core.node.fold(
            self._at, step_id(id), b"", decide, replies=False, probe=False, change=change
        )
        if self._resident.gone:
            # What it watches was dropped after a lost commit: it is run anew, from the rows.
            raise ReadAnew(self._at.kind)
        return reply

    async def blob(self, digest: bytes, /) -> bytes:
        return await self._core.fetch(self._at, digest)

    def author(
        self, step: Callable[[Tx], T], event_of: Callable[[T], Event], /, *, id: str, budget_ms: int
    ) -> Awaitable[Any]:
        return author(
            self._core.node,
            self._at,
            step_id(id),
            step,
            lambda result: partial(decided, self._decide, event_of(result)),
            budget_ms=budget_ms,
        )


def pass_port(core: Core) -> Inner[RunPass, PassEnded]:
    """The port that runs passes. At most one pass of a run is outstanding: its row is."""

    async def run(at: ActorId, body: RunPass) -> PassEnded:
        await core.newest(at)
        actuator = core.catalog.actuator(at.kind)
        resident = await core.node.activate(at)
        making = actuator.passing or core.run_pass
        return await making(RunActor(core, at, resident), actuator)

    return Inner("pass", run, RunPass, PassEnded)
