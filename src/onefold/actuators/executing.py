"""actuators.executing - a pass over one run: the only file of the room that awaits the world.

For: running steps outside the pass's loop, folding what became of them, and answering how the pass ended.
Never: decides; keeps anything when it is cancelled, for all that counts is committed.
Was wrong once: a step's result handed to the pass as it returned. A crash before the commit had
already shown the function what never was.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from typing import Any, Protocol, TypeVar

from onefold.actuators.attempting import Attempt, DatabaseAttempt, encoded
from onefold.actuators.blocking import Crossing
from onefold.actuators.calls import StepCall
from onefold.actuators.carried import Change, Diverged, PassEnded, Progress, Rested
from onefold.actuators.declare import Actuator
from onefold.actuators.event_ids import attempt_id, event_id
from onefold.actuators.parts import Wait
from onefold.actuators.passing import Pass
from onefold.actuators.passloop import PassTask, Path
from onefold.actuators.run import Run
from onefold.actuators.state import GOING, State
from onefold.actuators.troubles import Unfit
from onefold.actuators.words import ENDINGS, ENTRIES, Event, EventKept, EventTaken, Fact, Waiting
from onefold.kernel.blob import filled, note, pointers
from onefold.kernel.port import StandIn
from onefold.store.contract import Tx
from onefold.terms.errors import CallerError
from onefold.terms.ids import ActorId

T = TypeVar("T")
TWICE = frozenset({EventKept, EventTaken})  # facts with a value that a later fact of the same pass may hold


class Actor(Protocol):
    """One run's actor, as the node keeps it. stand_in: what a test has called in the place of steps, else None."""

    @property
    def stand_in(self) -> StandIn | None: ...

    @property
    def state(self) -> State:
        """The durable state now."""

    def watch(self, callback: Callable[[Sequence[Fact]], None], /) -> Callable[[], None]:
        """Call back after each commit of this actor with its new facts; the function given back ends it."""

    def fold(self, event: Event, id: str, /) -> Awaitable[Any]:
        """Fold an event of the source `step`; answered after its commit. Raises: HostError, OwnedElsewhere."""

    @property
    def children(self) -> Any:
        """What the run may do with others (`actuators.children`)."""

    async def blob(self, digest: bytes, /) -> bytes:
        """The bytes that a value of this run points at. Raises: BlobDamaged, StoreUnavailable."""

    def author(
        self, step: Callable[[Tx], T], event_of: Callable[[T], Event], /, *, id: str, budget_ms: int
    ) -> Awaitable[Any]:
        """Run a database step and fold its event in one physical commit. Raises: what `step` raised; HostError."""


async def run_pass(actor: Actor, actuator: Actuator[Any, Any]) -> PassEnded:
    """Replay the run from its journal and go on until it ends or every task waits.

    Cancelling it abandons running steps and journals nothing more. Raises: HostError, OwnedElsewhere
    when a fold failed; the pass may then be run again from the start.
    """
    return await Execution(actor, actuator, await kept_aside(actor)).whole()


async def kept_aside(actor: Actor) -> dict[bytes, bytes]:
    """The long values that this run's rows only point at, by digest. A replay needs them all."""
    known: dict[bytes, bytes] = {}
    while True:
        state = actor.state
        aside = pointers(state).union(*map(pointers, state.journal), *map(pointers, state.kept))
        missing = aside - known.keys()
        if not missing:
            return known
        for wanted in missing:
            known[wanted] = await actor.blob(wanted)


