"""The real host on a virtual clock, moved step by step, with the model looked at after each.

For: `Play`: what a rule of the machine, or a case beside it, may do: send, fail, kill, wait, evict, open again.
Never: knows Hypothesis; waits for luck: a step ends when nothing moves but what the other side keeps waiting.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from onefold.host.config import settle
from onefold.host.host import Host
from onefold.kernel.drain import LIMIT
from onefold.kernel.tables import ALARM
from onefold.store.contract import Query
from onefold.terms.errors import DecideFailed, KeyConflict, OutcomeUnknown, StoreUnavailable
from onefold.testing import Killed, Stage
from onefold.testing.stage import environ_for
from tests.simulation import sights
from tests.simulation.invariants import BEHIND, check, rows_of
from tests.simulation.jar import EVERY, Event, Far, Has, Light, Mood, Put, jars, lamps
from tests.simulation.model import Model, Told, Who, Wrong, agree, leaving
from tests.sometimes import saw

AT_ONCE = 2_000
SPINS = 20_000  # turns of the loop that a step may take to come to rest: a hundred times what any needs
CAPACITY = 3  # actors in memory: fewer than there are


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a step: from the `hit`-th time a point is met the process is dead, or the disk fails there
    so many `times`."""

    how: str  # "kill" or "disk"
    point: str
    hit: int
    times: int = 1


