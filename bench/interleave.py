"""bench.interleave - rounds in which every contender takes its turn while the others stand still.

For: rates that may be divided by each other.
Never: measures two at once; drops a slow round (medians do not need that).
Was wrong once: contenders that only idled. A poll every 20 ms of one was a tenth of another's core.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.child import Child, Failed
from bench.measures import Sample, median, spin


@dataclass(frozen=True, slots=True)
class Case:
    """One figure to be taken: whom to ask what, with how many callers, for how long."""

    contender: str
    workload: str
    callers: int
    seconds: float = 2.0

    @property
    def label(self) -> str:
        return f"{self.contender} {self.workload} {self.callers}"


@dataclass
class Rounds:
    """Samples by label, in the order of the rounds, the spin before each, and what failed.

    answered: answers by contender and workload, those of the warming up too; asked: its callers, of all its turns.
    """

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    spins: list[float] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    def rate(self, label: str) -> float:
        """The median rate; 0 when it was never measured."""
        return median([each.rate for each in self.samples.get(label, ())])

    def middle(self, label: str, field_name: str) -> float:
        """The median of one field of the samples."""
        return median([getattr(each, field_name) for each in self.samples.get(label, ())])


def run(children: Mapping[str, Child], cases: Sequence[Case], rounds: int, *, warm: bool = True) -> Rounds:
    """Every case once a round; with `warm`, also a little before its first turn."""
    taken = Rounds()
    for child in children.values():
        child.stand()
    for number in range(rounds):
        for case in cases:
            if case.contender in children and case.label not in taken.failed:
                turn(taken, children[case.contender], case, warm=warm and number == 0)
        print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    for child in children.values():
        child.go_on()
    return taken


def turn(taken: Rounds, child: Child, case: Case, *, warm: bool, alone: bool = True) -> None:
    """One turn of one contender; with `warm`, also a little before. alone: it stands still before and after."""
    child.go_on()
    gc.collect()
    try:
        if warm:  # the first answers open files and fill caches
            _asked(taken, child, case, 0.3)
        taken.spins.append(spin())
        told = _asked(taken, child, case, case.seconds)
        taken.samples.setdefault(case.label, []).append(Sample(**told))
    except Failed as fault:
        taken.failed[case.label] = str(fault)
        print(f"{case.label}: {fault}", file=sys.stderr)
    finally:
        if alone:
            child.stand()


def _asked(taken: Rounds, child: Child, case: Case, seconds: float) -> dict[str, Any]:
    taken.asked[case.contender] += case.callers
    told = child.ask(case.workload, case.callers, seconds)
    taken.answered[case.contender, case.workload] += told["count"]
    return told
