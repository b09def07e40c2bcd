"""actuators.run - what a function can do: the verbs of `Run`.

For: turning each verb into a journaled call of the pass, its arguments checked where it is called.
Never: does anything itself; knows the store or the clock.
Was wrong once: a verb as a coroutine. Its arguments were checked when it was awaited, far from the
mistake, and its place among the calls depended on who awaited first.
"""

from __future__ import annotations

import asyncio
import random
import uuid as uuids
from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from onefold.actuators.asking import UNSAID, all_said, answered, asking, event_class
from onefold.actuators.calls import StepCall, WaitCall
from onefold.actuators.database import Database
from onefold.actuators.ending import told_as
from onefold.actuators.outcomes import Approved, Expired, Rejected
from onefold.actuators.parts import Asking, Wait
from onefold.actuators.passing import Pass
from onefold.actuators.stepper import Stepper, Undoable
from onefold.actuators.stepping import (
    DEFAULT_RETRY,
    Acting,
    Retry,
    check_name,
    digest_of,
    read,
    step_name,
)
from onefold.actuators.words import EventTaken, WaitDue
from onefold.kernel.port import Port, Step
from onefold.terms.codec import text_problem
from onefold.terms.duration import duration_ms
from onefold.terms.errors import BadArguments, Fault, Undeclared
from onefold.terms.instant import moment, up
from onefold.terms.typed import codec_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from onefold.actuators.children import Child, Children
    from onefold.actuators.declare import Actuator

P = ParamSpec("P")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - the input
O = TypeVar("O")  # noqa: E741 - the output
B = TypeVar("B")
Duration = str | timedelta
MESSAGE = 500  # characters of what a progress says: one line of a page


