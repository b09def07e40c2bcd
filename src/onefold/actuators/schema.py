"""actuators.schema - a model as the flat JSON schema that agents can read.

For: one object, references inlined, decimals without a pattern, arguments without a null branch.
Never: checks a value; reaches for the network.
Was wrong once: pydantic's own schema. A client refused the whole list of tools for one `$ref`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from onefold.actuators.rules import MARK
from onefold.terms.errors import Finding, LoadRefused

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = dict[str, Any]
UNIONS = ("oneOf", "anyOf", "allOf")
DECIMAL = "an exact decimal, best sent as text"


@dataclass(frozen=True)
class Around:
    """What a part of a schema is read with: the definitions, those that hold themselves, what null is."""

    defs: Mapping[str, Schema]
    looping: frozenset[str]
    nulls: bool


def input_schema(model: type[BaseModel] | None, where: str) -> Schema:
    """The arguments of a call; not to be changed. Raises: LoadRefused for a model that is no plain object."""
    if model is None:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    schema = _arguments(model)
    if schema.get("type") != "object" or any(union in schema for union in UNIONS):
        raise LoadRefused(
            [
                Finding(
                    where,
                    f"{model.__name__} is not one plain object (it is a union or a root model), which agents' clients "
                    "refuse; put the alternatives into a field of a model",
                )
            ]
        )
    return schema


@lru_cache(maxsize=256)  # many tools of one file take the same model
def _arguments(model: type[BaseModel]) -> Schema:
    schema = flat(marked(model))
    schema["additionalProperties"] = False
    schema.setdefault("properties", {})
    return schema


@lru_cache(maxsize=256)
def marked(model: type[BaseModel]) -> Schema:
    """pydantic's schema, with a mark on decimals, which it writes as it writes `float | str`. Not to be changed."""
    return model.model_json_schema(mode="validation", schema_generator=_marking())


@cache  # when first needed: a program without actuators does not import pydantic
def _marking() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Marking(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> Schema:
            return {**super().decimal_schema(schema), MARK: True}

    return Marking


def flat(schema: Schema, *, nulls: bool = False) -> Schema:
    """The schema with its references inlined; only what refers to itself keeps its `$defs`.

    Null branches stay if `nulls`: an argument that is null may as well be left out, a result is null.
    """
    defs: Mapping[str, Schema] = schema.get("$defs", {})
    looping = frozenset(name for name in defs if _reaches(name, name, defs, set()))
    around = Around(defs, looping, nulls)
    root = _target(schema)
    if root is not None:  # a model that holds itself is a reference even at the root
        schema = {**defs[root], **{key: value for key, value in schema.items() if key != "$ref"}}
    told: Schema = _plain({key: value for key, value in schema.items() if key != "$defs"}, around)
    if looping and _refers(told):
        told["$defs"] = {name: _plain(defs[name], around) for name in sorted(looping)}
    return told


def _target(node: Mapping[str, Any]) -> str | None:
    ref = node.get("$ref")
    return ref.removeprefix("#/$defs/") if isinstance(ref, str) and ref.startswith("#/$defs/") else None


def _refs(node: Any) -> set[str]:
    if isinstance(node, Mapping):
        found = set[str]().union(*(_refs(value) for value in node.values()))
        target = _target(node)
        return found | {target} if target is not None else found
    return set[str]().union(*(_refs(item) for item in node)) if isinstance(node, list) else set()


def _refers(node: Any) -> bool:
    return bool(_refs(node))


def _reaches(start: str, goal: str, defs: Mapping[str, Schema], seen: set[str]) -> bool:
    for name in _refs(defs.get(start, {})):
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            if _reaches(name, goal, defs, seen):
                return True
    return False


def _plain(node: Any, around: Around) -> Any:
    if isinstance(node, list):
        return [_plain(item, around) for item in node]
    if not isinstance(node, dict):
        return node
    target = _target(node)
    if target is not None and target not in around.looping:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        merged: Schema = _plain({**around.defs[target], **beside}, around)
        return merged
    told = {key: _value(key, value, around) for key, value in node.items() if key != "discriminator"}
    if isinstance(told.get("title"), str):
        del told["title"]
    told = _decimal(told)
    return told if around.nulls else _optional(told)


def _value(key: str, value: Any, around: Around) -> Any:
    if key in ("properties", "patternProperties"):  # names in here are fields, not words of the schema
        return {name: _plain(part, around) for name, part in value.items()}
    if key in ("default", "const", "enum", "examples", "required"):
        return value
    return _plain(value, around)


def _optional(node: Schema) -> Schema:
    """Without the null branch: an optional field is one that need not be there."""
    branches = node.get("anyOf")
    if isinstance(branches, list) and {"type": "null"} in branches:
        left = [branch for branch in branches if branch != {"type": "null"}]
        node = {key: value for key, value in node.items() if key != "anyOf"}
        node = {**left[0], **node} if len(left) == 1 else {**node, "anyOf": left}
        if node.get("default", 0) is None:
            del node["default"]
    return node


def _decimal(node: Schema) -> Schema:
    """Says that it is one, and has no pattern: other regex engines cannot read a look-ahead."""
    if node.pop(MARK, False):
        branches = [{k: v for k, v in branch.items() if k != "pattern"} for branch in node.get("anyOf", ())]
        node = {**node, "anyOf": branches} if branches else node
        node["description"] = f"{node['description']} ({DECIMAL})" if "description" in node else DECIMAL
    return node


# --- the output -----------------------------------------------------------------------------------

STATUSES = ["running", "waiting", "done", "failed", "cancelled", "parked"]
INSTANT: Schema = {"type": "string", "format": "date-time"}


PROGRESS: Schema = {
    "type": "object",
    "properties": {
        "message": {"type": "string"},
        "at": INSTANT,
        "done": {"type": "number"},
        "of": {"type": "number"},
    },
    "required": ["message", "at"],
}


def output_schema(result: Schema) -> Schema:
    """The receipt with the function's output under `result`: true of finished and of waiting calls."""
    wait = {
        "type": "object",
        "properties": {
            "kind": {"type": "string"},
            "name": {"type": "string"},
            "message": {"type": "string"},
            "since": INSTANT,
            "until": INSTANT,
        },
        "required": ["kind", "name", "since"],
    }
    error = {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "step": {"type": "string"},
            "attempts": {"type": "integer"},
        },
        "required": ["code", "message"],
    }
    told = flat(result, nulls=True)
    defs = told.pop("$defs", None)
    schema: Schema = {
        "type": "object",
        "properties": {
            "run_id": {"type": "string"},
            "program": {"type": "string"},
            "status": {"type": "string", "enum": STATUSES},
            "key": {"type": "string"},
            "started_at": INSTANT,
            "updated_at": INSTANT,
            "poll_after_seconds": {"type": "integer"},
            "progress": PROGRESS,
            "waits": {"type": "array", "items": wait},
            "error": error,
            "result": told,
        },
        "required": ["run_id", "program", "status", "started_at", "updated_at"],
    }
    if defs:
        schema["$defs"] = defs
    return schema
