"""reflex.rehearsing - a preview: the stages of an advance, asked for one reflex and written nowhere.

For: what `preview` decides, with the selection that it needs in between.
Never: writes; calls an effect but for the sentence that it says of an input; decides (preview and the stages do).
Was wrong once: a flag that told each stage to hold back. The one that was forgotten charged a card.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from onefold.reflex import materialize, preview
from onefold.reflex.advancing import Advance, Parts
from onefold.reflex.preview import Planned
from onefold.reflex.tables import STATE
from onefold.reflex.words import Json, Preview, Reflex, Signal, Write
from onefold.store.contract import Query
from onefold.terms.instant import Instant


async def previewed(
    parts: Parts,
    reflex: Reflex,
    now: Instant,
    *,
    fact: Write | Signal | Mapping[str, Json] | None = None,
    at: Instant | None = None,
    count: int = preview.NEXT,
) -> Preview:
    """What this reflex would do, armed or not. Raises: BadArguments for a fact that is none."""
    queries = (Query(STATE, on=STATE.key, keys=[(reflex.id,)]), materialize.running([reflex.id]))
    states, runs = await parts.space.look(*queries)
    state = states[0] if states else None
    busy = materialize.busy_with(runs).get(reflex.id)
    coming = preview.following(reflex, state, now, at, count)
    planned: Planned
    if fact is None:
        planned = preview.by_clock(reflex, state, now, at, busy)
    else:
        now = now if at is None else at
        given = preview.given(fact, reflex, reflex.principal, now)
        advance = Advance(parts, Instant(max(now, given.due_at)), 1)
        planned = preview.by_fact(reflex, given, now, busy, lambda told: advance.why_not(reflex, told))
    if planned.run is None:
        return preview.nothing(planned, coming)
    fan = await Advance(parts, planned.now, 1).fan(planned.run, reflex, asyncio.Semaphore(1))
    stands_in_the_way = fan.skipped or fan.put_off
    if stands_in_the_way is not None:
        return preview.nothing(planned, coming, stands_in_the_way)
    return preview.shown(planned, fan.units, parts.transform, parts.effects.get(reflex.effect), coming)
