"""actuators.arguments - what was sent, checked against the input model, and faults in plain words.

For: taking what clients really send, and telling an agent which field is wrong, why, and what is allowed.
Never: starts anything; guesses a missing value; echoes a secret.
Was wrong once: pydantic's own report. Models read its links and called with the same arguments again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import nearest
from onefold.terms.limits import MAX_FAULTS

if TYPE_CHECKING:  # whoever has a model has imported pydantic; an app without one need not
    from pydantic import BaseModel, ValidationError

INJECTED = frozenset({"toolCallId", "tool_call_id", "sessionId", "session_id", "chatInput"})
"""What some clients put beside the arguments of every call. Stripped unless the model has such a field."""


def check_arguments(model: type[BaseModel] | None, properties: Mapping[str, Any], sent: Any) -> BaseModel | None:
    """The model of what was sent. `properties` are those of its schema. Raises: BadArguments, one fault a field."""
    if sent is None:
        sent = {}
    if not isinstance(sent, dict):
        raise BadArguments([Fault("", "the arguments must be one object", sent)])
    given = {key: value for key, value in sent.items() if key in properties or key not in INJECTED}
    near = [name for name in properties if name not in given]
    strange = [(key, value) for key, value in given.items() if key not in properties]
    said = None if model is None else model.model_config.get("extra")
    strange, more = _left(strange, said)
    faults = [_unknown(key, value, near if n < MAX_FAULTS else ()) for n, (key, value) in enumerate(strange)]
    if model is None:
        if faults:
            raise BadArguments(faults)
        return None
    from pydantic import ValidationError

    names = _by_name(model)
    taken = more
    for key, value in given.items():
        if key in properties:
            value = _as_sent(value, properties[key])
            if value is None and key in names and not names[key][0] and not names[key][1]:
                continue  # null for a field that need not be there
            taken[key] = value
    try:
        found = model.model_validate_json(msgspec.json.encode(taken))
    except ValidationError as wrong:
        faults += faults_of(wrong, taken, properties)
    else:
        if not faults:
            return found
    raise BadArguments(faults)


def _left(strange: list[tuple[str, Any]], said: str | None) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Of fields that a model has not, those that are faults, and those that it takes all the same. It may say so itself:
    a webhook's sender adds fields when it likes."""
    if said == "allow":
        return [], dict(strange)
    return ([] if said == "ignore" else strange), {}


def _unknown(key: str, value: Any, near: Sequence[str]) -> Fault:
    close = nearest(key, near)
    return Fault(key, f"is not known; did you mean {close!r}?" if close else "is not known", value)


def _by_name(model: type[BaseModel]) -> dict[str, tuple[bool, bool]]:
    """By name in JSON: whether a field must be there, and whether None is a value of its own."""
    told = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias
        none = field.default is not None and _takes_none(field.annotation)
        told[alias or name] = (field.is_required(), none)
    return told


def _takes_none(annotation: Any) -> bool:
    return type(None) in getattr(annotation, "__args__", ())


def _as_sent(value: Any, schema: Mapping[str, Any]) -> Any:
    """What clients mean: a list or an object that came as JSON text, null that came as the text "null"."""
    if not isinstance(value, str):
        return value
    kinds = _kinds(schema)
    if not kinds or ("string" in kinds and "format" not in schema):
        return value  # free text may well say "null" or "[1]"
    if kinds & {"object", "array"}:
        try:
            parsed = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
        if isinstance(parsed, dict | list) or parsed is None:
            return parsed
    return None if value == "null" else value


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds = {schema["type"]} if isinstance(schema.get("type"), str) else set()
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        kinds |= _kinds(branch)
    if "$ref" in schema:
        kinds.add("object")
    return kinds


# --- faults ---------------------------------------------------------------------------------------


def faults_of(wrong: ValidationError, sent: Any, properties: Mapping[str, Any]) -> list[Fault]:
    """One fault a field, in the order of the fields; what the branches of a union say is joined by "or"."""
    told: dict[str, tuple[list[str], Any]] = {}
    for error in wrong.errors(include_url=False):
        path, top = _path(error["loc"], sent)
        problem = _problem(error)
        got = None if error["type"] == "missing" or _secret(top, properties) else _shown(error.get("input"))
        problems, _ = told.setdefault(path, ([], got))
        if problem not in problems:
            problems.append(problem)
    return [Fault(path, ", or ".join(problems), got) for path, (problems, got) in told.items()]


