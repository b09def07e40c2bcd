"""actuators.at_once - a function without steps ends in the commit that starts its run.

For: driving the function of a run that does not exist yet, up to its end or its first act.
Never: does an act: what a function does outside of its run's verbs has no effect, so it may be asked
before anything is committed. A function that names a verb is not asked at all.
Was wrong once: a run of one line paid for two commits and a pass in between. A tool that only
computes was slower than the disk by half.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from types import CodeType
from typing import Any

from msgspec import Raw

from onefold.actuators.calls import StepCall
from onefold.actuators.carried import Change, Progress, Returned
from onefold.actuators.declare import Actuator
from onefold.actuators.folding import evolve
from onefold.actuators.parts import Wait
from onefold.actuators.passing import Pass
from onefold.actuators.passloop import PassTask, Path
from onefold.actuators.run import Run
from onefold.actuators.state import INITIAL
from onefold.actuators.words import Start, Started
from onefold.kernel.blob import plain

VERBS = frozenset(
    {"step", "sleep", "sleep_until", "wait_for_event", "wait_for_approval", "db"}
    | {"call", "start", "first", "version", "progress"}
)


class Nobody:
    """Runs nothing and makes nothing durable: whatever is asked of it ends the attempt."""

    children: Any = None

    def begin(self, call: StepCall, attempt: int) -> None:
        """Never begun."""

    def abandon(self, call: StepCall) -> None:
        """Nothing runs."""

    def register(self, waits: tuple[Wait, ...], released: tuple[str, ...], unread: tuple[str, ...]) -> None:
        """Nothing is waited for."""

    def tell(self, event: Change | Progress) -> None:
        """Nothing is told."""

    def ended(self) -> None:
        """Its outcome is read where it was driven."""


def names_a_verb(function: Callable[..., Any]) -> bool:
    """Whether the function's code, or a function inside it, names a verb of its run."""
    code = getattr(function, "__code__", None)
    return not isinstance(code, CodeType) or _names(code)


def _names(code: CodeType) -> bool:
    return not VERBS.isdisjoint(code.co_names) or any(
        _names(inner) for inner in code.co_consts if isinstance(inner, CodeType)
    )


def result_of(actuator: Actuator[Any, Any], start: Start, at: int) -> Raw | None:
    """What the function gives without doing anything; None when it must be run as a pass.

    `at`: the instant (ms) that its `run.now()` gives.
    """
    started = Started(start.run, start.program, at, start.input, start.key, start.principal)
    home = Pass(evolve(INITIAL, started), Nobody())
    home.finish = lambda value: Raw(plain(actuator.result.encode(value)))
    run = Run(home, start.run, start.key, start.principal, actuator.name, actuator.ports, start.run)
    args = (run,) if actuator.model is None else (run, actuator.read_input(start.input))
    home.root = PassTask(actuator.function(*args), home.loop, Path("0"), copy_context())
    try:
        home.advance()
        return home.outcome.result if isinstance(home.outcome, Returned) else None
    finally:
        home.stop()
