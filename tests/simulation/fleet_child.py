"""The command line, broken on purpose in one way: what a suite of fleets must notice.

    python tests/simulation/fleet_child.py TWIN[,TWIN…] -- serve counting.py …

For: nodes without one of the things that keep two of them apart; `blind`, whose own clock never ends its lease, so that
only the epochs within commits are left.
Never: is a node that anybody but a test meets.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onefold.cli import main
from onefold.fleet import claims, ownership
from onefold.fleet.standing import Standing
from onefold.host.lease import Lease
from onefold.node.lane import Lane

NEW_NET = 0x40000000  # CLONE_NEWNET


def blind() -> None:
    """Believes for ever that its lease goes on, and, once there is a file `deaf` where it runs, what it knew till then."""
    Lease.left_ms = lambda self: self.ms  # type: ignore[method-assign]
    look, over = Standing.look, Standing.over

    def looks(self: Any, seen: Any) -> Any:
        return [] if Path("deaf").exists() else look(self, seen)

    def is_over(self: Any) -> None:
        if not Path("deaf").exists():
            over(self)

    Standing.look, Standing.over = looks, is_over  # type: ignore[method-assign]


def compares_nothing() -> None:
    """Reads the owners in each commit, and lets everything pass."""
    Standing.lost = lambda self, holds, rows: {}  # type: ignore[method-assign]


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


def hears_late() -> None:
    """No twin: what became of a commit reaches it half a second after everybody else can see it."""
    landed = Lane.landed

    def later(self: Any, outcome: Any) -> None:
        asyncio.get_running_loop().call_later(0.5, landed, self, outcome)

    Lane.landed = later  # type: ignore[method-assign]


def _off(seconds: int) -> None:
    time_ns, time_s = time.time_ns, time.time
    setattr(time, "time_ns", lambda: time_ns() + seconds * 1_000_000_000)  # noqa: B010 - the clock of a machine that is wrong
    setattr(time, "time", lambda: time_s() + seconds)  # noqa: B010 - as above


def ahead() -> None:
    """No twin: on a machine whose clock is two minutes ahead."""
    _off(120)


def behind() -> None:
    """As `ahead`, the other way."""
    _off(-120)


TWINS: dict[str, Callable[[], None]] = {
    twin.__name__: twin
    for twin in (
        blind,
        compares_nothing,
        takes_under_the_same_epoch,
        by_its_own_clock,
        ahead,
        behind,
        hears_late,
    )
}


def on_a_network_of_its_own(name: str) -> None:
    """From now on this process is in that namespace, and sees nothing of the machine's network."""
    with Path("/var/run/netns", name).open("rb") as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), NEW_NET):
            raise OSError(ctypes.get_errno(), f"no part of {name}")


if __name__ == "__main__":
    if network := os.environ.get("ITS_NETWORK"):
        on_a_network_of_its_own(network)
    split = sys.argv.index("--")
    for name in filter(None, sys.argv[1].split(",")):
        TWINS[name]()
    sys.argv = ["onefold", *sys.argv[split + 1 :]]
    main()
