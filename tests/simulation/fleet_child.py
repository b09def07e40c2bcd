"""The command line, broken on purpose in one way: what a suite of fleets must notice.

    python tests/simulation/fleet_child.py TWIN[,TWIN…] -- serve counting.py …

For: nodes without one of the things that keep two of them apart; `blind`, whose own clock never ends its lease, so that
only the epochs within commits are left.
Never: is a node that anybody but a test meets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from onefold.cli import main
from onefold.fleet import claims, ownership
from onefold.fleet.standing import Standing
from onefold.host.lease import MARGIN_PART, Lease


def blind() -> None:
    """Believes for ever that its lease goes on."""
    Lease.left_ms = lambda self: self.ms  # type: ignore[method-assign]


def compares_nothing() -> None:
    """Reads the owners in each commit, and lets everything pass."""
    Standing.lost = lambda self, holds, rows: {}  # type: ignore[method-assign]


def counts_from_the_answer() -> None:
    """Takes a renewal to begin when it hears of it, and not when it asked for it."""

    def renewed(self: Any, sent: int, store_now: int) -> None:
        self.deadline = self.boot() + self.ms - self.ms // MARGIN_PART
        self._clock = (store_now, self.boot())

    Lease.renewed = renewed  # type: ignore[method-assign]


def takes_under_the_same_epoch() -> None:
    """Takes names over without a new epoch."""

    def above(epoch: int, incarnation: int) -> int:
        return max(epoch, 1)

    for module in (ownership, claims):
        setattr(module, "above", above)  # noqa: B010 - this is what makes it a twin


def by_its_own_clock() -> None:
    """Goes by the clock of its machine, and not by that of the store."""
    from onefold.host.clock import StoreClock, WallClock

    StoreClock.now = WallClock.now  # type: ignore[method-assign]


TWINS: dict[str, Callable[[], None]] = {
    twin.__name__: twin
    for twin in (blind, compares_nothing, counts_from_the_answer, takes_under_the_same_epoch, by_its_own_clock)
}


if __name__ == "__main__":
    split = sys.argv.index("--")
    for name in filter(None, sys.argv[1].split(",")):
        TWINS[name]()
    sys.argv = ["onefold", *sys.argv[split + 1 :]]
    main()
