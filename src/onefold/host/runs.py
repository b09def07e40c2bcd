"""host.runs - the verbs for runs: look, wait, list, send, cancel, retry.

For: everything anybody may ask of a run once it was started.
Never: ends a run because its caller went away; a read that consumes.
Was wrong once: waiting woken by every commit of the run. A run of ten steps woke its caller ten times.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Raw, structs

from onefold.actuators.declare import Actuator
from onefold.actuators.ending import MARK, child_of
from onefold.actuators.history import history_of
from onefold.actuators.journal import rows
from onefold.actuators.receipt import Picture, Receipt, Trouble, WaitShown, picture, receipt_of
from onefold.actuators.state import Journal, State
from onefold.actuators.tables import RUN
from onefold.actuators.words import Cancel, Reopen, Sent
from onefold.host.caller import Caller
from onefold.host.calling import run_ports
from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.host.modules import Page
from onefold.host.starting import Started, StartVerbs, Turns
from onefold.store.contract import Query
from onefold.terms.codec import canonical, digest
from onefold.terms.errors import BadArguments, Fault, NotFound
from onefold.terms.faults import FIRST_PAGE
from onefold.terms.ids import ActorId, check_text, door_id, principal_of, principal_text, run_tag
from onefold.terms.instant import moment

ENDED = frozenset({"done", "failed", "cancelled"})
RESTED = ENDED | {"parked"}
GLANCE_S = 0.5
"""How often the children of a run that somebody waits for are looked at."""
KIN_DEEP = 8
"""How many generations of them."""
__all__ = ["JournalRow", "RunVerbs", "Started"]

_MOMENT = re.compile(r"[0-9]{1,15}")
REMEMBERED = 100_000  # run ids whose actor is known without asking; about 20 MB


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


class RunVerbs(StartVerbs):
    """Verbs on runs. `_core` is the opened application, `_chance(n)` gives n unguessable bytes."""

    _core: Core
    _chance: Callable[[int], bytes]

    def _open_runs(self) -> None:
        self._actors: OrderedDict[str, ActorId] = OrderedDict()
        self._waiters: dict[ActorId, list[tuple[asyncio.Future[None], bool]]] = {}
        self._by_tag: dict[str, list[str]] = {}
        self._at_once: dict[str, bool] = {}
        self._agreeing: dict[tuple[str, str | None, str | None], Turns] = {}
        self._offer(*self._core.catalog.actuators.values())
        self._core.acts["reopen"] = self._reopen
        self._core.runs = self
        self._core.heard.append(lambda resident, folded: self._wake(resident.at, resident.durable))
        self._core.looks.append(lambda at: self._wake(at, None))

    def _offer(self, *actuators: Actuator[Any, Any]) -> None:
        """Take calls for these from now on; one of a name that is known stands in the place of the former."""
        for one in actuators:
            named = self._by_tag.setdefault(run_tag(one.name), [])
            if one.name not in named:
                named.append(one.name)
            self._at_once.pop(one.name, None)
        self._core.ports.update(run_ports(actuators, self.start_checked, self.run_send))

    def _withdraw(self, name: str) -> None:
        """Take no more calls for this one, and show none of its runs."""
        self._by_tag[run_tag(name)].remove(name)
        for run in [run for run, at in self._actors.items() if at.kind == name]:
            del self._actors[run]
        for port in run_ports([self._core.catalog.actuators[name]], self.start_checked, self.run_send):
            self._core.ports.pop(port, None)

    # --- looking ----------------------------------------------------------------------------

    async def receipt(self, run_id: str, *, wait_ms: int = 0, seen: Receipt | None = None, caller: Caller) -> Receipt:
        """The run as it is, or as it is once it ended or came to rest, at most `wait_ms` later.

        A run that already rests is waited for until it goes on and rests again. seen: what whoever asks was shown before; a
        run that rests otherwise than it did then has gone on. Raises: NotFound.
        """
        at = await self._actor(run_id, caller)
        shown = await (self._rest(at, wait_ms, seen) if wait_ms > 0 else self._picture(at))
        return receipt_of(await self._core.whole(at, shown))

    async def ended(self, run_id: str, *, caller: Caller) -> Picture:
        """Wait until the run has ended or is parked, however long that takes. Raises: NotFound."""
        at = await self._actor(run_id, caller)
        while True:
            with self._hearing(at, only_rest=True) as changed:
                shown, seen = await self._look(at)
                if shown.status in RESTED:
                    break
                await self._changed(at, seen, changed)
        whole: Picture = await self._core.whole(at, shown)
        return whole

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
        """Receipts, newest first, without results over 4 KB: those stand in the run's own receipt.

        `after` is the `next` of the page before. Raises: UnknownName, NotFound for a page that no list has named.
        """
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
        """What the run has done, in the order in which it was committed. Raises: NotFound."""
        return _rows(await self._taken(run_id, caller))

    async def run_history(self, run_id: str, *, caller: Caller) -> tuple[list[JournalRow], dict[str, Any]]:
        """The same, and what a replay needs beside it (see `actuators.history`)."""
        state = await self._taken(run_id, caller)
        return _rows(state), history_of(state)

    async def _taken(self, run_id: str, caller: Caller) -> State:
        """A run with the long values that its rows only point at."""
        at = await self._actor(run_id, caller)
        state: State = await self._core.node.read(at)
        entries = [await self._core.whole(at, entry) for entry in state.journal]
        kept = tuple([await self._core.whole(at, one) for one in state.kept])
        state = await self._core.whole(at, state)
        return structs.replace(state, journal=Journal(entries, len(entries)), kept=kept)

    # --- telling ----------------------------------------------------------------------------

    async def run_send(self, run_id: str, event: str, body: Any, *, key: str | None = None, caller: Caller) -> Receipt:
        """Send an event to a run. It is taken by a wait, or kept for one. Raises: NotFound, BadArguments, KeyConflict."""
        at = await self._actor(run_id, caller)
        if MARK in event:
            raise BadArguments(
                [Fault("event", "is how a child tells its parent, and no event that anybody sends", event)]
            )
        id = check_text(key, "key") if key is not None else self._chance(16).hex()
        written = canonical(body)
        sent = Sent(id, run_id, event, Raw(written))
        await self._tell(at, f"send/{id}", digest(event.encode() + b"\0" + written), sent)
        return receipt_of(await self._core.whole(at, await self._picture(at)))

    async def run_cancel(self, run_id: str, reason: str | None = None, *, caller: Caller) -> Receipt:
        """End a run where it stands. Idempotent; a run that has ended stays as it is. Raises: NotFound."""
        at = await self._actor(run_id, caller)
        id = self._chance(16).hex()
        await self._tell(at, f"cancel/{id}", b"", Cancel(id, run_id, reason))
        return receipt_of(await self._core.whole(at, await self._picture(at)))

    async def run_retry(self, run_id: str, *, caller: Caller) -> Receipt:
        """Reopen a failed or parked run: what succeeded is kept, what ended it is tried anew. Raises: NotFound."""
        at = await self._actor(run_id, caller)
        await self._core.at_owner(at, {"do": "reopen"}, partial(self._reopen, at))
        return receipt_of(await self._core.whole(at, await self._picture(at)))

    async def _reopen(self, at: ActorId, _word: Any = None) -> None:
        resident = await self._core.node.activate(at)
        for row in [row for row in resident.owed.values() if row.next_at is None]:
            await self._core.once_more(at, row)
        id = self._chance(16).hex()
        await self._tell(at, f"retry/{id}", b"", Reopen(id, at.key))
        self._core.node.send_due(await self._core.node.activate(at))

    async def _tell(self, at: ActorId, event: str, told: bytes, word: Any) -> Any:
        decide = partial(decided, self._core.catalog.actuator(at.kind).module.decide, word)
        reply = await self._core.fold(at, door_id(event), told, word, decide)
        self._core.point("before-reply")
        return reply

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

    def _forget_run(self, run: str) -> None:
        """It was swept away."""
        self._actors.pop(run, None)

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
        return (await self._look(at))[0]

    async def _look(self, at: ActorId) -> tuple[Picture, int]:
        """As `_picture`, with the number of the newest fact that it shows. Never less than any node has shown."""
        resident = await self._core.node.shown(at)
        shown = picture(resident.durable)
        if not shown.status:
            raise NotFound("run", at.key)  # it was swept away meanwhile
        if shown.status == "running":
            given_up = [row for row in resident.owed.values() if row.port == "pass" and row.next_at is None]
            if given_up:
                cause = Trouble("parked", f"its pass was given up on: {given_up[0].error}")
                shown = structs.replace(shown, status="parked", trouble=cause)
        return shown, resident.durable_seq

    async def _rest(self, at: ActorId, wait_ms: int, seen: Receipt | None) -> Picture:
        """Until the run ended, or went on and rested at something longer than what is left of the wait.

        Was wrong once: only a look that saw it running counted as going on. From another node it slept at one look and asked
        at the next, and whoever waited for it waited in vain. And a child taken for a long wait: whoever called its parent was
        told to look again after 20 seconds, for what was done in three milliseconds.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_ms / 1000
        before = None if seen is None else _resting(seen.status, seen.waits)
        while True:
            with self._hearing(at) as changed:
                shown, newest = await self._look(at)
                resting = _resting(shown.status, shown.waits)
                before = resting if before is None or not resting else before
                left = deadline - loop.time()
                stays = resting not in ((), before) and not self._soon(shown, left)
                kin = bool(_begun(shown)) and (seen is not None or stays)
                if shown.status in RESTED or left <= 0 or (stays and not kin):
                    return shown
                if kin and not await self._goes_on(shown, left):
                    return shown
                try:  # a child that comes to rest tells its parent nothing: it is looked at now and then
                    async with asyncio.timeout(
                        min(left, GLANCE_S) if kin else left
                    ):  # not wait_for: it looks away for one turn
                        await self._changed(at, newest, changed)
                except TimeoutError:
                    if not kin:
                        return shown

    async def _goes_on(self, shown: Picture, left_s: float, deep: int = KIN_DEEP) -> bool:
        """Whether it may go on within `left_s` seconds without a person: by itself, by the clock, or by a child's end."""
        if shown.status in ("done", "failed", "cancelled") or not (shown.waits or shown.status == "parked"):
            return True
        if self._soon(shown, left_s):
            return True
        for run in _begun(shown) if deep else ():
            child = self._actors.get(run) or await self._find(run)
            if child is None or await self._goes_on(await self._picture(child), left_s, deep - 1):
                return True
        return False

    def _soon(self, shown: Picture, left_s: float) -> bool:
        """Whether the clock alone will wake the run within `left_s` seconds."""
        untils = [wait.until for wait in shown.waits if wait.until is not None and wait.kind in ("sleep", "retry")]
        return bool(untils) and min(untils) - self._core.clock.now() <= left_s * 1000

    @contextmanager
    def _hearing(self, at: ActorId, *, only_rest: bool = False) -> Iterator[asyncio.Future[None]]:
        """What the next commit that changes this run settles; with `only_rest`, that ends or parks it. Whoever looks within
        the block misses none.

        Was wrong once: heard from after the look. A run that ended while its rows were read was waited for in vain.
        """
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(at, [])
        waiter = (changed, only_rest)
        waiters.append(waiter)
        try:
            yield changed
        finally:
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters and self._waiters.get(at) is waiters:
                del self._waiters[at]

    async def _changed(self, at: ActorId, seen: int, changed: asyncio.Future[None]) -> None:
        """Wait until the run has changed since it had `seen` facts. Where another node owns it, return now and then all the
        same.
        """
        if self._core.router is not None and self._core.router.elsewhere(at):
            await self._core.router.watch(at, seen)
        else:
            await changed

    def _wake(self, at: ActorId, state: Any) -> None:
        """Tell those who wait for this run that it changed; `state` None: they must look, whatever they wait for."""
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


def _position(after: str | None) -> tuple[int, str] | None:
    if after is None:
        return None
    started, _, run = after.partition(".")
    if not _MOMENT.fullmatch(started):
        raise NotFound("page", after, FIRST_PAGE)  # not the first page: whoever follows `next` would go in circles
    return int(started), run


def _rows(state: State) -> list[JournalRow]:
    return [
        JournalRow(seq, row.path, row.step, row.kind, row.attempt, moment(row.at), row.result, row.error)
        for seq, row in enumerate(rows(state), 1)
    ]


def _begun(shown: Picture) -> list[str]:
    """The runs that it waits for."""
    return [child_of(wait.name)[1] for wait in shown.waits if wait.kind == "child"] if shown.status == "waiting" else []


def _resting(status: str, waits: Sequence[WaitShown]) -> tuple[tuple[str, str, int], ...]:
    """What a run rests at, to be told apart from what it rests at later; nothing while it goes on."""
    return tuple((wait.kind, wait.name, wait.since) for wait in waits) if status == "waiting" else ()
