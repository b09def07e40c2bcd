"""blocking - the second set of names, without `await`: App, Run, Receipt, Database.

For: scripts, notebooks and frameworks of threads. `with onefold.App(...) as app: app.call(...)`.
Never: behaves otherwise than the first set; a test holds the two equal, argument by argument.
Was wrong once: verbs that asked whether a loop was running. The same line gave a value in a script
and a coroutine in a notebook.

The app runs on a loop in a thread of its own, from entering to leaving.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from onefold import app as awaited
from onefold.actuators.blocking import Database, Run
from onefold.actuators.declare import Actuator
from onefold.actuators.receipt import Receipt as Shown
from onefold.host import receipts
from onefold.host.approvals import OpenApproval, Verdict
from onefold.host.automations import BlockingAutomations
from onefold.host.modules import History, Page
from onefold.host.names import BlockingNames
from onefold.host.parked import ParkedDetail, ParkedItem
from onefold.host.runs import JournalRow
from onefold.host.sweep import Swept
from onefold.kernel.module import Module
from onefold.kernel.prune import Pruned
from onefold.reflex.words import Ingested, Signal, Write
from onefold.terms.errors import NotOpen

if TYPE_CHECKING:
    from onefold.cell.shape import Cell
    from onefold.host.borrowed import Borrow, Custody

__tracebackhide__ = True  # a failing test shows the test's own lines

__all__ = ["App", "Borrow", "Custody", "Database", "Receipt", "Run"]

I = TypeVar("I")  # noqa: E741 - the input
O = TypeVar("O")  # noqa: E741 - the output
E = TypeVar("E")
R = TypeVar("R")
V = TypeVar("V")
C = TypeVar("C", bound="Cell")
T = TypeVar("T")


class _Loop:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="onefold", daemon=True)
        self._thread.start()
        self._ready.wait()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._ready.set()
        await self._stop.wait()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Its result, in this thread. An interrupt here ends the waiting and cancels the coroutine. Raises: NotOpen."""
        if self._loop is None or threading.current_thread() is self._thread:
            coroutine.close()
            raise NotOpen("The blocking app, from a task of its own loop,")
        future: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._loop = None


