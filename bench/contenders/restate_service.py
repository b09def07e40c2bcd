"""bench.contenders.restate_service - what Restate calls: a service of ten journaled steps, a virtual object that counts.

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


tally = restate.VirtualObject("Tally")


@tally.handler()  # type: ignore[untyped-decorator]
async def add(ctx: restate.ObjectContext, by: int) -> int:
    count: int = (await ctx.get("count", type_hint=int) or 0) + by
    ctx.set("count", count)
    return count


app = restate.app([numbers, tally])