class Run:
    """One run, as its function sees it. Outside of these verbs the function must give the same answer every time.

    id: the run's id. key: what the caller named it, or None. principal: who it runs as. db: the
    actuator's own database.
    """

    def __init__(
        self, home: Pass, id: str, key: str | None, principal: str | None, owner: str, ports: frozenset[str], seed: str
    ) -> None:
        self.id = id
        self.key = key
        self.principal = principal
        self.db = Database(home)
        self._home = home
        self._owner = owner
        self._ports = ports
        self._seed = seed  # the id; of a fork, that of the run it began with
        self._undos: list[tuple[StepCall, Callable[[], StepCall]]] = []
        self._steppers: dict[Any, Stepper] = {}  # those without options, made once a pass

    @cached_property
    def random(self) -> random.Random:
        """Seeded by the run's id: the same chances on every replay."""
        seed = int.from_bytes(sha256(self._seed.encode()).digest(), "big")
        return random.Random(seed)  # noqa: S311 - to be the same on every replay is what it is for

    def now(self) -> datetime:
        """The instant of the newest thing this run was told: the same on every replay."""
        return moment(self._home.loop.now_ms)

    def uuid(self) -> uuids.UUID:
        """A UUID that is the same on every replay. Raises: Suspended."""
        return uuids.uuid5(uuids.NAMESPACE_OID, f"{self._seed}/{self._home.next_uuid()}")

    # --- steps ------------------------------------------------------------------------------------

    @overload
    def step(  # type: ignore[overload-overlap]  # a port is called with its body, never with its step
        self,
        f: Port[B, T],
        *,
        name: str | None = None,
        retry: Retry = ...,
        timeout: Duration | None = None,
        limit: int | None = None,
        undo: Callable[..., Any] | None = None,
    ) -> Callable[[B], Coroutine[Any, Any, T]]: ...
    @overload
    def step(
        self,
        f: Callable[Concatenate[Step, P], Awaitable[T]],
        *,
        name: str | None = None,
        retry: Retry = ...,
        timeout: Duration | None = None,
        limit: int | None = None,
        undo: Callable[..., Any] | None = None,
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def step(
        self,
        f: Callable[Concatenate[Step, P], T],
        *,
        name: str | None = None,
        retry: Retry = ...,
        timeout: Duration | None = None,
        limit: int | None = None,
        undo: Callable[..., Any] | None = None,
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def step(
        self,
        f: Callable[P, Awaitable[T]],
        *,
        name: str | None = None,
        retry: Retry = ...,
        timeout: Duration | None = None,
        limit: int | None = None,
        undo: Callable[..., Any] | None = None,
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def step(
        self,
        f: Callable[P, T],
        *,
        name: str | None = None,
        retry: Retry = ...,
        timeout: Duration | None = None,
        limit: int | None = None,
        undo: Callable[..., Any] | None = None,
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def step(
        self,
        f: Any,
        *,
        name: str | None = None,
        retry: Retry = DEFAULT_RETRY,
        timeout: Duration | None = None,
        limit: int | None = None,
        undo: Callable[..., Any] | None = None,
    ) -> Any:
        """`f` as a journaled step: call it with f's own arguments and await it.

        f: async, plain (runs in a thread) or a port. timeout: for each attempt. limit: so many of this name at a time.
        undo: what `run.undo()` calls with the same arguments once this is done. The result is what f's
        return annotation reads back from the journal, the first time too. Raises: here, Undeclared for a port
        that the actuator does not list, BadArguments for what is no duration; when called, TypeError for wrong
        arguments; when awaited, StepFailed after the last attempt.
        """
        plain = name is None and retry is DEFAULT_RETRY and timeout is None and limit is None and undo is None
        if plain and (known := self._steppers.get(f)) is not None:
            return known
        port = None
        if isinstance(f, Port):
            if f.name not in self._ports:
                raise Undeclared(f.name, self._owner)
            port, name, f = f, name or f.name, f.function
        info = read(f)
        if limit is not None and (type(limit) is not int or limit < 1):
            raise BadArguments([Fault("limit", "must be a whole number from 1", limit)])
        within = None if timeout is None else duration_ms(timeout, what="timeout")
        acting = Acting(step_name(name, f, info), f, info, retry, within, port, limit)
        made = Stepper(self._home, acting)
        if undo is not None:
            undoing: Any = self.step(undo, name=f"undo {acting.name}")
            return Undoable(made, undoing, self._undos)
        if plain:
            self._steppers[f if port is None else port] = made
        return made

    def version(self, change: str) -> bool:
        """Whether to go by the new code of a change: False only for runs that passed here before it was written."""
        return self._home.version(check_name(change, "a change"))

    def progress(self, message: str, done: int | float | None = None, of: int | float | None = None) -> None:
        """Tell how far it is, `done` of `of`; the receipt shows it. Once, whatever is replayed. Raises: BadArguments."""
        faults = [
            Fault(name, "must be a finite number", told)
            for name, told in (("done", done), ("of", of))
            if told is not None and (type(told) not in (int, float) or not isfinite(told))
        ]
        if type(message) is not str or not message or len(message) > MESSAGE or text_problem(message):
            faults.append(Fault("message", f"must be text of 1 to {MESSAGE} characters"))
        if faults:
            raise BadArguments(faults, nothing_was="told")
        self._home.progress(message, done, of)

    async def undo(self) -> None:
        """Take back each step that has an `undo` and is done, latest first, each a step of its own. Raises: StepFailed."""
        while self._undos:
            call, undoing = self._undos.pop()
            if call.done() and not call.cancelled() and call.exception() is None:
                await undoing()

    # --- children ---------------------------------------------------------------------------------

    def call(self, actuator: Actuator[I, O], input: I = None, *, key: str | None = None) -> Coroutine[Any, Any, O]:  # type: ignore[assignment]
        """Another run, to its end. It ends with this one. Raises: RunFailed, RunCancelled; StepFailed where it was refused."""
        begun = self._begin(actuator, input, key, detached=False)

        async def called() -> O:
            given: O = await self._ending(actuator, await begun, detached=False)
            return given

        return called()

    async def start(
        self,
        actuator: Actuator[I, O],
        input: I = None,  # type: ignore[assignment]
        *,
        key: str | None = None,
        detached: bool = False,
    ) -> Child[O]:
        """Another run, as soon as it is committed. It ends with this one, unless it is detached."""
        from onefold.actuators.children import Child  # only who begins others pays for it

        run = await self._begin(actuator, input, key, detached=detached)
        ending = None if detached else self._ending(actuator, run, detached=False)

        def wait() -> WaitCall:
            return self._ending(actuator, run, detached=True) if ending is None else ending

        now = self.now()
        shown = (run, actuator.name, "running", (), None, key, now, now)
        return Child(*shown, _step=self.step, _children=self._children(), _ending=wait)

    def _begin(self, actuator: Actuator[Any, Any], input: Any, key: str | None, *, detached: bool) -> StepCall:
        from onefold.actuators.children import REFUSED, beginning

        begin = beginning(self._children(), actuator)
        acting = Acting(actuator.name, begin, read(begin), Retry(never=REFUSED))
        return Stepper(self._home, acting)(actuator.name, actuator.written(input).decode(), key, detached)

    def _ending(self, actuator: Actuator[Any, Any], run: str, *, detached: bool) -> WaitCall:
        from onefold.actuators.children import outcome_of

        name = told_as(actuator.name, run)
        waiting = self._wait("event" if detached else "child", name, digest_of("child", name), outcome_of(actuator))
        found: WaitCall = waiting
        return found

    def _children(self) -> Children:
        found: Children = self._home.children
        return found

    # --- waits ------------------------------------------------------------------------------------

    async def first(self, *awaitables: Awaitable[T]) -> tuple[int, T]:
        """The first of them that is done: its place and its value. The others are cancelled, their waits let go."""
        loop = self._home.loop
        tasks: list[Future[T]] = [
            one if isinstance(one, Future) else loop.create_task(_awaited(one)) for one in awaitables
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            place = next((n for n, task in enumerate(tasks) if task.done()), None)
            for task in tasks:
                task.cancel()
        assert place is not None, "one of them is done"
        return place, tasks[place].result()

    def sleep(self, duration: Duration) -> Coroutine[Any, Any, None]:
        """Wait this long, durably. Raises: BadArguments at the call for what is no duration."""
        ms = duration_ms(duration)
        slept: Coroutine[Any, Any, None] = self._wait("sleep", "sleep", digest_of("sleep", ms), _nothing, after=ms)
        return slept

    def sleep_until(self, instant: datetime) -> Coroutine[Any, Any, None]:
        """Wait until an instant; a past one goes on at once. Raises: BadArguments at the call for a naive one."""
        until = up(instant)
        digest = digest_of("sleep_until", until)
        slept: Coroutine[Any, Any, None] = self._wait("sleep", "sleep_until", digest, _nothing, until=until)
        return slept

    @overload
    def wait_for_event(self, event: type[T], *, name: str | None = None) -> Coroutine[Any, Any, T]: ...
    @overload
    def wait_for_event(self, event: type[T], *, timeout: None, name: str | None = None) -> Coroutine[Any, Any, T]: ...
    @overload
    def wait_for_event(
        self, event: type[T], *, timeout: Duration, name: str | None = None
    ) -> Coroutine[Any, Any, T | Expired]: ...
    def wait_for_event(
        self, event: type[Any], *other: Any, timeout: Duration | None = None, name: str | None = None
    ) -> Any:
        """Wait for an event sent to this run under the class's name (or `name`). Sent early is kept; first come, first taken."""
        event_class(event, other)
        label = check_name(event.__name__ if name is None else name, "an event")
        codec = codec_of(event)
        after = None if timeout is None else duration_ms(timeout, what="timeout")

        def outcome(entry: EventTaken | WaitDue) -> Any:
            return Expired(moment(entry.until)) if isinstance(entry, WaitDue) else codec.decode(bytes(entry.body))

        return self._wait("event", label, digest_of(label, after), outcome, after=after)

    @overload
    def wait_for_approval(
        self,
        name: str,
        message: str,
        *,
        notify: str | Sequence[str],
        timeout: None,
        offer: BaseModel | None = None,
        need: int = 1,
        not_by: str | Sequence[str] | None = None,
    ) -> Coroutine[Any, Any, Approved | Rejected]: ...
    @overload
    def wait_for_approval(
        self,
        name: str,
        message: str,
        *,
        notify: str | Sequence[str],
        timeout: Duration,
        offer: BaseModel | None = None,
        need: int = 1,
        not_by: str | Sequence[str] | None = None,
    ) -> Coroutine[Any, Any, Approved | Rejected | Expired]: ...
    def wait_for_approval(
        self,
        name: str,
        message: str,
        *,
        notify: str | Sequence[str] = UNSAID,
        timeout: Duration | None = UNSAID,
        offer: BaseModel | None = None,
        need: int = 1,
        not_by: str | Sequence[str] | None = None,
    ) -> Any:
        """Ask people. timeout is always said; None waits for ever.

        notify: names of people or URLs. offer: a model the approver may edit within its rules. need: how
        many must agree. not_by: who may not decide. Raises at the call: TypeError, ValueError, BadArguments
        for what cannot be asked.
        """
        label = check_name(name, "an approval")
        all_said(label, notify=notify, timeout=timeout)
        question = asking(label, message, notify, offer, need, not_by)
        after = None if timeout is None else duration_ms(timeout, what="timeout")
        digest = digest_of(label, question, after)
        return self._wait("approval", label, digest, answered(offer), after=after, question=question)

    def _wait(
        self,
        kind: Literal["sleep", "event", "approval", "child"],
        name: str,
        digest: str,
        outcome: Callable[[Any], Any],
        *,
        after: int | None = None,
        until: int | None = None,
        question: Asking | None = None,
    ) -> Any:
        home = self._home
        wait = Wait(home.next_id(), kind, name, digest, after, until, question)
        call = WaitCall(home, wait, outcome)
        if until is not None and until <= home.loop.now_ms:
            call.set_result(None)
            return call
        home.add(call)
        return call


async def _awaited(one: Awaitable[T]) -> T:
    return await one


def _nothing(entry: WaitDue) -> None:
    """What a sleep gives."""
