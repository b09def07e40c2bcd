"""testing.laws - what every module must keep, over histories that nobody wrote down.

For: `module_laws(bank, events=…, answers={"transfer": …})`, in any test; lists or Hypothesis strategies.
Never: a store, a loop, a clock; says that a module is right: only that the kernel may run it again.
Was wrong once: laws that a sound module could break. Each is now held by twins that only it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onefold.testing.laws.holding import LAWS, Law, LawBroken
from onefold.testing.laws.plans import drawn, is_strategy, listed
from onefold.testing.laws.play import AnyModule, Move, play
from onefold.testing.laws.samples import declared

__tracebackhide__ = True  # a failing test shows the test's own lines

__all__ = ["LAWS", "Law", "LawBroken", "Seen", "module_laws"]


@dataclass
class Seen:
    """What the histories came to. facts: how often each class was decided. never: those declared and not decided."""

    histories: int = 0
    turns: int = 0
    faults: int = 0
    facts: Counter[str] = field(default_factory=Counter)
    never: tuple[str, ...] = ()


def module_laws(
    module: AnyModule, *, events: Any, answers: Mapping[str, Any] | None = None, laws: Sequence[Law] = LAWS
) -> Seen:
    """Hold a module to the laws over generated histories: events, repeats, late answers, alarms, time passing.

    events, answers (bodies by port): lists, or Hypothesis strategies. Raises: LawBroken; ValueError when the
    events bring nothing about.
    """
    answers = answers or {}
    seen = Seen()

    def hold(plan: Sequence[Move]) -> None:
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
