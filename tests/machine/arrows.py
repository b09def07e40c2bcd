"""Which arrows of a chart its tests have taken: a drawn arrow that nobody ever takes is a guess.

For: every chart of this repository, its children's included. `untaken` names what is left.
Never: counts what was refused by a guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from onefold.machine.step import Trace
from onefold.machine.table import Arrow, Chart


def arrows(chart: Chart) -> Iterator[Arrow]:
    """The arrows of a chart and of the charts it may invoke."""
    yield from chart.arrows
    for child in chart.actors.values():
        yield from arrows(child)


class Taken:
    """Counts what traces took."""

    def __init__(self, chart: Chart) -> None:
        self._all = list(dict.fromkeys(arrows(chart)))
        self.counts: Counter[str] = Counter()

    def note(self, trace: Trace) -> Trace:
        self.counts.update(arrow.name for arrow in trace.taken)
        return trace

    @property
    def untaken(self) -> list[str]:
        return [arrow.name for arrow in self._all if not self.counts[arrow.name]]

    @property
    def report(self) -> str:
        taken = len(self._all) - len(self.untaken)
        lines = [f"{taken} of {len(self._all)} arrows taken", *(f"  never: {name}" for name in self.untaken)]
        return "\n".join(lines)
