"""terms.typed.classes - classes with fields: dataclass, NamedTuple, msgspec.Struct, TypedDict.

For: a mirror struct for each class, made once. Writing makes the mirror from the fields in one call,
reading makes the class from the mirror in one call.
Never: takes or drops a field it does not know; lets a subclass pass for its class, for its own fields
would be lost.
Was wrong once: asdict(). It is 30 times slower, copies everything twice, and forgets the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType

from onefold.terms.codec import Json, below, shown
from onefold.terms.errors import Fault
from onefold.terms.ids import nearest
from onefold.terms.limits import MAX_FAULTS
from onefold.terms.typed.node import PROGRAM_FAULTS, Mode, Node, Schema, Turn, Unfit, UnknownTag, as_json
from onefold.terms.typed.sayings import say

TAG: Final = "type"


class Nobody(msgspec.Struct, tag_field=TAG, tag="\0"):
    """Stands beside a tagged class that is alone, for msgspec asks for a tag only where it must choose."""


class Field(NamedTuple):
    """One field: its name in the class, its name in JSON, and what it is when it was left out.

    `default` is a value, `factory` makes one; neither: it is required. `absent`: a key of a
    TypedDict that need not be there at all. `named`: it can only be given by name.
    """

    name: str
    wire_name: str
    node: Node
    default: Any = NODEFAULT
    factory: Any = None
    absent: bool = False
    named: bool = False

    @property
    def required(self) -> bool:
        return self.default is NODEFAULT and self.factory is None and not self.absent


class ClassNode(Node):
    """A class with fields, written as an object; with `tagged`, under "type": "ClassName"."""

    def __init__(self, cls: type, fields: Sequence[Field], *, tagged: bool, doc: str | None = None) -> None:
        self.cls = cls
        self.tag = cls.__name__ if tagged else None
        self.fields = sorted(fields, key=lambda field: not field.required)  # msgspec wants the required first
        self.by_wire = {field.wire_name: field for field in self.fields}
        self.doc = doc
        self.struct = _mirror(cls, self.fields, self.tag)
        super().__init__(self.struct, f"a {cls.__name__}", gives=(cls,))
        self.reads = (self.struct,)
        if tagged:
            self.asks = self.struct | Nobody
        self.out = _out(cls, self.struct, self.fields)
        self.into = _into(cls, self.fields, [field.name for field in fields])
        self.slim = _slim(self.struct, self.fields)

    def explain(self, json: Json, path: str) -> list[Fault]:
        if not isinstance(json, dict):
            return [Fault(path, "must be an object", shown(json))]
        if self.tag is not None and (wrong := self.wrong_tag(json, path, (self.tag,))):
            return [wrong]
        faults: list[Fault] = []
        for key in json:
            if key not in self.by_wire and not (key == TAG and self.tag):
                near = [name for name in self.by_wire if name not in json] if len(faults) < MAX_FAULTS else ()
                close = nearest(key, near)
                faults.append(
                    Fault(below(path, key), f"is not known; did you mean {close}?" if close else "is not known")
                )
        for name, field in self.by_wire.items():
            if name in json:
                faults += field.node.explain(json[name], below(path, name))
            elif field.required:
                faults.append(Fault(below(path, name), "is missing"))
        return faults or self._built(json, path)

    def _built(self, json: Json, path: str) -> list[Fault]:
        """The fields are right one by one; does the class take them together?"""
        try:
            self.read(json)
        except PROGRAM_FAULTS as fault:
            return [Fault(path, say(fault, self.must))]
        return []

    @staticmethod
    def wrong_tag(json: Mapping[str, Json], path: str, known: Sequence[str]) -> Fault | None:
        """The fault of an object whose "type" is none of `known`, or None."""
        told = " or ".join(known)
        if TAG not in json:
            return Fault(below(path, TAG), f"is missing; give {told}")
        tag = json[TAG]
        if tag in known:
            return None
        if not isinstance(tag, str):
            return Fault(below(path, TAG), f"must be {told}", shown(tag))
        close = nearest(tag, known)
        return UnknownTag(below(path, TAG), f"is not known; did you mean {close}?" if close else f"must be {told}", tag)

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        name = claim(defs, (self.cls, self.tag), self.cls.__name__)
        if name not in defs:
            told: Schema = {"title": self.cls.__name__, "type": "object"}
            defs[name] = told  # before its fields: a class may hold itself
            if self.doc:
                told["description"] = self.doc
            properties: dict[str, Schema] = {TAG: {"const": self.tag}} if self.tag else {}
            for wire_name, field in self.by_wire.items():
                properties[wire_name] = _with_default(field, field.node.schema(defs, mode))
            told["properties"] = properties
            needed = [f.wire_name for f in self.fields if f.required or (mode == "serialization" and not f.absent)]
            told["required"] = ([TAG] if self.tag else []) + needed
            told["additionalProperties"] = False
        return {"$ref": f"#/$defs/{name}"}


def claim(defs: dict[str, Schema], owner: Any, wanted: str) -> str:
    """The name of something among `defs`; another thing of the same name gets a number."""
    owners: dict[str, Any] = defs.setdefault("", {})
    name, number = wanted, 2
    while owners.setdefault(name, owner) != owner:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _with_default(field: Field, schema: Schema) -> Schema:
    if field.default is NODEFAULT:
        return schema
    try:
        return {**schema, "default": as_json(field.node.mirror(field.default))}
    except (Unfit, TypeError):
        return schema


# --- the mirror --------------------------------------------------------------------------------


def _mirror(cls: type, fields: Sequence[Field], tag: str | None) -> type[msgspec.Struct]:
    told: list[Any] = []
    for field in fields:
        if field.required:
            told.append((field.name, field.node.wire))
        elif field.absent:
            told.append((field.name, field.node.wire | UnsetType, UNSET))
        else:
            told.append((field.name, field.node.wire, msgspec.field(default_factory=_default(field))))
    renamed = {field.name: field.wire_name for field in fields if field.name != field.wire_name}
    return msgspec.defstruct(
        cls.__name__,
        told,
        tag_field=TAG if tag else None,
        tag=tag,
        forbid_unknown_fields=True,
        rename=renamed or None,
        module=cls.__module__,
        gc=True,
    )


def _default(field: Field) -> Any:
    """Makes the mirror of a field that was left out."""
    mirror = field.node.mirror
    if field.factory is not None:
        factory = field.factory
        return lambda: mirror(factory())
    fixed = mirror(field.default)
    return (lambda: fixed) if _fixed(fixed) else (lambda: mirror(field.default))


def _fixed(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | bytes)


def _getter(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Reads these attributes of an object, in order."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda value: (getattr(value, names[0]),)) if names else (lambda value: ())


def _out(cls: type, struct: type, fields: Sequence[Field]) -> Turn:
    get = _getter([field.name for field in fields])
    turns = [(at, field.name, field.node.out) for at, field in enumerate(fields) if field.node.out]
    name = cls.__name__

    def plain(value: Any) -> Any:
        if value.__class__ is not cls:
            raise Unfit(f"must be a {name}", value)
        return struct(*get(value))

    def turned(value: Any) -> Any:
        if value.__class__ is not cls:
            raise Unfit(f"must be a {name}", value)
        parts = [*get(value)]
        for at, field, turn in turns:
            try:
                parts[at] = turn(parts[at])
            except Unfit as unfit:
                raise unfit.inside(field) from None
        return struct(*parts)

    return turned if turns else plain


def _into(cls: type, fields: Sequence[Field], declared: Sequence[str]) -> Turn:
    names = [field.name for field in fields]
    turns = [(at, field.node.into) for at, field in enumerate(fields) if field.node.into]
    by_place = names == list(declared) and not any(field.named for field in fields)
    parts_of = msgspec.structs.astuple
    if by_place and not turns:
        return lambda mirror: cls(*parts_of(mirror))

    def into(mirror: Any) -> Any:
        parts = [*parts_of(mirror)]
        for at, turn in turns:
            parts[at] = turn(parts[at])
        return cls(*parts) if by_place else cls(**dict(zip(names, parts, strict=True)))

    return into


def _slim(struct: type[msgspec.Struct], fields: Sequence[Field]) -> Turn | None:
    """Leaves out of a mirror what equals its default, so that a default added later changes no digest."""
    plan = [(at, _constant(field), field.node.slim) for at, field in enumerate(fields)]
    plan = [item for item in plan if item[1] is not NODEFAULT or item[2]]
    if not plan:
        return None
    config = struct.__struct_config__
    slender = msgspec.defstruct(
        struct.__name__,
        [(field.name, Any, UNSET) for field in fields],
        tag_field=config.tag_field,
        tag=config.tag,
        rename={field.name: field.wire_name for field in fields},
    )

    def slim(mirror: Any) -> Any:
        parts = [*msgspec.structs.astuple(mirror)]
        for at, default, turn in plan:
            part = parts[at]
            if part.__class__ is default.__class__ and part == default:
                parts[at] = UNSET
            elif turn:
                parts[at] = turn(part)
        return slender(*parts)

    return slim


def _constant(field: Field) -> Any:
    """The mirror of a default that is the same each time, else NODEFAULT."""
    if field.required or field.absent:
        return NODEFAULT
    make = _default(field)
    try:
        one, other = make(), make()
    except PROGRAM_FAULTS:
        return NODEFAULT
    return one if one == other else NODEFAULT


# --- what is special about one kind of class -----------------------------------------------------


class DictClassNode(ClassNode):
    """A TypedDict: at run time a dict, so nothing tells it from another, and it has no tag."""

    def __init__(self, cls: type, fields: Sequence[Field], *, doc: str | None = None) -> None:
        super().__init__(cls, fields, tagged=False, doc=doc)
        struct, known = self.struct, self.fields
        names = {field.name for field in known}
        self.gives = (dict,)

        def out(value: Any) -> Any:
            if not isinstance(value, dict) or not names.issuperset(value):
                raise Unfit(f"must be a dict with the keys of {cls.__name__}", value)
            parts = []
            for field in known:
                if field.name in value:
                    parts.append(field.node.mirror(value[field.name]))
                elif field.absent:
                    parts.append(UNSET)
                else:
                    raise Unfit(f"must have the key {field.name!r}", value)
            return struct(*parts)

        def into(mirror: Any) -> Any:
            parts = zip(known, msgspec.structs.astuple(mirror), strict=True)
            return {
                field.name: field.node.into(part) if field.node.into else part
                for field, part in parts
                if part is not UNSET
            }

        self.out = out
        self.into = into
