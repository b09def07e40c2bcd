"""terms.typed.declared - what a class says of its fields, read the same way from each kind of class.

For: names, annotations, defaults and limits of dataclasses, NamedTuples, Structs and TypedDicts.
Never: makes an instance, and never guesses: an annotation that cannot be read is refused.
Was wrong once: `cls.__annotations__`. With postponed annotations it holds text, and the base classes are missing.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, get_args, get_origin

import msgspec
from msgspec import NODEFAULT

from onefold.terms.errors import Finding, LoadRefused

Bound: TypeAlias = Mapping[Any, Any]
LIMITS: Final = {  # annotated_types: its class, its attribute, msgspec's word
    "Gt": (("gt", "gt"),),
    "Ge": (("ge", "ge"),),
    "Lt": (("lt", "lt"),),
    "Le": (("le", "le"),),
    "Interval": (("gt", "gt"), ("ge", "ge"), ("lt", "lt"), ("le", "le")),
    "MultipleOf": (("multiple_of", "multiple_of"),),
    "MinLen": (("min_length", "min_length"),),
    "MaxLen": (("max_length", "max_length"),),
    "Len": (("min_length", "min_length"), ("max_length", "max_length")),
}
META: Final = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")


class Declared(NamedTuple):
    """One field as its class declares it; the meaning of each part is that of `classes.Field`."""

    name: str
    wire_name: str
    annotation: Any
    default: Any = NODEFAULT
    factory: Any = None
    absent: bool = False
    named: bool = False


def refuse(where: str, problem: str) -> LoadRefused:
    return LoadRefused([Finding(where, problem)])


def told(annotation: Any) -> str:
    """An annotation as people write it."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


def is_model(kind: type) -> bool:
    """Is it a pydantic model? Never imports pydantic: without it there are none."""
    main = sys.modules.get("pydantic.main")
    return main is not None and issubclass(kind, main.BaseModel)


def limits_of(meta: Any) -> dict[str, Any]:
    """What one piece of `Annotated` metadata limits, in msgspec's words; of what it does not know, nothing."""
    if isinstance(meta, msgspec.Meta):
        return {name: limit for name in META if (limit := getattr(meta, name)) is not None}
    found: dict[str, Any] = {}
    for part in getattr(meta, "metadata", ()):  # pydantic's Field keeps its limits in a list
        found.update(limits_of(part))
    for name, word in LIMITS.get(type(meta).__name__, ()):
        if (limit := getattr(meta, name)) is not None:
            found[word] = limit
    return found


def bindings(kind: type, args: tuple[Any, ...]) -> dict[Any, Any]:
    """What the type variables of a generic class and of its bases stand for."""
    bound: dict[Any, Any] = dict(zip(getattr(kind, "__parameters__", ()), args, strict=False))
    for base in getattr(kind, "__orig_bases__", ()):
        origin = get_origin(base)
        if isinstance(origin, type) and origin is not typing.Generic:
            bound.update(bindings(origin, tuple(bound.get(a, a) for a in get_args(base))))
    return bound


def _reader(kind: type) -> Callable[[Any, dict[str, Any], str], list[Declared]] | None:
    if dataclasses.is_dataclass(kind):
        return _dataclass
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _named_tuple
    if issubclass(kind, msgspec.Struct):
        return _struct
    return _typed_dict if issubclass(kind, dict) and hasattr(kind, "__total__") else None


def has_form(kind: type) -> bool:
    """Is it a class with fields that can be written?"""
    return is_model(kind) or _reader(kind) is not None


def declared(kind: type, where: str) -> list[Declared]:
    """The fields of a class, in the order of its constructor. Raises: LoadRefused."""
    read = _reader(kind)
    assert read is not None, "has_form was not asked"
    try:
        hints = typing.get_type_hints(kind, localns={kind.__name__: kind}, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as unread:
        problem = (
            f"an annotation of {kind.__name__} cannot be read: {unread}. Define what it names in the module itself"
        )
        raise refuse(where, problem) from None
    return read(kind, hints, where)


def _dataclass(kind: Any, hints: dict[str, Any], where: str) -> list[Declared]:
    for name, hint in hints.items():
        if isinstance(hint, dataclasses.InitVar):
            raise refuse(f"{where}.{name}", "an InitVar is not kept by the class, so it cannot be written")
    found = []
    for field in dataclasses.fields(kind):
        if not field.init:
            continue  # the class makes it from the others
        default = NODEFAULT if field.default is dataclasses.MISSING else field.default
        factory = None if field.default_factory is dataclasses.MISSING else field.default_factory
        found.append(Declared(field.name, field.name, hints[field.name], default, factory, named=bool(field.kw_only)))
    return found


def _named_tuple(kind: Any, hints: dict[str, Any], where: str) -> list[Declared]:
    untyped = [name for name in kind._fields if name not in hints]
    if untyped:
        raise refuse(f"{where}.{untyped[0]}", "has no annotation")
    return [Declared(name, name, hints[name], kind._field_defaults.get(name, NODEFAULT)) for name in kind._fields]


def _struct(kind: Any, hints: dict[str, Any], where: str) -> list[Declared]:
    parameters = inspect.signature(kind).parameters
    found = []
    for field in msgspec.structs.fields(kind):
        factory = None if field.default_factory is NODEFAULT else field.default_factory
        named = parameters[field.name].kind is inspect.Parameter.KEYWORD_ONLY
        hint = hints[field.name]
        found.append(Declared(field.name, field.encode_name, hint, field.default, factory, named=named))
    return found


def _typed_dict(kind: Any, hints: dict[str, Any], where: str) -> list[Declared]:
    found = []
    for name, hint in hints.items():
        mark = getattr(get_origin(hint), "_name", None)
        there = mark == "Required" or (mark != "NotRequired" and name in kind.__required_keys__)
        found.append(Declared(name, name, hint, absent=not there))
    return found
