"""testing.broken.reflexes - the stages behind a reflex's fan-out with one fault each, so that their tests prove teeth.

For: `Stages`, the sound ones as a scenario calls them; `BROKEN_STAGES`, every twin by name.
Never: is broken in two places. Each is a design that somebody has shipped.
Was wrong once: a twin that lost a row on every path. Each test caught it, and none was shown to be needed.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from typing import TypeVar

from onefold.reflex import claim, execute, explain, overdue, record, retention
from onefold.reflex.claim import Claimed
from onefold.reflex.execute import Emits, Ending, Landing
from onefold.reflex.record import Recorded
from onefold.reflex.retention import Place, Swept
from onefold.reflex.tables import INTAKE
from onefold.reflex.words import Cause, Overdue, Policy
from onefold.store.contract import Answer, Body, Done, Query, Row, Space
from onefold.terms.ids import Principal
from onefold.terms.instant import Instant

T = TypeVar("T")
LEASE_MS = 60_000


async def committed(space: Space, body: Body[T]) -> T:
    """What a body came to. Raises: what it was refused with."""
    outcome = await space.transact(body)
    if isinstance(outcome, Done):
        return outcome.value
    raise outcome.error


class Stages:
    """The sound stages, each as one act upon a space."""

    async def claim(
        self, space: Space, now: Instant, limit: int, effects: Sequence[str], token: int, timeouts: Mapping[str, int]
    ) -> Claimed:
        return await committed(space, claim.claiming(now, limit, effects, token, LEASE_MS, timeouts))

    def emits(self, task: Row, now: Instant) -> Emits:
        return Emits(task, now)

    def judge(self, task: Row, policy: Policy, ending: Ending, now: Instant, emits: Emits) -> Landing:
        kept = emits.close()
        if isinstance(ending, execute.Returned):
            ending = execute.Returned(ending.output, kept)
        return execute.judged(task, policy, ending, now)

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        return await committed(space, record.recording(landings, now, lambda: space.mint(INTAKE)))

    async def retry(self, space: Space, n: int, now: Instant) -> bool:
        return await committed(space, record.retrying(n, now))

    async def sweep_runs(self, space: Space, before: Instant, after: Place | None, limit: int) -> Swept:
        return await committed(space, retention.sweeping_runs(before, after, limit))

    async def sweep_facts(self, space: Space, before: Instant, after: Place | None, limit: int) -> Swept:
        return await committed(space, retention.sweeping_facts(before, after, limit))

    async def explain(self, space: Space, id: str, principals: Collection[Principal] | None) -> list[Cause]:
        return await walked(space, explain.links(id, principals))

    async def overdue(self, space: Space, now: Instant, principals: Collection[Principal] | None) -> list[Overdue]:
        return overdue.overdue(await space.look(*overdue.questions(now)), now, principals)


async def walked(space: Space, walk: Generator[tuple[Query, ...], tuple[Answer, ...], T]) -> T:
    """Answer what a walk asks, until it ends."""
    try:
        asked = next(walk)
        while True:
            asked = walk.send(await space.look(*asked))
    except StopIteration as end:
        found: T = end.value
        return found
