"""reflex.effects - a Python function as the one thing that a reflex does.

For: `@effect(name, writes=[…])`, its `.preview`, and `Effects`, the effects of an app by their names.
Imports: kernel, store, terms.
Never: retries, keeps or emits by itself: the engine does, around `run`; holds up the loop for a plain function.
Was wrong once: what an effect writes, guessed from what it had once emitted. A cycle was found on the day it ran.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import FunctionType
from typing import Any, Final, Generic, NoReturn, TypeVar, cast, get_type_hints, overload

from onefold.kernel.port import unstopped
from onefold.reflex.seams import Effect, Task
from onefold.reflex.sql_effect import Changers, SqlEffect
from onefold.reflex.words import Json
from onefold.store.worker import Worker
from onefold.terms.codec import shown, text_problem
from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused
from onefold.terms.ids import check_name
from onefold.terms.places import place_of_function, placed
from onefold.terms.typed import Codec, codec_of

I = TypeVar("I")  # noqa: E741 - the input
O = TypeVar("O")  # noqa: E741 - the output
S = TypeVar("S", bound=Callable[..., str])
NOTHING: Final[tuple[Json, ...]] = (None, {})
"""The inputs of an effect that takes none."""
_SHAPE: Final = "takes (task: Task, input: Type), or (task: Task) alone"


class EffectFunction(Generic[I, O]):
    """A function as an effect. `function`: the plain function, for its tests. Made by `@effect`.

    writes: the entities whose facts it makes; None: nobody said, and the graph shows a blind edge.
    """

    def __init__(self, name: str, function: Callable[..., Any], writes: Sequence[str] | None) -> None:
        self._place = place_of_function(function)
        self.function = function
        self.name = self._checked(name)
        self.writes: Sequence[str] | None = self._entities(writes)
        self._is_async = inspect.iscoroutinefunction(function)
        self._takes, self._gives = self._signature()
        self._preview: Callable[[I], str] | None = None

    def __repr__(self) -> str:
        return f"<effect {self.name}>"

    def preview(self, function: S) -> S:
        """What it would do, said by a plain function of the input, which does nothing and is asked when somebody looks.

        Raises: LoadRefused for one that is async, or a second one.
        """
        if inspect.iscoroutinefunction(function):
            self._refuse("its preview is a plain function of the input")
        if self._preview is not None:
            self._refuse("has two previews; leave one")
        self._preview = function
        return function

    # --- as the engine has it ---------------------------------------------------------------------

    async def run(self, task: Task, input: Json, /) -> Json:
        """One attempt. Raises: BadArguments for an input that does not fit, and whatever the function raises."""
        given = self.given(input)
        if self._is_async:
            answer = await self.function(task, *given)
        else:
            answer = await self._in_a_thread(partial(self.function, task, *given))
            if inspect.isawaitable(answer):  # a plain function that hands on an async one
                answer = await answer
        return self.written(answer)

    def show(self, input: Json, /) -> str | None:
        """What it would do with this input; None without a preview. Raises: BadArguments; whatever the preview raises."""
        given = self._read(input)
        if self._preview is None:
            return None
        if self._takes is None:
            return cast(Callable[[], str], self._preview)()
        return self._preview(given)

    def given(self, input: Json) -> tuple[Any, ...]:
        """What its function gets beside the task. Raises: BadArguments for an input that does not fit."""
        read = self._read(input)
        return () if self._takes is None else (read,)

    def written(self, answer: Any) -> Json:
        """What its function gave, as JSON. Raises: TypeError for what does not fit its annotation."""
        try:
            return self._gives.to_json(answer)
        except BadArguments as unfit:
            told = "; ".join(map(str, unfit.faults))
            raise TypeError(f"{self.name} acted, and what it gave does not fit its annotation: {told}") from unfit

    # --- inside -------------------------------------------------------------------------------------

    async def _in_a_thread(self, call: Callable[[], Any]) -> Any:
        """In a thread of its own: one that never ends keeps no other from beginning, nor the process from ending."""
        worker = Worker(f"effect-{self.name}")
        try:
            return await worker.ask(unstopped(call))
        finally:
            worker.leave()

    def _read(self, input: Json) -> Any:
        if self._takes is not None:
            return self._takes.from_json(input)
        if input not in NOTHING:
            raise BadArguments([Fault("", f"{self.name} takes no input; leave it out or write {{}}", shown(input))])
        return None

    def _signature(self) -> tuple[Codec[Any] | None, Codec[Any]]:
        hints = self._hints()
        parameters = list(inspect.signature(self.function).parameters.values())
        if not parameters or hints.get(parameters[0].name) is not Task:
            self._refuse(f"{_SHAPE}; its first parameter must be annotated `Task`")
        if len(parameters) > 2:
            extra = ", ".join(repr(each.name) for each in parameters[2:])
            self._refuse(f"{_SHAPE}; put {extra} into the one input")
        for name in (*(each.name for each in parameters[1:]), "return"):
            if name not in hints:
                self._refuse(f"has no annotation for {name!r}; the signature is the schema")
        try:
            takes = codec_of(hints[parameters[1].name]) if len(parameters) == 2 else None
            return takes, codec_of(hints["return"])
        except LoadRefused as refused:
            where = placed(f"effect {self.name}", self._place)
            raise LoadRefused([Finding(where, str(one)) for one in refused.findings]) from None

    def _hints(self) -> dict[str, Any]:
        inner = inspect.unwrap(self.function)
        if not inspect.isfunction(inner):
            self._refuse("is no function; write `@effect(…)` over a def")
        try:
            return get_type_hints(inner, localns=_closed_over(inner), include_extras=True)
        except NameError as unknown:
            self._refuse(f"the annotation {unknown.name!r} cannot be found; define the type at the top of the file")

    def _checked(self, name: str) -> str:
        try:
            return check_name(name, "effect", dots=True)
        except LoadRefused as refused:
            found = [Finding(placed(one.where, self._place), one.problem) for one in refused.findings]
            raise LoadRefused(found) from None

    def _entities(self, writes: Sequence[str] | None) -> Sequence[str] | None:
        if writes is None:
            return None
        if isinstance(writes, str):
            self._refuse(f"writes must be a list of entities: writes=[{writes!r}]")
        for entity in cast(Sequence[Any], writes):
            if not isinstance(entity, str) or not entity or text_problem(entity):
                self._refuse(f"writes names {entity!r}, which is no entity; an entity is text such as a table's name")
        return tuple(dict.fromkeys(writes))

    def _refuse(self, problem: str) -> NoReturn:
        name = getattr(self, "name", getattr(self.function, "__name__", "?"))
        raise LoadRefused([Finding(placed(f"effect {name}", self._place), problem)])


def _closed_over(function: FunctionType) -> dict[str, Any]:
    """What a nested function sees of the one around it, without names that are bound later."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


