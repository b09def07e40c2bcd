"""actuators.declare - `@actuator`: one function becomes a value that can be offered.

For: reading a function's signature, its options, its schemas, and the check of what is sent to it.
Never: registers anything; runs the function; has an option that does nothing yet.
Was wrong once: options with defaults for what was not built. A limit that nobody kept was believed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Protocol, TypeVar, cast, overload

from msgspec import Raw

from onefold.actuators import blocking
from onefold.actuators.arguments import check_arguments
from onefold.actuators.carried import PassEnded
from onefold.actuators.limits import limits_of
from onefold.actuators.module import RunModule, module_of
from onefold.actuators.run import Run
from onefold.actuators.schema import Schema, input_schema, output_schema
from onefold.actuators.stepping import annotations_of
from onefold.actuators.words import Start
from onefold.kernel.port import Port
from onefold.terms.codec import Json, canonical, digest
from onefold.terms.errors import Finding, LoadRefused, TooLarge
from onefold.terms.ids import check_name, nearest
from onefold.terms.limits import MAX_ROW_BYTES
from onefold.terms.places import place_of_call, place_of_function, placed
from onefold.terms.typed import Codec, codec_of

if TYPE_CHECKING:
    from pydantic import BaseModel

I = TypeVar("I")  # noqa: E741 - the input
O = TypeVar("O")  # noqa: E741 - the output
Webhook = Literal["standard", "stripe", "github", "slack"]
LongWait = Literal["auto", "receipt", "task"]
HINTS = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
"""What is said of a tool whose author says nothing: the careful answer to each."""
Passing = Callable[[Any, "Actuator[Any, Any]"], Awaitable[PassEnded]]
"""Makes a pass of an actuator over a run's actor, as `executing.run_pass` does."""
INPUT_LIMIT = MAX_ROW_BYTES - 65_536
"""Bytes of a run's input: a notice shows it beside its message, in one row."""
HOST = re.compile(r"https://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?", re.ASCII)
VARIABLE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Actuator(Generic[I, O]):
    """A durable function as a value.

    function: the plain function. model: its input, or None. is_async: whether it runs as a task or in
    a thread. ports: names of the ports it declares. result: the codec of its return annotation. passing: who makes its
    passes, where its function is not in this process.
    """

    passing: Passing | None = None

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        capabilities: Sequence[str | Port[Any, Any]] = (),
        migrations: Sequence[str] = (),
        dedupe_by: Sequence[str] = (),
        tool: bool = True,
        webhook: Webhook | None = None,
        long_wait: LongWait = "auto",
        hints: Mapping[str, bool] | None = None,
        at_once: int | None = None,
        rate: str | None = None,
        debounce: str | timedelta | None = None,
        per: Sequence[str] = (),
    ) -> None:
        self.function = function
        self.name = check_name(name if name is not None else getattr(function, "__name__", None), "actuator")
        self.description = inspect.cleandoc(description or function.__doc__ or "")
        self.is_async = inspect.iscoroutinefunction(function)
        self.model, returns = self._signature()
        self.result = codec_of(returns)
        self.input_schema, self.output_schema = self._schemas()
        self.capabilities = tuple(self._capability(item) for item in _items(capabilities, self._refuse, "capabilities"))
        self.ports = frozenset(item.name for item in self.capabilities if isinstance(item, Port))
        self.migrations = tuple(self._migration(item) for item in _items(migrations, self._refuse, "migrations"))
        self.dedupe_by = self._fields("dedupe_by", dedupe_by)
        self.tool = bool(tool)
        self.webhook = self._one_of("webhook", webhook, (None, "standard", "stripe", "github", "slack"))
        self.long_wait = self._one_of("long_wait", long_wait, ("auto", "receipt", "task"))
        self.hints = self._hints(hints or {})
        self.limits = limits_of(at_once, rate, debounce, self._fields("per", per), self._refuse)

    def __repr__(self) -> str:
        return f"<actuator {self.name}>"

    def __call__(self, *args: object, **values: object) -> NoReturn:
        raise TypeError(f"{self.name} is an actuator; start it with app.call or app.start, or use {self.name}.function")

    def check(self, arguments: Json) -> I:
        """The input made of what was sent. Raises: BadArguments with one fault a field; nothing was started."""
        return cast(I, check_arguments(self.model, self.input_schema["properties"], arguments))

    async def checked(self, arguments: Json) -> I:
        """As `check`, for a door that can wait: the model may be in another process."""
        return self.check(arguments)

    def written(self, value: I | None) -> bytes:
        """The input as canonical JSON, kept with the run. Raises: TypeError for another class, TooLarge."""
        if self.model is None:
            return b"null"
        if not isinstance(value, self.model):
            model, given = self.model.__name__, "nothing" if value is None else type(value).__name__
            raise TypeError(f"{self.name} takes {model}, not {given}; write call({self.name}, {model}(…)), or start")
        raw = canonical(value.model_dump(mode="json", by_alias=True))
        if len(raw) > INPUT_LIMIT:
            raise TooLarge(f"the input of {self.name}", len(raw), INPUT_LIMIT)
        return raw

    def agreeing(self, value: I | None) -> str | None:
        """What this call shares with those that agree on `dedupe_by`: a digest, or None without such fields."""
        return self.sharing(value, self.dedupe_by)

    def sharing(self, value: I | None, fields: Sequence[str]) -> str | None:
        """A digest of these fields of an input; None without any."""
        if not fields or self.model is None:
            return None
        told = cast("BaseModel", value).model_dump(mode="json", by_alias=True)
        return digest(canonical([told.get(name) for name in fields])).hex()

    def start(
        self,
        *,
        run: str,
        input: bytes,
        key: str | None = None,
        principal: str | None = None,
        dedupe: str | None = None,
        nonce: str = "",
        after: int = 0,
        **more: Any,
    ) -> Start:
        """The event that creates a run. `input` is what `written` gave; `after`: ms until it begins."""
        return Start(run, self.name, Raw(input), key, principal, dedupe, nonce, after=after, **more)

    @cached_property
    def module(self) -> RunModule:
        """How one run of this actuator decides: an actor of the kind that is the actuator's name."""
        return module_of(self.name)

    def read_input(self, raw: Any) -> I:
        """The way back. Raises: ValueError when newer code no longer takes it."""
        if self.model is None:
            return cast(I, None)
        return cast(I, self.model.model_validate_json(bytes(raw)))

    # --- reading the declaration ------------------------------------------------------------------

    def _signature(self) -> tuple[type[BaseModel] | None, Any]:
        parameters = _parameters(self.function)
        hints = self._annotations()
        if not parameters:
            self._refuse("takes no parameter; its first is `run: Run`")
        run = blocking.Run if not self.is_async else Run
        if hints.get(parameters[0]) is not run:
            other = "async def" if hints.get(parameters[0]) is Run else "def"
            told = "onefold.blocking.Run" if not self.is_async else "onefold.Run"
            hint = f", or write it as `{other}`" if hints.get(parameters[0]) in (Run, blocking.Run) else ""
            self._refuse(f"parameter {parameters[0]!r} must be annotated `{told}`{hint}")
        if len(parameters) > 2:
            extra = ", ".join(repr(name) for name in parameters[2:])
            self._refuse(f"takes more than (run, input): {extra}; put all arguments into one pydantic model")
        model = None
        if len(parameters) == 2:
            from pydantic import BaseModel

            model = hints.get(parameters[1])
            if not (isinstance(model, type) and issubclass(model, BaseModel)):
                self._refuse(f"parameter {parameters[1]!r} must be annotated with one pydantic model")
        if "return" not in hints:
            self._refuse("has no return annotation; the signature is the schema")
        return model, hints["return"]

    def _schemas(self) -> tuple[Schema, Schema]:
        return input_schema(self.model, f"actuator {self.name}"), _told(self.result)

    def _annotations(self) -> dict[str, Any]:
        try:
            return annotations_of(self.function)
        except NameError as unknown:
            self._refuse(f"the annotation {unknown.name!r} cannot be found; define the type at the top of the file")

    def _capability(self, item: object) -> str | Port[Any, Any]:
        if isinstance(item, Port):
            return item
        if isinstance(item, str) and (HOST.fullmatch(item) or VARIABLE.fullmatch(item)):
            return item
        self._refuse(f'capability {item!r} is none of "https://host", "env:NAME" or a port')

    def _migration(self, item: object) -> str:
        if isinstance(item, str) and item.strip():
            return item
        self._refuse(f"migration {item!r} is not a statement of SQL")

    def _fields(self, option: str, given: object) -> tuple[str, ...]:
        return tuple(self._field(option, item) for item in _items(given, self._refuse, option))

    def _field(self, option: str, item: object) -> str:
        names = self.input_schema["properties"]
        if isinstance(item, str) and item in names:
            return item
        close = nearest(str(item), list(names))
        self._refuse(
            f"{option} names {item!r}, which its input does not have" + (f"; did you mean {close!r}?" if close else "")
        )

    def _one_of(self, option: str, value: Any, allowed: tuple[Any, ...]) -> Any:
        if value in allowed:
            return value
        self._refuse(f"{option}={value!r} must be one of {', '.join(repr(item) for item in allowed)}")

    def _hints(self, hints: Mapping[str, bool]) -> dict[str, bool]:
        for name, value in hints.items():
            if name not in HINTS:
                self._refuse(f"hint {name!r} is not known; there are {', '.join(HINTS)}")
            if not isinstance(value, bool):
                self._refuse(f"hint {name!r} must be True or False, not {value!r}")
        return {**HINTS, **hints}

    def _refuse(self, problem: str) -> NoReturn:
        raise LoadRefused([Finding(placed(f"actuator {self.name}", place_of_function(self.function)), problem)])


