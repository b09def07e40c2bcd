"""testing.laws.samples - a fact of each class that a module's histories did not decide.

For: asking evolve about every class of its annotation, also those that no list of events brings about.
Never: a value that means anything; what cannot be made from its annotation is left out.
Was wrong once: judging evolve by the facts met. The case for the fact of the third day was missing, and found on it.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from inspect import signature
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from onefold.testing.laws.play import AnyModule
from onefold.testing.laws.trying import tried

PLAIN: dict[Any, Any] = {
    str: "a",
    int: 1,
    float: 1.0,
    bool: True,
    bytes: b"a",
    type(None): None,
    Decimal: Decimal(1),
    datetime: datetime(2026, 1, 1, tzinfo=UTC),
    timedelta: timedelta(seconds=1),
    UUID: UUID(int=1),
    Any: None,
}


class Unmade(Exception):
    """There is no telling how to make one."""


def declared(module: AnyModule) -> list[type]:
    """The classes of facts that `evolve` is annotated to take."""
    hints = get_type_hints(module.evolve, include_extras=True)
    second = list(signature(module.evolve).parameters)[1]
    return [kind for kind in _members(hints[second]) if isinstance(kind, type)]


def samples(module: AnyModule, met: set[type]) -> Iterator[Any]:
    """One fact of each class that `evolve` declares and that is not among those met."""
    for kind in declared(module):
        if kind not in met:
            made = tried(_made, kind, 0)  # a class that refuses what was made up is left out
            if made.raised is None:
                yield made.value


def _members(hint: Any) -> list[Any]:
    if get_origin(hint) is Annotated:
        return _members(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return [one for part in get_args(hint) for one in _members(part)]
    return [hint]


def _made(hint: Any, deep: int) -> Any:
    """A value of an annotation. Raises: Unmade, or what its class raises."""
    if hint in PLAIN:
        return PLAIN[hint]
    if deep > 5:
        raise Unmade
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return args[0]
    if origin in (Annotated, Union, types.UnionType):
        return None if type(None) in args else _made(args[0], deep + 1)
    if origin in (list, tuple, dict, set, frozenset):
        return origin() if origin is not tuple or args[-1:] == (...,) else tuple(_made(arg, deep + 1) for arg in args)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if isinstance(hint, type):
        return _built(hint, deep)
    raise Unmade


def _built(kind: type, deep: int) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    if is_dataclass(kind):
        needed = [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]
    elif hasattr(kind, "__pydantic_fields__"):
        needed = [name for name, part in kind.__pydantic_fields__.items() if part.is_required()]
    else:
        raise Unmade
    return kind(**{name: _made(hints[name], deep + 1) for name in needed})
