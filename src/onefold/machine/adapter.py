"""machine.adapter - a chart becomes a Module: events by class name, one fact a move, effects as owed rows.

For: `from_machine`, and nothing else. The module keeps the snapshot as its state and rebuilds the chart
from it for each event.
Never: lets a chart wait by itself. Time is the context's `wake`; the alarm comes as the event "Alarm", what
a port gave back as "Answer".
Was wrong once: a fact for each state that was left or entered. Rebuilding then ran the chart's rules anew,
and a new version of the chart told old histories differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from onefold.kernel.module import Module
from onefold.kernel.words import Answer, Decision, Owed
from onefold.machine.actor import UNREAD
from onefold.machine.acts import Function
from onefold.machine.definition import NO_FUNCTIONS, load
from onefold.machine.draw import dot, mermaid
from onefold.machine.snapshot import value_of
from onefold.machine.step import Trace, event_id, trace, trace_start
from onefold.machine.table import Chart
from onefold.machine.words import Moved, Plain, Snapshot, Stepped, Value
from onefold.terms.codec import Json
from onefold.terms.errors import Finding, LoadRefused
from onefold.terms.instant import down

C = TypeVar("C")
E = TypeVar("E")

ALARM: Final = "Alarm"
ANSWER: Final = "Answer"


class State(Generic[C]):
    """What the module holds of one actor: its snapshot, None before the first move, and the context read from it."""

    __slots__ = ("_chart", "_context", "snapshot")

    def __init__(self, chart: Chart, snapshot: dict[str, Any] | None) -> None:
        self._chart = chart
        self.snapshot = snapshot
        self._context: Any = UNREAD

    @property
    def context(self) -> C:
        if self._context is UNREAD:
            json = self._chart.context(None, None) if self.snapshot is None else self.snapshot["context"]
            assert self._chart.codec is not None  # from_machine hands the context in
            self._context = self._chart.codec.from_json(json)
        found: C = self._context
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.snapshot == other.snapshot

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"State({self.snapshot!r})"


class ChartModule(Module[State[C], E, Moved, Stepped, Snapshot[C]]):
    """A module that decides by a chart. `answers` is the type of what "Answer" brings; its parts are from_machine's."""

    def __init__(
        self,
        chart: Chart,
        *,
        context: type[C],
        key: Callable[[E], str],
        events: list[type],
        answers: Any,
        wake: Callable[[C], datetime | None] | None,
    ) -> None:
        decides: _Decides[C] = _Decides(chart, wake)

        def decide(state: State[C], event: E, now: datetime) -> Decision[Moved, Stepped]:
            return decides.decide(state, event, now)

        def on_answer(state: State[C], answer: Answer[Any], now: datetime) -> Decision[Moved, Any]:
            return decides.on_answer(state, answer, now)

        def view(state: State[C]) -> Snapshot[C]:
            return decides.view(state)

        _signed(decide, event=reduce(or_, events), **{"return": Decision[Moved, Stepped]})
        _signed(on_answer, answer=_of(Answer, answers))
        _signed(view, **{"return": _of(Snapshot, context)})
        super().__init__(
            chart.name,
            initial=State(chart, None),
            key=key,
            decide=decide,
            evolve=decides.evolve,
            view=view,
            on_answer=on_answer if chart.hears & {ANSWER, "*"} else None,
            on_alarm=decides.on_alarm if wake is not None else None,
            wake=decides.wake if wake is not None else None,
            snapshot=decides.snapshot,
        )
        self.chart = chart

    def drawn(self, language: Literal["mermaid", "dot"] = "mermaid") -> str:
        """The chart as text for Mermaid or Graphviz."""
        return dot(self.chart) if language == "dot" else mermaid(self.chart)


def from_machine(
    name: str,
    chart: Mapping[str, Any] | str | bytes,
    *,
    context: C,
    key: Callable[[E], str],
    guards: Mapping[str, Callable[..., bool]] = NO_FUNCTIONS,
    actions: Mapping[str, Function] = NO_FUNCTIONS,
    effects: Mapping[str, Callable[..., Owed]] = NO_FUNCTIONS,
    wake: Callable[[C], datetime | None] | None = None,
) -> ChartModule[C, E]:
    """A module that decides by a chart, which is a dict or JSON.

    context: what each actor begins with, a frozen dataclass or struct. key: event to actor; the annotation
    of its parameter names the events, each heard by its class name. guards: (context, event, now) to bool.
    actions: (context, event, now) to context. effects: (context, event, now) to Owed. wake: when "Alarm"
    is due. An annotation Answer[…] of an event says what "Answer" brings; without one it is plain JSON.
    Raises: LoadRefused with every fault found.
    """
    events = _events(name, key)
    loaded = load(
        chart,
        name=name,
        context=context,
        guards=guards,
        actions=actions,
        effects={effect: _owing(effect, run) for effect, run in effects.items()},
        events={ALARM, ANSWER, *(event.__name__ for event in events)},
    )
    _check(name, loaded, wake)
    answers = _answers((*guards.values(), *actions.values(), *effects.values()))
    return ChartModule(loaded, context=type(context), key=key, events=events, answers=answers, wake=wake)