class Execution:
    """One pass and the steps it has running: the executor its Pass asks."""

    def __init__(self, actor: Actor, actuator: Actuator[Any, Any], known: dict[bytes, bytes]) -> None:
        """`known`: the long values that the run's state points at, by digest."""
        self.actor = actor
        self.actuator = actuator
        self.host = asyncio.get_running_loop()
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.done = False
        self.fault: BaseException | None = None
        self.known = known
        self.state = filled(actor.state, known) if known else actor.state
        self.owner = ActorId(actuator.name, self.state.principal, self.state.run)
        self.home = Pass(self.state, self)
        if known:
            self.home.queue = deque(filled(entry, known) for entry in self.state.journal)
        self.crossing: Crossing | None = None
        self.own = Own(copy_context())

    @property
    def children(self) -> Any:
        return self.actor.children

    async def whole(self) -> PassEnded:
        if self.state.status not in GOING:  # cancelled after this pass was owed: it acts no more
            return Rested(0)
        try:
            args = self._arguments()
        except ValueError as refused:
            told = " ".join(str(refused).split())
            return Diverged(0, "the input it was started with", f"an input model that refuses it: {told[:500]}")
        stop = self.actor.watch(self._committed)
        try:
            self._launch(args)
            self._advance()
            await self._work()
            if self.crossing is not None:
                await self.crossing.left
        finally:
            stop()
            self.own.close()
            for task in self.tasks.values():
                task.cancel()
            self.home.stop()
            if self.crossing is not None:
                self.crossing.close()
        outcome = self.home.outcome
        assert outcome is not None, "a pass is done when it has its outcome"
        return outcome

    def _arguments(self) -> tuple[Any, ...]:
        state, actuator = self.state, self.actuator
        run = Run(
            self.home, state.run, state.key, state.principal, actuator.name, actuator.ports, state.seed or state.run
        )
        return (run,) if actuator.model is None else (run, actuator.read_input(state.input))

    def _launch(self, args: tuple[Any, ...]) -> None:
        """Make the root task, path "0"."""
        home, actuator = self.home, self.actuator
        home.finish = lambda value: encoded(actuator.result.encode, f"actuator {actuator.name!r}", value)
        if actuator.is_async:
            coro = actuator.function(*args)
        else:
            self.crossing = Crossing(home, self.host, self._advance)
            self.crossing.start(actuator.function, args)
            coro = self.crossing.bridge()
        home.root = PassTask(coro, home.loop, Path("0"), copy_context())

    async def _work(self) -> None:
        """Until the pass is done. A step that runs alone runs here: a task of its own costs a fifth of it."""
        own, task = self.own, asyncio.current_task()
        while not self.done:
            if own.next is None:
                await own.asked(self.host)
                continue
            try:
                await own.take()
            except asyncio.CancelledError:
                if not own.cut or task is None or task.uncancel():
                    raise
            else:
                if own.cut and task is not None:
                    task.uncancel()  # the step swallowed that it was cut
            own.cut = False
            _undrained()
        if self.fault is not None:
            raise self.fault

    def _advance(self) -> None:
        if self.done:
            return
        try:
            self.home.advance()
        except BaseException as fault:  # the pass itself broke: it is answered by no outcome, and run again
            self._broke(fault)
            if not isinstance(fault, Exception):
                raise

    def _broke(self, fault: BaseException) -> None:
        if not self.done:
            self.done, self.fault = True, fault
            self.own.stop()

    def _committed(self, facts: Sequence[Fact]) -> None:
        home = self.home
        if home.outcome is not None:
            return
        entries = []
        for fact in facts:
            kind = type(fact)
            if kind in TWICE:
                fact = self._entry(fact)
            if kind in ENTRIES:
                entries.append(fact)
                if fact.call == self.own.call:  # type: ignore[union-attr]
                    self.own.call = None
            elif kind in ENDINGS:
                home.stop()
                return
        if entries:
            home.came(entries)  # type: ignore[arg-type]
            self._advance()

    def _entry(self, fact: Any) -> Any:
        """A fact as it came. The state now only points at a long value of it, and may show it again."""
        note(fact, self.known)
        return filled(fact, self.known)

    # --- what the pass asks -----------------------------------------------------------------------

    def ended(self) -> None:
        if not self.done:
            self.done = True
            self.own.stop()

    def abandon(self, call: StepCall) -> None:
        if self.own.call == call.id:
            self.own.cancel()
            return
        task = self.tasks.pop(self._id(call, call.attempt + 1), None)
        if task is not None:
            task.cancel()

    def begin(self, call: StepCall, attempt: int) -> None:
        id = self._id(call, attempt)
        coro: Coroutine[Any, Any, None]
        if call.acting.kind == "db":
            coro = self._database(DatabaseAttempt(call, attempt), id)
        else:
            doubtful = call.id in self.state.trying
            coro = self._attempt(Attempt(self.actor, call, attempt, id=id, owner=self.owner, doubtful=doubtful))
        if self.own.takes(call):
            self.own.give(call, coro)
        else:
            self.tasks[id] = self.host.create_task(coro, context=call.context)

    def _id(self, call: StepCall, attempt: int) -> str:
        return attempt_id(call.id, attempt, self.state.round)

    def register(self, waits: tuple[Wait, ...], released: tuple[str, ...], unread: tuple[str, ...]) -> None:
        self.tell(Waiting(waits, released, unread))

    def tell(self, event: Waiting | Change | Progress) -> None:
        id = event_id(event, self.state.round)
        self.tasks[id] = self.host.create_task(self._register(event, id))

    async def _register(self, event: Event, id: str) -> None:
        try:
            await self.actor.fold(event, id)
        except CallerError as refused:  # what the store will never take: the run cannot go on
            self.home.fail("the waits", refused, 1)
        except BaseException as fault:  # noqa: BLE001 - the door: a fold that failed ends the pass as a fault
            self._over(id, fault)
            return
        self._over(id)
        self.home.registered()
        self._advance()

    async def _attempt(self, attempt: Attempt) -> None:
        call = attempt.call
        try:
            event = await attempt.outcome()
            if call.done():  # it was cut, and would not hear of it
                pass
            elif event is None:
                self.home.doubt(call.name, attempt.why)
            else:
                _undrained()
                await self.actor.fold(event, attempt.id)
        except (Unfit, CallerError) as unfit:
            self.home.fail(call.name, unfit, attempt.number)
        except BaseException as fault:  # noqa: BLE001 - the door: a fold that failed ends the pass as a fault
            self._over(attempt.id, fault)
            return
        self._over(attempt.id)

    async def _database(self, attempt: DatabaseAttempt, id: str) -> None:
        call = attempt.call
        try:
            failed = await attempt.commit(self.actor, id)
            if failed is not None:
                await self.actor.fold(failed, id)
        except (Unfit, CallerError) as unfit:
            self.home.fail(call.name, unfit, attempt.number)
        except BaseException as fault:  # noqa: BLE001 - the door: a fold that failed ends the pass as a fault
            self._over(id, fault)
            return
        self._over(id)

    def _over(self, id: str, fault: BaseException | None = None) -> None:
        """A task ended. What it raised is no outcome of a step: a fold failed, and the pass with it."""
        self.tasks.pop(id, None)
        if fault is not None:
            if not isinstance(fault, asyncio.CancelledError):
                self._broke(fault)
            if not isinstance(fault, Exception):
                raise fault


