"""testing.broken.reflex_faults - the stages behind a fan-out with one fault each.

For: the classes of the twins; reflex_twins says which scenario each must fall over.
Never: has two faults; hides its fault: each is a design that somebody has shipped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onefold.reflex import execute, intake
from onefold.reflex.claim import Claimed
from onefold.reflex.execute import Emits, Ending, Landing
from onefold.reflex.record import Recorded
from onefold.reflex.retention import Place, Swept
from onefold.reflex.tables import INTAKE, REFLEX_RUN, STATE, TASK
from onefold.reflex.words import Cause, Overdue, Policy
from onefold.store.contract import (
    Append,
    Cas,
    Cell,
    Claim,
    Condition,
    Inc,
    Put,
    Query,
    Remove,
    Row,
    Space,
    Table,
    Value,
)
from onefold.terms.ids import Principal
from onefold.terms.instant import Instant
from onefold.testing.broken.reflexes import LEASE_MS, Stages, committed
from onefold.testing.store_suite.ground import asking, writing

Cells = dict[str, Any]


async def rows(space: Space, table: Table, *where: Condition) -> list[Cells]:
    """Rows as dictionaries, read outside any commit."""
    (found,) = await space.look(Query(table, where=where, order=table.key))
    return [dict(zip(table.at, row, strict=True)) for row in found]


async def change(space: Space, table: Table, key: Cell, **cells: Value) -> None:
    """Some cells of one row, in a commit of their own."""
    await committed(space, writing(Cas(table, [((key,), {}, cells)])))


# --- claim ------------------------------------------------------------------------------------------


class ClaimsForEver(Stages):
    """No lease: what a dead process had stays claimed."""

    async def claim(self, space: Space, *given: Any) -> Claimed:
        claimed = await super().claim(space, *given)
        for task in claimed.run:
            await change(space, TASK, task[0], ready_at=None)
        return claimed


class OneLease(Stages):
    """Everything gets the same lease, however long it may run."""

    async def claim(
        self, space: Space, now: Instant, limit: int, effects: Sequence[str], token: int, timeouts: Mapping[str, int]
    ) -> Claimed:
        claimed = await super().claim(space, now, limit, effects, token, timeouts)
        for task in claimed.run:
            await change(space, TASK, task[0], ready_at=now + LEASE_MS)
        return claimed


class NeverParks(Stages):
    """Retries are counted by answers only: who kills its process is claimed for ever."""

    async def claim(self, space: Space, *given: Any) -> Claimed:
        claimed = await super().claim(space, *given)
        for task in claimed.run:
            await change(space, TASK, task[0], claims=0)
        return claimed


class GuiltByNeighbourhood(Stages):
    """Suspects run with whatever else is due, so that all of it counts when one kills the process."""

    async def claim(
        self, space: Space, now: Instant, limit: int, effects: Sequence[str], token: int, timeouts: Mapping[str, int]
    ) -> Claimed:
        due: tuple[Condition, ...] = (("ready_at", "<=", now), ("effect", "in", tuple(effects)))
        taken: Mapping[str, Value] = {
            "state": "claimed", "token": token, "claims": Inc(1), "attempt": Inc(1), "ready_at": now + LEASE_MS,
        }  # fmt: skip
        (found,) = await committed(space, asking(Claim(TASK, due, ("ready_at", "n"), limit, taken)))
        few = [row for row in found if row[TASK.at["claims"]] <= 5]
        return Claimed(tuple(few), tuple(row for row in found if row not in few))


class ReclaimsQuietly(Stages):
    """A claim that does not count its attempt: a task that is never answered has made none."""

    async def claim(self, space: Space, *given: Any) -> Claimed:
        claimed = await super().claim(space, *given)
        for task in claimed.run:
            await change(space, TASK, task[0], attempt=Inc(-1))
        return claimed


class TakesAnyEffect(Stages):
    """A node that lacks an effect claims its tasks all the same."""

    async def claim(
        self, space: Space, now: Instant, limit: int, effects: Sequence[str], token: int, timeouts: Mapping[str, int]
    ) -> Claimed:
        return await super().claim(space, now, limit, (*effects, "do"), token, timeouts)


class BatonAtTheClaim(Stages):
    """The baton goes on when a task is claimed: two are in flight."""

    async def claim(self, space: Space, *given: Any) -> Claimed:
        claimed = await super().claim(space, *given)
        for task in claimed.run:
            reflex = task[TASK.at["baton"]]
            queued = await rows(space, TASK, ("queue", "=", reflex))
            if queued:
                await change(space, TASK, task[0], baton=None)
                own: dict[str, Value] = {"state": "ready", "baton": reflex, "queue": None, "ready_at": given[0]}
                await change(space, TASK, queued[0]["n"], **own)
        return claimed


# --- execute ----------------------------------------------------------------------------------------


class KeepsEmitsOfFailures(Stages):
    """What was emitted leaves, whatever became of the attempt."""

    def judge(self, task: Row, policy: Policy, ending: Ending, now: Instant, emits: Emits) -> Landing:
        return replace(execute.judged(task, policy, ending, now), emits=emits.close())

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        told = await super().record(space, landings, now)
        lost = [fact for landing in landings if landing.ready_at is not None for fact in landing.emits]
        await committed(space, writing(Append(INTAKE, [intake.row_of(space.mint(INTAKE), fact) for fact in lost])))
        return told


class DepthFromTheRun(Stages):
    """Depth is read back from the run when a fact is emitted: 0 once the run was swept."""

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        runs = {run["n"]: run["depth"] for run in await rows(space, REFLEX_RUN)}
        deep = [
            replace(one, emits=tuple([replace(fact, depth=runs.get(one.run, 0) + 1) for fact in one.emits]))
            for one in landings
        ]
        return await super().record(space, deep, now)


class Nobodys(Stages):
    """Emitted facts carry no identity."""

    def judge(self, task: Row, policy: Policy, ending: Ending, now: Instant, emits: Emits) -> Landing:
        landing = super().judge(task, policy, ending, now, emits)
        return replace(landing, emits=tuple([replace(fact, principal=None) for fact in landing.emits]))


# --- record -----------------------------------------------------------------------------------------


class NoFence(Stages):
    """Whoever answers is written down."""

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        tasks = {task["n"]: task for task in await rows(space, TASK)}
        current = [replace(landing, token=tasks[landing.task]["token"] or landing.token) for landing in landings]
        return await super().record(space, current, now)


class CountsWhatItReadBefore(Stages):
    """Reads the run, decides whether it is complete, then writes the count."""

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        before = {run["n"]: run for run in await rows(space, REFLEX_RUN)}
        told = await super().record(space, landings, now)
        for n, run in before.items():
            mine = [one for one in landings if one.run == n and one.ready_at is None]
            done = run["done"] + sum(one.state == "done" for one in mine)
            if run["state"] == "fanned" and mine and done + run["failed"] < run["total"]:
                await change(space, REFLEX_RUN, n, done=done, state="fanned")
        return told


class AnnouncesEachTime(Stages):
    """A run that settles says so, also when it was opened again."""

    async def retry(self, space: Space, n: int, now: Instant) -> bool:
        done = await super().retry(space, n, now)
        for task in await rows(space, TASK, ("n", "=", n)):
            await change(space, REFLEX_RUN, task["run"], drained=0)
        return done


class AnnouncesLater(Stages):
    """The run's fact is appended in a commit of its own, after the one that settles it."""

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        for landing in landings:
            await change(space, REFLEX_RUN, landing.run, drained=1)
        told = await super().record(space, landings, now)
        settled = [run for run in await rows(space, REFLEX_RUN, ("state", "=", "settled")) if run["n"] in told.settled]
        facts = [intake.settling(tuple(run.values()), now) for run in settled]
        await committed(space, writing(Append(INTAKE, [intake.row_of(space.mint(INTAKE), fact) for fact in facts])))
        return told