@lru_cache(maxsize=256)  # many tools of one file give the same type
def _told(result: Codec[Any]) -> Schema:
    return output_schema(result.schema())


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The names of its parameters. why: a signature read whole costs 45 us, and a start may declare a thousand."""
    code = getattr(function, "__code__", None)
    if (
        code is None
        or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        or hasattr(function, "__wrapped__")
    ):
        return list(inspect.signature(function).parameters)
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _items(value: object, refuse: Callable[[str], NoReturn], option: str) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        refuse(f"{option} must be a list, not {value!r}")
    return list(value)


OPTIONS = tuple(inspect.signature(Actuator.__init__).parameters)[2:]


class _Decorator(Protocol):
    @overload
    def __call__(self, function: Callable[[Run, I], Awaitable[O]], /) -> Actuator[I, O]: ...
    @overload
    def __call__(self, function: Callable[[Run], Awaitable[O]], /) -> Actuator[None, O]: ...
    @overload
    def __call__(self, function: Callable[[blocking.Run, I], O], /) -> Actuator[I, O]: ...
    @overload
    def __call__(self, function: Callable[[blocking.Run], O], /) -> Actuator[None, O]: ...


@overload
def actuator(function: Callable[[Run, I], Awaitable[O]], /) -> Actuator[I, O]: ...
@overload
def actuator(function: Callable[[Run], Awaitable[O]], /) -> Actuator[None, O]: ...
@overload
def actuator(function: Callable[[blocking.Run, I], O], /) -> Actuator[I, O]: ...
@overload
def actuator(function: Callable[[blocking.Run], O], /) -> Actuator[None, O]: ...
@overload
def actuator(
    *,
    name: str | None = None,
    description: str | None = None,
    capabilities: Sequence[str | Port[Any, Any]] = (),
    migrations: Sequence[str] = (),
    dedupe_by: Sequence[str] = (),
    tool: bool = True,
    webhook: Webhook | None = None,
    long_wait: LongWait = "auto",
    hints: Mapping[str, bool] | None = None,
    at_once: int | None = None,
    rate: str | None = None,
    debounce: str | timedelta | None = None,
    per: Sequence[str] = (),
) -> _Decorator: ...
def actuator(function: Any = None, /, **options: Any) -> Any:
    """A function as an actuator. Raises: LoadRefused with a sentence naming the function and what is wrong with it."""
    unknown = next((name for name in options if name not in OPTIONS), None)
    if unknown is not None:
        close = nearest(unknown, OPTIONS)
        hint = f"; did you mean {close!r}?" if close else f"; there are {', '.join(OPTIONS)}"
        raise LoadRefused([Finding(placed("@actuator", place_of_call()), f"has no option {unknown!r}{hint}")])
    if function is None:
        return lambda function: Actuator(function, **options)
    return Actuator(function)
