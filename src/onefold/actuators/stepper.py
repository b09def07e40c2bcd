"""actuators.stepper - what `run.step(f)` gives: f, to be called with its own arguments.

For: making the journaled call, and remembering what takes it back.
Never: runs f.
Was wrong once: an undo remembered when its step was done. Two steps that ended in another order were taken back in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from onefold.actuators.calls import StepCall
from onefold.actuators.passing import Pass
from onefold.actuators.stepping import Acting, digest_of


class Stepper:
    """A function as a step: called with its own arguments it gives what is awaited."""

    __slots__ = ("_acting", "_home")

    def __init__(self, home: Pass, acting: Acting) -> None:
        self._home = home
        self._acting = acting

    def __call__(self, *args: Any, **values: Any) -> StepCall:
        acting = self._acting
        info = acting.info
        if values or len(args) != info.arity:
            args, values = info.bind(args, values)
        name = acting.name
        digest = digest_of(name, args, values) if values else digest_of(name, args)
        home = self._home
        call = StepCall(home, home.next_id(), digest, acting, args, values, home.which(name))
        home.add(call)
        return call


class Undoable:
    """A step with another that takes it back."""

    __slots__ = ("_made", "_undoing", "_undos")

    def __init__(self, made: Stepper, undoing: Stepper, undos: list[tuple[StepCall, Callable[[], StepCall]]]) -> None:
        self._made = made
        self._undoing = undoing
        self._undos = undos

    def __call__(self, *args: Any, **values: Any) -> StepCall:
        call = self._made(*args, **values)
        self._undos.append((call, partial(self._undoing, *args, **values)))
        return call
