"""actuators.passing - hands out the journal, one entry at a time, and names what does not fit.

For: the calls of a pass, their identity, and the order of everything.
Never: waits, folds or runs a step; the executor it is given does.
Was wrong once: results handed out as they came. `as_completed` then saw two results at once, in the
first run and never again.

The rules: an entry is handed out only when every task is blocked, in the order of commits; a call the
journal does not know is registered, and started only when the journal is used up; a call must have the
name and the digest its entry has. So the first run and every replay take the same steps.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from onefold.actuators.passloop import DurableTimer, PassFuture, PassLoop, PassTask
from onefold.actuators.state import Open, State
from onefold.actuators.unwinding import unwind
from onefold.actuators.words import (
    Diverged,
    Entry,
    PassEnded,
    Raised,
    Rested,
    Returned,
    StepAgain,
    StepDone,
    StepFell,
    Stuck,
    Trouble,
    Wait,
)
from onefold.terms.errors import StepFailed, Suspended


class Executor(Protocol):
    """What a pass asks of the world. All four return at once."""

    def begin(self, call: StepCall, attempt: int) -> None:
        """Start an attempt; its outcome comes back as an entry."""

    def abandon(self, call: StepCall) -> None:
        """The call was cancelled: stop its attempt, journal nothing."""

    def register(self, waits: tuple[Wait, ...], released: tuple[str, ...]) -> None:
        """Make waits durable while steps still run; `Pass.registered` is called after the commit."""

    def ended(self) -> None:
        """The pass has its outcome."""


class Call(PassFuture):
    """One journaled call: the k-th on its path. A future of the pass, set by its entry."""

    def __init__(self, home: Pass, id: str, name: str, digest: str) -> None:
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

    def take(self, entry: Entry) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<call {self.id} {self.name}>"


class StepCall(Call):
    """A step. `work` is what the executor runs; `read` gives the value of a journaled result."""

    def __init__(self, home: Pass, id: str, name: str, digest: str, work: Any, read: Callable[[Any], Any]) -> None:
        Call.__init__(self, home, id, name, digest)
        self.work = work
        self.read = read
        self.attempt = 0
        self.resting = False  # between a failed attempt and the next
        self.listed = True  # among the pass's fresh calls
        self.now_ms = home.loop.now_ms

    def take(self, entry: Entry) -> None:
        if self.done():
            return
        if type(entry) is StepDone:
            self.set_result(self.read(bytes(entry.result)))
        elif type(entry) is StepFell:
            self.attempt = entry.attempt
            if entry.until is None:
                self.set_exception(failure(entry))
            else:
                self.resting = True
        elif type(entry) is StepAgain:
            self.resting = False
            if not self.listed:
                self.listed = True
                self.home.fresh.append(self)


class WaitCall(Call):
    """A wait. `read` makes the value, or the exception, of the entry that ends it."""

    def __init__(self, home: Pass, wait: Wait, read: Callable[[Any], Any]) -> None:
        Call.__init__(self, home, wait.call, wait.name, wait.digest)
        self.wait = wait
        self.read = read

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

    def __init__(self, home: Pass, wait: Wait, handle: DurableTimer) -> None:
        self.home = home
        self.id, self.name, self.digest = wait.call, wait.name, wait.digest
        self.wait = wait
        self.handle = handle
        self.over = False
        handle.on_cancel = self.drop

    def done(self) -> bool:
        return self.over

    def drop(self) -> None:
        self.over = True
        self.home.dropped(self)

    def take(self, entry: Entry) -> None:
        if not self.over:
            self.over = True
            self.home.loop.fire(self.handle)


Known = StepCall | WaitCall | TimerCall


class Pass:
    """One replay of one run, going on into new work where the journal ends.

    outcome: None while it goes on. seen: entries handed out. `advance` is called whenever something came.
    """

    def __init__(self, state: State, executor: Executor) -> None:
        self.loop = PassLoop(self._timer)
        self.loop.now_ms = state.started_at
        self.executor = executor
        self.queue: deque[Entry] = deque(state.journal)
        self.open: dict[str, Open] = dict(state.open)
        self.calls: dict[str, Known] = {}
        self.fresh: list[Known] = []
        self.waiting: dict[str, Known] = {}
        self.running: dict[str, StepCall] = {}
        self.released: list[str] = []
        self.folding = 0
        self.away = 0
        self.seen = 0
        self.suspended = False
        self.outcome: PassEnded | None = None
        self.at = self.loop.loose
        self.root: PassTask
        self.finish: Callable[[Any], Any] = lambda value: value

    # --- calls ------------------------------------------------------------------------------------

    def next_id(self) -> str:
        """The id of the next call on the path that runs now. Raises: Suspended once the pass is over."""
        self._inside()
        path = self.at = self.loop.path()
        path.calls += 1
        return f"{path.name}#{path.calls - 1}"

    def step_key(self, name: str) -> str:
        """The owed key of the call `next_id` was last asked for: path, name and, from the second on, which of that name."""
        path = self.at
        count = path.names[name] = path.names.get(name, 0) + 1
        return f"s/{path.name}/{name}" if count == 1 else f"s/{path.name}/{name}#{count}"

    def next_uuid(self) -> str:
        """What a UUID is made of. Raises: as `next_id`."""
        self._inside()
        path = self.loop.path()
        path.uuids += 1
        return f"{path.name}/{path.uuids}"

    def _inside(self) -> None:
        if self.suspended:
            raise Suspended
        if events._get_running_loop() is not self.loop:
            raise RuntimeError(
                "A verb of `run` was used outside its function: inside a step, in another thread or after the end. "
                "Give steps what they need as arguments."
            )

    def add(self, call: Known) -> None:
        self.calls[call.id] = call
        self.fresh.append(call)

    def _timer(self, after: int, handle: DurableTimer) -> None:
        call = self.next_id()
        self.add(TimerCall(self, Wait(call, "sleep", "timer", str(after), after=after), handle))

    def dropped(self, call: Known | Call) -> None:
        """A call was cancelled by its task: its wait is no longer needed, its step is abandoned."""
        if self.suspended:
            return
        if self.waiting.pop(call.id, None) is not None:
            self.released.append(call.id)
        elif self.running.pop(call.id, None) is not None:
            self.executor.abandon(call)  # type: ignore[arg-type]

    # --- what comes -------------------------------------------------------------------------------

    def came(self, entries: Iterable[Entry]) -> None:
        """Entries were committed."""
        for entry in entries:
            self.queue.append(entry)
            self.running.pop(entry.call, None)

    def registered(self) -> None:
        """A fold of waits was answered."""
        self.folding -= 1

    def stop(self) -> None:
        """The run ended outside this pass (it was cancelled): nothing more is done or journaled."""
        if self.outcome is None:
            self._end(Rested(self.seen))

    # --- the loop of a pass -----------------------------------------------------------------------

    def advance(self) -> None:
        """Go on until every task is blocked and no entry is left, then start what is new."""
        while self.outcome is None and not self.away:
            self.loop.drive()
            if self.away:
                return
            if self.root.done():
                self._end(self._result())
            elif self.queue:
                self._hand(self.queue.popleft())
            elif not self._go_on():
                return

    def _hand(self, entry: Entry) -> None:
        call = self.calls.get(entry.call)
        if call is None or call.name != entry.name or call.digest != entry.digest:
            self._diverge(entry, call)
            return
        self.seen += 1
        self.loop.now_ms = entry.at
        self.waiting.pop(entry.call, None)
        self.open.pop(entry.call, None)
        call.take(entry)

    def _go_on(self) -> bool:
        """The journal is used up. True when there is more to drive at once."""
        fresh, self.fresh = self.fresh, []
        waits = []
        for call in fresh:
            if isinstance(call, StepCall):
                call.listed = False
                if call.resting:
                    continue
            if call.done():
                continue
            known = self.open.get(call.id)
            if known is not None and (call.name != known.name or call.digest != known.digest):
                self._diverge(known, call)
                return False
            if isinstance(call, StepCall):
                self.running[call.id] = call
                self.executor.begin(call, call.attempt + 1)
            else:
                self.waiting[call.id] = call
                if known is None:
                    waits.append(call.wait)
        if self.queue:  # a step that ended at once
            self.fresh_waits(waits)
            return True
        if self.running or self.folding:
            self.fresh_waits(waits)
            return False
        self._rest(tuple(waits))
        return False

    def fresh_waits(self, waits: list[Wait]) -> None:
        """Make waits durable at once: steps still run, and the waits may end before they do."""
        if waits:
            released, self.released = tuple(self.released), []
            self.folding += 1
            self.executor.register(tuple(waits), released)

    def _rest(self, waits: tuple[Wait, ...]) -> None:
        for id, known in self.open.items():
            if id not in self.calls:
                self._diverge(known, None)
                return
            if id not in self.waiting and self.calls[id].done() and id not in self.released:
                self.released.append(id)  # cancelled in this replay before it was met
        if not self.waiting and not any(
            isinstance(call, StepCall) and call.resting and not call.done() for call in self.calls.values()
        ):
            self._end(Stuck(self.seen, tuple(sorted(t.path.name for t in self.loop.tasks))))
            return
        self._end(Rested(self.seen, waits, tuple(self.released)))

    # --- the end ----------------------------------------------------------------------------------

    def _result(self) -> PassEnded:
        for entry in self.queue:
            call = self.calls.get(entry.call)
            if call is None or call.name != entry.name or call.digest != entry.digest:
                return self._divergence(entry, call)
        for id, known in self.open.items():
            if id not in self.calls:
                return self._divergence(known, None)
        fault = self.root.exception() if not self.root.cancelled() else asyncio.CancelledError()
        if fault is None:
            try:
                return Returned(self.seen, self.finish(self.root.result()))
            except Exception as unfit:  # noqa: BLE001 - the door: a result that cannot be written fails the run
                fault = unfit
        return Raised(self.seen, trouble_of(fault))

    def _diverge(self, expected: Entry | Open, call: Known | None) -> None:
        self._end(self._divergence(expected, call))

    def _divergence(self, expected: Entry | Open, call: Known | None) -> Diverged:
        if call is None:
            new = [c for c in self.fresh if c.id.partition("#")[0] == expected.call.partition("#")[0]] or self.fresh
            found = told(new[0]) if new else "nothing more" if not self.root.done() else "its end"
        elif call.name == expected.name:
            found = f"{told(call)} with other arguments"
        else:
            found = told(call)
        return Diverged(self.seen, told(expected), found)

    def _end(self, outcome: PassEnded) -> None:
        self.outcome = outcome
        self.suspended = True
        unwind(self.loop)
        self.executor.ended()

    def fail(self, name: str, fault: BaseException, attempt: int) -> None:
        """A step's result cannot be written: the run fails at once."""
        if self.outcome is None:
            self._end(Raised(self.seen, Trouble(type(fault).__name__, str(fault), name, attempt)))


def told(call: Known | Entry | Open) -> str:
    """A call for people: `pay_back (call 2 of task 0)`."""
    id = call.call if isinstance(call, Open) or hasattr(call, "call") else call.id
    path, _, k = id.partition("#")
    return f"{call.name!r} (call {int(k) + 1} of task {path})"


def failure(entry: StepFell) -> StepFailed:
    """What a step's own exception becomes: data, never its class."""
    import msgspec

    trouble = entry.trouble
    failed = StepFailed(entry.name, entry.attempt, trouble.kind, trouble.message, msgspec.json.decode(trouble.data))
    failed.call = entry.call  # type: ignore[attr-defined]
    return failed


def trouble_of(fault: BaseException) -> Trouble:
    """An exception that ended the function, as a row holds it. Of a group, its first."""
    while isinstance(fault, BaseExceptionGroup) and fault.exceptions:
        fault = fault.exceptions[0]
    if isinstance(fault, StepFailed):
        return Trouble(fault.kind, fault.message, fault.step, fault.attempts, getattr(fault, "call", None))
    return Trouble(type(fault).__name__, str(fault))
