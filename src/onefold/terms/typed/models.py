"""terms.typed.models - pydantic models: their own rules, our JSON form.

For: what actuators take and give. pydantic checks and builds; what it would write in a form of its own
(bytes, sets, instants, unions of classes) is written in ours.
Never: imports pydantic; whoever wrote a model has. It costs a start a tenth of a second.
Was wrong once: model_dump_json alone. A set came in the order of its hashes, bytes as text that did
not come back, an instant without its zone, and a union of two classes as whichever fitted first.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from onefold.terms.codec import Json, below, shown
from onefold.terms.errors import Fault
from onefold.terms.ids import nearest
from onefold.terms.typed.classes import TAG, ClassNode, claim
from onefold.terms.typed.leaves import json_out
from onefold.terms.typed.modelled import (
    check_model,
    holds,
    is_default,
    keys_of,
    naive,
    name_of,
    needs_own,
    place_of,
    plain,
    ready,
    renamed,
    schema_of,
    tells,
    tree_of,
)
from onefold.terms.typed.node import Mode, Node, Schema, Unfit, as_json, referred
from onefold.terms.typed.sayings import problem_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from onefold.terms.typed.build import Builder


class Own(NamedTuple):
    """A field that is written and read by our node instead of pydantic's."""

    name: str
    keys: tuple[str, ...]  # the names it may have in JSON, the one it is written under first
    node: Node


