"""bench.contenders.tallying - the cell that is measured: a count, and one method that adds to it and tells the sum.

For: turns of a method, programs of one call and of ten, letters; each call adds one, so that the count can be read back.
Never: begins by anything but its first turn, as a durable object and a virtual object do.
"""

from __future__ import annotations

import onefold
from onefold import Cell

ACTORS = 64
CALLS = 10
ONE = "add(by=1)"
TEN = "\n".join([ONE] * CALLS)


class Tally(Cell, on_demand=True):
    count: int = 0

    def add(self, by: int) -> int:
        self.count += by
        return self.count


app = onefold.App(Tally)


async def counts(app: onefold.App, actors: int = ACTORS) -> list[int]:
    """What is in the store, by cell."""
    return [(await app.cell(Tally, f"c{who}").read()).count for who in range(actors)]
