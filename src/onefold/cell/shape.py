"""cell.shape - a class with typed fields, read as a shape: its fields, its methods, and the drafts they work on.

For: `class Room(Cell)` as data; a draft that takes writes to declared fields alone; what changed on it.
Never: keeps a value between two turns; runs a method on the committed record itself.
Was wrong once: the object of the last turn handed to the next. A list that a raise had half filled was there again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, TypeVar, get_origin, get_type_hints

from onefold.cell.method import Bound, Method, read_method
from onefold.cell.words import Json, Record
from onefold.program.handles import Handles
from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused, NotFound, Undeclared
from onefold.terms.faults import there_are
from onefold.terms.ids import nearest
from onefold.terms.places import place_of_function, placed
from onefold.terms.typed import Codec, codec_of

C = TypeVar("C", bound="Cell")
Upgrade = Callable[[Any], Any]
_PLAIN = (int, float, str, bool, type(None))
_OWN = ("now",)


class Cell:
    """A shape: fields with annotations and defaults; public methods are its scope, plain functions on a draft.

    tool: offered over MCP. on_demand: the first turn creates it. upgrades: by field, what makes a value of its
    new type of the JSON that was written under an older one.
    """

    __options__: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(
        cls, *, tool: bool = False, on_demand: bool = False, upgrades: Mapping[str, Upgrade] | None = None
    ) -> None:
        super().__init_subclass__()
        cls.__options__ = {"tool": tool, "on_demand": on_demand, "upgrades": dict(upgrades or {})}

    def __init__(self, **fields: Any) -> None:
        """A draft of a cell that never was, for trying a method by itself. Raises: Undeclared."""
        shape = shape_of(type(self))
        begin(self, shape.defaults(), None)
        for name, value in fields.items():
            setattr(self, name, value)

    @property
    def now(self) -> datetime:
        """The instant of this turn. Raises: TypeError outside of one."""
        at = self.__dict__.get("_now")
        if at is None:
            raise TypeError("`now` is the instant of a turn; there is none here")
        return at  # type: ignore[no-any-return]

    def __setattr__(self, name: str, value: Any) -> None:
        shape = shape_of(type(self))
        if name not in shape.fields:
            raise Undeclared(name, f"The shape {shape.name}", nearest(name, shape.fields))
        if not self.__dict__.get("_open", False):
            raise TypeError(f"{shape.name}.{name} is read here, not written: write in a method or inside `capture`")
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        raise TypeError(f"{type(self).__name__}.{name} is part of its shape and cannot be deleted")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={self.__dict__.get(name)!r}" for name in shape_of(type(self)).fields)
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            self.__dict__.get(name) == other.__dict__.get(name) for name in shape_of(type(self)).fields
        )

    __hash__ = None  # type: ignore[assignment]


def begin(draft: Cell, values: Mapping[str, Any], now: datetime | None) -> None:
    """Open a draft on these values."""
    draft.__dict__.update(values, _now=now, _open=True)


def close(draft: Cell) -> None:
    """Nothing is written to it from now on."""
    draft.__dict__["_open"] = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `default` as JSON."""

    name: str
    codec: Codec[Any]
    default: Json

    def read(self, json: Json) -> Any:
        return self.codec.from_json(json, self.name)


