"""testing.laws.cells - the laws of a cell: its methods and programs, over histories that nobody wrote down.

For: `module_laws(Room, events=[(Room.greet, {"name": "a"}), "greet('a')"])`: a shape as the module it is, and what only
its drafts show: a method that remembers beside its fields, a value that is not of its type or comes back otherwise.
Never: takes a raise for a fault by itself: raising is how a method refuses, and keeps nothing.
Was wrong once: each turn judged by itself. A method that remembered on its class gave the same answer twice, and another
after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from onefold.cell.method import Bound, Method
from onefold.cell.module import decision, ended, evolved
from onefold.cell.shape import Cell, Shape
from onefold.cell.words import Began, Call, Capture, Json, Kept, Record, Retired, Set, Spawn, Told
from onefold.kernel.module import Module
from onefold.kernel.twice import Impure, differing, picture
from onefold.kernel.words import Decision
from onefold.program.handles import Handles
from onefold.program.monty import Interpreter
from onefold.program.source import read
from onefold.program.words import LIMITS, OneCall, Statements, Stopped
from onefold.terms.codec import text_problem
from onefold.terms.errors import BadArguments, Fault, Undeclared
from onefold.terms.typed import Codec
from onefold.testing.laws.holding import Law, shown
from onefold.testing.laws.play import Event, History, Move, Turn, play
from onefold.testing.laws.trying import tried

PATIENT = replace(LIMITS, seconds=60.0)  # a busy machine breaks no law
ONE = "a"  # the cell whose history it is
SLIPS = (AttributeError, NameError, TypeError, AssertionError, RecursionError, Undeclared)
"""What nobody raises in order to refuse."""


@dataclass(frozen=True, slots=True)
class Said:
    """A program for the cell."""

    id: str
    cell: str
    source: str


Asked: TypeAlias = "Spawn | Call | Capture | Said"
Fact: TypeAlias = "Began | Set | Retired | Kept"


@dataclass(slots=True)
class Heard:
    """What the methods of one turn gave: a name, its codec and the value; and what they raised."""

    values: list[tuple[str, Codec[Any], Any]]
    raised: list[tuple[str, Exception]]


class Playing(Module[Record, Asked, Fact, Told, Record]):
    """A shape as a module that runs its programs itself, at once. doubled: each turn is played twice and compared."""

    room = "cells"

    def __init__(self, shape: Shape, interpreter: Interpreter, *, doubled: bool = False) -> None:
        self.shape = shape
        self.interpreter = interpreter
        self.called: set[str] = set()

        def decide(record: Record, event: Asked, now: datetime) -> Decision[Fact, Told]:
            return self._twice(record, event, now) if doubled else self.acted(record, event, now)[0]

        def evolve(record: Record, fact: Fact) -> Record:
            return evolved(shape, {}, record, fact)

        def snapshot(record: Record) -> Kept:
            return Kept(record.exists, dict(record.fields), 1, record.changes)

        def view(record: Record) -> Record:
            return record

        def key(event: Asked) -> str:
            return event.cell

        super().__init__("cell", initial=Record(), key=key, decide=decide, evolve=evolve, view=view, snapshot=snapshot)
        self.name = shape.name

    def acted(self, record: Record, event: Asked, now: datetime) -> tuple[Decision[Fact, Told], Cell | None, Heard]:
        """What a turn comes to, the draft it was made on, and what its methods gave and raised."""
        heard = Heard([], [])
        if not isinstance(event, Call | Said):
            return decision(self.shape, 1, record, event, now), None, heard
        draft = self.shape.draft(record, now)
        scope = {name: Bound(self._heard(m, heard), draft, Handles()) for name, m in self.shape.methods.items()}
        if isinstance(event, Call):
            listening = copy(self.shape)
            listening.scope = lambda *_: scope  # type: ignore[method-assign]
            listening.draft = lambda *_: draft  # type: ignore[method-assign]
            return decision(listening, 1, record, event, now), draft, heard
        program = read(event.source, scope, LIMITS)
        assert isinstance(program, Statements)  # one call is a Call
        verdict = self.interpreter.run(program, scope, now, len(event.id), PATIENT)
        told = ended(self.shape, draft, record, event.id, event.cell, verdict)
        return decision(self.shape, 1, record, told, now), draft, heard

    def _twice(self, record: Record, event: Asked, now: datetime) -> Decision[Fact, Told]:
        first, then = self.acted(record, event, now)[0], self.acted(record, event, now)[0]
        changed = differing(picture(first), picture(then))
        if changed is not None:
            raise Impure(self.name, named(event), f"gave two answers on the same record: {changed}")
        return first

    def _heard(self, method: Method, heard: Heard) -> Method:
        """The method; what it gives and raises is written down."""
        listening = copy(method)

        def function(draft: Any, **values: Any) -> Any:
            self.called.add(method.name)
            try:
                value = method.function(draft, **values)
            except Exception as raised:
                heard.raised.append((method.name, raised))
                raise
            if method.gives is not None:
                heard.values.append((f"what {method.name} gave,", method.gives, value))
            return value

        listening.function = function
        return listening


_NO_TEXT = (text_problem("\0"), text_problem("\ud800"))

# --- events ---------------------------------------------------------------------------------------------


def begun(shape: Shape, plan: Sequence[Move]) -> list[Move]:
    """A plan of a person's events as one of the cell's: it is spawned first, and each event has an id of its own.

    Text that no JSON holds, as a strategy of texts makes now and then, is no event. Raises: BadArguments for one that
    is none of this shape's.
    """
    made: list[Move] = []
    if any(isinstance(move, Event) for move in plan) and not shape.on_demand:
        made.append(Event(Spawn("spawn", ONE)))
    for n, move in enumerate(plan):
        if not isinstance(move, Event):
            made.append(move)
            continue
        try:
            made.append(Event(asked(shape, f"event-{n}", move.event)))
        except BadArguments as bad:
            if any(each.problem not in _NO_TEXT for each in bad.faults):
                raise
    return made


def asked(shape: Shape, id: str, event: Any) -> Asked:
    """One event: a program, fields to capture, or a method with its arguments. Raises: BadArguments."""
    if isinstance(event, str):
        return _program(shape, id, event)
    if isinstance(event, Mapping):
        return Capture(id, ONE, {name: _json(shape.field(name).codec, name, value) for name, value in event.items()})
    function, arguments = event if isinstance(event, tuple) and len(event) == 2 else (event, {})
    method = shape.methods.get(getattr(function, "__name__", ""))
    if method is None or method.function is not function or not isinstance(arguments, Mapping):
        wants = f'a program, {{field: value}}, or ({shape.name}.method, {{"argument": value}})'
        raise BadArguments([Fault("events", f"each is {wants}", event)])
    try:
        written = method.written((), arguments)
    except TypeError as wrong:
        raise BadArguments([Fault(method.name, str(wrong), dict(arguments))]) from None
    if method.for_programs_only:
        raise BadArguments([Fault(method.name, "takes or gives handles, which only a program can hold")])
    return Call(id, ONE, method.name, written)


def _program(shape: Shape, id: str, source: str) -> Asked:
    program = read(source, shape.names, LIMITS)
    if isinstance(program, Stopped):
        raise BadArguments([Fault("events", f"is no program of {shape.name}: {dict(program.told)}", source)])
    if isinstance(program, OneCall):
        return Call(id, ONE, program.name, dict(program.arguments))
    return Said(id, ONE, source)


def _json(codec: Codec[Any], name: str, value: Any) -> Json:
    try:
        return codec.to_json(value)
    except BadArguments as bad:
        raise BadArguments([Fault(name, each.problem, each.got) for each in bad.faults]) from None


def named(event: Asked) -> str:
    """An event as a sentence names it."""
    match event:
        case Call(method=method):
            return method
        case Said(source=source):
            return f"the program {source!r}"
        case Capture():
            return "a capture"
        case Spawn():
            return "the spawn"


# --- laws -----------------------------------------------------------------------------------------------


def _pure(module: Playing, plan: Sequence[Move], history: History) -> Iterator[str]:
    again = play(Playing(module.shape, module.interpreter, doubled=True), plan)
    found = [fault.raised for fault in again.faults]
    yield from (f"{raised.function} {raised.difference}" for raised in found if isinstance(raised, Impure))


def _total(module: Playing, plan: Sequence[Move], history: History) -> Iterator[str]:
    for turn in history.turns:
        _, draft, heard = module.acted(turn.before, turn.what, turn.now)
        for name, raised in heard.raised:
            if isinstance(raised, SLIPS):
                yield f"{name} raised {type(raised).__name__}: {raised}, which is no refusal"
        for what, codec, value in heard.values:
            wrong = tried(codec.to_json, value).raised
            if wrong is not None:
                yield f"{what} is not of its type: {shown(value)}"
        if draft is not None and not heard.raised:
            changed = tried(module.shape.changed, draft, turn.before).raised
            if changed is not None:
                yield f"{named(turn.what)} left a field that is not of its type: {changed}"


def _replayed(module: Playing, plan: Sequence[Move], history: History) -> Iterator[str]:
    """Each turn once more on its own record, the latest first: what it comes to may hang on nothing else."""
    for turn in reversed(history.turns):
        now, again = _anew(module, turn), _anew(module, turn)
        if now is None or picture(now) != picture(again):
            continue  # purity's to tell
        changed = differing(picture(turn.decision), picture(now))
        if changed is not None:
            yield f"{named(turn.what)} came to something else on the same record later: {changed}"


def _anew(module: Playing, turn: Turn) -> Any:
    return tried(lambda: module.acted(turn.before, turn.what, turn.now)[0]).value


def _written(module: Playing, plan: Sequence[Move], history: History) -> Iterator[str]:
    for turn in history.turns:
        _, draft, heard = module.acted(turn.before, turn.what, turn.now)
        fields = {} if draft is None or heard.raised else module.shape.fields
        values = [(f"the field {name!r}", field.codec, draft.__dict__[name]) for name, field in fields.items()]
        for what, codec, value in [*heard.values, *values]:
            back = tried(lambda codec=codec, value=value: codec.from_json(codec.to_json(value)))
            if tried(codec.to_json, value).raised is not None:
                continue  # totality's to tell
            if back.raised is not None:
                yield f"{what} {shown(value)} could not be read again: {type(back.raised).__name__}: {back.raised}"
            else:
                changed = differing(picture(value), picture(back.value))
                if changed is not None:
                    yield f"{what} {shown(value)} came back otherwise: {changed}"


_OWN: Mapping[str, Callable[..., Iterator[str]]] = {
    "purity": _pure,
    "totality": _total,
    "replay": _replayed,
    "round trips": _written,
}


def of_cells(law: Law) -> Law:
    """A law of modules as one of cells: what its drafts show, then what its facts show."""
    own = _OWN.get(law.name)
    if own is None:
        return law
    return Law(law.name, law.says, partial(_both, own, law.broken if law.name != "purity" else None))


def _both(own: Any, of_modules: Any, module: Playing, plan: Sequence[Move], history: History) -> Iterator[str]:
    yield from own(module, plan, history)
    if of_modules is not None:
        yield from of_modules(module, plan, history)
