"""actuators.blocking - the same verbs for a plain function, which runs in a thread of its own.

For: `Run` and `Database` without `await`; the crossing between the function's thread and its pass.
Never: lets the thread and the pass go on at the same time: one of the two always waits.
Was wrong once: the executor's threads. Forty functions that waited held all of them, and no step could start.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload
from uuid import UUID

from onefold.actuators import run as awaited
from onefold.actuators.asking import UNSAID
from onefold.actuators.outcomes import Approved, Expired, Rejected
from onefold.actuators.passing import Pass
from onefold.actuators.stepping import DEFAULT_RETRY, Retry
from onefold.kernel.port import Port, Step
from onefold.store.contract import Tx
from onefold.terms.errors import Suspended

if TYPE_CHECKING:
    from pydantic import BaseModel

    from onefold.actuators import children
    from onefold.actuators.declare import Actuator

P = ParamSpec("P")
T = TypeVar("T")
B = TypeVar("B")
I = TypeVar("I")  # noqa: E741 - the input
O = TypeVar("O")  # noqa: E741 - the output
Duration = str | timedelta


class Crossing:
    """Carries calls from the function's thread into the pass, and their outcomes back.

    left: a future of the host's loop, set when the thread has ended.
    """

    def __init__(self, home: Pass, host: asyncio.AbstractEventLoop, advance: Callable[[], None]) -> None:
        self.home = home
        self.host = host
        self.advance = advance
        self.left: asyncio.Future[None] = host.create_future()
        self.over = False
        self.thread: threading.Thread
        self._next: asyncio.Future[Any] | None = None
        self._begun = False
        self._back = threading.Semaphore(0)
        self._outcome: tuple[bool, Any] = (True, None)

    # --- on the pass's loop -----------------------------------------------------------------------

    def start(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Make the thread, which waits for the bridge. Raises: RuntimeError when the system gives no more of them."""
        context = copy_context()
        self.thread = threading.Thread(
            target=context.run, args=(self._whole, function, args), name=f"run {args[0].id}", daemon=True
        )
        self.thread.start()

    def close(self) -> None:
        """The pass is over: a thread that has not begun never does."""
        self.over = True
        if not self._begun:
            self._back.release()

    async def bridge(self) -> Any:
        """The pass's root task: lets the thread begin and makes its calls, one after another."""
        self._begun = True
        try:
            call = await self._resume()
            while call is not None:
                try:
                    value = call()
                    outcome = (True, await value if hasattr(value, "__await__") else value)
                except Suspended:
                    raise
                except BaseException as fault:  # noqa: BLE001 - the door: it is raised in the thread, where it was called
                    outcome = (False, fault)
                self._outcome = outcome
                call = await self._resume()
            good, value = self._outcome
            if not good:
                raise value
            return value
        except Suspended:
            self.over = True
            if self._next is None:  # the thread waits for this outcome
                self._outcome = (False, Suspended())
                self._back.release()
            raise

    async def _resume(self) -> Callable[[], Any] | None:
        """Let the thread go on and wait for its next call; None when it has ended."""
        self._next = self.home.loop.create_future()
        self.home.away = True
        self._back.release()
        try:
            call: Callable[[], Any] | None = await self._next
        finally:
            if not self.over and self.home.suspended:
                self.over = True
        self._next = None
        return call

    def _arrived(self, call: Callable[[], Any] | None) -> None:
        """On the host's loop: the thread has posted its next call, or ended."""
        self.home.away = False
        if self._next is not None and not self._next.done():
            self._next.set_result(call)
        elif call is not None:  # the pass ended meanwhile
            self._outcome = (False, Suspended())
            self._back.release()
        self.advance()

    def _ended(self) -> None:
        self._arrived(None)
        if not self.left.done():
            self.left.set_result(None)

    # --- on the function's thread -----------------------------------------------------------------

    def _whole(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._back.acquire()
        try:
            if self.over:
                raise Suspended
            self._outcome = (True, function(Run(self, args[0]), *args[1:]))
        except BaseException as fault:  # noqa: BLE001 - the door: it becomes the outcome of the pass's root task
            self._outcome = (False, fault)
        self._post(self._ended)

    def cross(self, call: Callable[[], Any]) -> Any:
        """Make `call` on the pass's loop and wait for its outcome. Raises: Suspended once the pass is over."""
        if self.over:
            raise Suspended
        if threading.current_thread() is not self.thread:
            raise RuntimeError(
                "`run` was used in another thread; only the function's own thread may, or replay differs"
            )
        self._post(self._arrived, call)
        self._back.acquire()
        good, value = self._outcome
        if not good:
            raise value
        return value

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        try:
            self.host.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the host's loop is closed: the process is going, and nothing counts any more
            raise Suspended from None


class Run:
    """One run, as its plain function sees it: `onefold.Run` without `await`."""

    def __init__(self, crossing: Crossing, run: awaited.Run) -> None:
        self.id = run.id
        self.key = run.key
        self.principal = run.principal
        self.db = Database(crossing, run)
        self._cross = crossing.cross
        self._run = run

    @property
    def random(self) -> random.Random:
        return self._run.random

    def now(self) -> datetime:
        return self._run.now()

    def uuid(self) -> UUID:
        found: UUID = self._cross(self._run.uuid)
        return found

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
    ) -> Callable[[B], T]: ...
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
    ) -> Callable[P, T]: ...
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
    ) -> Callable[P, T]: ...
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
    ) -> Callable[P, T]: ...
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
    ) -> Callable[P, T]: ...
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
        stepper: Any = self._run.step(f, name=name, retry=retry, timeout=timeout, limit=limit, undo=undo)
        return lambda *args, **values: self._cross(lambda: stepper(*args, **values))

    def version(self, change: str) -> bool:
        return bool(self._cross(lambda: self._run.version(change)))

    def progress(self, message: str, done: int | float | None = None, of: int | float | None = None) -> None:
        self._cross(lambda: self._run.progress(message, done, of))

    def undo(self) -> None:
        self._cross(self._run.undo)

    def call(self, actuator: Actuator[I, O], input: I = None, *, key: str | None = None) -> O:  # type: ignore[assignment]
        given: O = self._cross(lambda: self._run.call(actuator, input, key=key))
        return given

    def start(
        self,
        actuator: Actuator[I, O],
        input: I = None,  # type: ignore[assignment]
        *,
        key: str | None = None,
        detached: bool = False,
    ) -> Child[O]:
        begun = self._cross(lambda: self._run.start(actuator, input, key=key, detached=detached))
        return Child(self._cross, begun)

    def first(self, *awaitables: Awaitable[T]) -> tuple[int, T]:
        raise TypeError("a plain function waits for one thing at a time; write it as `async def` with onefold.Run")

    def sleep(self, duration: Duration) -> None:
        self._cross(lambda: self._run.sleep(duration))

    def sleep_until(self, instant: datetime) -> None:
        self._cross(lambda: self._run.sleep_until(instant))

    @overload
    def wait_for_event(self, event: type[T], *, name: str | None = None) -> T: ...
    @overload
    def wait_for_event(self, event: type[T], *, timeout: None, name: str | None = None) -> T: ...
    @overload
    def wait_for_event(self, event: type[T], *, timeout: Duration, name: str | None = None) -> T | Expired: ...
    def wait_for_event(
        self, event: type[Any], *other: Any, timeout: Duration | None = None, name: str | None = None
    ) -> Any:
        ask: Any = self._run.wait_for_event
        return self._cross(lambda: ask(event, *other, timeout=timeout, name=name))

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
    ) -> Approved | Rejected: ...
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
    ) -> Approved | Rejected | Expired: ...
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
        ask: Any = self._run.wait_for_approval
        return self._cross(
            lambda: ask(name, message, notify=notify, timeout=timeout, offer=offer, need=need, not_by=not_by)
        )


