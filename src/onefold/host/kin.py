"""host.kin - runs that begin runs: a child's end goes to its parent, and a parent's end ends its children.

For: the verbs that a pass has for other runs, and the way of what one run tells another.
Never: waits for a child within a turn or a step.
Was wrong once: a parent told in this process. The child ended on another node, and nobody was.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from onefold.actuators.carried import Callback, Orphan
from onefold.actuators.declare import Actuator
from onefold.actuators.ending import CHILD, PORT, told_as
from onefold.actuators.receipt import Receipt
from onefold.actuators.words import Cancel, Sent
from onefold.host.caller import Caller, inside
from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.host.limiting import group_of
from onefold.kernel.port import Port, Standing, Step
from onefold.terms.codec import digest, parse
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import ActorId, delivered_id
from onefold.terms.typed import codec_of

TO_RUN = "run:"
NOTHING = codec_of(type(None))


class Starting(Protocol):
    """The host's verbs for runs."""

    async def start_checked(
        self, actuator: Actuator[Any, Any], input: Any, *, key: str | None, caller: Caller, callback: str | None
    ) -> Any: ...
    async def receipt(self, run_id: str, *, caller: Caller) -> Receipt: ...
    async def run_send(self, run_id: str, event: str, body: Any, *, key: str | None, caller: Caller) -> Receipt: ...
    async def run_cancel(self, run_id: str, reason: str | None, *, caller: Caller) -> Receipt: ...


class Kin:
    """What one run may do with others. limit: which of its actuator's it counts for."""

    def __init__(self, runs: Starting, parent: ActorId, limit: str | None = None) -> None:
        self._runs = runs
        self._parent = parent
        self._limit = limit
        self._caller = inside(parent.principal)

    async def begin(self, actuator: Actuator[Any, Any], input: str, key: str, detached: bool) -> str:
        """Raises: BadArguments for a child that would wait for the place that this run holds until it ends."""
        value = actuator.read_input(input.encode())
        if not detached and self._holds(actuator, value):
            name = actuator.name
            why = f"lets one run of {name} go at a time, which is this one, and its child would wait for it; detach the child"
            raise BadArguments([Fault("at_once", why)])
        to = f"{TO_RUN}{told_as(self._parent.kind, self._parent.key)}"
        started = await self._runs.start_checked(actuator, value, key=key, caller=self._caller, callback=to)
        run: str = started.receipt.run_id
        return run

    def _holds(self, actuator: Actuator[Any, Any], input: Any) -> bool:
        """Whether this run has the only place that a run with this input may have."""
        if actuator.name != self._parent.kind or actuator.limits is None or actuator.limits.at_once != 1:
            return False
        return group_of(actuator, input) == self._limit

    async def show(self, run: str) -> Receipt:
        return await self._runs.receipt(run, caller=self._caller)

    async def send(self, run: str, event: str, body: Any, key: str) -> None:
        await self._runs.run_send(run, event, body, key=key, caller=self._caller)

    async def cancel(self, run: str, reason: str | None) -> Receipt:
        return await self._runs.run_cancel(run, reason, caller=self._caller)


def kin_ports(core: Core, ended: Port[Any, Any] | None) -> dict[str, Port[Any, Any]]:
    """The ports, by name. ended: posts receipts to addresses; None where nothing leaves."""

    async def told(step: Step, body: Callback) -> None:
        if not body.url.startswith(TO_RUN):
            if ended is not None:
                await ended.function(step, body)
            return
        program, _, run = body.url.removeprefix(TO_RUN).partition("/")
        receipt: Any = parse(bytes(body.receipt))
        name = told_as(receipt["program"], receipt["run_id"])
        event = Sent(step.key, run, name, body.receipt)
        decide = core.catalog.actuator(program).module.decide
        at = ActorId(program, step.principal, run)
        await core.fold(at, delivered_id(step.key), digest(body.receipt), event, partial(decided, decide, event))

    async def orphan(step: Step, body: Orphan) -> None:
        event = Cancel(step.key, body.run, body.reason)
        decide = core.catalog.actuator(body.program).module.decide
        at = ActorId(body.program, step.principal, body.run)
        await core.fold(at, delivered_id(step.key), b"", event, partial(decided, decide, event))

    return {
        PORT: Standing(PORT, told, codec_of(Callback), NOTHING),
        CHILD: Standing(CHILD, orphan, codec_of(Orphan), NOTHING),
    }
