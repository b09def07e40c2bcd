"""program.calling - methods as a program calls them: counted, checked, and what each raise comes to.

For: the one way from a body into the scope, for the straight call and for the interpreter alike.
Never: lets a program go on that went over its budget, whatever it catches.
Was wrong once: a limit as an exception inside the program. A program caught it and went on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from onefold.program.values import as_json
from onefold.program.words import BadToken, Json, Limits, OneCall, OverCost, Ran, Scope, Stopped, Verdict
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.faults import says
from onefold.terms.ids import nearest

_encode = msgspec.json.Encoder().encode


class Calls:
    """The calls of one turn: what they cost so far, and the first thing that ends it whatever the program does."""

    def __init__(self, scope: Scope, limits: Limits) -> None:
        self._scope = scope
        self._limits = limits
        self._left = limits.cost
        self.ended: Stopped | None = None

    def __call__(self, name: str, arguments: dict[str, Json]) -> Json:
        """Raises: OverCost, BadToken, BadArguments, and whatever the method raises."""
        if self.ended is not None:
            self._end(self.ended)
        method = self._scope[name]
        self._left -= method.cost
        if self._left < 0:
            self._end(Stopped("limit", {"limit": f"{self._limits.cost} for its calls"}, 0, 0))
        try:
            return method(arguments)
        except BadToken as bad:
            self.ended = Stopped("handle", {"token": bad.token, "message": bad.why}, 0, 0)
            raise

    def function(self, name: str) -> Callable[..., Json]:
        """The method as the interpreter calls it."""
        method = self._scope[name]

        def call(*args: Any, **words: Any) -> Json:
            try:
                return self(name, bound(name, method.parameters, args, words))
            except BadArguments as bad:
                raise ValueError(_faults(bad)) from None  # in the turn's own words: nothing was to be started

        return call

    def _end(self, stopped: Stopped) -> NoReturn:
        self.ended = stopped
        raise OverCost(str(next(iter(stopped.told.values()))))


def call(program: OneCall, scope: Scope, limits: Limits) -> Verdict:
    """A body of one call, here and now."""
    if program.name not in scope:
        return Stopped("call", {"name": program.name, "nearest": nearest(program.name, list(scope))}, 0, 1)
    calls = Calls(scope, limits)
    try:
        value = calls(program.name, dict(program.arguments))
    except Exception as fault:  # noqa: BLE001 - the door: what a method raises is the turn's verdict
        if calls.ended is not None:
            return Stopped(calls.ended.kind, calls.ended.told, 0, 1)
        return raised(fault, 0, 1)
    return within(value, limits, 1)


def within(value: Json, limits: Limits, of: int) -> Verdict:
    """The end of a turn, if its value may leave."""
    size = len(_encode(value))
    if size > limits.output_bytes:
        return Stopped("limit", {"limit": f"{limits.output_bytes} bytes of output"}, of, of)
    return Ran(value, of)


def raised(fault: Exception, ran: int, of: int) -> Stopped:
    """What a method's exception is told as: its class and its words, no more."""
    if isinstance(fault, BadArguments):
        return Stopped("raised", {"message": _faults(fault)}, ran, of)
    message = says(fault).rstrip(".")
    kind = type(fault).__name__
    return Stopped("raised", {"message": f"{kind}: {message}" if message else kind}, ran, of)


def _faults(bad: BadArguments) -> str:
    return " ".join(f"{each}." for each in bad.faults).rstrip(".")


def bound(name: str, parameters: Any, args: tuple[Any, ...], words: dict[str, Any]) -> dict[str, Json]:
    """Arguments by name, as JSON. Raises: BadArguments."""
    if len(args) > len(parameters):
        raise BadArguments([Fault(name, f"takes {len(parameters)} arguments, not {len(args) + len(words)}")])
    given = dict(zip(parameters, args, strict=False))
    if twice := next((word for word in words if word in given), None):
        raise BadArguments([Fault(twice, "is given twice")])
    told: dict[str, Json] = {}
    for key, value in {**given, **words}.items():
        if key not in parameters:
            close = nearest(key, parameters)
            raise BadArguments([Fault(key, f"is not known; did you mean {close!r}?" if close else "is not known")])
        try:
            told[key] = as_json(value)
        except ValueError as wrong:
            raise BadArguments([Fault(key, str(wrong))]) from None
    return told
