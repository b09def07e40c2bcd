"""actuators.passloop - the event loop of a pass: its tasks, and nothing of the world.

For: driving a function's tasks until every one of them is blocked, the same way in every replay.
Never: waits; reads a clock; lets a socket, a file, a thread or a signal in. Its timers are handed to
the pass, which makes them durable waits.
Was wrong once: the host's own loop. Timers of other work came between two results, and the
second replay met them in another order.

It is driven inside whatever loop runs on this thread: `drive` makes itself the running one for as
long as a task of the pass can go on, and puts back what it found.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from asyncio import AbstractEventLoop, events
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextvars import Context, copy_context
from hashlib import blake2b
from typing import Any, NoReturn

from onefold.terms.errors import OutsideStep, Suspended
from onefold.terms.places import place_of_call

log = logging.getLogger("onefold.actuators")
running_loop = events._get_running_loop
_set_running_loop = events._set_running_loop
_current_tasks: dict[Any, Any] = asyncio.tasks._current_tasks  # type: ignore[attr-defined]
BUDGET = 1_000_000
"""Callbacks in one drive. A real pass needs a handful an await; one that only spins would hold the process."""


PATH_LIMIT = 100
"""Characters of a path: it stands in keys and ids. Tasks nested deeper are named by the hash of theirs."""


class Spinning(RuntimeError):
    """A pass went on for BUDGET callbacks without waiting for anything."""


class Path:
    """Where calls and tasks are counted: one a task, and one for callbacks that no task runs."""

    __slots__ = ("calls", "children", "name", "names", "uuids")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.children = 0
        self.uuids = 0
        self.names: dict[str, int] = {}

    def child(self) -> str:
        self.children += 1
        name = f"{self.name}.{self.children - 1}"
        return name if len(name) <= PATH_LIMIT else f"h{blake2b(name.encode(), digest_size=16).hexdigest()}"


class PassFuture(asyncio.Future[Any]):
    """A future of a pass. Hashes by the order of making, the same in every replay: a set of these iterates alike."""

    __slots__ = ("number",)

    def __init__(self, loop: PassLoop) -> None:
        asyncio.Future.__init__(self, loop=loop)
        loop.made = self.number = loop.made + 1

    def __hash__(self) -> int:
        return self.number


class PassTask(asyncio.Task[Any]):
    """A task of a pass. `path` names it: "0" is the function, "0.1" the second task that it made."""

    __slots__ = ("number", "path")

    def __init__(self, coro: Coroutine[Any, Any, Any], loop: PassLoop, path: Path, context: Context | None) -> None:
        loop.made = self.number = loop.made + 1  # before the base class: it puts the task into a set
        self.path = path
        asyncio.Task.__init__(self, coro, loop=loop, name=path.name, context=context)
        loop.tasks.append(self)

    def __hash__(self) -> int:
        return self.number


class Callback:
    """What call_soon gives. asyncio's own handle costs four times as much and has nothing else that a pass needs."""

    __slots__ = ("args", "context", "dead", "function", "on_cancel")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], context: Context | None) -> None:
        self.function = function
        self.args = args
        self.context = context if context is not None else copy_context()
        self.dead = False
        self.on_cancel: Callable[[], None] | None = None

    def cancel(self) -> None:
        if not self.dead:
            self.dead = True
            if self.on_cancel is not None:
                self.on_cancel()

    def cancelled(self) -> bool:
        return self.dead


class DurableTimer(Callback):
    """What call_later gives: cancelling it before it fired tells the pass."""

    __slots__ = ("_when",)

    def __init__(
        self, when: float, function: Callable[..., Any], args: tuple[Any, ...], context: Context | None
    ) -> None:
        Callback.__init__(self, function, args, context)
        self._when = when

    def when(self) -> float:
        """The loop's time at which it was asked for, in seconds."""
        return self._when