class _Effecting:
    def __init__(self, name: str, writes: Sequence[str] | None) -> None:
        self._name = name
        self._writes = writes

    @overload
    def __call__(self, function: Callable[[Task, I], Awaitable[O]], /) -> EffectFunction[I, O]: ...
    @overload
    def __call__(self, function: Callable[[Task], Awaitable[O]], /) -> EffectFunction[None, O]: ...
    @overload
    def __call__(self, function: Callable[[Task, I], O], /) -> EffectFunction[I, O]: ...
    @overload
    def __call__(self, function: Callable[[Task], O], /) -> EffectFunction[None, O]: ...
    def __call__(self, function: Any, /) -> Any:
        return EffectFunction(self._name, function, self._writes)


class _Effect:
    """`effect`: a decorator, and `effect.sql`."""

    def __call__(self, name: str, *, writes: Sequence[str] | None = None) -> _Effecting:
        """`async def f(task: Task, input: Type) -> T` as the effect `name`; a plain def runs in a thread.

        The input is a model, a dataclass, or any type with a JSON form. Returning is done, a decline too; raising is
        tried again by the reflex's policy, under the same `task.key`. writes: the entities of which it emits writes,
        or `[]`. Raises: LoadRefused.
        """
        if callable(name):
            raise TypeError(f'@effect needs the name of the effect: @effect("{getattr(name, "__name__", "it")}")')
        return _Effecting(name, writes)

    def sql(
        self, name: str, sql: str, *, on: str, writes: str | None = None, timeout: str | timedelta = "30 seconds"
    ) -> SqlEffect:
        """One INSERT, UPDATE or DELETE in an actuator's own tables, `on="tool:NAME"`. The input is an object of the
        `:name` values; `:principal` and `:key`, the task's key, are bound by the engine. A crash may run it twice: let
        the second time change nothing. What it returns, by RETURNING, becomes facts of `writes`, by default
        "NAME.table". Raises: LoadRefused, and BadArguments for a timeout that is no duration.
        """
        return SqlEffect(name, sql, on=on, writes=writes, timeout=timeout)


effect = _Effect()


def _joined(of: SqlEffect, changers: Changers | None) -> Effect:
    if changers is None:
        raise LoadRefused([Finding(f"effect {of.name}", f"changes {of.on}, and no database was given")])
    return of.joined(changers(of.on))


class Effects(Mapping[str, Effect]):
    """Effects by name. Raises, when made: LoadRefused for two of one name, and for what is no effect."""

    def __init__(self, effects: Iterable[Any] = (), changers: Changers | None = None) -> None:
        """changers: who runs the statements of `effect.sql`."""
        self._by_name: dict[str, Effect] = {}
        findings: list[Finding] = []
        for one in effects:
            if isinstance(one, SqlEffect):
                try:
                    one = _joined(one, changers)
                except LoadRefused as refused:
                    findings += refused.findings
                    continue
            if not all(hasattr(one, part) for part in ("name", "writes", "run", "show")) or isinstance(one, type):
                what = getattr(one, "__name__", repr(one))
                findings.append(Finding(f"effect {what}", "is no effect; write @effect(name) over its function"))
            elif one.name in self._by_name:
                findings.append(Finding(f"effect {one.name}", "stands twice; give one of them another name"))
            else:
                self._by_name[one.name] = one
        if findings:
            raise LoadRefused(findings)

    def __getitem__(self, name: str) -> Effect:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)
