"""bench.contenders.restate_service - the service that Restate calls: ten journaled steps.

For: hypercorn, in the peers' environment.
Never: keeps anything.
"""

from __future__ import annotations

import restate  # type: ignore[import-not-found]

numbers = restate.Service("Numbers")


@numbers.handler()  # type: ignore[untyped-decorator]
async def ten(ctx: restate.Context, n: int) -> int:
    for _ in range(10):
        n = await ctx.run_typed("plus_one", lambda n=n: n + 1)
    return n


app = restate.app([numbers])