class _Tasks(AbstractEventLoop):
    """What tasks, futures and asyncio's own tools ask of a loop.

    timer: called with (milliseconds, handle) for each delayed call. `now_ms` is the pass's own now.
    """

    def __init__(self, timer: Callable[[int, DurableTimer], None]) -> None:
        self.ready: deque[Callback] = deque()
        self.timer = timer
        self.driving = False
        self.closed = False
        self.quiet = False
        self.now_ms = 0
        self.made = 0
        self.tasks: list[PassTask] = []
        self.loose = Path("c")
        self.budget = BUDGET

    def path(self) -> Path:
        """Of the task that runs now, or of the loose callbacks."""
        task = _current_tasks.get(self)
        return task.path if type(task) is PassTask else self.loose

    def call_soon(  # type: ignore[override]  # a handle of ours
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Callback:
        handle = Callback(callback, args, context)
        self.ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]  # a handle of ours
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> DurableTimer:
        handle = DurableTimer(self.time() + delay, callback, args, context)
        if delay > 0:
            self.timer(_milliseconds(delay), handle)
        else:
            self.ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]  # a handle of ours
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> DurableTimer:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def fire(self, handle: DurableTimer) -> None:
        """The instant of a timer has come."""
        if not handle.dead:
            handle.on_cancel = None
            self.ready.append(handle)

    def time(self) -> float:
        return self.now_ms / 1000

    def create_future(self) -> PassFuture:
        return PassFuture(self)  # type: ignore[arg-type]

    def create_task(  # type: ignore[override]  # takes any awaitable
        self,
        coro: Coroutine[Any, Any, Any] | Awaitable[Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> Any:
        """A task with the next path below the one that asks. A journaled call may stand for a coroutine."""
        if not asyncio.iscoroutine(coro):
            if not hasattr(coro, "__await__"):
                raise TypeError(f"a coroutine was expected, got {coro!r}")
            coro = _awaiting(coro)
        task = PassTask(coro, self, Path(self.path().child()), context)  # type: ignore[arg-type]
        if name is not None:
            task.set_name(name)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A suspended pass drops its tasks on purpose; anything else is worth a line."""
        if not self.quiet:
            log.error("%s", context.get("message"), exc_info=context.get("exception"))

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_exception_handler(self) -> None:
        return None

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        """Debugging would change the order of nothing and the cost of everything: it stays off."""

    def is_running(self) -> bool:
        return self.driving

    def is_closed(self) -> bool:
        return self.closed

    def close(self) -> None:
        """Let go of everything: a pass is one knot of references, which would wait for the garbage collector."""
        self.closed = self.quiet = True
        self.ready.clear()
        self.tasks.clear()
        self.timer = _over

    def get_task_factory(self) -> None:
        return None

    async def shutdown_asyncgens(self) -> None:
        """Generators end with their pass."""

    async def shutdown_default_executor(self) -> None:
        """There is none."""


WORLD = (
    "add_reader add_signal_handler add_writer call_soon_threadsafe connect_accepted_socket connect_read_pipe"
    " connect_write_pipe create_connection create_datagram_endpoint create_server create_unix_connection"
    " create_unix_server getaddrinfo getnameinfo remove_reader remove_signal_handler remove_writer run_forever"
    " run_in_executor run_until_complete sendfile set_default_executor set_exception_handler set_task_factory"
    " sock_accept sock_connect sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendfile"
    " sock_sendto start_tls stop subprocess_exec subprocess_shell"
).split()
"""What reaches outside, or would make the loop another one: refused by name."""


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *args: object, **values: object) -> NoReturn:
        raise OutsideStep(f"loop.{name}", place_of_call())

    refuse.__name__ = name
    return refuse


Refusing: Any = type("Refusing", (_Tasks,), {name: _refused(name) for name in WORLD})


class PassLoop(Refusing):  # type: ignore[misc]
    """Runs callbacks in order, synchronously, until none is left."""

    ready: deque[Callback]
    tasks: list[PassTask]
    loose: Path
    made: int
    now_ms: int
    budget: int
    closed: bool
    quiet: bool

    def drive(self) -> None:
        """Run until every task is blocked. Raises: Spinning; KeyboardInterrupt and SystemExit of a callback."""
        ready = self.ready
        if not ready:
            return
        outer = running_loop()
        hooks = sys.get_asyncgen_hooks()
        left = self.budget
        self.driving = True
        _set_running_loop(self)
        sys.set_asyncgen_hooks(None, self._finalize)
        try:
            while ready:
                handle = ready.popleft()
                if not handle.dead:
                    try:
                        handle.context.run(handle.function, *handle.args)
                    except Exception as fault:  # noqa: BLE001 - the door: told, as asyncio does
                        self.call_exception_handler({"message": "Exception in a callback", "exception": fault})
                left -= 1
                if not left:
                    raise Spinning(f"the function went on {self.budget} times without waiting for anything")
        finally:
            sys.set_asyncgen_hooks(*hooks)
            _set_running_loop(outer)
            self.driving = False

    def _finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        """An async generator was dropped half way: its `finally` runs here, as a task of the pass."""
        if not self.closed:
            self.create_task(generator.aclose())


async def _awaiting(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _over(after: int, handle: DurableTimer) -> None:
    raise Suspended


def _milliseconds(seconds: float) -> int:
    """Rounded up: nothing is early. Less than a microsecond is what floats of today's epoch cannot hold."""
    return max(1, math.ceil(round(seconds * 1000, 3)))


def _ordered(*items: Iterable[Any]) -> Any:
    """A set, or of a pass's awaitables what keeps the order in which they were given."""
    return dict.fromkeys(items[0]) if items and isinstance(running_loop(), PassLoop) else set(*items)


vars(asyncio.tasks)["set"] = _ordered
"""`as_completed` puts coroutines into a set before it makes tasks of them. Coroutines hash by address, so the
tasks' paths would differ from replay to replay. On every other loop the name stays what it was."""
