"""kernel.port - the one way out of an actor.

For: ports as values that say what they can promise after a doubtful send.
Never: sends by itself; retries; a default for what nobody said.
Was wrong once: one kind of port for all. A provider that ignores keys was paid twice, silently.

    dedupes   the other side honours the key: sent again under the same key until it confirms
    lookup    it can be asked: after a doubtful send `find` is asked first
    neither   it can do neither: after a doubtful send the row is parked for a person
    local     a table of the same space: the row is part of the fold's own commit
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_type_hints, overload

from onefold.store.contract import Row, Table
from onefold.terms.errors import Finding, LoadRefused, OutsideStep
from onefold.terms.ids import ActorId, check_name
from onefold.terms.typed import Codec, codec_of

B = TypeVar("B")
A = TypeVar("A")
R = TypeVar("R")
Promise = Literal["dedupes", "lookup", "neither", "local"]
DELIVER: Final = "deliver."
"""What the port to another module's actors is called, before that module's name."""
CALL: Final = "call."
EVENT: Final = "event."
"""The ports to an actuator's runs, before its name: one begins a run, one tells an event to one that there is."""
POST: Final = "post"
"""The port to the cell that a tick's owner names; with a dot and a shape, the port to that shape's boxes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt to act. `key` and `now` are the same on every attempt and replay; `attempt` counts from 1."""

    key: str
    now: datetime
    attempt: int
    principal: str | None


StandIn: TypeAlias = "Callable[[Callable[..., Any], Step, str], Callable[..., Any]]"
"""What is called in a function's place, given the function, its attempt and its name. For tests; the host has none."""


def unstopped(function: Callable[..., R]) -> Callable[..., R]:
    """A plain function to be run in a thread, whose StopIteration comes out as a RuntimeError.

    No future can hold a StopIteration: before Python 3.11.8 whoever awaited the thread waited for ever.
    """

    def call(*args: object, **values: object) -> R:
        try:
            return function(*args, **values)
        except StopIteration as stop:
            raise RuntimeError("it raised StopIteration") from stop

    return call


class Port(Generic[B, A]):
    """A named way out. Build one with `port.dedupes`, `port.lookup` or `port.neither`."""

    def __init__(
        self,
        name: str,
        promise: Promise,
        function: Callable[[Step, B], Awaitable[A] | A],
        find: Callable[[Step, B], Awaitable[A | None]] | None = None,
    ) -> None:
        self.name = check_name(name, "port")
        self.promise = promise
        self.function = function
        self.find = find
        self.is_async = inspect.iscoroutinefunction(function)
        self._body: Codec[B] | None = None
        self._answer: Codec[A] | None = None

    def __call__(self, *args: object, **values: object) -> A:
        raise OutsideStep(self.name)

    def __repr__(self) -> str:
        return f"<port {self.name} ({self.promise})>"

    @property
    def body(self) -> Codec[B]:
        """How the port's input is written."""
        if self._body is None:
            self._read_signature()
        assert self._body is not None
        return self._body

    @property
    def answer(self) -> Codec[A]:
        """How what the port gives back is written."""
        if self._answer is None:
            self._read_signature()
        assert self._answer is not None
        return self._answer

    def _read_signature(self) -> None:
        hints = get_type_hints(self.function, include_extras=True)
        names = list(inspect.signature(self.function).parameters)
        if len(names) != 2 or hints.get(names[0]) is not Step:
            raise LoadRefused([Finding(f"port {self.name}", "takes exactly (step: Step, body: Type); write it so")])
        for name in (names[1], "return"):
            if name not in hints:
                raise LoadRefused([Finding(f"port {self.name}", f"has no annotation for {name!r}; add one")])
        self._body = codec_of(hints[names[1]])
        self._answer = codec_of(hints["return"])


class Inner(Port[B, A]):
    """A port whose other side is the host itself: it is told which actor owed. It dedupes.

    The keys owed to it are never used twice by construction, so they leave no tombstones.
    """

    def __init__(self, name: str, function: Callable[[ActorId, B], Awaitable[A]], body: Any, answer: Any) -> None:
        super().__init__(name, "dedupes", lambda step, body: None)  # type: ignore[arg-type, return-value]
        self.act = function
        self._body = codec_of(body)
        self._answer = codec_of(answer)


class Standing(Port[B, A]):
    """A port that exists by itself: host makes it, and its name has a dot, which no part's can have. It dedupes."""

    def __init__(
        self, name: str, function: Callable[[Step, B], Awaitable[A]], body: Codec[B], answer: Codec[A]
    ) -> None:
        self.name = name
        self.promise = "dedupes"
        self.function = function
        self.find = None
        self.is_async = True
        self._body = body
        self._answer = answer


@dataclass(frozen=True, slots=True)
class Posting:
    """A webhook that a module was given: `body`s are posted to `url` as `kind`. Host makes the port; it has the secret."""

    name: str
    url: str
    kind: str
    body: type


@dataclass(frozen=True, slots=True)
class Local:
    """A port whose delivery is an append to a table of the same space, in fold order.

    row: what is appended for (actor number, principal text, key that leaves, body). No owed row, no
    retry, no answer.
    """

    name: str
    table: Table
    row: Callable[[int, str, str, Any], Row]


@overload
def _port(
    name: str, promise: Promise, find: None = None
) -> Callable[[Callable[[Step, B], Awaitable[A]]], Port[B, A]]: ...
@overload
def _port(
    name: str, promise: Promise, find: Callable[[Step, B], Awaitable[A | None]]
) -> Callable[[Callable[[Step, B], Awaitable[A]]], Port[B, A]]: ...
def _port(name: str, promise: Promise, find: Any = None) -> Callable[[Callable[[Step, Any], Any]], Port[Any, Any]]:
    if callable(name):
        called = getattr(name, "__name__", "it")
        raise TypeError(f'@port.{promise} needs the name of the port: @port.{promise}("{called}")')
    return lambda function: Port(name, promise, function, find)


def dedupes(name: str) -> Callable[[Callable[[Step, B], Awaitable[A]]], Port[B, A]]:
    """The other side honours `step.key`: a repeat is the same act."""
    return _port(name, "dedupes")


def lookup(
    name: str, *, find: Callable[[Step, B], Awaitable[A | None]]
) -> Callable[[Callable[[Step, B], Awaitable[A]]], Port[B, A]]:
    """After a doubtful send, one that was cut off or that raised, `find(step, body)` is asked; None: it never happened."""
    return _port(name, "lookup", find)


def neither(name: str) -> Callable[[Callable[[Step, B], Awaitable[A]]], Port[B, A]]:
    """The other side can do neither: a doubtful send, one that was cut off or that raised, waits for a person."""
    return _port(name, "neither")
