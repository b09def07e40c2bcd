"""host.starting - a call becomes a run: checked, met or made, committed.

For: one run for one key, and for calls that agree on what their actuator dedupes by.
Never: makes a row for bad arguments.
Was wrong once: a run's id made before its arguments were checked. Agents polled runs that never were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import Raw, structs

from onefold.actuators.at_once import names_a_verb, result_of
from onefold.actuators.declare import Actuator
from onefold.actuators.ending import MOST
from onefold.actuators.parts import NULL
from onefold.actuators.receipt import Receipt, picture, receipt_of
from onefold.actuators.tables import RUN
from onefold.actuators.words import Begun, Follow, Following
from onefold.host.caller import Caller
from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.host.limiting import group_of
from onefold.ports.callback import refusal
from onefold.store.contract import Query
from onefold.terms.codec import canonical, digest
from onefold.terms.errors import AlreadyDone, BadArguments, Contended, Fault, KeyConflict, NotFound, PortFailed
from onefold.terms.ids import ActorId, check_text, door_id, principal_text, run_id, run_id_random

CALLBACK = "Onefold-Callback"
MOST_PRIORITY = 1_000_000
AGREEING = 8  # how often a start may meet an agreeing run that ends just then


@dataclass(frozen=True, slots=True)
class Started:
    """A run's receipt, and whether it is of an earlier call with the same key."""

    receipt: Receipt
    replayed: bool


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an actuator: what is stored of it, and by what a repeat is known.

    digest: over the input with fields equal to their default left out, so that the same content
    through another door, or after a deploy that adds a field, is the same. agreeing: digest of the
    `dedupe_by` fields, or None. after: ms until a run that it makes begins. callback: where its ended receipt is posted.
    priority: among those that wait for a limit, and `limit`: which. None is a part of its content.
    """

    actuator: Actuator[Any, Any]
    key: str | None
    principal: str | None
    written: bytes
    digest: bytes
    agreeing: str | None
    after: int = 0
    callback: str | None = None
    priority: int = 0
    limit: str | None = None

    @staticmethod
    def of(
        actuator: Actuator[Any, Any],
        input: Any,
        key: str | None,
        principal: str | None,
        after: int = 0,
        callback: str | None = None,
        priority: int = 0,
    ) -> Call:
        written = actuator.written(input)
        slim = written
        if actuator.model is not None:
            slim = canonical(input.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        agreeing, limit = actuator.agreeing(input), group_of(actuator, input)
        return Call(actuator, key, principal, written, digest(slim), agreeing, after, callback, priority, limit)


def checked_priority(given: object) -> int:
    """Raises: BadArguments for what is no whole number from -1,000,000 to 1,000,000."""
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) <= MOST_PRIORITY:
        return given
    raise BadArguments([Fault("priority", "must be a whole number from -1,000,000 to 1,000,000", given)])


class Turns:
    """Those who start an agreeing run at the same moment, one after another."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class StartVerbs:
    """Starting runs. `_core` is the opened application, `_chance(n)` gives n unguessable bytes."""

    _core: Core
    _chance: Callable[[int], bytes]
    _agreeing: dict[tuple[str, str | None, str | None], Turns]
    _at_once: dict[str, bool]
    _remember: Callable[[str, ActorId], None]
    receipt: Callable[..., Awaitable[Receipt]]

    async def start(
        self,
        name: str,
        arguments: Any,
        *,
        key: str | None = None,
        caller: Caller,
        wait_ms: int = 0,
        callback: str | None = None,
    ) -> Started:
        """Commit a run and begin it; wait up to `wait_ms` for it to end or to rest at a long wait.

        Raises: BadArguments, UnknownName, TooLarge, KeyConflict, AlreadyDone, Busy: before any row exists.
        """
        actuator, checked = await self._checked(name, arguments)
        if callback is not None and (why := refusal(callback, here=not self._core.config.keys)) is not None:
            raise BadArguments([Fault(CALLBACK, why)])
        return await self.start_checked(actuator, checked, key=key, caller=caller, wait_ms=wait_ms, callback=callback)

    async def _checked(self, name: str, arguments: Any) -> tuple[Actuator[Any, Any], Any]:
        """The actuator, and the input that it takes. One of a deployed file may be replaced while it looks: the next is
        asked then. Raises: BadArguments, UnknownName, PortFailed.
        """
        while True:
            actuator = self._core.catalog.actuator(name)
            try:
                return actuator, await actuator.checked(arguments)
            except PortFailed:
                if self._core.catalog.actuators.get(name) is actuator:
                    raise

    async def start_checked(
        self,
        actuator: Actuator[Any, Any],
        input: Any,
        *,
        key: str | None = None,
        caller: Caller,
        wait_ms: int = 0,
        after_ms: int = 0,
        callback: str | None = None,
        priority: int = 0,
    ) -> Started:
        """As `start`, for an input that is the actuator's model already. after_ms: until a new run begins. callback: where
        the ended receipt is posted, also of a run that is met. priority: of a new one that waits for a limit. Raises: as `start`.
        """
        self._core.catalog.actuator(actuator.name)
        if key is not None:
            check_text(key, "key")
        call = Call.of(actuator, input, key, caller.principal, after_ms, callback, checked_priority(priority))
        if call.agreeing is None:
            new, at = await self._begin(call)
        else:
            new, at = await self._meet_or_begin(call)
        if callback is not None and not new:
            await self._follow(at, callback)
        self._core.point("before-reply")
        try:
            return Started(await self.receipt(at.key, wait_ms=wait_ms, caller=caller), replayed=not new)
        except NotFound:
            raise AlreadyDone(key or at.key) from None  # swept away since it was met

    async def _meet_or_begin(self, call: Call) -> tuple[bool, ActorId]:
        """The unfinished run that agrees with this call, or a new one; agreeing calls take turns."""
        name = (call.actuator.name, call.principal, call.agreeing)
        turns = self._agreeing.setdefault(name, Turns())
        turns.waiting += 1
        try:
            async with turns.lock:
                for _ in range(AGREEING):
                    met = await self._meet(call)
                    if met is not None:
                        return False, met
                    try:
                        return await self._begin(call)
                    except Contended:
                        continue  # another process made an agreeing run at the same moment: meet it
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                self._agreeing.pop(name, None)
        raise Contended(f"the runs of {call.actuator.name} that agree with this call")

    async def _begin(self, call: Call) -> tuple[bool, ActorId]:
        """Fold the start of a run; whether this call made it, and its actor."""
        name, key, principal = call.actuator.name, call.key, call.principal
        chance = self._chance(16)
        run = run_id_random(name, chance) if key is None else run_id(principal, name, key)
        at = ActorId(name, principal, run)
        nonce = chance.hex()
        start = call.actuator.start(
            run=run,
            input=call.written,
            key=key,
            principal=principal,
            dedupe=call.agreeing,
            nonce=nonce,
            after=call.after,
            callback=call.callback,
            limit=call.limit,
            priority=call.priority,
        )
        if not call.after and call.limit is None and self._ends_at_once(call.actuator):
            result = result_of(call.actuator, start, self._core.clock.now())
            if result is not None:
                start = structs.replace(start, over=True, result=result)
        decide = partial(decided, call.actuator.module.decide, start)
        try:
            begun: Begun = await self._core.fold(
                at, door_id("start"), call.digest, start, decide, probe=key is not None
            )
        except KeyConflict:
            raise KeyConflict(key or run) from None
        except AlreadyDone:
            raise AlreadyDone(key or run) from None  # the run was swept away; its key is not free
        self._remember(run, at)
        return begun.nonce == nonce, at

    async def _follow(self, at: ActorId, url: str) -> None:
        """Have the ended receipt of a run that was met posted there too. Raises: BadArguments for too many addresses."""
        receipt, decide = NULL, self._core.catalog.actuator(at.kind).module.decide
        while True:
            event = Follow(self._chance(16).hex(), at.key, url, receipt)
            following: Following = await self._core.fold(
                at, door_id(f"follow/{event.id}"), b"", event, partial(decided, decide, event)
            )
            if following.outcome == "full":
                raise BadArguments([Fault(CALLBACK, f"is one too many: this run has {MOST} already")])
            if following.outcome == "yes":
                return
            shown = await self._core.whole(at, picture(await self._core.node.read(at)))
            receipt = Raw(canonical(receipt_of(shown).to_json()))

    def _ends_at_once(self, actuator: Actuator[Any, Any]) -> bool:
        """Whether this actuator's function may end without an act: its code names no verb of its run."""
        known = self._at_once.get(actuator.name)
        if known is None:
            here = actuator.passing is None and actuator.is_async
            known = self._at_once[actuator.name] = here and not names_a_verb(actuator.function)
        return known

    async def _meet(self, call: Call) -> ActorId | None:
        """The unfinished run whose `dedupe_by` fields agree. Raises: KeyConflict when its other content differs."""
        name = call.actuator.name
        space = await self._core.space(name)
        wanted = (name, principal_text(call.principal), call.agreeing)
        (met,) = await space.look(Query(RUN, on=("program", "principal", "dedupe"), keys=[wanted]))
        if not met:
            return None
        run = str(met[0][RUN.at["run"]])
        if call.key is not None and run == run_id(call.principal, name, call.key):
            return None  # the same key names this very run: its start tells a repeat from a conflict
        at = ActorId(name, call.principal, run)
        state = await self._core.whole(at, await self._core.node.read(at))
        if Call.of(call.actuator, call.actuator.read_input(state.input), None, call.principal).digest != call.digest:
            raise KeyConflict(", ".join(call.actuator.dedupe_by))
        self._remember(run, at)
        return at