def _path(loc: tuple[int | str, ...], sent: Any) -> tuple[str, str]:
    """The place as a dotted path, without the names of a union's branches, and the field at its top."""
    path = top = ""
    at = sent
    for place, part in enumerate(loc):
        last = place == len(loc) - 1
        if isinstance(at, list) and isinstance(part, int):
            path, at = f"{path}[{part}]", at[part] if part < len(at) else None
        elif isinstance(at, dict) and isinstance(part, str) and (part in at or last):
            path, at = f"{path}.{part}" if path else part, at.get(part)
        top = top or path
    return path, top


def _secret(top: str, properties: Mapping[str, Any]) -> bool:
    schema = properties.get(top, {})
    return bool(schema.get("writeOnly")) or schema.get("format") == "password"


def _shown(value: Any) -> Any:
    return value if isinstance(value, str | int | float | list | dict) else None


def _count(error: Mapping[str, Any], key: str, one: str, many: str) -> str:
    n = error["ctx"][key]
    return f"{n} {one if n == 1 else many}"


def _own(error: Mapping[str, Any]) -> str:
    """What the author's own check said."""
    said = str(error.get("ctx", {}).get("error") or error["msg"])
    return said[:1].lower() + said[1:].rstrip(".")


WORDS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "greater_than": lambda e: f"must be more than {e['ctx']['gt']}",
    "greater_than_equal": lambda e: f"must be at least {e['ctx']['ge']}",
    "less_than": lambda e: f"must be less than {e['ctx']['lt']}",
    "less_than_equal": lambda e: f"must be at most {e['ctx']['le']}",
    "multiple_of": lambda e: f"must be a multiple of {e['ctx']['multiple_of']}",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "string_too_short": lambda e: f"must have at least {_count(e, 'min_length', 'character', 'characters')}",
    "string_too_long": lambda e: f"must have at most {_count(e, 'max_length', 'character', 'characters')}",
    "string_pattern_mismatch": lambda e: f"must match the pattern {e['ctx']['pattern']}",
    "too_short": lambda e: f"must have at least {_count(e, 'min_length', 'item', 'items')}",
    "too_long": lambda e: f"must have at most {_count(e, 'max_length', 'item', 'items')}",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number within 64 bits",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "decimal_type": "must be a decimal number",
    "decimal_parsing": "must be a decimal number",
    "decimal_max_digits": lambda e: f"must have at most {_count(e, 'max_digits', 'digit', 'digits')}",
    "decimal_max_places": lambda e: (
        f"must have at most {_count(e, 'decimal_places', 'decimal place', 'decimal places')}"
    ),
    "decimal_whole_digits": lambda e: (
        f"must have at most {_count(e, 'whole_digits', 'digit', 'digits')} before the point"
    ),
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "literal_error": lambda e: f"must be {e['ctx']['expected']}",
    "enum": lambda e: f"must be {e['ctx']['expected']}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dataclass_type": "must be an object",
    "none_required": "must be null",
    "date_type": "must be a date such as 2026-01-31",
    "date_parsing": "must be a date such as 2026-01-31",
    "date_from_datetime_parsing": "must be a date such as 2026-01-31",
    "date_from_datetime_inexact": "must be a date such as 2026-01-31",
    "datetime_type": "must be an instant such as 2026-01-31T09:00:00Z",
    "datetime_parsing": "must be an instant such as 2026-01-31T09:00:00Z",
    "datetime_from_date_parsing": "must be an instant such as 2026-01-31T09:00:00Z",
    "timezone_aware": "must have a time zone, such as 2026-01-31T09:00:00Z",
    "time_type": "must be a time of day such as 09:30",
    "time_parsing": "must be a time of day such as 09:30",
    "uuid_type": "must be a UUID",
    "uuid_parsing": "must be a UUID",
    "url_type": "must be a URL",
    "url_parsing": "must be a URL such as https://example.com",
    "url_scheme": lambda e: f"must be a URL with {e['ctx']['expected_schemes']}",
    "union_tag_not_found": lambda e: f"must say which it is in {e['ctx']['discriminator']}",
    "union_tag_invalid": lambda e: f"must have one of {e['ctx']['expected_tags']} in {e['ctx']['discriminator']}",
    "value_error": _own,
    "assertion_error": _own,
}
"""pydantic's kinds of error in plain words. A kind that is not here keeps pydantic's own sentence."""


def _problem(error: Mapping[str, Any]) -> str:
    word = WORDS.get(error["type"])
    if word is None:
        said = str(error["msg"])
        return said[:1].lower() + said[1:]
    return word if isinstance(word, str) else word(error)
