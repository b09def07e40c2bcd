"""terms.typed.models - pydantic models: their own rules, our JSON form.

For: what actuators take and give. pydantic checks and builds; what it would write in a form of its own
(bytes, sets, instants, unions of classes) is written in ours.
Never: imported before a model is met; pydantic costs a start a tenth of a second.
Was wrong once: model_dump_json alone. A set came in the order of its hashes, bytes as text that did
not come back, an instant without its zone, and a union of two classes as whichever fitted first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, get_args, get_origin

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from onefold.terms import codec
from onefold.terms.codec import Json, below, shown
from onefold.terms.errors import Fault
from onefold.terms.ids import nearest
from onefold.terms.typed.classes import TAG, ClassNode, claim
from onefold.terms.typed.declared import refuse
from onefold.terms.typed.leaves import datetime_into
from onefold.terms.typed.node import Mode, Node, Schema, Unfit
from onefold.terms.typed.sayings import problem_of

if TYPE_CHECKING:
    from onefold.terms.typed.build import Builder


class Own(NamedTuple):
    """A field that is written and read by our node instead of pydantic's."""

    name: str
    keys: tuple[str, ...]  # the names it may have in JSON, the one it is written under first
    node: Node


class ModelNode(Node):
    """One pydantic model. Its mirror is JSON itself."""

    def __init__(self, cls: Any, builder: Builder, where: str, *, tagged: bool) -> None:
        super().__init__(Any, f"a {cls.__name__}", gives=(cls,), reads=(object,))
        try:
            cls.model_rebuild()
        except PydanticUserError as unfinished:
            raise refuse(where, f"{cls.__name__} cannot be used yet: {unfinished.message}") from None
        self.cls: type[BaseModel] = cls
        self.tag = cls.__name__ if tagged else None
        self.tagged = tagged
        self.written = {name: _keys(name, field)[0] for name, field in cls.model_fields.items()}
        if tagged and TAG in self.written.values():
            raise refuse(
                where, f'{cls.__name__} has a field "type", which names the class of a union; call it otherwise'
            )
        self.own = [
            Own(name, _keys(name, field), builder.node(_annotation(field), f"{where}.{name}"))
            for name, field in cls.model_fields.items()
            if _needs_own(field)
        ]
        # Where a model of the tree says itself what becomes of unknown fields, its word holds.
        self.extra: Any = None if any(m.model_config.get("extra") for m in _tree(cls)) else "forbid"
        self.dated = any(_holds(field.annotation, datetime) for m in _tree(cls) for field in m.model_fields.values())
        self.out = self._out
        self.into = self._into
        self.slim = self._slim

    # --- writing -------------------------------------------------------------------------------

    def _out(self, value: Any) -> Json:
        if value.__class__ is not self.cls:
            raise Unfit(f"must be a {self.cls.__name__}", value)
        json = self._dump(value, slim=False)
        self._into(json)  # a model may have been changed since it was checked
        return json

    def _slim(self, json: Json) -> Json:
        return self._dump(self._into(json), slim=True)

    def _dump(self, value: Any, *, slim: bool) -> dict[str, Json]:
        told = self.cls.__pydantic_serializer__.to_python(
            value,
            mode="python",
            by_alias=True,
            exclude_defaults=slim,
            exclude={own.name for own in self.own},
            round_trip=True,
            warnings="none",
        )
        try:
            json: dict[str, Json] = _plain(told)
        except (TypeError, PydanticSerializationError) as unknown:
            raise Unfit(f"cannot be written: {unknown}") from None
        for own in self.own:
            part = getattr(value, own.name)
            if slim and _is_default(self.cls.model_fields[own.name], part):
                continue
            try:
                mirror = own.node.mirror(part)
            except Unfit as unfit:
                raise unfit.inside(own.name) from None
            if slim and own.node.slim:
                mirror = own.node.slim(mirror)
            json[own.keys[0]] = msgspec.to_builtins(mirror, order="sorted")
        if self.tag:
            json[TAG] = self.tag
        codec.canonical(json)  # what is no JSON, or too large for it, is refused with its place
        return json

    # --- reading -------------------------------------------------------------------------------

    def _into(self, json: Json) -> Any:
        if not isinstance(json, dict):
            raise Unfit(f"must be {self.must}", json)
        if self.tag:
            if json.get(TAG) != self.tag:
                raise Unfit(f"must be {self.must}", json)
            json = {key: item for key, item in json.items() if key != TAG}
        return self._validated(json)

    def _validated(self, json: dict[str, Json]) -> Any:
        check = self.cls.__pydantic_validator__
        if self.own:
            given: dict[str, Any] = dict(json)
            for own in self.own:
                for key in own.keys:
                    if key in given:
                        given[key] = own.node.read(given[key])
            value = check.validate_python(given, extra=self.extra, by_alias=True, by_name=True)
        else:
            raw = msgspec.json.encode(json)
            value = check.validate_json(raw, extra=self.extra, by_alias=True, by_name=True)
        if self.dated and (naive := next(_naive(self._python(value), ""), None)):
            raise Unfit("has no time zone; give an instant with its offset", naive[1]).inside(naive[0])
        return value

    def _python(self, value: Any) -> Any:
        return self.cls.__pydantic_serializer__.to_python(value, mode="python", by_alias=True, warnings="none")

    def explain(self, json: Json, path: str) -> list[Fault]:
        if not isinstance(json, dict):
            return [Fault(path, "must be an object", shown(json))]
        if self.tag:
            if wrong := ClassNode.wrong_tag(json, path, (self.tag,)):
                return [wrong]
            json = {key: item for key, item in json.items() if key != TAG}
        faults = [
            fault
            for own in self.own
            for key in own.keys
            if key in json
            for fault in own.node.explain(json[key], below(path, key))
        ]
        wrong_already = {fault.field for fault in faults}
        return faults + [f for f in self._faults(json, path, faults) if f.field not in wrong_already]

    def _faults(self, json: dict[str, Json], path: str, known: list[Fault]) -> list[Fault]:
        """What pydantic finds. Fields whose fault is known already are left out of what it sees."""
        bad = {own.keys for own in self.own if any(f.field.startswith(below(path, k)) for f in known for k in own.keys)}
        hidden = {key for keys in bad for key in keys}
        try:
            self._validated({key: item for key, item in json.items() if key not in hidden})
        except ValidationError as invalid:
            found = []
            for error in invalid.errors(include_url=False):
                place = _place(error["loc"], json, path, missing=error["type"] == "missing")
                if error["type"] == "missing" and any(str(part) in hidden for part in error["loc"][:1]):
                    continue
                found.append(self._fault(place, error, json))
            return list({fault.field: fault for fault in reversed(found)}.values())[::-1]
        except Unfit as unfit:
            return [Fault(below(path, unfit.path) if unfit.path else path, unfit.problem, shown(unfit.got))]
        return []

    def _fault(self, place: str, error: Any, json: dict[str, Json]) -> Fault:
        if error["type"] == "extra_forbidden":
            names = [key for key in self.written.values() if key not in json] if len(error["loc"]) == 1 else []
            close = nearest(str(error["loc"][-1]), names)
            return Fault(place, f"is not known; did you mean {close}?" if close else "is not known")
        if error["type"] == "missing":
            return Fault(place, "is missing")
        return Fault(place, problem_of(error), shown(error["input"]))

    # --- describing ----------------------------------------------------------------------------

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        name = claim(defs, self.cls, self.tag)
        if name not in defs:
            defs[name] = {}
            told = self.cls.model_json_schema(mode=mode, ref_template=f"#/$defs/{name}.{{model}}")
            for inner, schema in told.pop("$defs", {}).items():
                defs[f"{name}.{inner}"] = _closed(schema)
            if "properties" not in told and "$ref" in told:  # a model that holds itself
                told = defs[told["$ref"].removeprefix("#/$defs/")]
            properties = {key: dict(item) for key, item in told.get("properties", {}).items()}
            for own in self.own:
                words = properties.get(own.keys[0], {})
                kept = {key: words[key] for key in ("title", "description", "default") if key in words}
                properties[own.keys[0]] = {**own.node.schema(defs, mode), **kept}
            if self.tag:
                properties = {TAG: {"const": self.tag}, **properties}
                told = {**told, "required": [TAG, *told.get("required", [])]}
            defs[name] = _closed({**told, "properties": properties})
        return {"$ref": f"#/$defs/{name}"}


