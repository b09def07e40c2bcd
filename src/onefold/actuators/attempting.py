"""actuators.attempting - one attempt of a step, and the event of its outcome.

For: calling the author's function once, under its timeout, and telling what became of it as data.
Never: folds the outcome; makes a second attempt (the journal brings it).
Was wrong once: the retry inside the attempt. The process died between two tries, and began at one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Raw

from onefold.actuators.calls import StepCall
from onefold.actuators.stepping import Acting, own
from onefold.actuators.troubles import Unfit, told
from onefold.actuators.words import Stepped, Trying
from onefold.kernel.blob import plain
from onefold.kernel.port import Port, StandIn, Step, unstopped
from onefold.kernel.unfit import said, shown
from onefold.terms.errors import BadArguments, Broken, HostError, OwnedElsewhere, TooLarge
from onefold.terms.ids import ActorId, leaving_key
from onefold.terms.instant import moment
from onefold.terms.limits import MAX_ROW_BYTES
from onefold.terms.typed import Codec

DATABASE_BUDGET_MS = 5_000
"""A database step holds its space's only writer; longer than this, the other runs of the actuator are stalled."""
WORLD = (HostError, OwnedElsewhere, Broken)
"""What the host raises of itself: never the outcome of an author's statement."""


class Folding(Protocol):
    """What an attempt needs of its run's actor. stand_in: for tests, else None."""

    @property
    def stand_in(self) -> StandIn | None: ...

    def fold(self, event: Any, id: str, /) -> Awaitable[Any]: ...
    def author(
        self, step: Callable[[Any], Any], event_of: Callable[[Any], Any], /, *, id: str, budget_ms: int
    ) -> Awaitable[Any]: ...


RESULT_LIMIT = MAX_ROW_BYTES - 8_192
"""Bytes of a result: what fits into one row of the journal beside its names."""


class UnfitResult(Exception):
    """A function gave what does not fit its own annotation: the program's fault, not that of who called it."""


def encoded(write: Callable[[Any], bytes], giver: str, result: Any) -> Raw:
    """A result as it is kept. giver: whose it is, as a sentence begins. Raises: Unfit."""
    try:
        raw = write(result)
    except BadArguments as fault:
        codec = getattr(write, "__self__", None)
        annotation = f" {shown(codec.annotation)}" if isinstance(codec, Codec) else ""
        raise Unfit(UnfitResult(f"{giver} gave what does not fit its annotation{annotation}: {said(fault)}")) from fault
    except Exception as fault:
        raise Unfit(fault) from fault
    if len(raw) > RESULT_LIMIT:
        raise Unfit(TooLarge("the result", len(raw), RESULT_LIMIT))
    return Raw(plain(raw))


class Attempt:
    """The `number`-th attempt of a step. id: of its outcome's event. doubtful: one before it may have left.

    why: set when `outcome` gives None, for a port that can neither dedupe nor be asked.
    """

    __slots__ = ("actor", "call", "doubtful", "id", "number", "owner", "why")

    def __init__(self, actor: Folding, call: StepCall, number: int, *, id: str, owner: ActorId, doubtful: bool) -> None:
        self.actor = actor
        self.call = call
        self.id = id
        self.number = number
        self.owner = owner
        self.doubtful = doubtful
        self.why = ""

    async def outcome(self) -> Stepped | None:
        """Make the attempt. None when nobody can know whether it acted. Raises: Unfit; HostError of a fold."""
        call = self.call
        acting: Acting = call.acting
        port = acting.port
        if port is not None and port.promise != "dedupes" and not await self._announced(port):
            return None
        try:
            args = tuple(map(own, call.args))
            if acting.info.takes_step:
                args = (self._step(), *args)
            function = acting.function
            if self.actor.stand_in is not None:
                function = self.actor.stand_in(function, self._step(), call.name)
            if port is None and acting.timeout is None and acting.info.is_async:
                result = await function(*args, **call.values)
            else:
                result = await self._guarded(acting, function, args)
        except asyncio.CancelledError as cut:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._failed(cut)
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - the door: whatever a step raises becomes its outcome
            if port is not None and port.promise == "neither":
                self.why = f"it raised {type(fault).__name__} after it was sent"
                return None
            return self._failed(fault)
        return Stepped(
            call.id, call.name, call.digest, self.number, encoded(acting.write, f"step {acting.name!r}", result)
        )

    async def _announced(self, port: Port[Any, Any]) -> bool:
        """Commit that an attempt leaves, before its first byte does. False: one may have left, and nobody can know."""
        if not self.doubtful:
            await self.actor.fold(Trying(self.call.id, self.number), f"{self.id}/try")
        elif port.promise == "neither":
            self.why = "the process ended while it was sent"
            return False
        return True

    def _step(self) -> Step:
        return Step(self._key(), moment(self.call.now_ms), self.number, self.owner.principal)

    async def _guarded(self, acting: Acting, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Under its timeout, through its port, in a thread if it is plain."""
        if acting.timeout is None:
            return await self._called(acting, function, args)
        async with asyncio.timeout(acting.timeout / 1000):
            return await self._called(acting, function, args)

    async def _called(self, acting: Acting, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        port = acting.port
        if port is not None and port.promise == "lookup" and (self.doubtful or self.number > 1):
            found = await port.find(*args) if port.find is not None else None
            if found is not None:
                return found
        if acting.info.is_async:
            return await function(*args, **self.call.values)
        return await asyncio.to_thread(unstopped(function), *args, **self.call.values)

    def _failed(self, fault: BaseException) -> Stepped:
        call = self.call
        again = call.acting.retry.after(self.number, fault, self._key())
        return Stepped(call.id, call.name, call.digest, self.number, trouble=told(fault), again_after=again)

    def _key(self) -> str:
        return leaving_key(self.owner, self.call.key)


class DatabaseAttempt:
    """A database step: its function and its journal row in one commit. It is not tried again by itself."""

    def __init__(self, call: StepCall, number: int) -> None:
        self.call = call
        self.number = number

    async def commit(self, actor: Folding, id: str) -> Stepped | None:
        """None once it is committed; else the event of its failure. Raises: Unfit; HostError."""
        call, acting = self.call, self.call.acting

        def event_of(value: Any) -> Stepped:
            return Stepped(
                call.id,
                call.name,
                call.digest,
                self.number,
                encoded(acting.write, f"step {acting.name!r}", value),
            )

        try:
            await actor.author(acting.function, event_of, id=id, budget_ms=DATABASE_BUDGET_MS)
        except (Unfit, *WORLD):
            raise
        except Exception as fault:  # noqa: BLE001 - the door: whatever the statement raised becomes its outcome
            return Stepped(call.id, call.name, call.digest, self.number, trouble=told(fault))
        return None
