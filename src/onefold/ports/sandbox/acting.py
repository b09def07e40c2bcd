"""ports.sandbox.acting - a run's actor as a pass in the worker sees it: each act is asked of the host.

For: the same pass as in a trusted process, over a run whose rows are on the other side of the pipe.
Never: keeps anything; decides; is believed (the host judges whatever comes from here).
Was wrong once: a pass of another kind for deployed files. Its steps had other keys, and a file that was deployed later
met its own journal as a stranger's.
"""

from __future__ import annotations

import asyncio
import queue
import signal
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, Final, NoReturn

from msgspec import Raw

from onefold.actuators.database import read_cells, write_cells
from onefold.actuators.executing import Execution
from onefold.actuators.state import State
from onefold.actuators.words import Fact
from onefold.ports.sandbox.words import Author, Child, Fold, No, Statement, ToHost, Undo, Verb, Wrote, Yes
from onefold.terms import errors
from onefold.terms.codec import canonical, parse

DRIVE_S: Final = 5
"""How long a function may compute without waiting for anything. All runs of its file stand still meanwhile."""
_steps = ThreadPoolExecutor(8, thread_name_prefix="db")


class ComputedTooLong(Exception):
    """A function held its process for DRIVE_S seconds outside of its steps."""


class Boxed(Execution):
    """An execution whose function is cut when it computes without end."""

    def _advance(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, DRIVE_S, DRIVE_S)
        try:
            super()._advance()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def cut(number: int, frame: FrameType | None) -> NoReturn:
    raise ComputedTooLong(f"the function computed for {DRIVE_S} seconds without waiting; compute in a step")


class Remote:
    """The actor of one pass. post: puts a message into the pipe, from any thread."""

    stand_in = None

    def __init__(self, run: int, state: State, post: Callable[[ToHost], None]) -> None:
        self.run = run
        self.state = state
        self.children = Kin(self)
        self._post = post
        self._loop = asyncio.get_running_loop()
        self._asked: dict[int, asyncio.Future[Yes | No] | queue.SimpleQueue[Yes | No]] = {}
        self._watchers: list[Callable[[Sequence[Fact]], None]] = []
        self._n = 0

    # --- what the host says -------------------------------------------------------------------------

    def came(self, facts: Sequence[Fact]) -> None:
        for watcher in tuple(self._watchers):
            watcher(facts)

    def answered(self, word: Yes | No) -> None:
        asking = self._asked.get(word.n)
        if isinstance(asking, queue.SimpleQueue):
            asking.put(word)
        elif asking is not None and not asking.done():
            asking.set_result(word)

    # --- what the pass asks ---------------------------------------------------------------------------

    def watch(self, callback: Callable[[Sequence[Fact]], None], /) -> Callable[[], None]:
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)

    def fold(self, event: Any, id: str, /) -> Awaitable[Any]:
        """The host names the event itself: `id` stays here."""
        return self.ask(lambda n: Fold(self.run, n, event))

    async def blob(self, digest: bytes, /) -> NoReturn:
        raise AssertionError("the host has put every long value in its place")

    async def ask(self, word: Callable[[int], ToHost]) -> Any:
        n = self._next()
        future: asyncio.Future[Yes | No] = self._loop.create_future()
        self._asked[n] = future
        try:
            self._post(word(n))
            return given(await future)
        finally:
            del self._asked[n]

    async def author(
        self, step: Callable[[Any], Any], event_of: Callable[[Any], Any], /, *, id: str, budget_ms: int
    ) -> None:
        """The thread is there before the host's writer is taken: it waits for no other step of this process."""
        call, _, rest = id.rpartition("/")
        n, answers = self._next(), queue.SimpleQueue[Yes | No]()
        self._asked[n] = answers
        asking = Author(self.run, n, call, int(rest.partition(".")[2]))
        try:
            await self._loop.run_in_executor(_steps, self._authored, asking, answers, step, event_of)
        finally:
            del self._asked[n]

    def _authored(
        self, asking: Author, answers: queue.SimpleQueue[Yes | No], step: Callable[[Any], Any], event_of: Any
    ) -> None:
        n = asking.n
        self._post(asking)
        given(answers.get())
        tx = RemoteTx(self.run, n, self._post, answers)
        try:
            event = event_of(step(tx))
        except BaseException:
            if not tx.dead:
                self._post(Undo(self.run, n))
                given(answers.get())
            raise
        finally:
            tx.dead = True
        self._post(Wrote(self.run, n, event))
        given(answers.get())

    def _next(self) -> int:
        self._n += 1
        return self._n


class RemoteTx:
    """The handle of a database step. dead: the host has ended it."""

    def __init__(self, run: int, n: int, post: Callable[[ToHost], None], answers: queue.SimpleQueue[Yes | No]) -> None:
        self._run, self._n, self._post, self._answers = run, n, post, answers
        self.dead = False

    def execute(self, sql: str, /, **values: object) -> int:
        return int(self._said("execute", sql, values))

    def fetch(self, sql: str, /, **values: object) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = self._said("fetch", sql, values)
        return rows

    def fetch_one(self, sql: str, /, **values: object) -> dict[str, object] | None:
        row: dict[str, object] | None = self._said("fetch_one", sql, values)
        return row

    def _said(self, verb: Statement, sql: str, values: dict[str, object]) -> Any:
        if self.dead:
            raise errors.StepFenced(f"of {verb}")
        self._post(Verb(self._run, self._n, verb, sql, Raw(write_cells(values))))
        answer = self._answers.get()
        self.dead = isinstance(answer, No) and answer.trouble.kind == "StepFenced"
        return read_cells(bytes(given(answer, raw=True)))


class Shown:
    """A receipt as the host told it."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told

    def to_json(self) -> dict[str, Any]:
        return self._told


class Kin:
    """What this run may do with others of its file."""

    def __init__(self, actor: Remote) -> None:
        self._actor = actor

    async def begin(self, actuator: Any, input: str, key: str, detached: bool) -> str:
        return str(await self._ask("begin", actuator.name, input, key, detached))

    async def show(self, run: str) -> Shown:
        return Shown(await self._ask("show", run))

    async def send(self, run: str, event: str, body: Any, key: str) -> None:
        await self._ask("send", run, event, body, key)

    async def cancel(self, run: str, reason: str | None) -> Shown:
        return Shown(await self._ask("cancel", run, reason))

    async def _ask(self, verb: Any, *arguments: Any) -> Any:
        actor, raw = self._actor, Raw(canonical(list(arguments)))
        return await actor.ask(lambda n: Child(actor.run, n, verb, raw))


def given(answer: Yes | No, *, raw: bool = False) -> Any:
    """What an answer gives. Raises: what the host met, as one of Onefold's errors where it was one."""
    if isinstance(answer, Yes):
        return answer.value if raw else parse(bytes(answer.value))
    trouble = answer.trouble
    known: Any = getattr(errors, trouble.kind, None)
    if not (isinstance(known, type) and issubclass(known, Exception)):
        known = type(trouble.kind, (Exception,), {})
    fault: Exception = known.__new__(known, trouble.message)
    fault.args = (trouble.message,)
    data = parse(bytes(trouble.data))
    vars(fault).update(data if isinstance(data, dict) else {})
    raise fault