class App:
    """The app, entered with `with`. Every verb blocks until its answer is there, and raises what the awaited one does."""

    def __init__(self, app: awaited.App, loop: _Loop | None = None) -> None:
        self.awaited = app
        self._loop = loop

    def __enter__(self) -> App:
        self._loop = _Loop()
        try:
            self._loop.run(self.awaited.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None:
            try:
                self._loop.run(self.awaited.__aexit__(kind, fault, trace))
            finally:
                self._loop.close()

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine of the app to its end. Raises: NotOpen, and what it raises."""
        if self._loop is None:
            coroutine.close()
            raise NotOpen("The app")
        return self._loop.run(coroutine)

    def acting_as(self, principal: str | None) -> App:
        """The same app; all that is done through this one is done under that principal."""
        return App(self.awaited.acting_as(principal), self._loop)

    def call(self, actuator: Actuator[I, O], input: I = None, *, key: str | None = None) -> O:  # type: ignore[assignment]
        """Run to the end. Raises: RunFailed, RunCancelled, RunParked."""
        return self.wait_for(self.awaited.call(actuator, input, key=key))

    def start(
        self,
        actuator: Actuator[I, O],
        input: I = None,  # type: ignore[assignment]
        *,
        key: str | None = None,
        delay: str | timedelta | None = None,
        priority: int = 0,
    ) -> Receipt[O]:
        """As soon as it is committed. It begins then, after `delay`, or once a limit lets it, higher priorities first.
        Raises, without a row: BadArguments, KeyConflict.
        """
        return self._held(self.wait_for(self.awaited.start(actuator, input, key=key, delay=delay, priority=priority)))

    def receipt(self, run_id: str) -> Receipt[Any]:
        """A run as it is now. Raises: NotFound."""
        return self._held(self.wait_for(self.awaited.receipt(run_id)))

    def deliver(self, module: Module[Any, E, Any, R, Any], event: E) -> R:
        """One fold; the reply, after commit. After OutcomeUnknown deliver the same event again."""
        return self.wait_for(self.awaited.deliver(module, event))

    def read(self, module: Module[Any, Any, Any, Any, V], key: str) -> V:
        """The view; never folds. An actor without history shows its initial state."""
        return self.wait_for(self.awaited.read(module, key))

    def history(self, module: Module[Any, Any, Any, Any, Any], key: str, *, after: int = 0) -> History:
        """The facts of an actor, from the one after number `after`. `begins` of the list: where they begin."""
        return self.wait_for(self.awaited.history(module, key, after=after))

    def prune(self, module: Module[Any, Any, Any, Any, Any], key: str) -> Pruned:
        """Take the facts behind the actor's latest snapshot away. Ids, replies, owed keys and numbers stay."""
        return self.wait_for(self.awaited.prune(module, key))

    def sweep(
        self,
        *,
        runs: str | timedelta | None = None,
        replies: str | timedelta | None = None,
        reflex_runs: str | timedelta | None = None,
        intake: str | timedelta | None = None,
        dry_run: bool = False,
    ) -> Swept:
        """Take away what ended, was replied, settled or delivered so long ago; by default as the settings say."""
        return self.wait_for(
            self.awaited.sweep(runs=runs, replies=replies, reflex_runs=reflex_runs, intake=intake, dry_run=dry_run)
        )

    def alarm(self, module: Module[Any, Any, Any, Any, Any], key: str) -> datetime | None:
        """The actor's next alarm, folding it first if it is due."""
        return self.wait_for(self.awaited.alarm(module, key))

    def actors(
        self,
        part: Module[Any, Any, Any, Any, Any] | Actuator[Any, Any] | type[Cell],
        *,
        prefix: str = "",
        limit: int = 100,
        after: str | None = None,
    ) -> list[dict[str, Any]]:
        """Keys with their alarm, in order."""
        return self.wait_for(self.awaited.actors(part, prefix=prefix, limit=limit, after=after))

    def fork(
        self, module: Module[Any, Any, Any, Any, Any], key: str, to: str, *, id: str, upto: int | None = None
    ) -> str:
        """Begin the actor `to` with the facts of `key`, all of them or the first `upto`; their digest in hex."""
        return self.wait_for(self.awaited.fork(module, key, to, id=id, upto=upto))

    def cell(self, shape: type[C], id: str) -> Borrow[C]:
        """A cell by its name, from anywhere; no I/O."""
        from onefold.host.borrowed import Borrow

        return Borrow(self.wait_for, self.awaited.cell(shape, id))

    def open(self, shape: type[C], id: str) -> Custody[C]:
        """`with app.open(Room, "room-7") as room`: begun if need be, and nobody else's until the block ends."""
        from onefold.host.borrowed import Custody

        return Custody(self.wait_for, self.awaited.open(shape, id))

    @property
    def runs(self) -> Runs:
        return Runs(self)

    def ingest(self, fact: Write | Signal) -> Ingested:
        """Keep a fact for the reflexes of this principal. Raises: BadArguments, TooLarge, Busy."""
        return self.wait_for(self.awaited.ingest(fact))

    @property
    def reflexes(self) -> BlockingAutomations:
        return BlockingAutomations(self)

    @property
    def approvals(self) -> Approvals:
        return Approvals(self)

    @property
    def parked(self) -> Parked:
        return Parked(self)

    @property
    def blobs(self) -> Blobs:
        return Blobs(self)

    @property
    def fleet(self) -> BlockingNames:
        return BlockingNames(self)

    def _held(self, receipt: receipts.Receipt[O]) -> Receipt[O]:
        return Receipt(self, receipt)


class Receipt(Generic[O]):
    """A frozen picture of a run, and what may be done about it; see `onefold.Receipt`."""

    def __init__(self, app: App, receipt: receipts.Receipt[O]) -> None:
        self._app = app
        self._receipt = receipt

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._receipt, name)

    def __repr__(self) -> str:
        return repr(self._receipt)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Receipt) and Shown.__eq__(self._receipt, other._receipt)

    def __hash__(self) -> int:
        return hash(self._receipt.run_id)

    def result(self, *, timeout: str | timedelta | None = None) -> O:
        """What the run gives. Raises: RunFailed, RunCancelled, RunParked; TimeoutError leaves the run going."""
        return self._app.wait_for(self._receipt.result(timeout=timeout))

    def refresh(self, *, wait: str | timedelta = "0s") -> Receipt[O]:
        """The run as it is now, or as it is once it ended or came to rest, at most `wait` later."""
        return Receipt(self._app, self._app.wait_for(self._receipt.refresh(wait=wait)))

    def send(self, event: Any, *, key: str | None = None) -> None:
        """Send an event to the run, under its class's name."""
        self._app.wait_for(self._receipt.send(event, key=key))

    def cancel(self, reason: str | None = None) -> Receipt[O]:
        """End the run where it stands. Idempotent."""
        return Receipt(self._app, self._app.wait_for(self._receipt.cancel(reason)))