class BackoffLetsGo(Stages):
    """A task that is to be tried again gives its baton to the next."""

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        told = await super().record(space, landings, now)
        for landing in landings:
            queued = await rows(space, TASK, ("queue", "=", landing.reflex))
            if landing.serial and landing.ready_at is not None and queued:
                await change(space, TASK, landing.task, baton=None)
                own: dict[str, Value] = {"state": "ready", "baton": landing.reflex, "queue": None, "ready_at": now}
                await change(space, TASK, queued[0]["n"], **own)
        return told


class FailureKeepsTheBaton(Stages):
    """Only a success passes the baton on."""

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        kept = [one if one.state == "done" else replace(one, serial=False) for one in landings]
        return await super().record(space, kept, now)


class ParksWithoutCounting(Stages):
    """A parked task leaves its run waiting for it."""

    async def record(self, space: Space, landings: Sequence[Landing], now: Instant) -> Recorded:
        told = await super().record(space, landings, now)
        for landing in landings:
            if landing.state == "parked":
                left: dict[str, Value] = {"failed": Inc(-1), "state": "fanned"}
                await change(space, REFLEX_RUN, landing.run, **left)
        return told


# --- retry ------------------------------------------------------------------------------------------


class RetriesWithoutRewinding(Stages):
    """The task is opened alone; its run stays settled and counts it as failed."""

    async def retry(self, space: Space, n: int, now: Instant) -> bool:
        runs = await rows(space, REFLEX_RUN)
        done = await super().retry(space, n, now)
        await committed(space, writing(Put(REFLEX_RUN, [tuple(run.values()) for run in runs])))
        return done


