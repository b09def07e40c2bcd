"""testing.acts - what an app does to the world, seen and put in another's place.

For: stubs for steps, ports and effects, the record of their calls, and failpoints around each.
Never: sends a notice or a webhook to anybody: who would be told is only named; replaces a step of the database, which is
real in tests too.
Was wrong once: patching the function by its dotted name. The file had imported it under another, and the test paid.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onefold.actuators.carried import Ask
from onefold.kernel.port import Port, Step
from onefold.reflex.effects import EffectFunction
from onefold.reflex.seams import Task
from onefold.testing.points import Points

NOT_GIVEN: Any = object()
OUTSIDE = (
    "onefold.host.approvals",
    "onefold.ports.http",
    "onefold.ports.notify",
    "onefold.ports.telling",
    "onefold.ports.webhook",
)  # what of ours would reach a stranger's machine


@dataclass(frozen=True, slots=True)
class Called:
    """One call of a step or a port: its attempt's key, instant, number and principal, and its arguments without `step`."""

    name: str
    key: str
    now: datetime
    attempt: int
    principal: str | None
    args: tuple[Any, ...]
    values: dict[str, Any]


class Acts:
    """What stands in for steps and ports. It is what a host calls with (function, step, name)."""

    def __init__(self, points: Points, say: Callable[[str], None]) -> None:
        self._points = points
        self._say = say
        self._stubs: list[tuple[Any, Callable[..., Any]]] = []
        self._calls: list[tuple[Any, Called]] = []
        self.heard: list[Callable[[Called], None]] = []

    def stub(self, step: Any, returns: Any, raises: Any, calls: Any) -> None:
        """Raises: TypeError unless exactly one of the three is given."""
        given = [value for value in (returns, raises, calls) if value is not NOT_GIVEN]
        if len(given) != 1:
            raise TypeError("stub takes exactly one of returns=, raises= and calls=")
        if calls is not NOT_GIVEN:
            instead: Callable[..., Any] = calls
        elif raises is not NOT_GIVEN:
            instead = _raising(raises)
        else:
            instead = _returning(returns)
        if isinstance(step, EffectFunction):
            instead = _as_effect(step, instead)
        self._stubs.insert(0, (function_of(step), instead))

    def calls(self, step: Any) -> list[Called]:
        """The calls of one step or port, in the order they began."""
        wanted = function_of(step)
        return [called for function, called in self._calls if function == wanted]

    def __call__(self, function: Callable[..., Any], step: Step, name: str) -> Callable[..., Any]:
        instead = next((stub for of, stub in self._stubs if of == function), None)
        if instead is None and getattr(function, "__module__", "") in OUTSIDE:
            instead = self._only_told
        acts = function if instead is None else instead

        def begin(args: tuple[Any, ...], values: dict[str, Any]) -> None:
            given = args[1:] if args and isinstance(args[0], Step | Task) else args
            called = Called(name, step.key, step.now, step.attempt, step.principal, given, values)
            self._calls.append((function, called))
            for told in self.heard:
                told(called)
            self._points.meet("step-started", name)

        async def awaited(*args: Any, **values: Any) -> Any:
            begin(args, values)
            result = acts(*args, **values)
            result = await result if inspect.isawaitable(result) else result
            self._points.meet("step-returned", name)
            return result

        def plain(*args: Any, **values: Any) -> Any:
            begin(args, values)
            result = acts(*args, **values)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            self._points.meet("step-returned", name)
            return result

        return awaited if _is_async(function) else plain

    def _only_told(self, step: Step, body: Any) -> None:
        asked = isinstance(body, Ask)
        self._say(f"asked {', '.join(body.notify)}: {body.message}" if asked else f"posted {body!r}")


def function_of(step: Any) -> Any:
    """The function that stands for a step: itself, or the one behind a port or an effect."""
    if isinstance(step, EffectFunction):
        return step.run
    return step.function if isinstance(step, Port) else step


def _as_effect(effect: EffectFunction[Any, Any], instead: Callable[..., Any]) -> Callable[..., Any]:
    """A stub of an effect: called as its function is, with its input as a value; what it gives is written as its own."""

    async def run(task: Task, input: Any) -> Any:
        answer = instead(task, *effect.given(input))
        return effect.written(await answer if inspect.isawaitable(answer) else answer)

    return run


def _is_async(function: Any) -> bool:
    inner = inspect.unwrap(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(inner.__class__.__call__)


def _returning(value: Any) -> Callable[..., Any]:
    return lambda *args, **values: value


def _raising(fault: Any) -> Callable[..., Any]:
    def call(*args: Any, **values: Any) -> Any:
        raise fault

    return call