class Child(Generic[O]):
    """What `run.start` gives, without `await`."""

    def __init__(self, cross: Callable[[Callable[[], Any]], Any], awaited: children.Child[O]) -> None:
        self._cross = cross
        self._awaited = awaited
        self.run_id, self.program, self.status = awaited.run_id, awaited.program, awaited.status
        self.waits, self.error, self.key = awaited.waits, awaited.error, awaited.key
        self.started_at, self.updated_at = awaited.started_at, awaited.updated_at

    def result(self, *, timeout: str | timedelta | None = None) -> O:
        given: O = self._cross(lambda: self._awaited.result(timeout=timeout))
        return given

    def refresh(self) -> Child[O]:
        return Child(self._cross, self._cross(self._awaited.refresh))

    def send(self, event: Any, *, key: str | None = None) -> None:
        self._cross(lambda: self._awaited.send(event, key=key))

    def cancel(self, reason: str | None = None) -> Child[O]:
        return Child(self._cross, self._cross(lambda: self._awaited.cancel(reason)))


class Database:
    """`run.db` without `await`."""

    def __init__(self, crossing: Crossing, run: awaited.Run) -> None:
        self._cross = crossing.cross
        self._db = run.db

    def execute(self, sql: str, /, **values: object) -> int:
        return int(self._cross(lambda: self._db.execute(sql, **values)))

    def fetch(self, sql: str, /, **values: object) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._cross(lambda: self._db.fetch(sql, **values))
        return rows

    def fetch_one(self, sql: str, /, **values: object) -> dict[str, Any] | None:
        row: dict[str, Any] | None = self._cross(lambda: self._db.fetch_one(sql, **values))
        return row

    def step(self, f: Callable[Concatenate[Tx, P], T], *, name: str | None = None) -> Callable[P, T]:
        stepper: Any = self._db.step(f, name=name)

        def call(*args: P.args, **values: P.kwargs) -> T:
            result: T = self._cross(lambda: stepper(*args, **values))
            return result

        return call
