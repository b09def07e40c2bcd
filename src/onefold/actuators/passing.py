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
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from msgspec.structs import replace

from onefold.actuators.calls import Call, Known, StepCall, TimerCall, WaitCall
from onefold.actuators.carried import Change, Diverged, PassEnded, Progress, Raised, Rested, Returned, Stuck, Uncertain
from onefold.actuators.parts import Wait
from onefold.actuators.passloop import DurableTimer, PassLoop, PassTask, Spinning, running_loop
from onefold.actuators.state import Open, State
from onefold.actuators.troubles import trouble_of
from onefold.actuators.unwinding import unwind
from onefold.actuators.words import Entry, EventTaken
from onefold.terms.errors import Suspended

PATIENCE = 1_000
"""How often an ended pass raises Suspended. A `finally` block makes a handful of calls."""


BATCH = 1_000
"""Waits in one fold: about 150 KB, of the megabyte that a row may have."""


class Executor(Protocol):
    """What a pass asks of the world. All return at once."""

    @property
    def children(self) -> Any:
        """What the run may do with others."""

    def begin(self, call: StepCall, attempt: int) -> None:
        """Start an attempt; its outcome comes back as an entry."""

    def abandon(self, call: StepCall) -> None:
        """The call was cancelled: stop its attempt, journal nothing."""

    def register(self, waits: tuple[Wait, ...], released: tuple[str, ...], unread: tuple[str, ...]) -> None:
        """Make waits durable while steps still run; `Pass.registered` is called after the commit."""

    def tell(self, event: Change | Progress) -> None:
        """Make it durable; `Pass.registered` is called after the commit."""

    def ended(self) -> None:
        """The pass has its outcome."""


