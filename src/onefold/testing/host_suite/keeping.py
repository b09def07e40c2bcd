"""testing.host_suite.keeping - what is kept small, kept apart, or begun from another's facts, and what stays as it was.

For: prunes, long values beside their rows, blobs, forks.
Never: how long something is kept; a setting says that, and its room has tests.
"""

from __future__ import annotations

from onefold.kernel.tables import OWED
from onefold.terms.errors import BadArguments, KeyConflict, NotFound
from onefold.terms.limits import INLINE_BYTES
from onefold.testing.host_suite.ground import Ground, Unfulfilled, expect, hits, promise, refused
from onefold.testing.host_suite.vault import VAULT, Act, Summed, Total, make

EVERY = 5
LONG = 60_000


@promise("a prune takes facts behind the latest snapshot and nothing else, wherever the process ends meanwhile")
async def prunes(ground: Ground) -> None:
    module = make(snapshot_every=EVERY)
    await ground.serve(module, ground.courier.dedupes())
    caller = ground.caller()
    events = [Act(str(n), add=n + 1, owe=("rent",) if n == 1 else ()) for n in range(3 * EVERY)]
    told = [await ground.deliver(event, module=module) for event in events]
    await ground.settle()
    for hit in hits():
        struck, _ = await ground.killed_in(ground.host.prune(module, "a", caller=caller), "statement", hit)
        expect((await ground.read(module=module)).total, sum(event.add for event in events), "the total")
        if not struck:
            break
    facts = await ground.facts(module=module)
    expect(isinstance(facts[0], Summed), True, f"whether {facts[0]} is the snapshot that facts begin with now")
    expect(len(facts) <= EVERY + 1, True, f"whether {len(facts)} facts are few")
    before = await ground.picture()
    again = [await ground.deliver(event, module=module) for event in events]
    expect(again, told, "the replies to repeats")
    await refused(ground.deliver(Act("0", add=9), module=module), KeyConflict, "other content under a pruned id")
    await refused(ground.deliver(Act("x", owe=("rent",)), module=module), KeyConflict, "a key that was owed, anew")
    expect(await ground.picture(), before, "the rows after all that")


@promise("what is long lies beside a row that stays small, leaves once, and is given back as it was")
async def long_values(ground: Ground) -> None:
    ground.courier.down(2)
    event = Act("1", add=1, owe=("=",), long=LONG)
    told = await ground.deliver(event)
    expect(told, Total(1, "x" * LONG), "the reply")
    await ground.settle()
    picture = await ground.picture()
    sizes = [len(cell) for row in picture["turn"] for cell in row if isinstance(cell, bytes)]
    sizes += [len(row[OWED.at["bytes"]]) for row in picture["owed"]]  # type: ignore[arg-type]
    expect(max(sizes) <= INLINE_BYTES, True, f"whether cells of {sizes} bytes are small")
    await ground.crash()
    expect(await ground.deliver(event), told, "the reply to a repeat, after a crash")
    await ground.advance("1m")
    expect({len(body.text) for _, body, _ in ground.courier.calls}, {LONG}, "what was sent")
    expect(len(ground.courier.keys), 1, "keys it was sent under")


@promise("a blob is named by its content, is there after a crash, and is its principal's alone")
async def blobs(ground: Ground) -> None:
    mine, other = ground.caller("a"), ground.caller("b")
    data = bytes(range(256)) * 300
    digest = await ground.host.blobs_put(data, caller=mine)
    expect(await ground.host.blobs_put(data, caller=mine), digest, "the name of the same bytes")
    if await ground.host.blobs_put(data + b".", caller=mine) == digest:
        raise Unfulfilled("other bytes have the same name")
    await ground.crash()
    expect(await ground.host.blobs_get(digest, caller=mine), data, "the bytes")
    await refused(ground.host.blobs_get(digest, caller=other), NotFound, "another's blob, by its name")


@promise("a fork begins with a prefix of another's facts, counts once, and owes nothing of what its source owed")
async def forks(ground: Ground) -> None:
    caller = ground.caller()
    for n in range(4):
        await ground.act(str(n), add=n + 1, owe=("=",))
    await ground.settle()
    calls = len(ground.courier.calls)
    digest = await ground.host.fork(VAULT, "a", "b", id="f", upto=2, caller=caller)
    expect((await ground.facts("b"))[:2], (await ground.facts())[:2], "the facts it begins with")
    await ground.act("0", "b", add=100)  # ids of the source are not its own
    await ground.crash()
    expect(await ground.host.fork(VAULT, "a", "b", id="f", upto=2, caller=caller), digest, "the same fork again")
    expect(((await ground.read("b")).total, (await ground.read()).total), (101, 10), "the totals")
    await refused(ground.host.fork(VAULT, "a", "b", id="g", caller=caller), BadArguments, "a fork into a history")
    expect(len(ground.courier.calls), calls, "sends")


CHECKS = (prunes, long_values, blobs, forks)
