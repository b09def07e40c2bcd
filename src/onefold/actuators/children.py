"""actuators.children - a run that another run has begun, in the hands of its function.

For: beginning it as a step, and waiting for its end as a durable wait.
Never: looks into its rows: its end is told to its parent by its own commit.
Was wrong once: the parent asked now and then whether its child had ended. A thousand children asked a thousand times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from onefold.actuators.receipt import Receipt
from onefold.kernel.port import Step
from onefold.terms.codec import canonical, parse
from onefold.terms.duration import duration_ms
from onefold.terms.errors import CallerError, RunCancelled, RunFailed
from onefold.terms.typed import codec_of

if TYPE_CHECKING:
    from onefold.actuators.calls import WaitCall
    from onefold.actuators.declare import Actuator
    from onefold.actuators.words import EventTaken

O = TypeVar("O")  # noqa: E741 - the output


class Children(Protocol):
    """What host lets a run do with others, as the run's own principal."""

    async def begin(self, actuator: Actuator[Any, Any], input: str, key: str, detached: bool) -> str: ...
    async def show(self, run: str) -> Receipt: ...
    async def send(self, run: str, event: str, body: Any, key: str) -> None: ...
    async def cancel(self, run: str, reason: str | None) -> Receipt: ...


def beginning(children: Children, actuator: Actuator[Any, Any]) -> Callable[..., Any]:
    """The step that begins one: its key is the caller's, or else that of the step."""

    async def begin(step: Step, program: str, input: str, key: str | None, detached: bool) -> str:
        return await children.begin(actuator, input, step.key if key is None else key, detached)

    return begin


def outcome_of(actuator: Actuator[Any, O]) -> Callable[[EventTaken], O]:
    """What the entry of a child's end gives. Raises: RunFailed, RunCancelled."""

    def outcome(entry: EventTaken) -> O:
        receipt: Any = parse(bytes(entry.body))
        run, status = receipt["run_id"], receipt["status"]
        if status == "done":
            given: O = actuator.result.decode(canonical(receipt.get("result")))
            return given
        if status == "cancelled":
            raise RunCancelled(run, None)
        error = receipt["error"]
        kind, _, message = error["message"].partition(": ")
        raise RunFailed(run, error.get("step"), kind, message)

    return outcome


Stepping = Callable[..., Callable[..., Coroutine[Any, Any, Any]]]


@dataclass(frozen=True, repr=False)
class Child(Receipt, Generic[O]):
    """A receipt as `run.start` gives it: its verbs are journaled acts of the run that began it."""

    _step: Stepping | None = None
    _children: Children | None = None
    _ending: Callable[[], WaitCall] | None = None

    def __repr__(self) -> str:
        return f"<receipt {self.run_id}: {self.program} {self.status}>"

    async def result(self, *, timeout: str | timedelta | None = None) -> O:
        """What the child gives. Raises: RunFailed, RunCancelled; TimeoutError leaves it going."""
        assert self._ending is not None
        ending = self._ending()
        if timeout is not None:
            await asyncio.wait([ending], timeout=duration_ms(timeout, what="timeout") / 1000)
            if not ending.done():
                raise TimeoutError
        given: O = await ending
        return given

    async def refresh(self) -> Child[O]:
        """The child as it is now."""
        children, step = self._held()

        async def refresh(run: str) -> dict[str, Any]:
            return (await children.show(run)).to_json()

        return self._as(await step(refresh)(self.run_id))

    async def send(self, event: Any, *, key: str | None = None) -> None:
        """Send an event to the child, under its class's name."""
        children, step = self._held()
        name, body = type(event).__name__, canonical(codec_of(type(event)).to_json(event)).decode()

        async def send(step: Step, run: str, name: str, body: str, key: str | None) -> None:
            await children.send(run, name, parse(body.encode()), step.key if key is None else key)

        await step(send)(self.run_id, name, body, key)

    async def cancel(self, reason: str | None = None) -> Child[O]:
        """End the child where it stands. Idempotent."""
        children, step = self._held()

        async def cancel(run: str, reason: str | None) -> dict[str, Any]:
            return (await children.cancel(run, reason)).to_json()

        return self._as(await step(cancel)(self.run_id, reason))

    def _held(self) -> tuple[Children, Stepping]:
        assert self._children is not None
        assert self._step is not None
        return self._children, self._step

    def _as(self, told: dict[str, Any]) -> Child[O]:
        began, changed = (datetime.fromisoformat(told[name]) for name in ("started_at", "updated_at"))
        return replace(self, status=told["status"], started_at=began, updated_at=changed)


REFUSED = (CallerError,)
"""What the host refuses of a child is refused for ever: it is not tried again."""
