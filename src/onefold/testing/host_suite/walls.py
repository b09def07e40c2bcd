"""testing.host_suite.walls - principals never meet, and every bound refuses before a row exists.

For: equal names of different principals, lists, bounds of ids, rows and queues.
Never: who may do what; the doors have tests for that.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from onefold.terms.errors import BadArguments, Busy, NotFound, TooLarge
from onefold.terms.limits import MAX_ROW_BYTES, QUEUE_PER_ACTOR
from onefold.testing.host_suite.ground import Ground, Unfulfilled, expect, promise, refused
from onefold.testing.host_suite.vault import Act, Total

PRINCIPALS = (None, "-", "=", "=-", "None", "~", "a", "A")


@promise(
    "principals never meet: one key and one id of two of them are two actors, two events, two alarms, two keys that leave"
)
async def principals(ground: Ground) -> None:
    for n, who in enumerate(PRINCIPALS, 1):
        told = await ground.deliver(Act("1", add=n, owe=("=", "k"), wake=n * 60_000), who)
        expect(told, Total(n), f"the reply for {who!r}")
    await ground.crash()
    for n, who in enumerate(PRINCIPALS, 1):
        told = await ground.deliver(Act("1", add=n, owe=("=", "k"), wake=n * 60_000), who)
        expect(told, Total(n), f"the reply to a repeat of {who!r}")
        expect((await ground.read("a", who)).total, n, f"the total of {who!r}")
    await ground.advance("1h")
    for n, who in enumerate(PRINCIPALS, 1):
        vault = await ground.read("a", who)
        expect((vault.total, vault.rung, len(vault.heard)), (n, 1, 2), f"the state of {who!r}")
    expect(len(ground.courier.keys), 2 * len(PRINCIPALS), "keys that left")
    expect((await ground.read("a", "nobody")).total, 0, "the total of somebody else")


@promise("lists, histories and what is parked are of one principal, but for who operates")
async def lists(ground: Ground) -> None:
    ground.courier.down(99)
    for who in ("a", "b"):
        await ground.deliver(Act("1", f"of {who}", add=1, owe=("=",)), who)
    await ground.advance("4h")
    for who, other in (("a", "b"), ("b", "a")):
        own = ground.caller(who, rights=("call", "read"))
        page = await ground.host.actors("vault", caller=own)
        expect([item["key"] for item in page.items], [f"of {who}"], f"the actors of {who}")
        await refused(ground.host.facts("vault", f"of {other}", caller=own), NotFound, "another's history")
        expect(len(await ground.host.parked_list(caller=own)), 1, f"what is parked of {who}")
    expect(len(await ground.parked()), 2, "what is parked, for who operates")


@promise("a fact, a reply and an owed body over the ceiling are refused with size and limit, before a row exists")
async def rows_are_bounded(ground: Ground) -> None:
    for fault in ("facts", "reply", "owed"):
        event = replace(Act("1", add=1, owe=("k",), wake=1_000), fault=fault)
        large = await refused(ground.deliver(event), TooLarge, f"{fault} over the ceiling")
        expect(large.limit, MAX_ROW_BYTES, "the limit it names")
        expect(large.size > large.limit, True, f"whether {large.size} is its size")
        expect(any((await ground.picture()).values()), False, f"whether any row is there after {fault}")
    await ground.advance("1h")
    expect(ground.courier.calls, [], "what was sent")


@promise("a full queue refuses before a row exists, names its bound, and takes the same event again once there is room")
async def queues_are_bounded(ground: Ground) -> None:
    await ground.act("first", add=1)
    told = await asyncio.gather(
        *(ground.act(str(n), add=1) for n in range(QUEUE_PER_ACTOR + 20)), return_exceptions=True
    )
    busy = [n for n, one in enumerate(told) if isinstance(one, Busy)]
    if not busy:
        raise Unfulfilled(f"{len(told)} events at once were taken, over a bound of {QUEUE_PER_ACTOR}")
    expect((await ground.read()).total, 1 + len(told) - len(busy), "the total")
    expect(len((await ground.picture())["turn"]), 1 + len(told) - len(busy), "the rows")
    expect(await ground.act(str(busy[0]), add=1), Total(2 + len(told) - len(busy)), "what was refused, again")


@promise("a name that no store could hold is refused as the caller's fault, and leaves no row")
async def names_are_bounded(ground: Ground) -> None:
    for wrong in ("", "\0", "\ud800", "x" * 5_000):
        for event in (Act(wrong, "a", add=1), Act("1", wrong, add=1)):
            await refused(ground.deliver(event), BadArguments, f"an event named {wrong[:4]!r}")
        await refused(ground.deliver(Act("1"), wrong), BadArguments, f"the principal {wrong[:4]!r}")
        await refused(ground.read(wrong), BadArguments, f"a read of {wrong[:4]!r}")
    expect(any((await ground.picture()).values()), False, "whether any row is there")


CHECKS = (principals, lists, rows_are_bounded, queues_are_bounded, names_are_bounded)