class Pass:
    """One replay of one run, going on into new work where the journal ends.

    outcome: None while it goes on. seen: entries handed out. away: whether the function's own thread is
    at work. `advance` is called whenever something came.
    """

    def __init__(self, state: State, executor: Executor) -> None:
        self.loop = PassLoop(self._timer)
        self.loop.now_ms = state.begins
        self.executor = executor
        self.queue: deque[Entry] = deque(state.journal)
        self.open: dict[str, Open] = dict(state.open)
        self.returned = state.returned
        self.calls: dict[str, Known] = {}
        self.fresh: list[Known] = []
        self.waiting: dict[str, Known] = {}
        self.running: dict[str, StepCall] = {}
        self.held: dict[str, deque[StepCall]] = {}
        self.released: list[str] = []
        self.unread: list[str] = []
        self.folding = 0
        self.state = state
        self.changes = set(state.changes)
        self.changed: list[str] = []
        self.recording = False
        self.progressed = 0
        self.away = False
        self.seen = 0
        self.suspended = False
        self.patience = PATIENCE
        self.outcome: PassEnded | None = None
        self.at = self.loop.loose
        self.root: PassTask
        self.finish: Callable[[Any], Any] = lambda value: value

    @property
    def children(self) -> Any:
        """What the run may do with others; None once the pass is over."""
        return None if self.suspended else self.executor.children

    # --- calls ------------------------------------------------------------------------------------

    def next_id(self) -> str:
        """The id of the next call on the path that runs now. Raises: Suspended once the pass is over.

        Code that swallows Suspended and calls again would never come back. After PATIENCE times its call
        is made and never ends, so that the task can be closed where it waits.
        """
        if self.suspended or running_loop() is not self.loop:
            self._inside()
        path = self.at = self.loop.path()
        path.calls += 1
        return f"{path.name}#{path.calls - 1}"

    def which(self, name: str) -> int:
        """How many calls of this name there were on the path of the call that `next_id` was last asked for."""
        names = self.at.names
        count = names[name] = names.get(name, 0) + 1
        return count

    def version(self, change: str) -> bool:
        """Whether the run is not past this place yet, or went by the new code when it passed. Raises: as `next_id`."""
        self._inside()
        path = self.loop.path()
        place = f"{path.name}#{path.calls}:{change}"
        if place in self.changes:
            return True
        if path.calls <= self._furthest(path.name):
            return False
        self.changes.add(place)
        self.changed.append(place)
        return True

    def _furthest(self, path: str) -> int:
        """The last call on this path that was journaled when this pass began; -1 for none."""
        known = [entry.call for entry in self.state.journal] + list(self.state.open)
        return max((int(k) for name, _, k in (id.partition("#") for id in known) if name == path), default=-1)

    def progress(self, message: str, done: int | float | None, of: int | float | None) -> None:
        """Tell it once, whatever is replayed. Raises: as `next_id`."""
        self._inside()
        self.progressed += 1
        known = self.state.progress
        if not self.suspended and (known is None or self.progressed > known.n):
            self.folding += 1
            self.executor.tell(Progress(self.progressed, message, done, of))

    def next_uuid(self) -> str:
        """What a UUID is made of. Raises: as `next_id`."""
        self._inside()
        path = self.loop.path()
        path.uuids += 1
        return f"{path.name}/{path.uuids}"

    def _inside(self) -> None:
        if self.suspended:
            if not self.patience:
                return
            self.patience -= 1
            raise Suspended
        if running_loop() is not self.loop:
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
        elif (running := self.running.pop(call.id, None)) is not None:
            self.executor.abandon(running)

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
            self.end(Rested(self.seen))

    def fail(self, name: str, fault: BaseException, attempt: int) -> None:
        """What a step brought can never be kept: the run fails at once."""
        if self.outcome is None:
            self.end(Raised(self.seen, replace(trouble_of(fault), step=name, attempts=attempt)))

    def doubt(self, name: str, why: str) -> None:
        """A port that cannot be asked may have acted: a person must look."""
        if self.outcome is None:
            self.end(Uncertain(self.seen, name, why))

    # --- the loop of a pass -----------------------------------------------------------------------

    def advance(self) -> None:
        """Go on until every task is blocked and no entry is left, then start what is new.

        Returns at once while the function's own thread is at work: it calls again when it waits.
        """
        while self.outcome is None and not self.away:
            try:
                self.loop.drive()
            except Spinning as fault:
                self.end(Raised(self.seen, trouble_of(fault)))
            except SystemExit:  # its task holds it too: the run fails, and the process goes on
                continue
            else:
                if not self._handed():
                    return

    def _handed(self) -> bool:
        """Every task is blocked: hand out one entry, or start what is new. False when nothing is left to do now."""
        if self.away:
            return False
        if self.root.done():
            self.end(self._result())
        elif self.queue:
            self._hand(self.queue.popleft())
        else:
            return self._go_on()
        return True

    def _hand(self, entry: Entry) -> None:
        id = entry.call
        call = self.calls.get(id)
        if call is None or call.name != entry.name or call.digest != entry.digest:
            self._diverge(entry, call)
            return
        self.seen += 1
        self.loop.now_ms = entry.at
        if self.waiting:
            self.waiting.pop(id, None)
        if self.open:
            self.open.pop(id, None)
        if type(entry) is EventTaken and call.done() and id not in self.returned:
            self.unread.append(id)
        call.take(entry)

    def _go_on(self) -> bool:
        """The journal is used up: start what is new, once it is durable which code goes on. True when there is more to
        drive at once.
        """
        if self.changed:
            self.recording, self.folding = True, self.folding + 1
            self.executor.tell(Change(tuple(self.changed)))
            self.changed = []
        if self.recording and self.folding:
            return False
        self.recording = False
        fresh, self.fresh = [*self._let_in(), *self.fresh], []
        waits: list[Wait] = []
        for call in fresh:
            if not call.startable() or (isinstance(call, StepCall) and self._held(call)):
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
        if self.running or self.folding or len(waits) > BATCH:
            self._register(waits)
        else:
            self._rest(waits)
        return bool(self.queue)

    def _held(self, call: StepCall) -> bool:
        """Whether as many steps of its name run as its limit lets. It is let in when one of them is done."""
        limit = call.acting.limit
        if limit is None or sum(other.name == call.name for other in self.running.values()) < limit:
            return False
        self.held.setdefault(call.name, deque()).append(call)
        return True

    def _let_in(self) -> list[StepCall]:
        """Steps that were held, as many of each name as may run now."""
        found: list[StepCall] = []
        for name, waiting in self.held.items():
            room = (
                waiting[0].acting.limit - sum(other.name == name for other in self.running.values()) if waiting else 0
            )
            while waiting and room > 0:
                call = waiting.popleft()
                if not call.done():
                    found.append(call)
                    room -= 1
        return found

    def _register(self, waits: list[Wait]) -> None:
        """Make waits durable at once: steps still run, and the waits may end before they do."""
        needless = self.released and any(isinstance(self.calls.get(id), WaitCall) for id in self.released)
        if waits or self.unread or needless:
            released, unread = tuple(self.released), tuple(self.unread)
            self.released, self.unread = [], []
            for start in range(0, max(len(waits), 1), BATCH):
                self.folding += 1
                self.executor.register(tuple(waits[start : start + BATCH]), released, unread)
                released = unread = ()

    def _rest(self, waits: list[Wait]) -> None:
        for id, known in self.open.items():
            if id not in self.calls:
                self._diverge(known, None)
                return
            if id not in self.waiting and self.calls[id].done() and id not in self.released:
                self.released.append(id)  # cancelled in this replay before it was met
        if not self.waiting and not any(isinstance(call, StepCall) and call.resting for call in self.calls.values()):
            self.end(Stuck(self.seen, tuple(sorted(t.path.name for t in self.loop.tasks if not t.done()))))
            return
        self.end(Rested(self.seen, tuple(waits), tuple(self.released), tuple(self.unread)))

    # --- the end ----------------------------------------------------------------------------------

    def _result(self) -> PassEnded:
        for entry in self.queue:
            call = self.calls.get(entry.call)
            if call is None or call.name != entry.name or call.digest != entry.digest:
                return self._divergence(entry, call)
        for id, known in self.open.items():
            if id not in self.calls:
                return self._divergence(known, None)
        fault = self.root.exception() if not self.root.cancelled() else asyncio.CancelledError("it cancelled itself")
        if fault is None:
            try:
                return Returned(self.seen, self.finish(self.root.result()), self._left())
            except Exception as unfit:  # noqa: BLE001 - the door: a result that cannot be written fails the run
                fault = unfit
        return Raised(self.seen, trouble_of(fault), self._left())

    def _left(self) -> tuple[str, ...]:
        """Children whose end is not waited for in the journal yet."""
        waits = (call.wait for call in self.fresh if isinstance(call, WaitCall) and not call.done())
        return tuple(wait.name for wait in waits if wait.kind == "child")

    def _diverge(self, expected: Entry | Open, call: Known | None) -> None:
        self.end(self._divergence(expected, call))

    def _divergence(self, expected: Entry | Open, call: Known | None) -> Diverged:
        path = expected.call.partition("#")[0]
        if call is not None:
            found = told(call) + (" with other arguments" if call.name == expected.name else "")
        else:
            new = [c for c in self.fresh if not c.done()]
            new = [c for c in new if c.id.partition("#")[0] == path] or new
            found = told(new[0]) if new else self._end() if self.root.done() else "nothing of the kind"
        return Diverged(self.seen, told(expected), found)

    def _end(self) -> str:
        """The function's end for people; of what it raised the kind alone, for a message may hold anything."""
        fault = None if self.root.cancelled() else self.root.exception()
        return "the function's end" if fault is None else f"the function's end by {type(fault).__name__}"

    def end(self, outcome: PassEnded) -> None:
        """Settle how the pass ended, then let its tasks go."""
        self.outcome = outcome
        self.suspended = True
        unwind(self.loop)
        for kept in (self.calls, self.fresh, self.waiting, self.running, self.held, self.queue):
            kept.clear()
        self.executor.ended()
        del self.executor  # a pass that ended asks for nothing, and holds nobody


def told(call: Known | Entry | Open) -> str:
    """A call for people: `'pay_back' (call 2 of task 0)`."""
    id = call.id if isinstance(call, StepCall | WaitCall | TimerCall) else call.call
    path, _, k = id.partition("#")
    return f"{call.name!r} (call {int(k) + 1} of task {path})"
