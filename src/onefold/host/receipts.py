"""host.receipts - a receipt in a program's hands: a frozen picture with the verbs that need no more.

For: `await receipt.result()`, and asking, telling or ending the run it shows.
Never: changes by itself; `refresh` gives another one.
Was wrong once: a live handle. What a program printed was not what it had decided on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from onefold.actuators.declare import Actuator
from onefold.actuators.receipt import Picture
from onefold.actuators.receipt import Receipt as Shown
from onefold.host.caller import Caller
from onefold.host.host import Host
from onefold.terms.duration import duration_ms
from onefold.terms.errors import RunCancelled, RunFailed, RunParked
from onefold.terms.typed import codec_of

O = TypeVar("O")  # noqa: E741 - the output


@dataclass(frozen=True, repr=False)
class Receipt(Shown, Generic[O]):
    """A frozen picture of a run, and what may be done about it."""

    _host: Host | None = None
    _caller: Caller | None = None
    _actuator: Actuator[Any, O] | None = None

    def __repr__(self) -> str:
        return f"<receipt {self.run_id}: {self.program} {self.status}>"

    async def result(self, *, timeout: str | timedelta | None = None) -> O:
        """What the run gives. Raises: RunFailed, RunCancelled, RunParked, NotFound; TimeoutError leaves the run going."""
        host, caller, actuator = self._held()
        limit = None if timeout is None else duration_ms(timeout, what="timeout") / 1000
        async with asyncio.timeout(limit):
            shown = await host.ended(self.run_id, caller=caller)
        return outcome_of(actuator, shown)

    async def refresh(self, *, wait: str | timedelta = "0s") -> Receipt[O]:
        """The run as it is now, or as it is once it ended or came to rest, at most `wait` later. Raises: NotFound."""
        host, caller, actuator = self._held()
        wait_ms = duration_ms(wait, what="wait")
        return held(await host.receipt(self.run_id, wait_ms=wait_ms, caller=caller), host, caller, actuator)

    async def send(self, event: Any, *, key: str | None = None) -> None:
        """Send an event to the run, under its class's name. Raises: NotFound, KeyConflict, BadArguments, TooLarge."""
        host, caller, _ = self._held()
        name = type(event).__name__
        await host.run_send(self.run_id, name, codec_of(type(event)).to_json(event), key=key, caller=caller)

    async def cancel(self, reason: str | None = None) -> Receipt[O]:
        """End the run where it stands. Idempotent. Raises: NotFound."""
        host, caller, actuator = self._held()
        return held(await host.run_cancel(self.run_id, reason, caller=caller), host, caller, actuator)

    def _held(self) -> tuple[Host, Caller, Actuator[Any, O]]:
        assert self._host is not None
        assert self._caller is not None
        assert self._actuator is not None
        return self._host, self._caller, self._actuator


def held(shown: Shown, host: Host, caller: Caller, actuator: Actuator[Any, O]) -> Receipt[O]:
    """A receipt with its verbs."""
    return Receipt(
        shown.run_id,
        shown.program,
        shown.status,
        shown.waits,
        shown.error,
        shown.key,
        shown.started_at,
        shown.updated_at,
        shown.output,
        shown.progress,
        _host=host,
        _caller=caller,
        _actuator=actuator,
    )


def outcome_of(actuator: Actuator[Any, O], shown: Picture) -> O:
    """The output of a run that ended. Raises: RunFailed, RunCancelled, RunParked."""
    if shown.status == "done":
        output: O = actuator.result.decode(bytes(shown.result))
        return output
    trouble = shown.trouble
    if shown.status == "cancelled":
        raise RunCancelled(shown.run, shown.reason)
    if shown.status == "parked":
        raise RunParked(shown.run, trouble.message if trouble is not None else "its pass was given up on.")
    kind, _, message = (trouble.message if trouble is not None else "failed").partition(": ")
    raise RunFailed(shown.run, trouble.step if trouble is not None else None, kind, message)
