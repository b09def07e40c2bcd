"""testing.host_suite - what every host promises over any store, as checks that run.

For: `HOST_SUITE`, named checks over a factory of worlds; a store over which one of them fails carries no host.
Never: knows a store; looks into a host: a check delivers, reads, moves the clock, kills, and reads the rows.
Was wrong once: a test a store. What the second one did differently was found by whoever moved to it.

    @pytest.mark.parametrize("check", HOST_SUITE, ids=lambda check: check.name)
    async def test_a_host_over_the_store(check, open_world):
        await check.run(open_world)

`open_world` is an `OpenWorld`, as for `STORE_SUITE`. `fit` puts broken parts into each host that is opened.
"""

from __future__ import annotations

from onefold.testing.host_suite import folding, keeping, lapsing, outcomes, owing, rebuilding, waking, walls
from onefold.testing.host_suite.ground import Check, Fit, OpenWorld, Unfulfilled

HOST_SUITE: tuple[Check, ...] = (
    *folding.CHECKS,
    *owing.CHECKS,
    *waking.CHECKS,
    *rebuilding.CHECKS,
    *keeping.CHECKS,
    *lapsing.CHECKS,
    *outcomes.CHECKS,
    *walls.CHECKS,
)

__all__ = ["HOST_SUITE", "Check", "Fit", "OpenWorld", "Unfulfilled"]
