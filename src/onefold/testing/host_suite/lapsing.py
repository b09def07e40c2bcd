"""testing.host_suite.lapsing - what is kept for a time only: ids with a window, replies.

For: the edge of a window and what a sweep takes; and that they take nothing else.
Never: waits for a beat: whether one came by must make no difference.
Was wrong once: a window tried a second before its end and a second after. It ended half a second early.
"""

from __future__ import annotations

import asyncio
from typing import Any

from onefold.kernel.tables import TURN
from onefold.terms.errors import AlreadyDone, KeyConflict
from onefold.testing.host_suite.ground import Ground, expect, promise, refused
from onefold.testing.host_suite.vault import Act, Short, Total, make

DAY_MS = 86_400_000
REPLY = TURN.at["reply"]


def without(rows: list[Any], column: int) -> list[Any]:
    return [(*row[:column], *row[column + 1 :]) for row in rows]


async def passes(ground: Ground, ms: int) -> None:
    """Let time pass while no host is open."""
    await ground.close()
    ground.clock.step_to(ground.clock.now() + ms)
    await ground.open()


@promise("an id with a window counts up to the end of it and not at it, and then once again")
async def windows(ground: Ground) -> None:
    module = make(ids_for="1 day")
    await ground.serve(module, ground.courier.dedupes())
    expect(await ground.deliver(Act("e", add=5), module=module), Total(5), "the first reply")
    await passes(ground, DAY_MS - 1)
    expect(await ground.deliver(Act("e", add=5), module=module), Total(5), "a repeat in the last millisecond")
    await refused(ground.deliver(Act("e", add=6), module=module), KeyConflict, "other content in the last millisecond")
    await passes(ground, 1)
    both = await asyncio.gather(*(ground.deliver(Act("e", add=6), module=module) for _ in range(3)))
    expect(both, [Total(11)] * 3, "a new event, and its repeats")
    await ground.crash()
    await refused(ground.deliver(Act("e", add=5), module=module), KeyConflict, "the content of the first time")
    expect((await ground.read(module=module)).total, 11, "the total")
    expect(len(await ground.facts(module=module)), 2, "the facts: a window takes none")


@promise("a key owed by an event that counts again leaves once, and never with other bytes")
async def owed_again(ground: Ground) -> None:
    module = make(ids_for="1 day")
    await ground.serve(module, ground.courier.dedupes())
    await ground.deliver(Act("e", add=1, owe=("=",)), module=module)
    await ground.settle()
    await passes(ground, DAY_MS)
    await refused(ground.deliver(Act("e", add=2, owe=("=",)), module=module), KeyConflict, "other bytes under the key")
    expect((await ground.read(module=module)).total, 1, "the total")
    await ground.deliver(Act("back", add=-1), module=module)
    await ground.deliver(Act("e", add=1, owe=("=",)), module=module)
    await ground.settle()
    expect(len(ground.courier.calls), 1, "how often it left")


@promise("a reply that was swept is told as done, other content as a conflict, and nothing else has changed")
async def replies(ground: Ground) -> None:
    await ground.act("old", add=1)
    expect(await ground.act("no", add=-9), Short(8), "a decline")
    await passes(ground, DAY_MS)
    expect(await ground.act("young", add=1), Total(2), "a later reply")
    before = await ground.picture()
    counted = await ground.host.sweep(replies=DAY_MS, dry_run=True, caller=ground.caller())
    expect((counted.replies, await ground.picture()), (2, before), "what a dry run counts, and leaves")
    swept = await ground.host.sweep(replies=DAY_MS, caller=ground.caller())
    expect(swept.replies, 2, "how many went")
    after = await ground.picture()
    expect([row[REPLY] is None for row in after["turn"]], [True, True, False], "which replies are gone")
    expect(without(after["turn"], REPLY), without(before["turn"], REPLY), "all else of the turns")
    for life in ("at once", "after a crash"):
        for id, add in (("old", 1), ("no", -9)):
            done = await refused(ground.act(id, add=add), AlreadyDone, f"a repeat of {id} {life}")
            expect(done.id, id, "what was done")
        await refused(ground.act("old", add=2), KeyConflict, f"other content {life}")
        expect(await ground.act("young", add=1), Total(2), f"a repeat that has its reply {life}")
        expect((await ground.read()).total, 2, f"the total {life}")
        await ground.crash()


CHECKS = (windows, owed_again, replies)
