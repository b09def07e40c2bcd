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
import contextvars
import logging
import math
import sys
from asyncio import AbstractEventLoop, Handle, TimerHandle, events
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, NoReturn

from onefold.terms.errors import OutsideStep

log = logging.getLogger("onefold.actuators")
BUDGET = 1_000_000
"""Callbacks in one drive. A real pass needs a handful an await; one that only spins would hold the process."""


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
        return f"{self.name}.{self.children - 1}"


class PassFuture(asyncio.Future[Any]):
    """A future of a pass. Hashes by the order of making, the same in every replay: a set of these iterates alike."""

    def __init__(self, loop: PassLoop) -> None:
        asyncio.Future.__init__(self, loop=loop)
        loop.made += 1
        self.number = loop.made

    def __hash__(self) -> int:
        return self.number


class PassTask(asyncio.Task[Any]):
    """A task of a pass. `path` names it: "0" is the function, "0.1" the second task that it made."""

    def __init__(
        self, coro: Coroutine[Any, Any, Any], loop: PassLoop, path: Path, context: contextvars.Context | None
    ) -> None:
        loop.made += 1
        self.number = loop.made  # before the base class: it puts the task into a set
        self.path = path
        asyncio.Task.__init__(self, coro, loop=loop, name=path.name, context=context)

    def __hash__(self) -> int:
        return self.number


class DurableTimer(TimerHandle):
    """What call_later gives: cancelling it tells the pass."""

    def __init__(self, when: float, callback: Callable[..., Any], args: Any, loop: PassLoop, context: Any) -> None:
        TimerHandle.__init__(self, when, callback, args, loop, context)
        self.on_cancel: Callable[[], None] | None = None

    def cancel(self) -> None:
        if not self._cancelled:  # type: ignore[attr-defined]
            super().cancel()
            if self.on_cancel is not None:
                self.on_cancel()


class PassLoop(AbstractEventLoop):
    """Runs callbacks in order, synchronously, until none is left.

    timer: called with (milliseconds, handle) for each delayed call. `now_ms` is the pass's own now.
    """

    def __init__(self, timer: Callable[[int, DurableTimer], None]) -> None:
        self._ready: deque[Handle] = deque()
        self._timer = timer
        self._driving = False
        self._closed = False
        self.quiet = False
        self.now_ms = 0
        self.made = 0
        self.tasks: set[PassTask] = set()
        self.loose = Path("c")
        self.budget = BUDGET
        _order_sets()

    # --- driving ----------------------------------------------------------------------------------

    def drive(self) -> None:
        """Run until every task is blocked. Raises: Spinning; KeyboardInterrupt and SystemExit of a callback."""
        ready = self._ready
        if not ready:
            return
        outer = events._get_running_loop()
        hooks = sys.get_asyncgen_hooks()
        left = self.budget
        self._driving = True
        events._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._finalize)
        try:
            while ready:
                handle = ready.popleft()
                if not handle._cancelled:  # type: ignore[attr-defined]
                    handle._run()  # type: ignore[attr-defined]
                left -= 1
                if not left:
                    raise Spinning(f"the function went on {self.budget} times without waiting for anything")
        finally:
            sys.set_asyncgen_hooks(*hooks)
            events._set_running_loop(outer)
            self._driving = False

    def path(self) -> Path:
        """Of the task that runs now, or of the loose callbacks."""
        task = asyncio.current_task(self)
        return task.path if isinstance(task, PassTask) else self.loose

    def _finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        """An async generator was dropped half way: its `finally` runs here, as a task of the pass."""
        if not self._closed:
            self.create_task(generator.aclose())

    # --- what tasks need --------------------------------------------------------------------------

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Handle:
        handle = Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> TimerHandle:
        handle = DurableTimer(self.time() + delay, callback, args, self, context)
        if delay <= 0:
            self._ready.append(handle)
        else:
            self._timer(_milliseconds(delay), handle)
        return handle

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> TimerHandle:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def fire(self, handle: DurableTimer) -> None:
        if not handle.cancelled():
            handle.on_cancel = None
            self._ready.append(handle)

    def time(self) -> float:
        return self.now_ms / 1000

    def create_future(self) -> PassFuture:
        return PassFuture(self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any] | Awaitable[Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> PassTask:
        """A task with the next path below the one that asks. A journaled call may stand for a coroutine."""
        if not asyncio.iscoroutine(coro):
            if not hasattr(coro, "__await__"):
                raise TypeError(f"a coroutine was expected, got {coro!r}")
            coro = _awaiting(coro)
        task = PassTask(coro, self, Path(self.path().child()), context)
        if name is not None:
            task.set_name(name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
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
        return self._driving

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self.quiet = True
        self._ready.clear()

    def get_task_factory(self) -> None:
        return None

    async def shutdown_asyncgens(self) -> None:
        """Generators end with their pass."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        """TimerHandle calls this of its loop; the pass hears of it through `on_cancel`."""


async def _awaiting(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _milliseconds(seconds: float) -> int:
    """Rounded up: nothing is early. A thousandth of a millisecond is what floats of today's epoch cannot hold."""
    return max(1, math.ceil(round(seconds * 1000, 3)))


def _forbidden(name: str) -> Callable[..., NoReturn]:
    def refuse(self: PassLoop, *args: Any, **kwargs: Any) -> NoReturn:
        raise OutsideStep(f"loop.{name}")

    refuse.__name__ = name
    return refuse


WORLD = (
    "add_reader add_signal_handler add_writer call_soon_threadsafe connect_accepted_socket connect_read_pipe"
    " connect_write_pipe create_connection create_datagram_endpoint create_server create_unix_connection"
    " create_unix_server getaddrinfo getnameinfo remove_reader remove_signal_handler remove_writer run_forever"
    " run_in_executor run_until_complete sendfile set_default_executor set_exception_handler set_task_factory"
    " sock_accept sock_connect sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendfile"
    " sock_sendto start_tls stop subprocess_exec subprocess_shell"
).split()
for _name in WORLD:
    setattr(PassLoop, _name, _forbidden(_name))
PassLoop.__abstractmethods__ = frozenset()  # all are there, or refused above; AbstractEventLoop itself is no ABC


def _order_sets() -> None:
    """Let asyncio keep the order in which a pass hands it awaitables.

    `as_completed` puts coroutines into a set before it makes tasks of them; coroutines hash by address,
    so the tasks' paths would differ from replay to replay. The name `set` in asyncio.tasks becomes a
    function that keeps order on a pass's loop and is the builtin for everybody else.
    """
    module: Any = asyncio.tasks
    if "set" not in vars(module):
        module.set = _ordered


def _ordered(items: Iterable[Any] = ()) -> Any:
    return dict.fromkeys(items) if isinstance(events._get_running_loop(), PassLoop) else set(items)
