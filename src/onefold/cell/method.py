"""cell.method - a method of a shape, read from its signature: what it takes, gives and costs.

For: a call's arguments as JSON and back, its value as JSON, and handles where the signature says so.
Never: awaits; runs on anything but the draft it is given.
Was wrong once: methods looked up on the class when they were called. A program called `__init__`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from onefold.cell.words import Json
from onefold.program.handles import Handle, Handles
from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused
from onefold.terms.ids import nearest
from onefold.terms.typed import Codec, codec_of

F = TypeVar("F", bound=Callable[..., Any])
_COST = "_onefold_cost"
NO_DEFAULT: Any = object()


def cost(units: int) -> Callable[[F], F]:
    """What one call of a method counts against a program's budget; 1 without it. Raises: LoadRefused."""
    if type(units) is not int or not 1 <= units <= 1_000:
        raise LoadRefused([Finding("@cost", f"a cost is a whole number from 1 to 1000, not {units!r}")])

    def mark(function: F) -> F:
        setattr(function, _COST, units)
        return function

    return mark


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument. codec: None for a handle, whose kind is `handle`."""

    name: str
    codec: Codec[Any] | None
    handle: str
    default: Any

    @property
    def required(self) -> bool:
        return self.default is NO_DEFAULT

    def shown(self) -> Json:
        """Its default as JSON."""
        return None if self.codec is None else self.codec.to_json(self.default)

    def taken(self, json: Json, handles: Handles) -> Any:
        """The value of what came. Raises: BadArguments, BadToken."""
        return handles.take(json, self.handle) if self.codec is None else self.codec.from_json(json, self.name)


class Method:
    """One method of a shape."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        takes: Mapping[str, Parameter],
        gives: Codec[Any] | None,
        handle: str,
        branches: frozenset[str],
    ) -> None:
        self.name = name
        self.function = function
        self.takes = takes
        self.parameters: Sequence[str] = tuple(takes)
        self.gives = gives
        self.handle = handle
        self.branches = branches
        self.cost: int = getattr(function, _COST, 1)
        self.description = inspect.cleandoc(function.__doc__ or "")
        self.for_programs_only = gives is None or any(each.codec is None for each in takes.values())
        self._signature = inspect.signature(function)
        self._by_place = all(each.kind is not each.KEYWORD_ONLY for each in self._given())

    def spelled(self) -> str:
        """Its signature, as somebody who writes a program reads it."""
        shown = [parameter.replace(annotation=_plainly(parameter.annotation)) for parameter in self._given()]
        gives = _plainly(self._signature.return_annotation)
        return f"{self.name}({', '.join(map(str, shown))}) -> {gives}".replace("'", "")

    def _given(self) -> list[inspect.Parameter]:
        return list(self._signature.parameters.values())[1:]

    def written(self, args: tuple[Any, ...], words: Mapping[str, Any]) -> dict[str, Json]:
        """The arguments of a call in Python, as JSON. Raises: TypeError as a call would, BadArguments by name."""
        if self._by_place and not words and len(args) == len(self.parameters):
            given: Mapping[str, Any] = dict(zip(self.parameters, args, strict=True))  # a fourth of what a bind takes
        else:
            given = self._signature.bind(None, *args, **words).arguments
        told: dict[str, Json] = {}
        faults: list[Fault] = []
        for name in self.parameters:
            codec = self.takes[name].codec
            if name not in given or codec is None:
                continue
            try:
                told[name] = codec.to_json(given[name])
            except BadArguments as bad:
                faults += [Fault(name, each.problem, each.got) for each in bad.faults]
        if faults:
            raise BadArguments(faults)
        return told

    def checked(self, arguments: Json) -> dict[str, Any]:
        """Values of arguments without handles. Raises: BadArguments with one fault a field."""
        return self._values(arguments, Handles())

    def apply(self, draft: Any, arguments: Mapping[str, Json], handles: Handles) -> Json:
        """Call it. Raises: BadArguments, BadToken, whatever the method raises."""
        value = self.function(draft, **self._values(arguments, handles))
        if self.gives is not None:
            try:
                return self.gives.to_json(value)
            except BadArguments as bad:
                raise TypeError(f"{self.name} gave what its signature does not promise: {bad.faults[0]}") from None
        if not isinstance(value, Handle):
            raise TypeError(f"{self.name} promises a Handle and gave a {type(value).__name__}")
        return handles.give(value, self.handle)

    def _values(self, arguments: Any, handles: Handles) -> dict[str, Any]:
        if not isinstance(arguments, Mapping):
            raise BadArguments([Fault("", "the arguments must be one object", arguments)])
        faults: list[Fault] = []
        for name in arguments:
            if name not in self.takes:
                near = nearest(name, [each for each in self.takes if each not in arguments])
                faults.append(Fault(name, f"is not known; did you mean {near!r}?" if near else "is not known"))
        values: dict[str, Any] = {}
        for name, parameter in self.takes.items():
            if name in arguments:
                try:
                    values[name] = parameter.taken(arguments[name], handles)
                except BadArguments as bad:
                    faults += bad.faults
            elif parameter.default is NO_DEFAULT:
                faults.append(Fault(name, "must be given"))
        if faults:
            raise BadArguments(faults)
        return values


@dataclass(frozen=True, slots=True)
class Bound:
    """A method on one draft, as a program calls it."""

    method: Method
    draft: Any
    handles: Handles

    @property
    def cost(self) -> int:
        return self.method.cost

    @property
    def parameters(self) -> Sequence[str]:
        return self.method.parameters

    def __call__(self, arguments: Mapping[str, Json], /) -> Json:
        return self.method.apply(self.draft, arguments, self.handles)


def read_method(name: str, function: Callable[..., Any]) -> Method:
    """Raises: LoadRefused with what its signature lacks."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise _refuse(
            "is async or a generator; a turn waits for nothing: owe it to a port, or call it from an actuator"
        )
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as unknown:
        raise _refuse(
            f"the annotation {unknown.name!r} cannot be found; define the type at the top of the file"
        ) from None
    takes: dict[str, Parameter] = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise _refuse(f"takes {parameter}; name each argument, and let none be by position alone")
        if parameter.name not in hints:
            raise _refuse(f"has no annotation for {parameter.name!r}; the signature is the schema")
        kind = _handle(hints[parameter.name])
        default = NO_DEFAULT if parameter.default is parameter.empty else parameter.default
        codec = None if kind else codec_of(hints[parameter.name])
        takes[parameter.name] = Parameter(parameter.name, codec, kind, default)
    if "return" not in hints:
        raise _refuse("has no annotation of what it gives; write `-> None` if that is nothing")
    kind = _handle(hints["return"])
    gives = None if kind else codec_of(hints["return"])
    return Method(name, function, takes, gives, kind, _branches(hints["return"]))


def _plainly(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _refuse(problem: str) -> LoadRefused:
    return LoadRefused([Finding("", problem)])


def _handle(annotation: Any) -> str:
    """The kind of handle that an annotation names; "" for none."""
    if get_origin(annotation) is not Handle:
        return ""
    (kind,) = get_args(annotation)
    return str(getattr(kind, "__name__", kind))


def _branches(annotation: Any) -> frozenset[str]:
    """The classes of a union: where there are two or more, a value says which by its "type"."""
    if get_origin(annotation) not in (Union, UnionType):
        return frozenset()
    classes = [
        k for k in get_args(annotation) if isinstance(k, type) and k is not NoneType and k.__module__ != "builtins"
    ]
    return frozenset(kind.__name__ for kind in classes) if len(classes) > 1 else frozenset()
