"""host.calling - the ports from modules to runs: `call.<actuator>`, and `event.<actuator>`.

For: a run that a module owes, under the key that leaves, and an event that it owes to a run. Both dedupe on that key.
Never: waits for a run to end: the answer is the run's id, as soon as it is committed.
Was wrong once: the owed key itself as the key of the run. Two actors owed the same name, and one of them got the
other's run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from onefold.actuators.declare import Actuator
from onefold.host.caller import inside
from onefold.kernel.port import CALL, EVENT, Port, Standing, Step
from onefold.terms.codec import Json
from onefold.terms.errors import AlreadyDone, BadArguments, Fault
from onefold.terms.ids import run_id
from onefold.terms.typed import codec_of

TEXT, NOTHING, OBJECT = codec_of(str), codec_of(type(None)), codec_of(dict[str, Any])
FIELDS = ("run", "key", "event", "body")

Starting = Callable[..., Awaitable[Any]]


def run_ports(actuators: Iterable[Actuator[Any, Any]], start: Starting, send: Starting) -> dict[str, Port[Any, Any]]:
    """The ports, by name. `start` and `send`: the host's verbs for runs, of a checked input and of an event."""
    ports: dict[str, Port[Any, Any]] = {}
    for actuator in actuators:
        for port in (_call(actuator, start), _event(actuator, send)):
            ports[port.name] = port
    return ports


def _call(actuator: Actuator[Any, Any], start: Starting) -> Port[Any, str]:
    async def call(step: Step, input: Any) -> str:
        try:
            started = await start(actuator, input, key=step.key, caller=inside(step.principal))
        except AlreadyDone:
            return run_id(step.principal, actuator.name, step.key)  # it was begun, and is swept away
        found: str = started.receipt.run_id
        return found

    return Standing(CALL + actuator.name, call, NOTHING if actuator.model is None else codec_of(actuator.model), TEXT)


def _event(actuator: Actuator[Any, Any], send: Starting) -> Port[Json, None]:
    async def event(step: Step, told: Json) -> None:
        run, name, body = addressed(told, actuator.name, step.principal)
        await send(run, name, body, key=step.key, caller=inside(step.principal))

    return Standing(EVENT + actuator.name, event, OBJECT, NOTHING)


def addressed(told: Json, actuator: str, principal: str | None) -> tuple[str, str, Json]:
    """The run, the event's name and its body of {"run" or "key", "event", "body"}. Raises: BadArguments."""
    if not isinstance(told, dict):
        raise BadArguments([Fault("", "must be an object of run or key, event and body")], nothing_was="sent")
    faults = [Fault(name, f"is not a field here; there are {', '.join(FIELDS)}") for name in told if name not in FIELDS]
    if isinstance(told.get("run"), str) is isinstance(told.get("key"), str):
        faults.append(Fault("run", "or `key` must name the run, and not both"))
    if not isinstance(told.get("event"), str):
        faults.append(Fault("event", "must name the event"))
    if faults:
        raise BadArguments(faults, nothing_was="sent")
    run = told.get("run") or run_id(principal, actuator, told["key"])
    return run, told["event"], told.get("body", {})
