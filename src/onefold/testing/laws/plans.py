"""testing.laws.plans - where histories come from: lists, in seeded orders, or Hypothesis strategies.

For: plans of moves. Lists need no library; Hypothesis is loaded when it is already in use.
Never: a plan that cannot be made again: the seed is fixed, and Hypothesis prints what it found.
Was wrong once: each event once, in the order given. Modules fell over the repeat, and over the answer that came late.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onefold.testing.laws.play import Again, Answered, Event, Move, Ring, Wait

HISTORIES = 60  # of lists: the order given, then shuffled ones
FEWEST, MOST = 3, 15  # events of a history that Hypothesis makes: of fewer, a pay-out finds nothing paid in
WAITS_MS = (1, 1_000, 3_600_000, 86_400_000, 30 * 86_400_000)


def is_strategy(source: Any) -> bool:
    """Whether it is a Hypothesis strategy: then the library is loaded already."""
    return hasattr(source, "validate") and hasattr(source, "flatmap")


def listed(events: Sequence[Any], answers: Mapping[str, Sequence[Any]]) -> Iterator[list[Move]]:
    """Plans of lists: first the events as they stand, with everything answered and every alarm rung at the end."""
    settled: list[Move] = [Answered(0, _bodies(answers, 0)), Ring()]
    yield [*map(Event, events), *settled * (2 * len(events) + 4)]
    for seed in range(1, HISTORIES):
        chance = random.Random(seed)  # noqa: S311 - the same plans each time
        plan: list[Move] = []
        for event in chance.sample(list(events), len(events)):
            plan.append(Event(event))
            plan += [_other(chance, answers) for _ in range(chance.randrange(4))]
        yield plan + [_other(chance, answers) for _ in range(6)]


def _other(chance: random.Random, answers: Mapping[str, Sequence[Any]]) -> Move:
    kind = chance.randrange(4)
    if kind == 0:
        return Again(chance.randrange(8))
    if kind == 1:
        return Answered(chance.randrange(8), _bodies(answers, chance.randrange(1_000)))
    return Ring() if kind == 2 else Wait(chance.choice(WAITS_MS))


def _bodies(answers: Mapping[str, Sequence[Any]], n: int) -> dict[str, Any]:
    return {port: bodies[n % len(bodies)] for port, bodies in answers.items()}


def drawn(events: Any, answers: Mapping[str, Any]) -> Any:
    """A strategy of plans, of strategies and lists."""
    from hypothesis import strategies as st

    def source(given: Any) -> Any:
        return given if is_strategy(given) else st.sampled_from(list(given))

    bodies = st.fixed_dictionaries({port: source(given) for port, given in answers.items()})
    other: Any = st.one_of(
        st.builds(Again, st.integers(0, 7)),
        st.builds(Answered, st.integers(0, 7), bodies),
        st.just(Ring()),
        st.builds(Wait, st.sampled_from(WAITS_MS)),
    )
    steps = st.tuples(st.builds(Event, source(events)), st.lists(other, max_size=2))
    return st.builds(_settled, st.lists(steps, min_size=FEWEST, max_size=MOST), bodies)


def _settled(steps: list[tuple[Event, list[Move]]], bodies: Mapping[str, Any]) -> list[Move]:
    """Events with what comes between them, and at the end a few answers and alarms, or most debts stayed open."""
    moves: list[Move] = [move for event, others in steps for move in (event, *others)]
    last: list[Move] = [Answered(0, bodies), Answered(0, bodies), Ring()]
    return [*moves, *last, *last]