class ModelNode(Node):
    """One pydantic model. Its mirror is JSON itself."""

    def __init__(self, cls: Any, builder: Builder, where: str, *, tagged: bool) -> None:
        self.name = name_of(cls)
        super().__init__(Any, f"a {self.name}", gives=(cls,), reads=(object,))
        self.invalid, self.root = ready(cls, where)
        self.cls: type[BaseModel] = cls
        self.tag = self.name if tagged else None
        self.keys = {name: keys_of(name, field) for name, field in cls.model_fields.items()}
        check_model(cls, where, tagged=tagged)
        self.own = [
            Own(name, self.keys[name], builder.node(field.annotation, f"{where}.{name}"))
            for name, field in cls.model_fields.items()
            if needs_own(field) and not self.root
        ]
        models = tree_of(cls)
        # Where a model of the tree says itself what becomes of unknown fields, its word holds.
        self.extra: Any = None if any(m.model_config.get("extra") for m in models) else "forbid"
        self.dated = any(holds(field.annotation, datetime) for m in models for field in m.model_fields.values())
        ours = {own.name for own in self.own}
        self.telling = {name for name, field in cls.model_fields.items() if name not in ours and tells(field)}
        self.out = self._out
        self.into = self._into
        self.slim = self._slim

    # --- writing -------------------------------------------------------------------------------

    def _out(self, value: Any) -> Json:
        if value.__class__ is not self.cls:
            raise Unfit(f"must be a {self.name}", value)
        json = self._dump(value, slim=False)
        try:
            self._into(json)  # a model may have been changed since it was checked
        except self.invalid as invalid:
            error = invalid.errors(include_url=False)[0]
            path = ".".join(str(part) for part in error["loc"])
            raise Unfit(problem_of(error), error["input"]).inside(path) from None
        return json

    def _slim(self, json: Json) -> Json:
        return self._dump(self._into(json), slim=True)

    def _dump(self, value: Any, *, slim: bool) -> Json:
        ours = {own.name for own in self.own}
        try:
            json = plain(self._python(value, exclude=ours | self.telling if slim else ours, exclude_defaults=slim))
            if slim and self.telling:
                told = {
                    name for name in self.telling if not is_default(self.cls.model_fields[name], getattr(value, name))
                }
                json.update(plain(self._python(value, include=told)))
        except (TypeError, ValueError) as unknown:
            raise Unfit(f"cannot be written: {unknown}") from None
        for own in self.own:
            part = getattr(value, own.name)
            if slim and is_default(self.cls.model_fields[own.name], part):
                continue
            try:
                mirror = own.node.mirror(part)
            except Unfit as unfit:
                raise unfit.inside(own.name) from None
            if slim and own.node.slim:
                mirror = own.node.slim(mirror)
            json[own.keys[0]] = as_json(mirror)
        if self.tag:
            json[TAG] = self.tag
        return json_out(json)  # what is no JSON, or too large for it, is refused with its place

    def _python(self, value: Any, **which: Any) -> Any:
        write = self.cls.__pydantic_serializer__.to_python
        return write(value, mode="python", by_alias=True, round_trip=True, warnings="none", **which)

    # --- reading -------------------------------------------------------------------------------

    def _into(self, json: Json) -> Any:
        if not self.root:
            if not isinstance(json, dict) or (self.tag and json.get(TAG) != self.tag):
                raise Unfit(f"must be {self.must}", json)
            if self.tag:
                json = {key: item for key, item in json.items() if key != TAG}
        return self._validated(json)

    def _validated(self, json: Json) -> Any:
        check = self.cls.__pydantic_validator__
        if self.own:
            given = dict(json)
            for own in self.own:
                for key in own.keys:
                    if key in given:
                        given[key] = own.node.read(given[key])
            value = check.validate_python(given, extra=self.extra, by_alias=True, by_name=True)
        else:
            raw = msgspec.json.encode(json)
            value = check.validate_json(raw, extra=self.extra, by_alias=True, by_name=True)
        if self.dated:
            for path, got in naive(self._python(value), ""):
                raise Unfit("has no time zone; give an instant with its offset", got).inside(path)
        return value

    def explain(self, json: Json, path: str) -> list[Fault]:
        if not self.root:
            if not isinstance(json, dict):
                return [Fault(path, "must be an object", shown(json))]
            if self.tag:
                if wrong := ClassNode.wrong_tag(json, path, (self.tag,)):
                    return [wrong]
                json = {key: item for key, item in json.items() if key != TAG}
        faults: dict[str, list[Fault]] = {}  # by the field of this model
        seen = json
        for own in self.own:
            for key in own.keys:
                if key in json and (found := own.node.explain(json[key], below(path, key))):
                    faults[key] = found
                    seen = {k: item for k, item in seen.items() if k not in own.keys}
        hidden = {key for own in self.own for key in own.keys if faults.keys() & set(own.keys)}
        for key, fault in self._found(seen, path, json):
            if key not in hidden:
                faults.setdefault(key, []).append(fault)
        order = [*(key for keys in self.keys.values() for key in keys), *(json if isinstance(json, dict) else ())]
        return [f for key in dict.fromkeys([*order, *faults]) for f in _joined(faults.get(key, []))]

    def _found(self, seen: Json, path: str, json: Json) -> Iterator[tuple[str, Fault]]:
        """What pydantic finds, each under the field it belongs to."""
        try:
            self._validated(seen)
        except self.invalid as invalid:
            for error in invalid.errors(include_url=False):
                key = str(error["loc"][0]) if error["loc"] else ""
                place = place_of(error["loc"], json, path, missing=error["type"] == "missing")
                yield key, self._fault(place, error, json)
        except Unfit as unfit:
            place = f"{path}.{unfit.path}".strip(".")
            yield unfit.path.partition(".")[0], Fault(place, unfit.problem, shown(unfit.got))

    def _fault(self, place: str, error: Any, json: Json) -> Fault:
        if error["type"] == "extra_forbidden":
            known = [keys[0] for keys in self.keys.values() if keys[0] not in json] if len(error["loc"]) == 1 else []
            close = nearest(str(error["loc"][-1]), known)
            return Fault(place, f"is not known; did you mean {close}?" if close else "is not known")
        if error["type"] == "missing":
            return Fault(place, "is missing")
        return Fault(place, problem_of(error), shown(error["input"]))

    # --- describing ----------------------------------------------------------------------------

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        name = claim(defs, (self.cls, self.tag), self.name)
        if name in defs:
            return {"$ref": f"#/$defs/{name}"}
        defs[name] = {}
        told = schema_of(self.cls, mode)
        inner = told.pop("$defs", {})
        itself = str(told.get("$ref", "")).removeprefix("#/$defs/")  # a model that holds itself is among its own
        told = inner.get(itself, told)
        properties = told.get("properties", {})
        own = {own.keys[0]: own.node.schema(defs, mode) for own in self.own}
        for key in own:
            words = properties.get(key, {})
            properties[key] = {word: words[word] for word in ("title", "description", "default") if word in words}
        used = referred(told, inner, {})
        names = {key: name if key == itself else claim(defs, used[key], key) for key in used}
        defs.update({names[key]: _closed(renamed(schema, names)) for key, schema in used.items() if key != itself})
        told = _closed(renamed(told, names))
        properties = told.get("properties", {})
        for key, schema in own.items():
            properties[key] = {**schema, **properties[key]}
        if self.tag:
            told["properties"] = {TAG: {"const": self.tag}, **properties}
            told["required"] = [TAG, *told.get("required", [])]
        defs[name] = told
        return {"$ref": f"#/$defs/{name}"}


def _joined(faults: list[Fault]) -> Iterator[Fault]:
    """One fault a place. What several branches of a union asked for is told in one sentence."""
    places: dict[str, list[Fault]] = {}
    for fault in faults:
        places.setdefault(fault.field, []).append(fault)
    for found in places.values():
        wants = list(dict.fromkeys(fault.problem for fault in found))
        if len(wants) > 1 and all(want.startswith("must be ") for want in wants):
            told = " or ".join([wants[0], *(want.removeprefix("must be ") for want in wants[1:])])
            yield Fault(found[0].field, told, found[0].got)
        else:
            yield found[0]


def _closed(schema: Schema) -> Schema:
    if schema.get("type") == "object" and "properties" in schema:
        return {"additionalProperties": False, **schema}
    return schema