class _Verbs:
    """Verbs of one kind of thing."""

    def __init__(self, app: App) -> None:
        self._app = app


class Runs(_Verbs):
    """`app.runs`."""

    def list(
        self,
        program: str | None = None,
        status: str | None = None,
        key: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[Receipt[Any]]:
        """Receipts, newest first; `after` is the `next` of the page before."""
        page = self._app.wait_for(self._app.awaited.runs.list(program, status, key, limit, after))
        return Page([Receipt(self._app, shown) for shown in page.items], page.next)

    def journal(self, id: str) -> Sequence[JournalRow]:
        return self._app.wait_for(self._app.awaited.runs.journal(id))

    def cancel(self, id: str, reason: str | None = None) -> Receipt[Any]:
        return Receipt(self._app, self._app.wait_for(self._app.awaited.runs.cancel(id, reason)))

    def retry(self, id: str) -> Receipt[Any]:
        return Receipt(self._app, self._app.wait_for(self._app.awaited.runs.retry(id)))

    def fork(self, id: str, from_step: str, *, key: str | None = None) -> Receipt[Any]:
        """A new run that has what the steps before `from_step` gave, and goes on from there. Raises: BadArguments."""
        return Receipt(self._app, self._app.wait_for(self._app.awaited.runs.fork(id, from_step, key=key)))


class Approvals(_Verbs):
    """`app.approvals`."""

    def list(self) -> Sequence[OpenApproval]:
        return self._app.wait_for(self._app.awaited.approvals.list())

    def approve(self, run_id: str, name: str, by: str, comment: str | None = None, value: Any = None) -> Verdict:
        return self._app.wait_for(self._app.awaited.approvals.approve(run_id, name, by, comment, value))

    def reject(self, run_id: str, name: str, by: str, reason: str | None = None) -> Verdict:
        return self._app.wait_for(self._app.awaited.approvals.reject(run_id, name, by, reason))


class Parked(_Verbs):
    """`app.parked`."""

    def list(self) -> Sequence[ParkedItem]:
        return self._app.wait_for(self._app.awaited.parked.list())

    def show(self, id: str) -> ParkedDetail:
        """One item, what is known of it, and what a retry and a drop would do. Raises: NotFound."""
        return self._app.wait_for(self._app.awaited.parked.show(id))

    def retry(self, id: str) -> None:
        self._app.wait_for(self._app.awaited.parked.retry(id))

    def drop(self, id: str, reason: str) -> None:
        self._app.wait_for(self._app.awaited.parked.drop(id, reason))


class Blobs(_Verbs):
    """`app.blobs`."""

    def put(self, data: bytes) -> str:
        return self._app.wait_for(self._app.awaited.blobs.put(data))

    def get(self, digest: str) -> bytes:
        return self._app.wait_for(self._app.awaited.blobs.get(digest))


def __getattr__(name: str) -> Any:
    """Loaded when first asked for: a script without cells starts without them."""
    if name not in ("Borrow", "Custody"):
        raise AttributeError(f"module 'onefold.blocking' has no attribute {name!r}")
    from onefold.host import borrowed

    return getattr(borrowed, name)