class _Decides(Generic[C]):
    """A module's functions over one chart."""

    def __init__(self, chart: Chart, wake: Callable[[C], datetime | None] | None) -> None:
        self._chart = chart
        self._wake = wake
        self._first = _first(chart)

    def decide(self, state: State[C], event: Any, now: datetime) -> Decision[Moved, Stepped]:
        facts, owed, value = self._fold(state, event, type(event).__name__, now)
        return Decision(facts=facts, owed=owed, reply=Stepped(bool(facts), value))

    def on_answer(self, state: State[C], answer: Any, now: datetime) -> Decision[Moved, Any]:
        facts, owed, _ = self._fold(state, answer, ANSWER, now)
        return Decision(facts=facts, owed=owed)

    def on_alarm(self, state: State[C], now: datetime) -> Decision[Moved, Any]:
        facts, owed, _ = self._fold(state, Plain(ALARM, {}, f"alarm/{down(now)}"), ALARM, now)
        return Decision(facts=facts, owed=owed)

    def evolve(self, state: State[C], fact: Moved) -> State[C]:
        return State(self._chart, fact.snapshot)

    def view(self, state: State[C]) -> Snapshot[C]:
        if state.snapshot is None:
            return Snapshot(self._first, state.context, "active")
        return Snapshot(state.snapshot["value"], state.context, state.snapshot["status"])

    def wake(self, state: State[C]) -> datetime | None:
        if self._wake is None or state.snapshot is None or state.snapshot["status"] != "active":
            return None
        return self._wake(state.context)

    def snapshot(self, state: State[C]) -> Moved:
        assert state.snapshot is not None  # there was a fact, so there is one
        return Moved("", state.snapshot)

    def _fold(self, state: State[C], event: Any, name: str, now: datetime) -> tuple[list[Moved], list[Owed], Value]:
        """One event: the chart starts with the first one, and is moved only by one that changes something."""
        before = state.snapshot
        owed: list[Owed] = []
        if before is None:
            begun = trace_start(self._chart, now, id=event_id(event))
            owed += _owed(begun)
            taken = trace(self._chart, begun.snapshot, event, now)
            idle = not owed and taken.snapshot == begun.snapshot
        else:
            taken = trace(self._chart, before, event, now, context=state.context)
            idle = taken.snapshot is before or taken.snapshot == before
        owed += _owed(taken)
        if idle and not owed:
            return [], [], taken.snapshot["value"]
        return [Moved(name, taken.snapshot)], owed, taken.snapshot["value"]


def _owed(trace: Trace) -> list[Owed]:
    return [effect.value for effect in trace.effects]


def _owing(name: str, run: Function) -> Function:
    """The effect, held to its word: it gives Owed and nothing else."""

    def owing(context: Any, event: Any, now: datetime) -> Owed:
        owed = run(context, event, now)
        if isinstance(owed, Owed):
            return owed
        raise TypeError(f"effect {name!r} gave {owed!r}; an effect gives Owed(port, key, body)")

    return owing


# --- what the annotations say ---------------------------------------------------------------------


def _events(name: str, key: Callable[[Any], str]) -> list[type]:
    """The classes of the events. Raises: LoadRefused."""
    hints = list(_hints(key).items())
    first = next((hint for parameter, hint in hints if parameter != "return"), None)
    members = _members(first)
    if first is None or not all(isinstance(member, type) for member in members):
        told = "annotate its parameter with the events it takes, as in `def which(event: Start | Stop) -> str`"
        raise LoadRefused([Finding(f"chart {name}, key", told)])
    for taken in sorted({member.__name__ for member in members} & {ALARM, ANSWER}):
        told = f"{taken!r} is the kernel's event; call the class something else"
        raise LoadRefused([Finding(f"chart {name}, key", told)])
    return members


def _answers(functions: tuple[Function, ...]) -> Any:
    """What "Answer" may bring: all that the functions' annotations say, or any JSON."""
    found: list[Any] = []
    for function in functions:
        for parameter, hint in _hints(function).items():
            if parameter != "return":
                for member in _members(hint):
                    if get_origin(member) is Answer:
                        found += (body for body in _members(get_args(member)[0]) if body not in found)
    return reduce(or_, found) if found else Json


def _hints(function: Function) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):  # a name the function's module has only for checkers, or no function at all
        return {}


def _members(hint: Any) -> list[Any]:
    return list(get_args(hint)) if get_origin(hint) in (Union, UnionType) else [hint]


def _signed(function: Callable[..., Any], **annotations: Any) -> None:
    """A function whose signature says the types of this chart: the signature is the schema."""
    function.__annotations__ = annotations


def _of(generic: Any, argument: Any) -> Any:
    """`generic[argument]`, for an argument that only a run knows."""
    return generic[argument]


def _check(name: str, chart: Chart, wake: Callable[[Any], datetime | None] | None) -> None:
    """Raises: LoadRefused for an alarm that only one side knows of."""
    found = []
    if wake is None and ALARM in chart.hears:
        found.append(Finding(f"chart {name}", "hears 'Alarm', but nothing wakes it; hand in `wake`"))
    if wake is not None and not chart.hears & {ALARM, "*"}:
        found.append(Finding(f"chart {name}", "has `wake`, but no state hears 'Alarm'; it would ring for nothing"))
    if found:
        raise LoadRefused(found)


def _first(chart: Chart) -> Value:
    """Where an actor without history is: where the chart begins, before its first step."""
    return value_of(chart.root, set(chart.enters))
