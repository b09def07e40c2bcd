"""host.sender - effect execution: what is owed leaves here, and nowhere else.

For: calling a port with the sealed bytes, committing what it gave back, counting what failed.
Never: rebuilds bytes; drops a row; sends a row twice at once.
Was wrong once: a worker that polled for rows. Every effect waited for the next poll, and two
workers needed a lease; the owner of an actor knows what it has just committed.

Sends that never wait share one task, one after the other: a task each cost more than the fold that
owed it. Once a send through a port has waited, those through that port get a task of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from onefold.kernel.alert import is_alert
from onefold.kernel.blob import pointed
from onefold.kernel.drain import LIMIT, asks_first, attempt, before_send, fell, given_up, uncertain, without_port
from onefold.kernel.fold import Outstanding, leaving
from onefold.kernel.module import Module
from onefold.kernel.port import Inner, Local, Port, StandIn, Step, unstopped
from onefold.kernel.unfit import UNFIT, said, shown
from onefold.kernel.words import NOTHING, Answer, Decision, Dropped
from onefold.node.node import Decide, Node
from onefold.node.resident import ReadAnew, Resident
from onefold.terms.errors import BadArguments, DecideFailed, OnefoldError, PortFailed, TooLarge
from onefold.terms.faults import says, short
from onefold.terms.ids import ActorId, owed_id
from onefold.terms.instant import moment, text
from onefold.terms.places import at_place, place_of

log = logging.getLogger("onefold.sender")
ERROR_CHARS = 500  # of a fault's text kept in the row
VOID = "its actor does not want it sent any more"


class Sender:
    """Sends owed rows. Told of each by the node, on the loop's thread."""

    def __init__(
        self,
        node: Node,
        ports: Mapping[str, Port[Any, Any] | Local],
        now: Callable[[], int],
        point: Callable[[str], None],
        gave_up: Callable[[ActorId], None],
        fetch: Callable[[ActorId, bytes], Awaitable[bytes]],
        stand_in: StandIn | None = None,
    ) -> None:
        self._node = node
        self._ports = ports
        self._now = now
        self._point = point
        self._gave_up = gave_up
        self._fetch = fetch
        self._stand_in = stand_in
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving: set[tuple[ActorId, int]] = set()  # rows that are on their way, whoever holds them
        self._queue: deque[tuple[Resident, Outstanding]] = deque()  # for the shared task
        self._shared: asyncio.Task[None] | None = None
        self._at: str | None = None  # the port through which the shared task is sending
        self._slow: set[str] = set()  # ports a send through which has waited
        self._closing = False
        self.failures = 0

    @property
    def idle(self) -> bool:
        return not self._tasks and not self._queue

    def send(self, resident: Resident, item: Outstanding) -> None:
        """Begin to send one row that is due. Returns at once."""
        if item.in_flight or self._closing or resident.gone:
            return
        item.in_flight, item.since = True, self._now()
        if (resident.at, item.n) in self._leaving:
            return  # sent already by this process; the actor was read anew meanwhile, after a commit that failed
        self._leaving.add((resident.at, item.n))
        resident.sending += 1
        if item.port in self._slow:
            self._begin(self._send(resident, item)).set_name(f"a send through {item.port}")
            return
        self._queue.append((resident, item))
        if self._shared is None:
            self._shared = self._begin(self._send_queued())

    def _begin(self, sending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(sending)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send_queued(self) -> None:
        """Send what is queued, for as long as no send waits; from then on another task goes on with the rest."""
        me = asyncio.current_task()
        assert me is not None
        asyncio.get_running_loop().call_soon(self._look_after, me)
        try:
            while self._queue and self._shared is me and not me.cancelling():
                resident, item = self._queue.popleft()
                self._at = item.port
                await self._send(resident, item)
        finally:
            if self._shared is me:  # a port that cancelled the task it is in takes no other row with it
                self._shared = self._begin(self._send_queued()) if self._queue and not self._closing else None

    def _look_after(self, task: asyncio.Task[None]) -> None:
        """The shared task has had its turn of the loop. Is it still busy? Then a send of it waits."""
        if self._shared is not task:
            return
        if self._at is not None:
            self._slow.add(self._at)
        self._shared = self._begin(self._send_queued()) if self._queue else None

    async def close(self, grace_s: float) -> None:
        """Begin nothing more; let what is on its way finish for `grace_s` seconds, then abandon it under its key."""
        self._closing = True
        self._queue.clear()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=grace_s)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- one send ---------------------------------------------------------------------------

    async def _send(self, resident: Resident, item: Outstanding) -> None:
        at, anew = resident.at, False
        try:
            port = self._ports.get(item.port)
            if not isinstance(port, Port):
                log.error(
                    "%s of %s %s waits for a part that provides the port %s", item.key, at.kind, at.key, item.port
                )
                await self._change(at, without_port(item, self._now()))
                return
            if await self._void(resident, item):
                return
            before, find = before_send(port.promise, item), asks_first(port.promise, item)
            if before == "commit attempt":
                item = attempt(item)
                item.in_flight = True
                await self._change(at, item)
            elif before == "park":
                await self._change(at, uncertain(item))
                return
            elif before == "give up":
                await self._change(at, given_up(item))
                return
            answer = await self._ask(resident, port, item, find=find)
            anew = answer is _ANEW
            if answer is not _FELL and not anew:
                await self._confirm(resident, item, answer)
        except OnefoldError as fault:
            log.warning("owed row %s of %s %s: %s", item.key, at.kind, at.key, fault)
        finally:
            self._leaving.discard((at, item.n))
            resident.sending -= 1
            current = self._node.resident(at)
            if current is not None and item.n in current.owed and not current.owed[item.n].confirmed:
                current.owed[item.n].in_flight = False
        if anew and not self._closing:
            await self._again(at)

    async def _again(self, at: ActorId) -> None:
        """Send what is due of an actor that was dropped meanwhile."""
        try:
            self._node.send_due(await self._node.activate(at))
        except OnefoldError as fault:
            log.warning("%s %s could not be read anew: %s", at.kind, at.key, fault)

    async def _void(self, resident: Resident, item: Outstanding) -> bool:
        """Whether its actor does not want this row sent any more. Asked on the head, so that nothing leaves after a
        turn that was decided and is not committed yet; its row goes only once that turn is durable.
        """
        if not resident.module.may_void or is_alert(item):
            return False
        current = resident if not resident.gone else await self._node.activate(resident.at)
        if not current.module.voids(current.base.state, item.name):
            return False
        if current.module.voids(current.durable, item.name):
            await self._confirm(current, item, Dropped(VOID))
        return True

    async def _ask(self, resident: Resident, port: Port[Any, Any], item: Outstanding, *, find: bool) -> Any:
        """Call the port with the sealed bytes. What it gave back, _FELL when the try failed, _ANEW when its actor was
        dropped.
        """
        acted = False
        try:
            aside = pointed(item.body)  # checked against their digest before each send
            sealed = item.body if aside is None else await self._fetch(resident.at, aside)
            body = port.body.decode(sealed)
            tries = item.tries if item.state == "sending" else item.tries + 1
            if isinstance(port, Inner):
                self._point("before-send")
                answer = await port.act(resident.at, body)
            else:
                step = Step(leaving(resident.base, item.key), moment(item.at), tries, resident.at.principal)
                if find and port.find is not None:
                    found = await port.find(step, body)
                    if found is not None:
                        return found
                if await self._void(resident, item):  # again: a commit or a look-up may have been waited for
                    return _FELL
                self._point("before-send")
                function: Callable[..., Any] = port.function
                if self._stand_in is not None:
                    function = self._stand_in(function, step, port.name)
                acted = True
                answer = await _called(port, function, step, body)
            self._point("after-send")
            return answer
        except asyncio.CancelledError:
            if self._closing:
                raise
            await self._fell(resident.at, item, "it cancelled itself", acted=acted)
        except ReadAnew:
            return _ANEW
        except PortFailed as fault:
            await self._fell(resident.at, item, str(fault.why or fault), acted=acted)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as fault:  # noqa: BLE001 - the door: whatever a port raises is a try that failed
            why = f"{type(fault).__name__}: {says(fault)}"
            await self._fell(resident.at, item, why, acted=acted, place=place_of(fault))
        return _FELL

    async def _fell(self, at: ActorId, item: Outstanding, why: str, *, acted: bool, place: str | None = None) -> None:
        self.failures += 1
        port = self._ports[item.port]
        assert isinstance(port, Port)  # nothing is sent to any other
        changed = fell(port.promise, item, self._now(), why[:ERROR_CHARS], acted=acted)
        line = at_place(place)
        if changed.next_at is None:
            log.error("parked: %s of %s %s through %s: %s%s", item.key, at.kind, at.key, item.port, why, line)
        else:
            again, said = text(changed.next_at), short(why, ERROR_CHARS)
            log.warning(
                "port %s fell on %s of %s %s: %s%s; attempt %d of %d, tried again at %s",
                *(item.port, item.name, at.kind, at.key, said, line, changed.tries, LIMIT, again),
            )
        await self._change(at, changed)

    async def _change(self, at: ActorId, item: Outstanding) -> None:
        await self._node.fold(at, None, b"", None, change=item, replies=False, probe=False)
        if item.next_at is None:
            self._gave_up(at)

    # --- what came back -----------------------------------------------------------------------

    async def _confirm(self, resident: Resident, item: Outstanding, answer: Any) -> None:
        """Commit the answer as an event of the actor and remove the row, in one transaction."""
        at = resident.at
        try:
            event, decide = hears(resident.module, item, answer)
            if event is None and self._node.remove(resident, item.n):
                item.confirmed = True
                return  # nobody waits for a row to go; if its commit fails the row is found and sent again
            await self._node.fold(at, event, b"", decide, removes=item.n, replies=False, probe=item.found)
        except (DecideFailed, TooLarge, BadArguments, TypeError) as fault:
            why = f"it was sent, but its answer could not be folded: {fault}"
            await self._fell(at, item, why, acted=not isinstance(answer, Dropped))