class CountComesDownWithTheRewind(Stages):
    """The failure leaves the count only where the run was settled."""

    async def retry(self, space: Space, n: int, now: Instant) -> bool:
        before = {run["n"]: run["state"] for run in await rows(space, REFLEX_RUN)}
        done = await super().retry(space, n, now)
        for task in await rows(space, TASK, ("n", "=", n)):
            if done and before[task["run"]] == "fanned":
                await change(space, REFLEX_RUN, task["run"], failed=Inc(1))
        return done


class KeepsSpentAttempts(Stages):
    """A task that is opened again has the attempts that it had used up."""

    async def retry(self, space: Space, n: int, now: Instant) -> bool:
        (task,) = await rows(space, TASK, ("n", "=", n))
        done = await super().retry(space, n, now)
        if done:
            await change(space, TASK, n, attempt=task["attempt"])
        return done


class RetryTakesTheBaton(Stages):
    """A serial task that is opened again is due at once, whoever is in flight."""

    async def retry(self, space: Space, n: int, now: Instant) -> bool:
        done = await super().retry(space, n, now)
        await change(space, TASK, n, state="ready", queue=None, ready_at=now)
        return done


# --- retention --------------------------------------------------------------------------------------


class SweepsTasksAlone(Stages):
    """Tasks have a horizon of their own: the row that says a unit was done goes before its run."""

    async def sweep_runs(self, space: Space, before: Instant, after: Place | None, limit: int) -> Swept:
        ended: tuple[Condition, ...] = (("ended_at", "<", before),)
        await committed(space, writing(Remove(TASK, where=ended)))
        return await super().sweep_runs(space, before, after, limit)


class SweepsByAge(Stages):
    """Whatever began before the horizon goes, settled or not."""

    async def sweep_runs(self, space: Space, before: Instant, after: Place | None, limit: int) -> Swept:
        old = await rows(space, REFLEX_RUN, ("at", "<", before))
        await committed(space, writing(Remove(REFLEX_RUN, keys=[(run["n"],) for run in old])))
        return Swept(runs=len(old))


class SweepsUnderAChain(Stages):
    """A settled run goes although what it led to still waits."""

    async def sweep_runs(self, space: Space, before: Instant, after: Place | None, limit: int) -> Swept:
        old = await rows(space, REFLEX_RUN, ("settled_at", "<", before))
        await committed(space, writing(Remove(REFLEX_RUN, keys=[(run["n"],) for run in old])))
        return Swept(runs=len(old))


class FreesKeys(Stages):
    """A fact goes whole, and its key with it: a replay is a new event."""

    async def sweep_facts(self, space: Space, before: Instant, after: Place | None, limit: int) -> Swept:
        swept = await super().sweep_facts(space, before, after, limit)
        await committed(space, writing(Remove(INTAKE, where=(("state", "=", "swept"),))))
        return swept


class FreesOccurrences(Stages):
    """Nobody remembers up to where the runs of a clock were swept."""

    async def sweep_runs(self, space: Space, before: Instant, after: Place | None, limit: int) -> Swept:
        swept = await super().sweep_runs(space, before, after, limit)
        for state in await rows(space, STATE):
            await change(space, STATE, state["reflex"], swept_at=None)
        return swept


# --- questions --------------------------------------------------------------------------------------


class ExplainsToAnybody(Stages):
    """A chain is shown to whoever asks."""

    async def explain(self, space: Space, id: str, principals: Collection[Principal] | None) -> list[Cause]:
        return await super().explain(space, id, None)


class OverdueByDueTime(Stages):
    """A run is late when its next try is: one that is put off every hour never is."""

    async def overdue(self, space: Space, now: Instant, principals: Collection[Principal] | None) -> list[Overdue]:
        late = {f"reflex_run_{run['n']}" for run in await rows(space, REFLEX_RUN, ("due_at", "<=", now))}
        found = await super().overdue(space, now, principals)
        return [one for one in found if one.what.startswith("an") or one.what.split(",")[0] in late]
