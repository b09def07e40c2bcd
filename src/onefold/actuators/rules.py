"""actuators.rules - does an edit fit the JSON schema of what was offered?

For: the words of schema that pydantic writes for a model, decimals included.
Never: judges what JSON Schema cannot say; the model does, when the function gets the value.
Was wrong once: any edit taken, and the run failed on it. The approver had been told that it was decided.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from onefold.terms.codec import below
from onefold.terms.errors import Fault

MARK = "x-decimal"
KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
MUST: Mapping[str, str] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def faults_in(schema: Mapping[str, Any], value: Any, path: str) -> list[Fault]:
    """What of `value` breaks the schema, one fault a place; empty when it fits."""
    return _faults(schema, value, path, schema.get("$defs", {}))


def _faults(schema: Mapping[str, Any], value: Any, path: str, defs: Mapping[str, Any]) -> list[Fault]:
    if "$ref" in schema:
        return _faults(defs[schema["$ref"].rpartition("/")[2]], value, path, defs)
    if schema.get(MARK):
        return _decimal(schema, value, path)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        tried = [_faults(branch, value, path, defs) for branch in branches]
        return [] if [] in tried else min(tried, key=len)
    kind = str(schema.get("type"))
    if kind in KINDS and (not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [Fault(path, f"must be {MUST[kind]}", value)]
    if "const" in schema and value != schema["const"]:
        return [Fault(path, f"must be {schema['const']!r}", value)]
    if "enum" in schema and value not in schema["enum"]:
        return [Fault(path, f"must be {' or '.join(map(repr, schema['enum']))}", value)]
    if isinstance(value, str):
        return _text(schema, value, path)
    if isinstance(value, list):
        return _list(schema, value, path, defs)
    if isinstance(value, dict):
        return _object(schema, value, path, defs)
    return _bounds(schema, value, path) if isinstance(value, int | float) and not isinstance(value, bool) else []


BOUNDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.lt, "at least"),
    "maximum": (operator.gt, "at most"),
    "exclusiveMinimum": (operator.le, "more than"),
    "exclusiveMaximum": (operator.ge, "less than"),
    "multipleOf": (lambda value, bound: bool(value % bound), "a multiple of"),
}
"""A word of schema, when a value breaks it, and what it must be."""


def _bounds(schema: Mapping[str, Any], value: Any, path: str) -> list[Fault]:
    for word, (broken, must) in BOUNDS.items():
        bound = schema.get(word)
        if bound is not None and broken(value, Decimal(str(bound)) if isinstance(value, Decimal) else bound):
            return [Fault(path, f"must be {must} {bound:g}", str(value))]
    return []


def _decimal(schema: Mapping[str, Any], value: Any, path: str) -> list[Fault]:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return [Fault(path, "must be a decimal number", value)]
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return [Fault(path, "must be a decimal number", value)]
    if not number.is_finite():
        return [Fault(path, "must be a finite number", value)]
    bounds = [branch for branch in schema.get("anyOf", ()) if branch.get("type") == "number"]
    return _bounds(bounds[0], number, path) if bounds else []


def _text(schema: Mapping[str, Any], value: str, path: str) -> list[Fault]:
    if len(value) < schema.get("minLength", 0):
        return [Fault(path, f"must have at least {schema['minLength']} characters", value)]
    if len(value) > schema.get("maxLength", len(value)):
        return [Fault(path, f"must have at most {schema['maxLength']} characters", value)]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return [Fault(path, f"must match the pattern {schema['pattern']}", value)]
    return []


def _list(schema: Mapping[str, Any], value: list[Any], path: str, defs: Mapping[str, Any]) -> list[Fault]:
    if len(value) < schema.get("minItems", 0):
        return [Fault(path, f"must have at least {schema['minItems']} items", value)]
    if len(value) > schema.get("maxItems", len(value)):
        return [Fault(path, f"must have at most {schema['maxItems']} items", value)]
    items = schema.get("items", {})
    return [fault for at, item in enumerate(value) for fault in _faults(items, item, below(path, at), defs)]


def _object(schema: Mapping[str, Any], value: dict[str, Any], path: str, defs: Mapping[str, Any]) -> list[Fault]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    faults = [Fault(below(path, name), "is missing") for name in schema.get("required", ()) if name not in value]
    others = schema.get("additionalProperties", not properties)
    for name, item in value.items():
        if name in properties:
            faults += _faults(properties[name], item, below(path, name), defs)
        elif others is False:
            faults.append(Fault(below(path, name), "is not known", item))
        elif isinstance(others, dict):
            faults += _faults(others, item, below(path, name), defs)
    return faults
