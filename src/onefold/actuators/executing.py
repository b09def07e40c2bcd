"""actuators.executing - a pass over one run: the only file of the room that awaits the world.

For: running steps outside the pass's loop, folding what became of them, and answering how the pass ended.
Never: decides; keeps anything when it is cancelled, for all that counts is committed.
Was wrong once: a step's result handed to the pass as it returned. A crash before the commit had
already shown the function what never was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

import msgspec

from onefold.actuators.blocking import Crossing
from onefold.actuators.database import DatabaseWork
from onefold.actuators.declare import Actuator
from onefold.actuators.passing import Pass, StepCall
from onefold.actuators.passloop import PassTask, Path
from onefold.actuators.run import Run, Work
from onefold.actuators.state import State
from onefold.actuators.words import ENDINGS, ENTRIES, Event, Fact, PassEnded, Stepped, Trouble, Wait, Waiting
from onefold.kernel.port import Step
from onefold.store.contract import Tx
from onefold.terms.errors import Broken, HostError, OwnedElsewhere
from onefold.terms.ids import ActorId, leaving_key
from onefold.terms.instant import moment

T = TypeVar("T")
DATABASE_BUDGET_MS = 5_000
"""A database step holds its space's only writer; longer than this, the other runs of the actuator are stalled."""
MESSAGE_LIMIT, DATA_LIMIT = 4_000, 4_000
"""Characters of an exception's message, bytes of its data: enough to tell, too little to fill a row."""
WORLD = (HostError, OwnedElsewhere, Broken)


class Actor(Protocol):
    """One run's actor, as the node keeps it."""

    @property
    def state(self) -> State:
        """The durable state now."""

    def watch(self, callback: Callable[[Sequence[Fact]], None], /) -> Callable[[], None]:
        """Call back after each commit of this actor with its new facts; the function given back ends it."""

    def fold(self, event: Event, id: str, /) -> Awaitable[Any]:
        """Fold an event of the source `step`; answered after its commit. Raises: HostError, OwnedElsewhere."""

    def author(
        self, step: Callable[[Tx], T], event_of: Callable[[T], Event], /, *, id: str, budget_ms: int
    ) -> Awaitable[Any]:
        """Run a database step and fold its event in one physical commit. Raises: what `step` raised; HostError."""


class _Unfit(Exception):
    """A result that cannot be written."""


async def run_pass(actor: Actor, actuator: Actuator[Any, Any]) -> PassEnded:
    """Replay the run from its journal and go on until it ends or every task waits.

    Cancelling it abandons running steps and journals nothing more. Raises: HostError, OwnedElsewhere
    when a fold failed; the pass may then be run again from the start.
    """
    return await Execution(actor, actuator).whole()


