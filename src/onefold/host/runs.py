"""host.runs - the verbs for runs: start, look, wait, send, cancel, retry.

For: a checked call into one durable run, and everything anybody may ask of it afterwards.
Never: makes a row for bad arguments; ends a run because its caller went away.
Was wrong once: a run's id made before its arguments were checked. Agents polled runs that never were.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Raw, structs

from onefold.actuators.declare import Actuator
from onefold.actuators.journal import rows
from onefold.actuators.receipt import Picture, Receipt, Trouble, picture, receipt_of
from onefold.actuators.tables import RUN
from onefold.actuators.words import Begun, Cancel, Reopen, Sent
from onefold.host.caller import Caller
from onefold.host.core import Core
from onefold.host.modules import Page
from onefold.kernel.drain import again
from onefold.store.contract import Query
from onefold.terms.codec import canonical, digest
from onefold.terms.errors import Contended, KeyConflict, NotFound
from onefold.terms.ids import ActorId, check_text, door_id, principal_of, principal_text, run_id, run_id_random, run_tag
from onefold.terms.instant import moment

ENDED = frozenset({"done", "failed", "cancelled"})
RESTED = ENDED | {"parked"}
REMEMBERED = 100_000  # run ids whose actor is known without asking; about 20 MB
AGREEING = 8  # how often a start may meet an agreeing run that ends just then


@dataclass(frozen=True, slots=True)
class Started:
    """A run's receipt, and whether it is of an earlier call with the same key."""

    receipt: Receipt
    replayed: bool


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One journaled act of a run. `error` is None unless it failed."""

    seq: int
    path: str
    step: str
    kind: str
    attempt: int
    at: datetime
    result: Any = None
    error: Any = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an actuator: what is stored of it, and by what a repeat is known.

    digest: over the input with fields equal to their default left out, so that the same content
    through another door, or after a deploy that adds a field, is the same. agreeing: digest of the
    `dedupe_by` fields, or None.
    """

    actuator: Actuator[Any, Any]
    key: str | None
    principal: str | None
    written: bytes
    digest: bytes
    agreeing: str | None

    @staticmethod
    def of(actuator: Actuator[Any, Any], input: Any, key: str | None, principal: str | None) -> Call:
        written = actuator.written(input)
        slim = written
        if actuator.model is not None:
            slim = canonical(input.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        return Call(actuator, key, principal, written, digest(slim), actuator.agreeing(input))


class Turns:
    """Those who start an agreeing run at the same moment, one after another."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class RunVerbs:
    """Verbs on runs. `_core` is the opened application, `_chance(n)` gives n unguessable bytes."""

    _core: Core
    _chance: Callable[[int], bytes]

    def _open_runs(self) -> None:
        self._actors: OrderedDict[str, ActorId] = OrderedDict()
        self._waiters: dict[ActorId, list[tuple[asyncio.Future[None], bool]]] = {}
        self._by_tag: dict[str, list[str]] = {}
        self._agreeing: dict[tuple[str, str | None, str | None], Turns] = {}
        for name in self._core.catalog.actuators:
            self._by_tag.setdefault(run_tag(name), []).append(name)
        self._core.heard.append(lambda resident, folded: self._wake(resident.at, resident.durable))
        self._core.parked.append(lambda at: self._wake(at, None))

    # --- starting ---------------------------------------------------------------------------

    async def start(
        self,
        name: str,
        arguments: Any,
        *,
        key: str | None = None,
        caller: Caller,
        wait_ms: int = 0,
    ) -> Started:
        """Commit a run and begin it; wait up to `wait_ms` for it to end or to rest at a long wait.

        Raises: BadArguments, UnknownName, KeyConflict, Busy: before any row exists.
        """
        actuator = self._core.catalog.actuator(name)
        checked = actuator.check(arguments)
        return await self.start_checked(actuator, checked, key=key, caller=caller, wait_ms=wait_ms)

    async def start_checked(
        self,
        actuator: Actuator[Any, Any],
        input: Any,
        *,
        key: str | None = None,
        caller: Caller,
        wait_ms: int = 0,
    ) -> Started:
        """As `start`, for an input that is the actuator's model already."""
        self._core.catalog.actuator(actuator.name)
        if key is not None:
            check_text(key, "key")
        call = Call.of(actuator, input, key, caller.principal)
        if call.agreeing is None:
            new, at = await self._begin(call)
        else:
            new, at = await self._meet_or_begin(call)
        self._core.point("before-reply")
        return Started(await self.receipt(at.key, wait_ms=wait_ms, caller=caller), replayed=not new)

    async def _meet_or_begin(self, call: Call) -> tuple[bool, ActorId]:
        """The unfinished run that agrees with this call, or a new one; agreeing calls take turns."""
        name = (call.actuator.name, call.principal, call.agreeing)
        turns = self._agreeing.setdefault(name, Turns())
        turns.waiting += 1
        try:
            async with turns.lock:
                for _ in range(AGREEING):
                    met = await self._meet(call)
                    if met is not None:
                        return False, met
                    try:
                        return await self._begin(call)
                    except Contended:
                        continue  # another process made an agreeing run at the same moment: meet it
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                self._agreeing.pop(name, None)
        raise Contended(f"the runs of {call.actuator.name} that agree with this call")

    async def _begin(self, call: Call) -> tuple[bool, ActorId]:
        """Fold the start of a run; whether this call made it, and its actor."""
        name, key, principal = call.actuator.name, call.key, call.principal
        chance = self._chance(16)
        run = run_id_random(name, chance) if key is None else run_id(principal, name, key)
        at = ActorId(name, principal, run)
        nonce = chance.hex()
        start = call.actuator.start(
            run=run, input=call.written, key=key, principal=principal, dedupe=call.agreeing, nonce=nonce
        )
        decide = partial(_decide, call.actuator.module.decide, start)
        try:
            begun: Begun = await self._core.node.fold(at, door_id("start"), call.digest, decide, probe=key is not None)
        except KeyConflict:
            raise KeyConflict(key or run) from None
        self._remember(run, at)
        return begun.nonce == nonce, at

    async def _meet(self, call: Call) -> ActorId | None:
        """The unfinished run whose `dedupe_by` fields agree. Raises: KeyConflict when its other content differs."""
        name = call.actuator.name
        space = await self._core.space(name)
        wanted = (name, principal_text(call.principal), call.agreeing)
        (met,) = await space.look(Query(RUN, on=("program", "principal", "dedupe"), keys=[wanted]))
        if not met:
            return None
        run = str(met[0][RUN.at["run"]])
        if call.key is not None and run == run_id(call.principal, name, call.key):
            return None  # the same key names this very run: its start tells a repeat from a conflict
        at = ActorId(name, call.principal, run)
        state = await self._core.node.read(at)
        if Call.of(call.actuator, call.actuator.read_input(state.input), None, call.principal).digest != call.digest:
            raise KeyConflict(", ".join(call.actuator.dedupe_by))
        self._remember(run, at)
        return at

    # --- looking ----------------------------------------------------------------------------

    async def receipt(self, run_id: str, *, wait_ms: int = 0, caller: Caller) -> Receipt:
        """The run as it is, or as it is once it ended or came to rest, at most `wait_ms` later.

        A run that already rests is waited for until it goes on and rests again. Raises: NotFound.
        """
        at = await self._actor(run_id, caller)
        shown = await self._picture(at)
        if wait_ms > 0 and shown.status not in RESTED:
            shown = await self._rest(at, shown, wait_ms)
        return receipt_of(shown)

    async def ended(self, run_id: str, *, caller: Caller) -> Picture:
        """Wait until the run has ended or is parked, however long that takes."""
        at = await self._actor(run_id, caller)
        while (shown := await self._picture(at)).status not in RESTED:
            await self._changed(at, only_rest=True)
        return shown

    async def runs_list(
        self,
        *,
        program: str | None = None,
        status: str | None = None,
        key: str | None = None,
        limit: int = 100,
        after: str | None = None,
        caller: Caller,
    ) -> Page[Receipt]:
        """Receipts, newest first. `after` is the `next` of the page before."""
        names = [self._core.catalog.actuator(program).name] if program else sorted(self._core.catalog.actuators)
        found: list[tuple[int, str, ActorId]] = []
        before = _position(after)
        for name in names:
            for row in await self._run_rows(name, status, key, limit + 1, before, caller):
                at = ActorId(name, principal_of(str(row[RUN.at["principal"]])), str(row[RUN.at["run"]]))
                found.append((int(row[RUN.at["started_at"]]), at.key, at))
        found.sort(key=lambda each: (-each[0], each[1]))
        shown = [receipt_of(await self._picture(at)) for _, _, at in found[:limit]]
        more = len(found) > limit
        return Page(shown, f"{found[limit - 1][0]}.{found[limit - 1][1]}" if more else None)

    async def run_journal(self, run_id: str, *, caller: Caller) -> list[JournalRow]:
        """What the run has done, in the order in which it was committed."""
        at = await self._actor(run_id, caller)
        state = await self._core.node.read(at)
        return [
            JournalRow(seq, row.path, row.step, row.kind, row.attempt, moment(row.at), row.result, row.error)
            for seq, row in enumerate(rows(state), 1)
        ]

    # --- telling ----------------------------------------------------------------------------

    async def run_send(self, run_id: str, event: str, body: Any, *, key: str | None = None, caller: Caller) -> Receipt:
        """Send an event to a run. It is taken by a wait, or kept for one. Raises: NotFound, KeyConflict."""
        at = await self._actor(run_id, caller)
        id = check_text(key, "key") if key is not None else self._chance(16).hex()
        written = canonical(body)
        sent = Sent(id, run_id, event, Raw(written))
        await self._tell(at, f"send/{id}", digest(event.encode() + b"\0" + written), sent)
        return receipt_of(await self._picture(at))

    async def run_cancel(self, run_id: str, reason: str | None = None, *, caller: Caller) -> Receipt:
        """End a run where it stands. Idempotent; a run that has ended stays as it is."""
        at = await self._actor(run_id, caller)
        id = self._chance(16).hex()
        await self._tell(at, f"cancel/{id}", b"", Cancel(id, run_id, reason))
        return receipt_of(await self._picture(at))

    async def run_retry(self, run_id: str, *, caller: Caller) -> Receipt:
        """Reopen a failed or parked run: what succeeded is kept, the failure that ended it is tried anew."""
        at = await self._actor(run_id, caller)
        resident = await self._core.node.activate(at)
        for row in [row for row in resident.owed.values() if row.next_at is None]:
            tried = again(row, self._core.clock.now())
            await self._core.node.fold(at, None, b"", None, change=tried, replies=False, probe=False)
        id = self._chance(16).hex()
        await self._tell(at, f"retry/{id}", b"", Reopen(id, run_id))
        self._core.node.send_due(await self._core.node.activate(at))
        return receipt_of(await self._picture(at))

    async def _tell(self, at: ActorId, event: str, told: bytes, word: Any) -> Any:
        decide = partial(_decide, self._core.catalog.actuator(at.kind).module.decide, word)
        return await self._core.node.fold(at, door_id(event), told, decide)

    # --- inside -----------------------------------------------------------------------------

    async def _actor(self, run: str, caller: Caller) -> ActorId:
        """Whose run this is. Raises: NotFound, also for one that the caller may not see."""
        at = self._actors.get(run)
        if at is None:
            at = await self._find(run)
        if at is None or not caller.sees(at.principal):
            raise NotFound("run", run)
        return at

    async def _find(self, run: str) -> ActorId | None:
        for name in self._by_tag.get(run[4:8], ()):
            space = await self._core.space(name)
            (found,) = await space.look(Query(RUN, on=("run",), keys=[(run,)]))
            if found:
                at = ActorId(name, principal_of(str(found[0][RUN.at["principal"]])), run)
                self._remember(run, at)
                return at
        return None

    def _remember(self, run: str, at: ActorId) -> None:
        self._actors[run] = at
        if len(self._actors) > REMEMBERED:
            self._actors.popitem(last=False)

    async def _run_rows(
        self, name: str, status: str | None, key: str | None, limit: int, before: tuple[int, str] | None, caller: Caller
    ) -> list[Any]:
        where: list[tuple[str, Any, Any]] = []
        if "operate" not in caller.rights:
            where.append(("principal", "=", principal_text(caller.principal)))
        if status is not None:
            where.append(("status", "=", status))
        if key is not None:
            where.append(("key", "=", key))
        if before is not None:
            where.append(("started_at", "<=", before[0]))
        space = await self._core.space(name)
        query = Query(RUN, where=tuple(where), order=("-started_at", "run"), limit=None if before else limit)
        (found,) = await space.look(query)
        if before is not None:
            return [row for row in found if (-row[7], row[1]) > (-before[0], before[1])][:limit]
        return list(found)

    async def _picture(self, at: ActorId) -> Picture:
        """The run as it is. One whose pass was given up on is parked, whatever its facts say."""
        resident = await self._core.node.activate(at)
        shown = picture(resident.durable)
        if shown.status == "running":
            given_up = [row for row in resident.owed.values() if row.port == "pass" and row.next_at is None]
            if given_up:
                cause = Trouble("parked", f"its pass was given up on: {given_up[0].error}")
                return structs.replace(shown, status="parked", trouble=cause)
        return shown

    async def _rest(self, at: ActorId, shown: Picture, wait_ms: int) -> Picture:
        """Until the run ended, or went on and rested at something longer than what is left of the wait."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_ms / 1000
        rested_before = shown.status == "waiting"
        while shown.status not in RESTED:
            left = deadline - loop.time()
            if left <= 0 or (shown.status == "waiting" and not rested_before and not self._soon(shown, left)):
                break
            try:
                async with asyncio.timeout(left):  # not wait_for: it would look away for one turn of the loop
                    await self._changed(at)
            except TimeoutError:
                break
            shown = await self._picture(at)
            if shown.status != "waiting":
                rested_before = False
        return shown

    def _soon(self, shown: Picture, left_s: float) -> bool:
        """Whether the clock alone will wake the run within `left_s` seconds."""
        untils = [wait.until for wait in shown.waits if wait.until is not None and wait.kind in ("sleep", "retry")]
        return bool(untils) and min(untils) - self._core.clock.now() <= left_s * 1000

    async def _changed(self, at: ActorId, *, only_rest: bool = False) -> None:
        """Wait for the next commit that changes this run; with `only_rest`, that ends or parks it."""
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(at, [])
        waiter = (changed, only_rest)
        waiters.append(waiter)
        try:
            await changed
        finally:
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters and self._waiters.get(at) is waiters:
                del self._waiters[at]

    def _wake(self, at: ActorId, state: Any) -> None:
        """Tell those who wait for this run that it changed; `state` None: its pass was given up on."""
        waiters = self._waiters.get(at) if self._waiters else None
        if waiters is None:
            return
        rested = state is None or state.status in RESTED
        for waiter in [each for each in waiters if rested or not each[1]]:
            waiters.remove(waiter)
            if not waiter[0].done():
                waiter[0].set_result(None)
        if not waiters:
            del self._waiters[at]


def _decide(decide: Any, event: Any, state: Any, now: datetime) -> Any:
    return decide(state, event, now)


def _position(after: str | None) -> tuple[int, str] | None:
    if after is None:
        return None
    started, _, run = after.partition(".")
    return (int(started), run) if started.isdigit() else None