# --- what pydantic says of a model -----------------------------------------------------------------


def _annotation(field: Any) -> Any:
    return field.annotation


def _keys(name: str, field: Any) -> tuple[str, ...]:
    """The names of a field in JSON: the one it is written under, then the others it is read from."""
    read = field.validation_alias if isinstance(field.validation_alias, str) else field.alias
    written = field.serialization_alias or name
    return tuple(dict.fromkeys([written, *([read] if read else []), name]))


def _is_default(field: Any, value: Any) -> bool:
    return not field.is_required() and bool(field.get_default(call_default_factory=True, validated_data={}) == value)


def _parts(annotation: Any) -> Iterator[Any]:
    """An annotation and all that stands within it, but not where its author says how to tell members apart."""
    if any(getattr(meta, "discriminator", None) for meta in getattr(annotation, "__metadata__", ())):
        return
    yield annotation
    for arg in get_args(annotation):
        yield from _parts(arg)


def _holds(annotation: Any, kind: type) -> bool:
    return any(isinstance(part, type) and issubclass(part, kind) for part in _parts(annotation))


def _is_class(annotation: Any) -> bool:
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and (
        issubclass(kind, BaseModel | msgspec.Struct) or hasattr(kind, "__dataclass_fields__")
    )


def _tells_itself(annotation: Any) -> bool:
    """Does a member say which it is, by a mark for pydantic or a field of its own?"""
    fields = getattr(get_origin(annotation) or annotation, "__annotations__", {})
    return get_origin(annotation) is Annotated or TAG in fields