class Play:
    def __init__(self, store: str, fit: Callable[[Host], None] | None = None) -> None:
        self.far = Far()
        self.model = Model()
        self.sent: list[tuple[str | None, Event]] = []
        config = settle(code={"store": store, "node": {"capacity": CAPACITY}}, environ=environ_for(store))
        self.stage = Stage((jars, lamps, *self.far.parts()), config, fit=fit)
        self._t0 = 0
        self._told: dict[Who, dict[str, list[Told]]] = {}
        self._pruned: dict[Who, list[tuple[Any, ...]]] = {}
        self._alarms: sights.Alarms = {}
        self._calls = 0

    async def open(self) -> None:
        await self.stage.open()

    # --- what may be done ---------------------------------------------------------------------

    async def deliver(
        self, *sent: tuple[str | None, Event], fault: Fault | None = None, rest: bool = True
    ) -> list[Any]:
        """Send events, all at the same moment. `rest`: let it come to rest after the answers, if nothing was killed."""
        self._begin()
        for principal, event in sent:
            content = {"type": type(event).__name__, **asdict(event)}
            self._told.setdefault(whose(principal, event), {}).setdefault(f"d/{event.id}", []).append(content)
        self.sent.extend(one for one in sent if one not in self.sent)
        results = await self._under(fault, [self._say(*one) for one in sent])
        if rest:
            await self.calm()
        await self.look(at_rest=rest)
        for one, result in zip(sent, results, strict=True):
            self.heard(*one, result, faulty=fault is not None)
        return results

    async def fill(self, principal: str | None, key: str) -> None:
        """Put coins into a jar until it has kept a snapshot."""
        who: Who = ("jars", principal, key)
        before = self.model.actor(who)["kept"]
        for n in range(EVERY):
            await self.deliver((principal, Put(f"fill{len(self.sent)}.{n}", key, 1)))
            if self.model.actor(who)["kept"] > before:
                return
        raise Wrong(f"{who} kept no snapshot in {EVERY} facts")

    async def wear_out(self) -> None:
        """Time and again to the next alarm, until what fails all the while is given up on."""
        for _ in range(5 if self.far.mood == "slow" else 4 * LIMIT):
            await self.jump()
            if all(row["at"] is None for row in self._alarms.values()):
                return

    async def pass_time(self, ms: int, fault: Fault | None = None) -> None:
        """Let time pass, stopping at every instant for which somebody waits."""
        self._begin()
        await self._under(fault, [self._advance(ms)])
        await self.calm()
        await self.look()

    async def jump(self, fault: Fault | None = None) -> None:
        """Let time pass to the soonest alarm in the rows, in one step."""
        self._begin()
        space = await self.stage.host.space("main")
        (rows,) = await space.look(Query(ALARM))
        at = min((row[3] for row in rows if row[3] is not None), default=None)
        if at is not None:
            await self._under(fault, [self._advance(max(0, at - self.stage.clock.now()))])
        await self.calm()
        await self.look()

    async def crash(self) -> None:
        self._begin()
        await self.stage.crash()
        await self.calm()
        await self.look()

    async def restart(self, asleep_ms: int = 0) -> None:
        """Stop cleanly, and open again so much later."""
        self._begin()
        self.far.take("well" if self.far.mood == "slow" else self.far.mood)
        await self.stage.close()
        self.stage.clock.step_to(self.stage.clock.now() + asleep_ms)
        await self.open()
        await self.calm()
        await self.look()

    async def be(self, mood: Mood) -> None:
        self._begin()
        self.far.take(mood)
        await self.calm()
        await self.look()

    async def evict(self, pick: int) -> None:
        self._begin()
        there = list(self.stage.host._core.node._residents)
        if there:
            self.stage.host._core.node.evict(there[pick % len(there)])
        await self.look()

    async def read(self, principal: str | None, kind: str, key: str) -> None:
        """A read shows the durable state, and changes no row."""
        self._begin()
        module: Any = jars if kind == "jars" else lamps
        seen = await self.stage.host.read(module, key, caller=self.stage.caller(principal))
        state = self.model.actor((kind, principal, key))["state"]
        if kind == "jars":
            wake = None if seen.wake is None else to_ms(seen.wake)
            shown = {"coins": seen.coins, "held": dict(seen.held), "wake": wake, "jam": seen.jam, "rang": seen.rang}
            agree(f"what a read of {key} shows", shown, state)
        else:
            agree(f"what a read of {key} shows", {"lit": seen.lit}, state)
        await self.look()

    async def ask_for_the_alarm(self, principal: str | None, key: str) -> None:
        """The verb rings what is due, and tells when the next alarm is."""
        self._begin()
        owed = (await rows_of(self.stage)).owed.get(("jars", principal, key), {}).values()
        wake = self.model.actor(("jars", principal, key))["state"]["wake"]
        known = [at for at in (wake, *(row["next_at"] for row in owed)) if at is not None]
        due = await self.stage.host.alarm(jars, key, caller=self.stage.caller(principal))
        if all(at > self._t0 for at in known):
            agree(f"the next alarm of {key}", None if due is None else to_ms(due), min(known, default=None))
        await self.calm()
        await self.look()

    async def prune(self, principal: str | None, key: str, fault: Fault | None = None) -> None:
        """Facts behind the latest snapshot go; cut off anywhere, each turn is as it was or as it is to be."""
        self._begin()
        who: Who = ("jars", principal, key)
        self._pruned = {who: self.model.pruned(who)}
        host, caller = self.stage.host, self.stage.caller(principal)
        (done,) = await self._under(fault, [host.prune(jars, key, caller=caller)])
        if fault is None and isinstance(done, BaseException):
            raise Wrong(f"a prune of {who} was answered {done!r}") from done
        await self.calm()
        await self.look()
        if fault is None:
            agree(f"the turns of {who} after a prune", self.model.actor(who)["rows"], self._pruned[who])

    async def person(self, pick: int, *, drop: bool) -> None:
        """Somebody retries or drops one of the things that wait for a person."""
        self._begin()
        host, caller = self.stage.host, self.stage.caller()
        listed = await host.parked_list(caller=caller)
        if not listed:
            return
        item = listed[pick % len(listed)]
        rows = await rows_of(self.stage)
        key = next(
            (leaving(w, k) for w, o in rows.owed.items() for k, r in o.items() if f"owed.main.{r['n']}" == item.id), ""
        )
        if drop:
            if key:
                self.model.drops.setdefault(key, set()).add("never mind")
            if item.kind == "alarm":
                actor = self.model.actors[rows.names[int(item.id.rpartition(".")[2])]]
                actor["let_go"] = actor["state"]["wake"]
            await host.parked_drop(item.id, reason="never mind", caller=caller)
            if key:
                saw("dropped by a person")
        else:
            self.far.insisted[key] = self.far.insisted.get(key, 0) + 1
            await host.parked_retry(item.id, caller=caller)
        await self.calm()
        await self.look()

    async def end(self) -> None:
        """Once faults stop the backlog drains: all that is owed is done, or waits for a person."""
        waited = False
        await self.be("well")
        for _ in range(60):
            rows = await rows_of(self.stage)
            if all(row["state"] in BEHIND for owed in rows.owed.values() for row in owed.values()):
                if waited:
                    saw("backlog drained")
                return
            waited = True
            await self.jump()
        raise Wrong("the backlog does not drain")

    # --- inside -------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._t0 = int(self.stage.clock.now())
        self._told = {}
        self._pruned = {}

    async def _say(self, principal: str | None, event: Event) -> Any:
        module: Any = lamps if isinstance(event, Light) else jars
        return await self.stage.host.deliver(module, event, caller=self.stage.caller(principal))

    async def _under(self, fault: Fault | None, work: list[Awaitable[Any]]) -> list[Any]:
        """Do it all at once, under a fault. What each came to: a value, an exception, or Killed for no answer."""
        tasks = [asyncio.ensure_future(one) for one in work]
        stage = self.stage
        if fault is not None and fault.how == "kill":
            stage.kill_at(fault.point, hit=fault.hit)
        elif fault is not None:
            stage.failpoint = failing(fault)
        await spin(lambda: stage.killed or all(task.done() for task in tasks))
        if fault is None:
            return [told(task) for task in tasks]
        if fault.how == "kill":
            await stage.let_die()
            results = [told(task) for task in tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            stage.live_on()
            await self.open()
            return results
        results = [told(task) for task in tasks]
        await self.calm()
        stage.live_on()
        await self._advance(1_000)  # whoever met the failed disk tries again after a moment
        return results

    async def _advance(self, ms: int) -> None:
        clock = self.stage.clock
        target = int(clock.now()) + ms
        while True:
            await self.calm()
            stop = clock.next_stop(target)
            clock.step_to(stop)
            if stop >= target:
                break
        await self.calm()

    async def calm(self) -> None:
        """Until nothing moves but what the other side keeps waiting."""
        core = self.stage.host._core
        quiet = 0

        def still() -> bool:
            nonlocal quiet
            sends = core.sender
            at_rest = core.node.idle and core.driver.quiet and not sends._queue and len(sends._tasks) == self.far.held
            quiet = quiet + 1 if at_rest else 0
            return quiet >= 3 or self.stage.killed

        await spin(still)

    async def look(self, *, at_rest: bool = True) -> None:
        """Take the new turns into the model, and when nothing moves hold every invariant against it."""
        rows = await rows_of(self.stage)
        now = int(self.stage.clock.now())
        seen: dict[Who, int] = {}
        moved: set[Who] = set()
        for row in rows.turns:
            who = rows.names[row[1]]
            known = self.model.actor(who)["rows"]
            place = seen.setdefault(who, 0)
            seen[who] += 1
            if place < len(known):
                if self._pruned.get(who, known)[place] == row:
                    known[place] = row
                agree(f"turn {place} of {who}", row, known[place])
            else:
                self.model.turn(who, row, self._told.get(who, {}), self.far.done, self._t0, now)
                moved.add(who)
        for who, actor in self.model.actors.items():
            agree(f"how many turns {who} has", seen.get(who, 0), len(actor["rows"]))
        if at_rest:
            await check(self.stage, rows, self.model, self.far)
            sights.of_rows(rows)
            sights.of_rings(self._alarms, rows, self.model, moved, len(self.far.calls) > self._calls, now)
            self._alarms, self._calls = rows.alarms, len(self.far.calls)

    def heard(self, principal: str | None, event: Event, result: Any, *, faulty: bool) -> None:
        """What a caller was told agrees with the rows."""
        who = whose(principal, event)
        content = {"type": type(event).__name__, **asdict(event)}
        turn = self.model.actor(who)["turns"].get(f"d/{event.id}")
        match result:
            case Killed() | StoreUnavailable() | OutcomeUnknown() if faulty:
                return
            case KeyConflict():
                if not (turn is not None and turn["content"] != content) and not self.model.conflicts(who, content):
                    raise Wrong(f"{event} of {who} was called a conflict")
            case DecideFailed():
                agree(f"what could not be decided of {who}", content["type"], "Trip")
            case BaseException():
                raise Wrong(f"{event} of {who} was answered {result!r}") from result
            case reply:
                if turn is None:
                    raise Wrong(f"{event} of {who} was answered {reply}, and is in no row")
                agree(f"the content of {event.id} of {who}", turn["content"], content)
                agree(f"the answer to {event.id} of {who}", told_reply(reply), turn["reply"])


def to_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def told_reply(reply: Any) -> tuple[str, int]:
    return ("coins", reply.coins) if isinstance(reply, Has) else ("by", reply.by)


def whose(principal: str | None, event: Event) -> Who:
    return ("lamps" if isinstance(event, Light) else "jars", principal, event.key)


def told(task: asyncio.Future[Any]) -> Any:
    """What a task came to; Killed for one that has told nobody anything."""
    if not task.done() or task.cancelled():
        return Killed("unanswered")
    fault = task.exception()
    return task.result() if fault is None else fault


def failing(fault: Fault) -> Callable[[str], None]:
    met = 0

    def fail(point: str) -> None:
        nonlocal met
        met += point == fault.point
        if point == fault.point and fault.hit <= met < fault.hit + fault.times:
            raise OSError(errno.EIO, "Input/output error")

    return fail


async def spin(done: Callable[[], bool]) -> None:
    """Turn the loop until `done`, at last with real time for a store that answers from elsewhere. Raises: Wrong when
    that takes longer than anything should."""
    for turn in range(SPINS):
        if done():
            return
        await asyncio.sleep(0 if turn < AT_ONCE else 0.001)
    raise Wrong("it does not come to rest, or somebody is never told")