async def _called(port: Port[Any, Any], function: Callable[..., Any], step: Step, body: Any) -> Any:
    if port.is_async:
        return await function(step, body)
    return await asyncio.to_thread(unstopped(function), step, body)


def hears(module: Module[Any, Any, Any, Any, Any], item: Outstanding, answer: Any) -> tuple[str | None, Decide | None]:
    """The event id and decision for what a port gave back; (None, None) when the module hears nothing of it.

    Raises: DecideFailed for an answer that does not fit what `on_answer` takes.
    """
    if is_alert(item):
        return None, None
    codec = module.answer_body
    if module.hears_only_ends and not isinstance(answer, Dropped):
        answer = None
    if codec is None or (isinstance(answer, Dropped) and not module.hears_drops):
        return None, None
    try:
        body = codec.decode(codec.encode(answer))
    except BadArguments as fault:
        what = f"the answer of port {item.port!r} does not fit Answer[{shown(codec.annotation)}] of on_answer"
        raise DecideFailed(module.name, item.name, UNFIT, f"{what}: {said(fault)}") from fault
    return owed_id(item.key), partial(_on_answer, module, Answer(item.name, item.port, body))


def _on_answer(
    module: Module[Any, Any, Any, Any, Any], answer: Answer[Any], state: Any, now: Any
) -> Decision[Any, Any]:
    return NOTHING if module.on_answer is None else module.on_answer(state, answer, now)


_FELL = object()
_ANEW = object()
