"""kernel.twice - a module's functions run twice and compared, and what two values differ in.

For: finding a clock, chance or a changed argument where it is used: in `onefold dev`, in tests, in the laws.
Never: in production: each decision costs twice. Pure itself.
Was wrong once: comparing with `==`. An object without one differs from its equal, and a `Decimal("1.0")` is
equal to what another form of it is sent as.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Set
from copy import copy
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property, lru_cache, wraps
from typing import Any, ClassVar, TypeAlias, TypeVar

from onefold.kernel.module import Module
from onefold.terms.errors import Failed

M = TypeVar("M", bound="Module[Any, Any, Any, Any, Any]")
Picture: TypeAlias = "tuple[str, Mapping[str, Any]] | str"
FUNCTIONS = ("decide", "evolve", "view", "wake", "on_answer", "on_alarm", "snapshot", "key", "event_id")
PLAIN = frozenset({type(None), str, int, float, bool, bytes, Decimal, datetime, date, time, timedelta})
SHOWN = 200  # characters of a value in a sentence


class Impure(Failed):
    """A module's function gave two answers, or changed what it was given. Nothing was stored.

    module, function: which. difference: where, what it was, and what it was then.
    """

    code: ClassVar[str] = "impure"

    def __init__(self, module: str, function: str, difference: str) -> None:
        self.module = module
        self.function = function
        self.difference = difference
        super().__init__(
            f"{function} of module {module!r} {difference}. Nothing was stored. "
            "Make it a function of its arguments alone: `onefold check` knows the usual causes."
        )


def twice(module: M) -> M:
    """The same module, whose functions are run twice on the same arguments. They raise Impure where they differ."""
    doubled = copy(module)
    for name in FUNCTIONS:
        function = getattr(module, name)
        if function is not None:
            setattr(doubled, name, _doubled(module.name, name, function))
    return doubled


def _doubled(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def both(*args: Any) -> Any:
        given = [picture(arg) for arg in args]
        first = function(*args)
        told = picture(first)
        _unchanged(module, name, given, args)
        again = differing(told, picture(function(*args)))
        if again is not None:
            raise Impure(module, name, f"gave two answers to the same arguments: {again}")
        _unchanged(module, name, given, args)
        return first

    return both


def _unchanged(module: str, name: str, given: list[Picture], args: tuple[Any, ...]) -> None:
    for at, (before, arg) in enumerate(zip(given, args, strict=True)):
        changed = differing(before, picture(arg))
        if changed is not None:
            what = "its state" if at == 0 and name not in ("key", "event_id") else "what it was given"
            raise Impure(module, name, f"changed {what}: {changed}")


# --- two values, part by part ---------------------------------------------------------------------------


def picture(value: Any) -> Picture:
    """A value as it is now: its class and its parts, or its text. Two pictures can be compared, whatever `==` says."""
    return _picture(value, ())


def _picture(value: Any, within: tuple[int, ...]) -> Picture:
    if type(value) in PLAIN:
        return repr(value)
    if isinstance(value, str | int | float | bytes | Enum):
        return _text(value)
    if id(value) in within:
        return "itself"
    within = (*within, id(value))
    kind = type(value).__name__
    if isinstance(value, dict | Mapping):
        return kind, {f"[{key!r}]": _picture(item, within) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return kind, {f"[{at}]": _picture(item, within) for at, item in enumerate(value)}
    if isinstance(value, Set):
        return kind, {f"{{{item!r}}}": "there" for item in sorted(value, key=repr)}
    parts = _parts(value)
    if parts:
        return kind, {f".{name}": _picture(part, within) for name, part in parts}
    return _text(value)


def _text(value: Any) -> str:
    """A value as text. One that only says where it lies in memory is told by its class."""
    kind: Any = type(value)
    return f"<{kind.__name__}>" if kind.__repr__ is object.__repr__ else repr(value)


def _parts(value: Any) -> list[tuple[str, Any]]:
    """The attributes that make up an object: what it declares, else its slots and its dict, caches left out."""
    kind: Any = type(value)
    declared = _declared(kind)
    if declared is None and (isinstance(value, type) or callable(value)):
        return []
    names = _kept(value, kind) if declared is None else declared
    return [(name, getattr(value, name)) for name in names if hasattr(value, name)]


@lru_cache(maxsize=1_024)
def _declared(kind: Any) -> tuple[str, ...] | None:
    """The fields of a class that declares them; nothing for one of the standard library; None for any other."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    names = getattr(kind, "__struct_fields__", None) or getattr(kind, "__pydantic_fields__", None)
    if names:
        return tuple(names)
    return () if kind.__module__.partition(".")[0] in sys.stdlib_module_names else None


def _kept(value: Any, kind: Any) -> list[str]:
    names: dict[str, None] = {}
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names.update(dict.fromkeys((slots,) if isinstance(slots, str) else slots))
    names.update(dict.fromkeys(getattr(value, "__dict__", ())))
    compared = kind.__eq__ is not object.__eq__  # then what it keeps for itself is what equality may leave out
    return [
        name
        for name in names
        if not name.startswith("_" if compared else "__") and not isinstance(getattr(kind, name, None), cached_property)
    ]


def differing(first: Picture, then: Picture) -> str | None:
    """Where two pictures differ first, and in what; None when they are alike."""
    found = _differing(first, then, "")
    if found is None:
        return None
    where, was, is_now = found
    return f"{where.removeprefix('.') or 'it'} was {was}, then {is_now}"


def _differing(first: Picture, then: Picture, where: str) -> tuple[str, str, str] | None:
    if isinstance(first, str) or isinstance(then, str) or first[0] != then[0]:
        return None if first == then else (where, _shown(first), _shown(then))
    for name in (*first[1], *(name for name in then[1] if name not in first[1])):
        if name not in first[1] or name not in then[1]:
            return where + name, _shown(first[1].get(name, "absent")), _shown(then[1].get(name, "absent"))
        found = _differing(first[1][name], then[1][name], where + name)
        if found is not None:
            return found
    return None


def _shown(one: Picture) -> str:
    if isinstance(one, str):
        told = one
    else:
        told = f"{one[0]}({', '.join(f'{name.lstrip(chr(46))}={_shown(part)}' for name, part in one[1].items())})"
    return told if len(told) <= SHOWN else f"{told[: SHOWN - 1]}…"
