"""testing.laws - what every module and every cell must keep, over histories that nobody wrote down.

For: `module_laws(bank, events=…, answers={"transfer": …})`, in any test; lists or Hypothesis strategies.
Never: a store, a loop, a clock; says that a module is right: only that the kernel may run it again.
Was wrong once: laws that a sound module could break. Each is now held by twins that only it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onefold.testing.laws.holding import LAWS, Law, LawBroken
from onefold.testing.laws.plans import drawn, is_strategy, listed
from onefold.testing.laws.play import AnyModule, Move, play
from onefold.testing.laws.samples import declared

if TYPE_CHECKING:
    from onefold.cell.shape import Cell

__tracebackhide__ = True  # a failing test shows the test's own lines

__all__ = ["LAWS", "Law", "LawBroken", "Seen", "module_laws"]


@dataclass
class Seen:
    """What the histories came to.

    facts: how often each class was decided. never: those declared and not decided;
    of a cell, the methods that nothing called.
    """

    histories: int = 0
    turns: int = 0
    faults: int = 0
    facts: Counter[str] = field(default_factory=Counter)
    never: tuple[str, ...] = ()


def module_laws(
    module: AnyModule | type[Cell],
    *,
    events: Any,
    answers: Mapping[str, Any] | None = None,
    laws: Sequence[Law] = LAWS,
) -> Seen:
    """Hold a module to the laws over generated histories: events, repeats, late answers, alarms, time passing.

    A cell too: its events are programs, (method, arguments), or fields to capture. events, answers (bodies by port):
    lists, or Hypothesis strategies. Raises: LawBroken; ValueError when the events bring nothing about; BadArguments
    for an event that is none of the cell's.
    """
    if isinstance(module, type):
        return _cell_laws(module, events, laws)
    return _hold(module, lambda plan: plan, events, answers or {}, laws)


def _cell_laws(cls: type[Cell], events: Any, laws: Sequence[Law]) -> Seen:
    from onefold.cell.shape import shape_of
    from onefold.program.monty import Interpreter
    from onefold.testing.laws.cells import Playing, begun, of_cells

    shape, interpreter = shape_of(cls), Interpreter(processes=1)
    module = Playing(shape, interpreter)
    try:
        seen = _hold(module, lambda plan: begun(shape, plan), events, {}, [of_cells(law) for law in laws])
    finally:
        interpreter.close()
    seen.never = tuple(name for name in shape.methods if name not in module.called)
    return seen


def _hold(
    module: AnyModule,
    planned: Callable[[Sequence[Move]], Sequence[Move]],
    events: Any,
    answers: Mapping[str, Any],
    laws: Sequence[Law],
) -> Seen:
    seen = Seen()

    def hold(drawn: Sequence[Move]) -> None:
        plan = planned(drawn)
        history = play(module, plan)
        seen.histories += 1
        seen.faults += len(history.faults)
        seen.turns += len(history.turns)
        seen.facts.update(type(fact).__name__ for turn in history.turns for fact in turn.facts)
        for law in laws:
            law.hold(module, plan, history)

    if is_strategy(events) or any(map(is_strategy, answers.values())):
        from hypothesis import given, settings

        given_plans: Any = given(drawn(events, answers))
        held: Callable[[], None] = settings(deadline=None)(given_plans(hold))
        held()
    else:
        for plan in listed(list(events), answers):
            hold(plan)
    if not seen.turns and not seen.faults:
        raise ValueError(f"module_laws: these events brought no turn of {module.name} about, so nothing was held")
    seen.never = tuple(kind.__name__ for kind in declared(module) if kind.__name__ not in seen.facts)
    return seen
