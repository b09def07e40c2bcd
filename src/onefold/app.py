"""app - `onefold.App`: the verbs of host and the doors of serve, joined in one value.

For: what a person makes, enters, mounts, and calls.
Never: holds anything else. Making one opens nothing; entering it does.
Was wrong once: an app that opened its store when it was made. Importing the file to look at it
took the lock away from the one that ran.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import copy
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from onefold.actuators.declare import Actuator
from onefold.host.automations import Automations, kept
from onefold.host.caller import inside
from onefold.host.catalog import Part
from onefold.host.config import Config, find, settle
from onefold.host.host import Host
from onefold.host.modules import History
from onefold.host.names import Names
from onefold.host.opening import open_host
from onefold.host.receipts import Receipt, held, outcome_of
from onefold.host.sweep import Swept
from onefold.host.verbs import Approvals, Blobs, Parked, Runs
from onefold.kernel.module import Module
from onefold.kernel.prune import Pruned
from onefold.reflex.words import Ingested, Signal, Write
from onefold.terms.duration import duration_ms
from onefold.terms.errors import NotOpen

__tracebackhide__ = True  # a failing test shows the test's own lines

if TYPE_CHECKING:
    from onefold import blocking
    from onefold.cell.shape import Cell
    from onefold.host.borrow import Borrow, Custody

I = TypeVar("I")  # noqa: E741 - the input
O = TypeVar("O")  # noqa: E741 - the output
E = TypeVar("E")
R = TypeVar("R")
V = TypeVar("V")
C = TypeVar("C", bound="Cell")
M = TypeVar("M", bound=Module[Any, Any, Any, Any, Any])


class _Opened:
    """What all copies of one app share: the host while it is open, and who opened it how often."""

    def __init__(self) -> None:
        self.host: Host | None = None
        self.depth = 0
        self.door: Any = None


class App:
    """An application as a value. `async with App(...) as app` opens it; so does its ASGI lifespan.

    parts: actuators, modules, ports and reflexes. store: a folder, postgres://…, or "memory:". node: its name in a
    fleet, or {"name": …, "advertise": …, "lease": …, "capacity": n}. config: an onefold.toml, or its settings.

    Any verb raises NotOpen before the app is entered, StoreUnavailable, and in a fleet OwnedElsewhere; one that writes,
    Busy and OutcomeUnknown too: after each of these the same again is safe, and counts once. What a verb raises beside
    them stands with it.
    """

    def __init__(
        self,
        *parts: Part,
        store: str | Path | None = None,
        node: str | Mapping[str, Any] | None = None,
        config: str | Path | Mapping[str, Any] | None = None,
    ) -> None:
        self.parts = parts
        self.said: dict[str, Any] = {"store": None if store is None else str(store), "node": node}
        if isinstance(config, Mapping):
            self.said = {**config, **{name: value for name, value in self.said.items() if value is not None}}
        self.file = Path(config) if isinstance(config, str | os.PathLike) else None
        self._opened = _Opened()
        self.caller = inside(None)
        self._blocking: Any = None

    # --- opening ----------------------------------------------------------------------------

    def settled(self, flags: Mapping[str, Any] | None = None) -> Config:
        """The settings this app runs under. Raises: LoadRefused."""
        file = self.file if self.file is not None else find(start=Path.cwd())
        return settle(code=self.said, flags=flags, environ=os.environ, file=file)  # noqa: TID251 - the door

    async def __aenter__(self) -> App:
        """Open it. Raises: LoadRefused, StoreLocked, StoreRolledBack, StoreReplaced, StoreTooNew, StoreUnavailable."""
        opened = self._opened
        if opened.host is None:
            opened.host = await open_host(self.settled(), self.parts)
        opened.depth += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened = self._opened
        opened.depth -= 1
        if opened.depth == 0 and opened.host is not None:
            host, opened.host = opened.host, None
            door, opened.door = opened.door, None
            if hasattr(door, "aclose"):
                await door.aclose()
            await host.close()

    def __enter__(self) -> blocking.App:
        from onefold import blocking

        self._blocking = blocking.App(self)
        return self._blocking.__enter__()  # type: ignore[no-any-return]

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocking.__exit__(kind, fault, trace)

    @property
    def host(self) -> Host:
        """The host while the app is open. Raises: NotOpen."""
        if self._opened.host is None:
            raise NotOpen("The app")
        return self._opened.host

    def acting_as(self, principal: str | None) -> App:
        """The same app; all that is done through this one is done under that principal. Raises: BadArguments."""
        other = copy(self)
        other.caller = inside(principal)
        return other

    # --- serving ----------------------------------------------------------------------------

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI. The lifespan opens and closes the app."""
        opened = self._opened
        if opened.door is None:
            from onefold.serve import asgi_app, opening

            opened.door = opening(self._hosted) if scope["type"] == "lifespan" else asgi_app(self.host)
        await opened.door(scope, receive, send)

    def drain(self) -> None:
        """The server is about to stop: whoever waits is answered with what there is."""
        drain = getattr(self._opened.door, "drain", None)
        if drain is not None:
            drain()

    def asgi(self, app: Any, /, *, at: str = "/onefold") -> Any:
        """Serve Onefold under `at` and everything else from `app`; opens and closes with its lifespan."""
        from onefold.serve import mounted

        return mounted(app, self, at=at)

    @asynccontextmanager
    async def _hosted(self) -> AsyncIterator[Host]:
        async with self:
            yield self.host

    # --- actuators --------------------------------------------------------------------------

    async def call(self, actuator: Actuator[I, O], input: I = None, *, key: str | None = None) -> O:  # type: ignore[assignment]
        """Run to the end. Cancelling the wait never cancels the run. Raises: RunFailed, RunCancelled, RunParked, and
        whatever `start` does.
        """
        receipt = await self.start(actuator, input, key=key)
        return outcome_of(actuator, await self.host.ended(receipt.run_id, caller=self.caller))

    async def start(
        self,
        actuator: Actuator[I, O],
        input: I = None,  # type: ignore[assignment]
        *,
        key: str | None = None,
        delay: str | timedelta | None = None,
        priority: int = 0,
    ) -> Receipt[O]:
        """As soon as it is committed. It begins then, after `delay`, or once a limit lets it, higher priorities first.

        Raises, without a row: UnknownName, BadArguments, TypeError for another model's input, TooLarge, KeyConflict,
        AlreadyDone for a key whose run was swept.
        """
        host, after = self.host, 0 if delay is None else duration_ms(delay, what="delay")
        started = await host.start_checked(
            actuator, input, key=key, caller=self.caller, after_ms=after, priority=priority
        )
        return held(started.receipt, host, self.caller, actuator)

    async def receipt(self, run_id: str) -> Receipt[Any]:
        """A run as it is now. Raises: NotFound."""
        shown = await self.host.receipt(run_id, caller=self.caller)
        return held(shown, self.host, self.caller, self.host.catalog.actuator(shown.program))

    # --- modules ----------------------------------------------------------------------------

    async def deliver(self, module: Module[Any, E, Any, R, Any], event: E) -> R:
        """One fold; the reply, after commit. After OutcomeUnknown deliver the same event again.

        Raises, with nothing stored: UnknownName, BadArguments, TooLarge, KeyConflict, AlreadyDone for a reply that was
        swept, DecideFailed, WaitsForCode; TypeError for what is no module.
        """
        reply: R = await self.host.deliver(_itself(module, "deliver"), event, caller=self.caller)
        return reply

    async def read(self, module: Module[Any, Any, Any, Any, V], key: str) -> V:
        """The view; never folds. An actor without history shows its initial state. Raises: UnknownName, WaitsForCode."""
        view: V = await self.host.read(_itself(module, "read"), key, caller=self.caller)
        return view

    async def history(self, module: Module[Any, Any, Any, Any, Any], key: str, *, after: int = 0) -> History:
        """The facts of an actor, from the one after number `after`. `begins` of the list: where they begin.

        Raises: UnknownName, WaitsForCode.
        """
        return await self.host.history(_itself(module, "history"), key, after=after, caller=self.caller)

    async def prune(self, module: Module[Any, Any, Any, Any, Any], key: str) -> Pruned:
        """Take the facts behind the actor's latest snapshot away. Ids, replies, owed keys and numbers stay.

        Raises: UnknownName, Undeclared for a module without a snapshot.
        """
        return await self.host.prune(module, key, caller=self.caller)

    async def sweep(
        self,
        *,
        runs: str | timedelta | None = None,
        replies: str | timedelta | None = None,
        reflex_runs: str | timedelta | None = None,
        intake: str | timedelta | None = None,
        dry_run: bool = False,
    ) -> Swept:
        """Take away what ended, was given, settled or delivered so long ago; by default as the settings say. A repeat
        still counts once, as AlreadyDone. dry_run: only count.

        Raises: BadArguments for what is no duration, and where nobody says how long.
        """
        return await self.host.sweep(
            runs=kept(runs, "runs"),
            replies=kept(replies, "replies"),
            reflex_runs=kept(reflex_runs, "reflex_runs"),
            intake=kept(intake, "intake"),
            dry_run=dry_run,
            caller=self.caller,
        )

    async def alarm(self, module: Module[Any, Any, Any, Any, Any], key: str) -> datetime | None:
        """The actor's next alarm, folding it first if it is due. Raises: UnknownName, WaitsForCode."""
        return await self.host.alarm(module, key, caller=self.caller)

    async def actors(
        self,
        part: Module[Any, Any, Any, Any, Any] | Actuator[Any, Any] | type[Cell],
        *,
        prefix: str = "",
        limit: int = 100,
        after: str | None = None,
    ) -> list[dict[str, Any]]:
        """The first `limit` keys behind `after`, each with its alarm if one is set, in order. Raises: UnknownName."""
        name = part.__name__ if isinstance(part, type) else part.name
        page = await self.host.actors(name, prefix=prefix, limit=limit, after=after, caller=self.caller)
        return page.items

    async def fork(
        self, module: Module[Any, Any, Any, Any, Any], key: str, to: str, *, id: str, upto: int | None = None
    ) -> str:
        """Begin the actor `to` with the facts of `key`, all of them or the first `upto`; their digest in hex.

        Nothing is owed again. The same id gives the same answer. Raises: UnknownName, NotFound, BadArguments,
        KeyConflict, TooLarge, WaitsForCode.
        """
        return await self.host.fork(module, key, to, id=id, upto=upto, caller=self.caller)

    # --- cells ------------------------------------------------------------------------------

    def cell(self, shape: type[C], id: str) -> Borrow[C]:
        """A cell by its name, from anywhere; no I/O. Raises: TypeError for what is no shape."""
        from onefold.host.borrow import Borrow

        return Borrow(self.host, self.caller, shape, id)

    def open(self, shape: type[C], id: str) -> Custody[C]:
        """`async with app.open(Room, "room-7") as room`: begun if need be, and nobody else's until the block ends."""
        from onefold.host.borrow import Custody

        return Custody(self.host, self.caller, shape, id)

    # --- facts and reflexes -------------------------------------------------------------------

    async def ingest(self, fact: Write | Signal) -> Ingested:
        """Keep a fact for the reflexes of this principal; a repeat of its dedupe key counts once. Raises: BadArguments,
        TooLarge, Busy.
        """
        return await self.host.ingest(fact, caller=self.caller)

    @property
    def reflexes(self) -> Automations:
        return Automations(self)

    # --- runs, approvals, what is parked ------------------------------------------------------

    @property
    def runs(self) -> Runs:
        return Runs(self)

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
    def fleet(self) -> Names:
        return Names(self.host, self.caller)


def _itself(module: M, verb: str) -> M:
    """Raises: TypeError for a module's name, or whatever else stands for it."""
    given: Any = module
    if isinstance(given, Module):
        return module
    raise TypeError(f"{verb} takes the module itself, not {module!r}: app.{verb}(counter, …)")