class Execution:
    """One pass and the steps it has running."""

    def __init__(self, actor: Actor, actuator: Actuator[Any, Any]) -> None:
        self.actor = actor
        self.actuator = actuator
        self.host = asyncio.get_running_loop()
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.done: asyncio.Future[None] = self.host.create_future()
        self.state = actor.state
        self.owner = ActorId(actuator.name, self.state.principal, self.state.run)
        self.home = Pass(self.state, self)
        self.crossing: Crossing | None = None

    async def whole(self) -> PassEnded:
        stop = self.actor.watch(self._committed)
        try:
            self._launch()
            self._advance()
            await self.done
            if self.crossing is not None:
                await self.crossing.left
        finally:
            stop()
            for task in self.tasks.values():
                task.cancel()
            self.home.stop()
        outcome = self.home.outcome
        assert outcome is not None
        return outcome

    def _launch(self) -> None:
        """Make the root task, path "0"."""
        home, state, actuator = self.home, self.state, self.actuator
        run = Run(home, state.run, state.key, state.principal, actuator.name, actuator.ports)
        home.finish = lambda value: msgspec.Raw(actuator.result.encode(value))
        args = (run,) if actuator.model is None else (run, actuator.read_input(state.input))
        if actuator.is_async:
            coro = actuator.function(*args)
        else:
            self.crossing = Crossing(home, self.host, self._advance)
            coro = self.crossing.bridge(actuator.function, args)
        home.root = PassTask(coro, home.loop, Path("0"), copy_context())
        home.loop.tasks.add(home.root)

    def _advance(self) -> None:
        try:
            self.home.advance()
        except BaseException as fault:  # noqa: BLE001 - the door: what broke the pass itself ends it as a fault
            self._fault(fault)

    def _fault(self, fault: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(fault)

    def _committed(self, facts: Sequence[Fact]) -> None:
        home = self.home
        if home.outcome is not None:
            return
        if any(type(fact) in ENDINGS for fact in facts):
            home.stop()
            return
        home.came([fact for fact in facts if type(fact) in ENTRIES])  # type: ignore[misc]
        self._advance()

    # --- what the pass asks (Executor) ------------------------------------------------------------

    def ended(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def abandon(self, call: StepCall) -> None:
        task = self.tasks.pop(call.id, None)
        if task is not None:
            task.cancel()

    def begin(self, call: StepCall, attempt: int) -> None:
        work = call.work
        coro = self._database(call, attempt) if work.kind == "db" else self._attempt(call, work, attempt)
        self._spawn(call.id, coro, work.context)

    def register(self, waits: tuple[Wait, ...], released: tuple[str, ...]) -> None:
        event = Waiting(waits, released)
        told = blake2b(msgspec.json.encode([[w.call for w in waits], released]), digest_size=12).hexdigest()
        self._spawn(f"w/{told}", self._register(event, f"w/{self.state.round}/{told}"), copy_context())

    def _spawn(self, id: str, coro: Any, context: Any) -> None:
        task: asyncio.Task[None] = self.host.create_task(coro, context=context)
        self.tasks[id] = task
        task.add_done_callback(lambda over: self._over(id, over))

    def _over(self, id: str, task: asyncio.Task[None]) -> None:
        if self.tasks.get(id) is task:
            del self.tasks[id]
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault(fault)

    async def _register(self, event: Waiting, id: str) -> None:
        await self.actor.fold(event, id)
        self.home.registered()
        self._advance()

    # --- one attempt ------------------------------------------------------------------------------

    async def _attempt(self, call: StepCall, work: Work, attempt: int) -> None:
        try:
            result = await self._act(call, work, attempt)
        except asyncio.CancelledError as cut:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            event = self._failed(call, work, attempt, cut)
        except Exception as fault:  # noqa: BLE001 - the door: whatever a step raises becomes its outcome
            event = self._failed(call, work, attempt, fault)
        else:
            try:
                raw = work.info.result.encode(result)
            except Exception as unfit:  # noqa: BLE001 - the door: a result that cannot be written fails the run
                self.home.fail(call.name, unfit, attempt)
                return
            event = Stepped(call.id, call.name, call.digest, attempt, msgspec.Raw(raw))
        await self.actor.fold(event, self._id(call, attempt))

    async def _act(self, call: StepCall, work: Work, attempt: int) -> Any:
        args = work.args
        if work.info.takes_step:
            args = (Step(self._key(work), moment(call.now_ms), attempt, self.state.principal), *args)
        if work.info.is_async:
            act = work.function(*args, **work.values)
        else:
            act = asyncio.to_thread(work.function, *args, **work.values)
        if work.timeout is None:
            return await act
        async with asyncio.timeout(work.timeout / 1000):
            return await act

    def _failed(self, call: StepCall, work: Work, attempt: int, fault: BaseException) -> Stepped:
        again = work.retry.after(attempt, fault, self._key(work))
        return Stepped(call.id, call.name, call.digest, attempt, trouble=_told(fault), again_after=again)

    async def _database(self, call: StepCall, attempt: int) -> None:
        work: DatabaseWork = call.work

        def event_of(value: Any) -> Event:
            try:
                raw = work.write(value)
            except Exception as unfit:
                raise _Unfit from unfit
            return Stepped(call.id, call.name, call.digest, attempt, msgspec.Raw(raw))

        id = self._id(call, attempt)
        try:
            await self.actor.author(work.function, event_of, id=id, budget_ms=DATABASE_BUDGET_MS)
        except _Unfit as unfit:
            assert unfit.__cause__ is not None
            self.home.fail(call.name, unfit.__cause__, attempt)
        except WORLD:
            raise
        except Exception as fault:  # noqa: BLE001 - the door: whatever the statement raised becomes its outcome
            failed = Stepped(call.id, call.name, call.digest, attempt, trouble=_told(fault))
            await self.actor.fold(failed, id)

    def _id(self, call: StepCall, attempt: int) -> str:
        return f"{call.id}/{self.state.round}.{attempt}"

    def _key(self, work: Work) -> str:
        return str(leaving_key(self.owner, work.key))


def _told(fault: BaseException) -> Trouble:
    """An exception as data: its class's name, its message, and those of its attributes that are JSON."""
    message = str(fault).replace("\0", "")[:MESSAGE_LIMIT]
    data = {}
    for name, value in vars(fault).items():
        if isinstance(value, str | int | float | bool | list | dict) and not name.startswith("_"):
            data[name] = value
    try:
        raw = msgspec.json.encode(data) if data else b"null"
    except Exception:  # noqa: BLE001 - the door: an attribute that is no JSON is left out
        raw = b"null"
    return Trouble(type(fault).__name__, message, data=msgspec.Raw(raw if len(raw) <= DATA_LIMIT else b"null"))
