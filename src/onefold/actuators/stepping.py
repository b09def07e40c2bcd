"""actuators.stepping - one step function, read once; its arguments, its policy, its attempts.

For: checking a call against the function's own signature, its digest, and when a failed attempt is made again.
Never: runs a step; keeps an argument (only its digest is stored).
Was wrong once: the signature read at every call. It cost more than the whole replay of a step.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from hashlib import blake2b
from pathlib import PurePath
from types import CodeType, FunctionType
from typing import Any, cast, get_type_hints
from uuid import UUID

import msgspec

from onefold.kernel.port import Port, Step
from onefold.terms.codec import text_problem
from onefold.terms.duration import duration_ms
from onefold.terms.typed import Codec, codec_of

NAME_LIMIT = 100
"""Characters of a step's name: it stands in keys, journals and pages."""
SPREAD = 0.25
"""How much earlier than its backoff an attempt may be, so that a thousand failed at once do not come back at once."""


@dataclass(frozen=True)
class Retry:
    """When a failed step is tried again.

    attempts: in all. first: the wait after the first failure, growing by `factor` up to `at_most`.
    never: exception classes after which there is no other attempt.
    """

    attempts: int = 5
    first: str | timedelta = "1 second"
    factor: float = 2.0
    at_most: str | timedelta = "5 minutes"
    never: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        attempts, factor = cast(Any, self.attempts), cast(Any, self.factor)
        if type(attempts) is not int or attempts < 1:
            raise ValueError(f"Retry(attempts={self.attempts!r}): must be a whole number from 1")
        if type(factor) not in (int, float) or not 1 <= factor <= 1000:
            raise ValueError(f"Retry(factor={self.factor!r}): must be a number from 1 to 1000")
        object.__setattr__(self, "_first", duration_ms(self.first, what="Retry(first)"))
        object.__setattr__(self, "_at_most", duration_ms(self.at_most, what="Retry(at_most)"))

    def after(self, attempt: int, fault: BaseException, key: str) -> int | None:
        """Milliseconds until the attempt after `attempt`, or None for no other. Spread by the hash of the step's key."""
        if attempt >= self.attempts or isinstance(fault, self.never):
            return None
        first: int = self._first  # type: ignore[attr-defined]
        most: int = self._at_most  # type: ignore[attr-defined]
        wait = min(first * self.factor ** min(attempt - 1, 200), most)
        part = int.from_bytes(blake2b(f"{key}/{attempt}".encode(), digest_size=4).digest(), "big") / 2**32
        return max(1, round(wait * (1 - SPREAD * part)))


DEFAULT_RETRY = Retry()