class Shape:
    """A class as data. Made by `shape_of`, once for each class."""

    def __init__(self, cls: type[Cell]) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.tool = bool(cls.__options__.get("tool"))
        self.on_demand = bool(cls.__options__.get("on_demand"))
        self.upgrades: Mapping[str, Upgrade] = cls.__options__.get("upgrades", {})
        self.description = inspect.cleandoc(cls.__doc__) if "__doc__" in cls.__dict__ and cls.__doc__ else ""
        self.fields = _fields(cls)
        self.methods = _methods(cls, self.fields)
        self.branches = frozenset(name for method in self.methods.values() for name in method.branches)
        if strange := next((name for name in self.upgrades if name not in self.fields), None):
            raise refuse(cls, f"upgrades {strange!r}, which is no field of it")

    @cached_property
    def types(self) -> dict[str, str]:
        """What each field's type reads and writes, as canonical text: two that differ are two types."""
        from onefold.terms.codec import canonical

        return {name: canonical(field.codec.schema()).decode() for name, field in self.fields.items()}

    def defaults(self) -> dict[str, Any]:
        return {name: field.read(field.default) for name, field in self.fields.items()}

    def draft(self, record: Record, now: datetime | None) -> Cell:
        """An object of the class with the record's values, none of them shared with it."""
        made = object.__new__(self.cls)
        kept = record.fields
        begin(made, {n: f.read(kept.get(n, f.default)) for n, f in self.fields.items()}, now)
        return made

    def seen(self, record: Record) -> Cell:
        """The record as it is read: closed to writes."""
        made = self.draft(record, None)
        close(made)
        return made

    def show(self, draft: Cell, record: Record) -> None:
        """Let a closed draft show what was committed."""
        draft.__dict__.update(self.draft(record, None).__dict__)
        close(draft)

    def changed(self, draft: Cell, record: Record) -> dict[str, Json]:
        """The fields whose JSON is another than the record's. Raises: BadArguments for a value that is not of its type."""
        told: dict[str, Json] = {}
        faults: list[Fault] = []
        values = draft.__dict__
        for name, field in self.fields.items():
            before = record.fields.get(name, field.default)
            value = values[name]
            if type(value) in _PLAIN and type(value) is type(before) and value == before:
                continue
            try:
                after = field.codec.to_json(value)
            except BadArguments as bad:
                faults += [Fault(_under(name, each.field), each.problem, each.got) for each in bad.faults]
                continue
            if not same(after, before):
                told[name] = after
        if faults:
            raise BadArguments(faults, nothing_was="kept")
        return told

    def method(self, name: str) -> Method:
        """Raises: NotFound with the nearest name."""
        found = self.methods.get(name)
        if found is None:
            near = nearest(name, self.methods)
            do = f"Did you mean {near!r}?" if near else there_are(self.methods).strip() or "It has no methods."
            raise NotFound(f"method of {self.name}", name, do)
        return found

    def field(self, name: str) -> Field:
        """Raises: Undeclared."""
        if name not in self.fields:
            raise Undeclared(name, f"The shape {self.name}", nearest(name, self.fields))
        return self.fields[name]

    def scope(self, draft: Cell, handles: Handles) -> dict[str, Bound]:
        """The methods on one draft, as a program calls them."""
        return {name: Bound(method, draft, handles) for name, method in self.methods.items()}

    @cached_property
    def names(self) -> Mapping[str, Bound]:
        """The scope that a program is read against: its names and what they take. Nothing of it is called."""
        return self.scope(self.draft(Record(), None), Handles())

    def branch(self, value: Json) -> str:
        """The class of a value, where a method gives one of several."""
        kind = value.get("type") if isinstance(value, dict) else None
        return kind if kind in self.branches else ""


_shapes: dict[type[Cell], Shape] = {}


def shape_of(cls: type[Any]) -> Shape:
    """The shape of a class. Raises: LoadRefused for one that cannot be kept, TypeError for what is no cell."""
    found = _shapes.get(cls)
    if found is None:
        if cls is Cell or not issubclass(cls, Cell):
            raise TypeError(f"{cls!r} is no shape; write `class Room(Cell)` with fields that have defaults")
        found = _shapes[cls] = Shape(cls)
    return found


def same(one: Json, other: Json) -> bool:
    """Whether two JSON values are written alike. True is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def refuse(cls: type, problem: str) -> LoadRefused:
    return LoadRefused([Finding(f"shape {cls.__name__}", problem)])


def _under(name: str, path: str) -> str:
    return name if not path else f"{name}{path}" if path.startswith("[") else f"{name}.{path}"


def _fields(cls: type[Cell]) -> dict[str, Field]:
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError as unknown:
        raise refuse(
            cls, f"the annotation {unknown.name!r} cannot be found; define the type at the top of the file"
        ) from None
    found: dict[str, Field] = {}
    for name, hint in hints.items():
        if name in Cell.__annotations__ or get_origin(hint) is ClassVar:
            continue
        if name.startswith("_") or name in _OWN:
            raise refuse(cls, f"the field {name!r} has a name that is not free; give it another")
        if not hasattr(cls, name):
            raise refuse(cls, f"the field {name!r} has no default; what is not set yet must read as something")
        codec = codec_of(hint)
        try:
            default = codec.to_json(getattr(cls, name))
        except BadArguments as bad:
            raise refuse(cls, f"the default of {name!r} is not of its type: {bad.faults[0].problem}") from None
        found[name] = Field(name, codec, default)
    return found


def _methods(cls: type[Cell], fields: Mapping[str, Field]) -> dict[str, Method]:
    found: dict[str, Method] = {}
    constants = {
        name for each in cls.__mro__ for name in getattr(each, "__annotations__", {})
    }  # a ClassVar is no field
    for name, value in inspect.getmembers_static(cls):
        if name.startswith("_") or name in fields or name in constants or name in _OWN or name in vars(Cell):
            continue
        if not inspect.isfunction(value):
            told = f"{name!r} is neither a field with an annotation nor a method; annotate it, or begin it with _"
            raise refuse(cls, told)
        try:
            found[name] = read_method(name, value)
        except LoadRefused as wrong:
            where = placed(f"shape {cls.__name__}, {name}", place_of_function(value))
            raise LoadRefused([Finding(where, each.problem) for each in wrong.findings]) from None
    return found