UNION: Final = ("Union", "UnionType")


def _needs_own(field: Any) -> bool:
    """Would pydantic write this field in a form that is not ours, or read it by trying?"""
    if field.discriminator is not None:
        return False  # its author has said how the members are told apart
    for part in _parts(field.annotation):
        kind = get_origin(part) or part
        if isinstance(kind, type) and issubclass(kind, bytes):
            return True
        if getattr(kind, "__name__", getattr(kind, "_name", "")) in UNION:
            others = [arg for arg in get_args(part) if arg is not type(None)]
            if len(others) > 1 and any(map(_is_class, others)) and not any(map(_tells_itself, others)):
                return True
    return False


def _tree(cls: type[BaseModel], seen: set[type] | None = None) -> set[type[BaseModel]]:
    """The models that a model holds, itself included."""
    seen = set() if seen is None else seen
    if cls not in seen:
        seen.add(cls)
        for field in cls.model_fields.values():
            for part in _parts(field.annotation):
                if isinstance(part, type) and issubclass(part, BaseModel):
                    _tree(part, seen)
    return seen


def _closed(schema: Schema) -> Schema:
    if schema.get("type") == "object" and "properties" in schema:
        return {"additionalProperties": False, **schema}
    return schema


# --- values ----------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """What pydantic gave, as JSON: instants in UTC, sets in order, the rest as msgspec writes it."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=msgspec.json.Encoder(order="sorted").encode)
    if isinstance(value, datetime):
        value = datetime_into(value)
    if isinstance(value, str) and type(value) is not str:
        return str(value.value) if hasattr(value, "value") else str(value)
    return msgspec.to_builtins(value, enc_hook=to_jsonable_python)


def _key(key: Any) -> str:
    found = msgspec.to_builtins({key: None}, str_keys=True)
    return str(next(iter(found)))


def _naive(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """The datetimes within that name no point in time, with their places."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            yield path, str(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _naive(item, below(path, str(key)))
    elif isinstance(value, list | tuple | set | frozenset):
        for at, item in enumerate(value):
            yield from _naive(item, below(path, at))


def _place(loc: tuple[int | str, ...], json: Json, path: str, *, missing: bool) -> str:
    """The path of an error. Parts that name a branch of a union, and no place in what came, are left out."""
    here = json
    for at, part in enumerate(loc):
        if (isinstance(here, dict) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        ):
            here = here[part]
            path = below(path, part)
        elif missing and at == len(loc) - 1:
            path = below(path, part)
    return path