class StepFunction:
    """What a step function's signature says.

    arity: how many positional arguments a plain call has, or -1 when a call must be bound. result: the
    codec of its return annotation; without one, whatever JSON it gave.
    """

    __slots__ = ("annotations", "arity", "is_async", "name", "result", "signature", "takes_step")

    def __init__(self, function: Callable[..., Any]) -> None:
        inner = inspect.unwrap(function)
        target = inner if inspect.isroutine(inner) or isinstance(inner, type) else type(inner).__call__
        self.annotations = getattr(inner, "__annotations__", None)
        self.name: str | None = getattr(function, "__name__", None)
        self.is_async = inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(target)
        hints = _hints(target)
        signature = _signature(function)
        parameters = list(signature.parameters.values())
        self.takes_step = bool(parameters) and hints.get(parameters[0].name) is Step
        if self.takes_step:
            signature = signature.replace(parameters=parameters[1:])
        self.signature = signature
        self.result: Codec[Any] = codec_of(hints.get("return", Any))
        plain = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.arity = len(plain) if len(plain) == len(signature.parameters) else -1

    def bind(self, args: tuple[Any, ...], values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in the function's own order. Raises: TypeError, as calling it would."""
        try:
            bound = self.signature.bind(*args, **values)
        except TypeError as wrong:
            raise TypeError(f"{self.name or 'the step'}(): {wrong}") from None
        return bound.args, bound.kwargs


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{name} has no signature that can be read; call it from a function of your own") from None


def _hints(function: Any) -> dict[str, Any]:
    """Annotations, those of a nested function too: its names are looked up in what it closes over."""
    try:
        return annotations_of(getattr(function, "__func__", function))
    except NameError as unknown:
        raise TypeError(
            f"{getattr(function, '__name__', function)}: the annotation {unknown.name!r} cannot be found; "
            "define the type at the top of the file"
        ) from None


def annotations_of(function: Any) -> dict[str, Any]:
    """Annotations as types, also those that name what a nested function closes over. Raises: NameError."""
    closed = {}
    if inspect.isfunction(function):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # a name that is bound later
                closed[name] = cell.cell_contents
        found = _looked_up(function, closed)
        if found is not None:
            return found
    return get_type_hints(function, localns=closed, include_extras=True)


def _looked_up(function: FunctionType, closed: Mapping[str, Any]) -> dict[str, Any] | None:
    """Annotations that are one name each, of a class; None where one needs to be evaluated.

    why: evaluating three of them costs 90 us, and a start may declare a thousand functions.
    """
    known = function.__globals__
    found: dict[str, Any] = {}
    for name, said in function.__annotations__.items():
        kind = said
        if isinstance(said, str):
            kind = closed[said] if said in closed else known.get(said, _BUILTINS.get(said))
        if type(kind) is not type and not (isinstance(kind, type) and not hasattr(kind, "__origin__")):
            return None
        found[name] = kind
    return found if not hasattr(function, "__wrapped__") else None


_BUILTINS = vars(builtins)


_read: dict[CodeType, StepFunction] = {}


def read(function: Callable[..., Any]) -> StepFunction:
    """The step function's signature, read once for each piece of code."""
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__func__", None), "__code__", None)
    if code is None:
        return StepFunction(function)
    found = _read.get(code)
    if found is None or found.annotations != function.__annotations__:
        found = _read[code] = StepFunction(function)
    return found


def step_name(given: str | None, function: Callable[..., Any], info: StepFunction) -> str:
    """The step's name: as given, or the function's. Raises: TypeError where there is none, ValueError for a bad one."""
    if given is None:
        if info.name is None or info.name == "<lambda>":
            raise TypeError(f"run.step({function!r}) has no name of its own; say name=…")
        return info.name
    return check_name(given, "step")


def check_name(name: object, what: str) -> str:
    """Raises: TypeError, ValueError with the reason."""
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} must be text, not {type(name).__name__}")
    if not name or len(name) > NAME_LIMIT or "#" in name or not name.isprintable() or text_problem(name):
        raise ValueError(f"the name {name!r} of {what} must have 1 to {NAME_LIMIT} printable characters and no '#'")
    return name


class Acting:
    """A step as `run.step` was asked for it: its function and its policy. One stands for many calls.

    port: the port it goes through, or None. limit: of its name so many run at a time. write, read: the bytes of a
    result, and the value in them.
    """

    __slots__ = ("function", "info", "limit", "name", "port", "read", "retry", "timeout", "write")
    kind = "step"

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        info: StepFunction,
        retry: Retry = DEFAULT_RETRY,
        timeout: int | None = None,
        port: Port[Any, Any] | None = None,
        limit: int | None = None,
    ) -> None:
        self.name = name
        self.limit = limit
        self.function = function
        self.info = info
        self.retry = retry
        self.timeout = timeout
        self.port = port
        self.write = info.result.encode
        self.read = info.result.decode


PLAIN = frozenset({str, int, float, bool, type(None), bytes, Decimal, datetime, date, time, timedelta, UUID})


def own(value: Any) -> Any:
    """A step's own copy of an argument: what it changes in place must not be seen by the function, once and never
    again.
    """
    return value if type(value) in PLAIN else deepcopy(value)


# --- digests --------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    if hasattr(value, "__pydantic_fields__"):
        return value.__dict__
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    if isinstance(value, PurePath) or type(value).__module__.startswith("pydantic"):
        return str(value)  # a path, a URL; a secret says only that it is one
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


_encode = msgspec.json.Encoder(enc_hook=_plain, order="deterministic").encode


def digest_of(name: str, *parts: Any) -> str:
    """What replay tells other arguments by: 8 bytes in hex. Raises: TypeError naming the step."""
    try:
        raw = _encode(parts)
    except (TypeError, ValueError, msgspec.MsgspecError) as unfit:
        raise TypeError(
            f"step {name!r}: its arguments cannot be told apart on replay: {unfit}. "
            "Give a step plain values, models or dataclasses; what it works with it can make or close over."
        ) from None
    return blake2b(raw, digest_size=8).hexdigest()