def _undrained() -> None:
    """A step that swallowed its pass's end brings nothing either. Raises: CancelledError."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class Own:
    """The one step that runs in the pass's own task, when no other does.

    call: its call, until its outcome is committed. next: it, until it is taken. cut: it was abandoned.
    """

    __slots__ = ("_context", "_free", "_running", "_task", "_waker", "call", "cut", "next")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._free = True
        self._running = False
        self._task = asyncio.current_task()
        self._waker: asyncio.Future[None] | None = None
        self.call: str | None = None
        self.next: Coroutine[Any, Any, None] | None = None
        self.cut = False

    def takes(self, call: StepCall) -> bool:
        """Whether it may run here: nothing else does, and it was called in the context that this task has."""
        alone = self.call is None and self.next is None and not self.cut
        return alone and self._free and call.context == self._context

    def give(self, call: StepCall, step: Coroutine[Any, Any, None]) -> None:
        self.call, self.next = call.id, step
        self.wake()

    async def take(self) -> None:
        """Run it, and put the context back as it was for the next."""
        step, self.next = self.next, None
        assert step is not None, "there is a step to take"
        self._running = True
        try:
            await step
        finally:
            self._running = False
            if copy_context() != self._context:
                for variable, value in self._context.items():
                    variable.set(value)
                self._free = copy_context() == self._context  # a variable that is new cannot be taken out again

    async def asked(self, host: asyncio.AbstractEventLoop) -> None:
        """Until there is something to take, or the pass is done."""
        self._waker = host.create_future()
        await self._waker
        self._waker = None

    def wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def cancel(self) -> None:
        """Its call was cancelled: it stops, or never begins."""
        self.call = None
        if self.next is not None:
            self.close()
        elif self._running and not self.cut and self._task is not asyncio.current_task() and self._task is not None:
            self.cut = True
            self._task.cancel()

    def stop(self) -> None:
        """The pass is done: what still runs stops, unless its outcome is committed and it is about to end."""
        if self.call is not None:
            self.cancel()
        self.wake()

    def close(self) -> None:
        """What was not begun never is."""
        if self.next is not None:
            self.next.close()
            self.next = None
