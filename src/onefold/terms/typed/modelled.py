"""terms.typed.modelled - what pydantic says of a model, and what of it is not in our form.

For: questions about a model's fields, asked once when its node is made; and its parts as plain JSON.
Never: validates (models does); imports pydantic before a model is met, for it costs a start a tenth of a second.
Was wrong once: a SecretStr in a durable value. It was stored as asterisks, and the run went on with those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

import msgspec

from onefold.terms.codec import Json, below
from onefold.terms.typed.classes import TAG
from onefold.terms.typed.declared import is_model, refuse
from onefold.terms.typed.leaves import datetime_into
from onefold.terms.typed.node import Mode, Schema

if TYPE_CHECKING:
    from pydantic import BaseModel

UNION: Final = ("Union", "UnionType")
_write = msgspec.json.Encoder(order="sorted").encode


# --- questions about a model -----------------------------------------------------------------------


def name_of(cls: type[BaseModel]) -> str:
    """The class name; of a generic model that has been given its types, the name without them."""
    origin: type = cls.__pydantic_generic_metadata__["origin"] or cls
    return origin.__name__


def ready(cls: type[BaseModel], where: str) -> tuple[Any, bool]:
    """The error that its check raises, and whether it is a root model. Raises: LoadRefused when it is unfinished."""
    from pydantic import RootModel, ValidationError
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    try:
        cls.model_rebuild()
    except (PydanticUserError, PydanticUndefinedAnnotation) as unfinished:
        raise refuse(where, f"{cls.__name__} cannot be used yet: {unfinished.message}") from None
    return ValidationError, issubclass(cls, RootModel)


def check_model(cls: type[BaseModel], where: str, *, tagged: bool) -> None:
    """Raises: LoadRefused for what could not be read back as it was written."""
    from pydantic import RootModel, Secret, SecretBytes, SecretStr

    if tagged and issubclass(cls, RootModel):
        raise refuse(where, f"{cls.__name__} has no fields, so it cannot carry its name in a union; wrap it in a model")
    for name, field in cls.model_fields.items():
        written, read = keys_of(name, field)[0], _read_keys(name, field)
        if tagged and TAG in (written, *read):
            raise refuse(
                where, f'{cls.__name__} has a field "type", which names the class of a union; call it otherwise'
            )
        if written not in read:
            problem = f"is written as {written!r} but read as {' or '.join(map(repr, read))}; give it one alias"
            raise refuse(f"{where}.{name}", problem)
    for name, field in cls.model_fields.items():
        if _told(field) and needs_own(field):
            problem = "its author tells its members apart, but they hold bytes or unions; leave out the discriminator"
            raise refuse(f"{where}.{name}", problem)
    for model in tree_of(cls):
        for name, field in model.model_fields.items():
            if holds(field.annotation, (SecretStr, SecretBytes, Secret)):
                problem = "is a secret, which would be stored; pass the name of the secret instead"
                raise refuse(f"{model.__name__}.{name}", problem)


def _read_keys(name: str, field: Any) -> tuple[str, ...]:
    alias = field.validation_alias or field.alias
    told = getattr(alias, "choices", [alias])
    return (*(key for key in told if isinstance(key, str)), name)


def keys_of(name: str, field: Any) -> tuple[str, ...]:
    """The names of a field in JSON: the one it is written under, then the others it is read from."""
    return tuple(dict.fromkeys([field.serialization_alias or name, *_read_keys(name, field)]))


def is_default(field: Any, value: Any) -> bool:
    return not field.is_required() and bool(field.get_default(call_default_factory=True, validated_data={}) == value)


def parts_of(annotation: Any) -> Iterator[Any]:
    """An annotation and all that stands within it."""
    yield annotation
    for arg in get_args(annotation):
        yield from parts_of(arg)


def holds(annotation: Any, kind: type | tuple[type, ...]) -> bool:
    return any(isinstance(part, type) and issubclass(part, kind) for part in parts_of(annotation))


def tree_of(annotation: Any, seen: set[type[BaseModel]] | None = None) -> set[type[BaseModel]]:
    """The models within an annotation, and those within their fields."""
    seen = set() if seen is None else seen
    for part in parts_of(annotation):
        if isinstance(part, type) and is_model(part) and part not in seen:
            seen.add(part)
            for field in part.model_fields.values():  # type: ignore[attr-defined]
                tree_of(field.annotation, seen)
    return seen


def fields_in(annotation: Any) -> list[Any]:
    """The fields of all models within an annotation."""
    return [field for model in tree_of(annotation) for field in model.model_fields.values()]


def _is_class(annotation: Any) -> bool:
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and (
        is_model(kind) or issubclass(kind, msgspec.Struct) or hasattr(kind, "__dataclass_fields__")
    )


def _tells_itself(annotation: Any) -> bool:
    """Does a member say which it is, by a field of its own?"""
    return TAG in getattr(get_origin(annotation) or annotation, "__annotations__", {})


def _unions(annotation: Any, told: bool) -> Iterator[bool]:
    """For each union of classes in an annotation: has its author said how its members are told apart?"""
    if any(getattr(meta, "discriminator", None) for meta in getattr(annotation, "__metadata__", ())):
        told = True
    kind = get_origin(annotation)
    if getattr(kind, "__name__", getattr(kind, "_name", "")) in UNION:
        members = [arg for arg in get_args(annotation) if arg is not type(None)]
        if len(members) > 1 and any(map(_is_class, members)):
            yield told or any(map(_tells_itself, members))
    for arg in get_args(annotation):
        yield from _unions(arg, told and kind is Annotated)


def _told(field: Any) -> bool:
    return any(_unions(field.annotation, field.discriminator is not None))


def _foreign(field: Any) -> bool:
    """Bytes, or a union of classes: what pydantic writes in a form that is not ours, or reads by trying."""
    return holds(field.annotation, bytes) or not all(_unions(field.annotation, field.discriminator is not None))


def needs_own(field: Any) -> bool:
    """Is this field to be written and read by our nodes, for itself or for a model within it?"""
    return any(map(_foreign, [field, *fields_in(field.annotation)]))


def tells(field: Any) -> bool:
    """Does something within it say by a field which class it is? Left out as a default, two would look the same."""
    return any(map(_told, [field, *fields_in(field.annotation)]))


# --- values ----------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """What pydantic gave, as JSON: instants in UTC, sets in order, the rest as msgspec writes it."""
    if isinstance(value, dict):
        return {key if type(key) is str else _key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=_write)
    if isinstance(value, datetime):
        value = datetime_into(value)
    if isinstance(value, str) and type(value) is not str:
        return str(getattr(value, "value", value))
    return msgspec.to_builtins(value, enc_hook=_other)


def _other(value: Any) -> Any:
    """What pydantic knows and msgspec does not: URLs, paths, addresses."""
    from pydantic_core import to_jsonable_python

    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    return to_jsonable_python(value)


def _key(key: Any) -> str:
    return str(next(iter(msgspec.to_builtins({key: None}, str_keys=True))))


def naive(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """The datetimes within that name no point in time, with their places."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            yield path, str(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from naive(item, below(path, str(key)))
    elif isinstance(value, list | tuple | set | frozenset):
        for at, item in enumerate(value):
            yield from naive(item, below(path, at))


def schema_of(cls: type[BaseModel], mode: Mode) -> Schema:
    """pydantic's own schema. A default that is no JSON is left out of it without a warning."""
    from pydantic.json_schema import GenerateJsonSchema

    class Quiet(GenerateJsonSchema):
        ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012 - as its base has it

    return cls.model_json_schema(mode=mode, schema_generator=Quiet)


def place_of(loc: tuple[int | str, ...], json: Json, path: str, *, missing: bool) -> str:
    """The path of an error. Parts that name a branch of a union, and no place in what came, are left out."""
    here = json
    for at, part in enumerate(loc):
        try:
            here = here[part]
        except (TypeError, LookupError):
            if not missing or at < len(loc) - 1:
                continue
        path = below(path, part)
    return path


def renamed(schema: Any, names: Mapping[str, str]) -> Any:
    """A schema whose references go to other names."""
    if isinstance(schema, dict):
        return {key: renamed(item, names) for key, item in schema.items()}
    if isinstance(schema, list):
        return [renamed(item, names) for item in schema]
    if isinstance(schema, str) and schema.startswith("#/$defs/"):
        name = schema.removeprefix("#/$defs/")
        return f"#/$defs/{names.get(name, name)}"
    return schema
