"""actuators.calls - the journaled calls of a pass: steps, waits, timers.

For: what a task awaits, its identity, and what each entry makes of it.
Never: starts itself; looks at another call.
Was wrong once: a coroutine for each call. It cost a task, and was registered when somebody awaited it,
not where it was made.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Protocol, TypeAlias

from onefold.actuators.parts import Wait
from onefold.actuators.passloop import DurableTimer, PassFuture, PassLoop
from onefold.actuators.troubles import failure
from onefold.actuators.words import Entry, StepAgain, StepDone, StepFell

_init_future = Future.__init__


class Home(Protocol):
    """The pass a call belongs to."""

    loop: PassLoop
    fresh: list[Any]

    def dropped(self, call: Any, /) -> None: ...


class Call(PassFuture):
    """One journaled call: the k-th on its path. A future of the pass, set by its entry."""

    __slots__ = ("digest", "home", "id", "name")

    def __init__(self, home: Home, id: str, name: str, digest: str) -> None:
        PassFuture.__init__(self, home.loop)
        self.home = home
        self.id = id
        self.name = name
        self.digest = digest

    def cancel(self, msg: Any | None = None) -> bool:
        if PassFuture.cancel(self, msg):
            self.home.dropped(self)
            return True
        return False

    def __repr__(self) -> str:
        return f"<call {self.id} {self.name}>"


class StepCall(Call):
    """A step. `acting` is what is asked for, `args` and `values` its arguments; `which` of its name on its path it is.

    resting: between a failed attempt and the next. now_ms: the pass's now where it was called.
    """

    __slots__ = ("_listed", "acting", "args", "attempt", "context", "now_ms", "resting", "values", "which")

    def __init__(
        self, home: Home, id: str, digest: str, acting: Any, args: tuple[Any, ...], values: dict[str, Any], which: int
    ) -> None:
        loop = home.loop
        _init_future(self, loop=loop)
        loop.made = self.number = loop.made + 1
        self.home = home
        self.id = id
        self.name = acting.name
        self.digest = digest
        self.acting = acting
        self.args = args
        self.values = values
        self.which = which
        self.attempt = 0
        self.resting = False
        self.now_ms = loop.now_ms
        self.context = copy_context()
        self._listed = True

    @property
    def key(self) -> str:
        """The step's owed key: its path, its name, and from the second on which of that name."""
        path = self.id.partition("#")[0]
        return f"s/{path}/{self.name}" if self.which == 1 else f"s/{path}/{self.name}#{self.which}"

    def startable(self) -> bool:
        """Taken off the list of fresh calls: whether an attempt is to be made now."""
        self._listed = False
        return not self.resting and not self.done()

    def take(self, entry: Entry) -> None:
        if self.done():
            return
        if type(entry) is StepDone:
            self.set_result(self.acting.read(bytes(entry.result)))
            return
        match entry:
            case StepFell(until=None):
                self.attempt = entry.attempt
                self.set_exception(failure(entry))
            case StepFell():
                self.attempt = entry.attempt
                self.resting = True
            case StepAgain():
                self.resting = False
                if not self._listed:
                    self._listed = True
                    self.home.fresh.append(self)
            case _:
                raise AssertionError(f"{entry!r} is no entry of a step")

    def cancel(self, msg: Any | None = None) -> bool:
        self.resting = False
        return Call.cancel(self, msg)


class WaitCall(Call):
    """A wait. `read` makes the value of the entry that ends it, or raises what the program is told."""

    __slots__ = ("read", "wait")

    def __init__(self, home: Home, wait: Wait, read: Callable[[Any], Any]) -> None:
        Call.__init__(self, home, wait.call, wait.name, wait.digest)
        self.wait = wait
        self.read = read

    def startable(self) -> bool:
        return not self.done()

    def take(self, entry: Entry) -> None:
        if self.done():
            return
        try:
            value = self.read(entry)
        except Exception as fault:  # noqa: BLE001 - the door: what an event may not be is told to the program
            self.set_exception(fault)
        else:
            self.set_result(value)


class TimerCall:
    """A delayed call of the loop: `asyncio.sleep`, a timeout. It has no future of its own."""

    def __init__(self, home: Home, wait: Wait, handle: DurableTimer) -> None:
        self.home = home
        self.id, self.name, self.digest = wait.call, wait.name, wait.digest
        self.wait = wait
        self.handle = handle
        self._over = False
        handle.on_cancel = self._drop

    def done(self) -> bool:
        return self._over

    def startable(self) -> bool:
        return not self._over

    def _drop(self) -> None:
        self._over = True
        self.home.dropped(self)

    def take(self, entry: Entry) -> None:
        if not self._over:
            self._over = True
            self.home.loop.fire(self.handle)


Known: TypeAlias = StepCall | WaitCall | TimerCall
