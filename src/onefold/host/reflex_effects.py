"""host.reflex_effects - the effects that exist by themselves: a module, an actuator, a port of the same app.

For: `deliver.<module>` `call.<actuator>` `event.<actuator>` `post.<Shape>` `send.<port>`, each under the task's own key
and principal; and any effect as the host runs it, seen by whoever watches and stood in for by tests.
Never: acts as another than the reflex's principal; waits for a run to end; offers a port that cannot be asked twice.
Was wrong once: the input told from the key. A retry saw another `now` in its template, and was a conflict with itself:
the task's key alone says what is the same.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from onefold.actuators.declare import Actuator
from onefold.host.caller import Caller
from onefold.host.calling import addressed
from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.kernel.module import Module
from onefold.kernel.port import CALL, DELIVER, EVENT, Port, Step, unstopped
from onefold.reflex.seams import Effect, Task
from onefold.terms.codec import digest
from onefold.terms.errors import BadArguments, Fault, KeyConflict
from onefold.terms.faults import says
from onefold.terms.ids import ActorId, check_text, delivered_id, run_id
from onefold.terms.limits import MAX_ID_BYTES

SEND: Final = "send."
POST: Final = "post."
_CREATES: Final = re.compile(r"\s*create\s+table\s+(?:if\s+not\s+exists\s+)?[\"'`\[]?(\w+)", re.IGNORECASE)

Json = Any
Told = Callable[[Task, str, str], None]
Starting = Callable[..., Awaitable[Any]]


class Standing:
    """One effect of the app itself: what it does, what it writes, what it would do."""

    def __init__(
        self,
        name: str,
        act: Callable[[Task, Json], Awaitable[Json]],
        show: Callable[[Json], str],
        writes: Sequence[str],
    ) -> None:
        self.name = name
        self.writes: Sequence[str] | None = tuple(writes)
        self._act = act
        self._show = show

    def __repr__(self) -> str:
        return f"<effect {self.name}>"

    async def run(self, task: Task, input: Json, /) -> Json:
        return await self._act(task, input)

    def show(self, input: Json, /) -> str | None:
        return self._show(input)


class Watched:
    """An effect as the host runs it."""

    def __init__(self, effect: Effect, core: Core, told: Told) -> None:
        self.name = effect.name
        self._effect = effect
        self._core = core
        self._told = told

    @property
    def writes(self) -> Sequence[str] | None:
        return self._effect.writes

    def show(self, input: Json, /) -> str | None:
        return self._effect.show(input)

    async def run(self, task: Task, input: Json, /) -> Json:
        act: Callable[..., Any] = self._effect.run
        if self._core.stand_in is not None:
            act = self._core.stand_in(act, Step(task.key, task.now, task.attempt, task.principal), self.name)
        try:
            output = await act(task, input)
        except Exception as fault:
            self._told(task, self.name, f"raised {type(fault).__name__}: {says(fault)}")
            raise
        self._told(task, self.name, "done")
        return output


def standing(core: Core, start: Starting, send: Starting, post: Starting) -> Iterator[Effect]:
    """The effects of an app's parts. `start` and `send`: the host's verbs for runs; `post`: that for cells."""
    for module in core.catalog.modules.values():
        yield _deliver(core, module)
    for actuator in core.catalog.actuators.values():
        yield _call(actuator, start)
        yield _event(actuator, send)
    for shape in core.catalog.cells:
        yield _post(shape, post)
    for port in core.catalog.ports.values():
        if port.promise in ("dedupes", "lookup"):
            yield _send(core, port)


def _deliver(core: Core, module: Module[Any, Any, Any, Any, Any]) -> Effect:
    """One fold, once for each task, whatever its input says on a later attempt; gives the reply."""
    codecs = module.codecs

    def event_of(task: Task | None, input: Json) -> Any:
        if isinstance(input, dict) and "id" not in input:
            input = {**input, "id": "preview" if task is None else _within(task.key)}
        return codecs.event.from_json(input)

    async def deliver(task: Task, input: Json) -> Json:
        event = event_of(task, input)
        at = ActorId(module.name, task.principal, check_text(module.key(event), "key"))
        decide = core.node.kind(module.name).module.decide
        reply = await core.fold(at, delivered_id(_within(task.key)), b"", event, partial(decided, decide, event))
        return codecs.reply.to_json(reply)

    def show(input: Json) -> str:
        event = event_of(None, input)
        return f"deliver {type(event).__name__} to {module.name} {module.key(event)!r}"

    writes = [f"{module.name}.{kind.__name__}" for kind in module.publishes]
    return Standing(DELIVER + module.name, deliver, show, writes)


def _call(actuator: Actuator[Any, Any], start: Starting) -> Effect:
    """A run, begun and not waited for; gives its receipt, which has the result where it ended at once."""

    async def call(task: Task, input: Json) -> Json:
        caller, key = _caller(task), _within(task.key)
        try:
            started = await start(actuator.name, input, key=key, caller=caller)
        except KeyConflict:
            return {"run_id": run_id(task.principal, actuator.name, key), "program": actuator.name}
        return started.receipt.to_json()

    def show(input: Json) -> str:
        actuator.check(input)
        return f"call {actuator.name}"

    tables = [found[1] for sql in actuator.migrations if (found := _CREATES.match(sql))]
    return Standing(CALL + actuator.name, call, show, [f"{actuator.name}.{table}" for table in tables])


def _event(actuator: Actuator[Any, Any], send: Starting) -> Effect:
    """An event to a run that its input names, {"run" or "key", "event", "body"}; gives the receipt."""

    def read(task: Task | None, input: Json) -> tuple[str, str, Json]:
        return addressed(input, actuator.name, None if task is None else task.principal)

    async def event(task: Task, input: Json) -> Json:
        run, name, body = read(task, input)
        try:
            receipt = await send(run, name, body, key=_within(task.key), caller=_caller(task))
        except KeyConflict:
            return {"run_id": run, "program": actuator.name}
        return receipt.to_json()

    def show(input: Json) -> str:
        run, name, _ = read(None, input)
        return f"send {name} to {input.get('key', run)} of {actuator.name}"

    return Standing(EVENT + actuator.name, event, show, ())


def _post(shape: str, post: Starting) -> Effect:
    """A program into the box of a cell, {"id", "program"}: run in its turn, once for each task."""

    def read(input: Json) -> tuple[str, str]:
        known = ("id", "program")
        given = input if isinstance(input, dict) else {}
        faults = [
            Fault(name, f"is not a field here; there are {', '.join(known)}") for name in given if name not in known
        ]
        faults += [Fault(name, "must be text") for name in known if not isinstance(given.get(name), str)]
        if faults:
            raise BadArguments(faults, nothing_was="posted")
        return given["id"], given["program"]

    async def posted(task: Task, input: Json) -> Json:
        id, program = read(input)
        key = _within(task.key)
        with suppress(KeyConflict):  # an earlier attempt posted it, by another `now` in its template
            await post(shape, id, program, key=key, caller=_caller(task))
        return {"outcome": "posted", "id": key}

    def show(input: Json) -> str:
        return f"post to {shape} {read(input)[0]!r}"

    return Standing(POST + shape, posted, show, ())


def _send(core: Core, port: Port[Any, Any]) -> Effect:
    """One send under the task's key; gives the answer. After a try that was cut off or fell, `find` is asked first."""

    async def send(task: Task, input: Json) -> Json:
        body = port.body.from_json(input)
        step = Step(task.key, task.now, task.attempt, task.principal)
        if task.attempt > 1 and port.find is not None:
            found = await port.find(step, body)
            if found is not None:
                return port.answer.to_json(found)
        function: Callable[..., Any] = port.function
        if core.stand_in is not None:
            function = core.stand_in(function, step, port.name)
        if port.is_async:
            answer = await function(step, body)
        else:
            answer = await asyncio.to_thread(unstopped(function), step, body)
        return port.answer.to_json(answer)

    def show(input: Json) -> str:
        port.body.from_json(input)
        return f"send through {port.name}"

    return Standing(SEND + port.name, send, show, ())


def watched(effects: Iterable[Effect], core: Core, told: Told) -> dict[str, Effect]:
    """These effects by name, as the host runs them."""
    return {effect.name: Watched(effect, core, told) for effect in effects}


def _caller(task: Task) -> Caller:
    return Caller(task.principal, frozenset({"call"}), task.principal or "a reflex")


def _within(key: str) -> str:
    """A key that an id may be: a long one by its digest."""
    return key if len(key.encode()) <= MAX_ID_BYTES // 2 else digest(key.encode()).hex()
