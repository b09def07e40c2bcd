"""testing.host_suite.rebuilding - facts are the only authority: memory is a cache, a snapshot a fact, code comes and goes.

For: eviction, snapshots, rows of older and newer code, what is unknown.
Never: looks at what is in memory; only at what is answered.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

from onefold.kernel.module import Module
from onefold.kernel.tables import TURN
from onefold.kernel.words import Decision
from onefold.terms.errors import AlreadyDone, KeyConflict, WaitsForCode
from onefold.testing.host_suite.ground import Ground, expect, promise, refused
from onefold.testing.host_suite.vault import (
    VAULT,
    Act,
    Added,
    Fact,
    Heard,
    Rang,
    Reply,
    Summed,
    Total,
    Vault,
    decide,
    evolve,
    make,
)

EVERY = 7


@promise("an actor that made room for others comes back as it was, in the middle of whatever it did")
async def evicted(ground: Ground) -> None:
    ground.keep(2)
    await ground.restart()
    ground.courier.down(6)
    for n in range(5):
        for key in "abcdef":
            told = await ground.act(str(n), key, add=1, owe=("=",) if n == 2 else (), wake=60_000 if n == 3 else None)
            expect(told, Total(n + 1), f"the reply of {key}")
    expect(ground.host.resident_count <= 3, True, f"whether {ground.host.resident_count} in memory are few")
    await ground.advance("2m")
    for key in "abcdef":
        vault = await ground.read(key)
        expect((vault.total, vault.rung, vault.heard), (5, 1, ("2: ok",)), f"the state of {key}")


@promise("state rebuilt from the latest snapshot is the state of the whole history, wherever the snapshot fell")
async def rebuilt(ground: Ground) -> None:
    module = make(snapshot_every=EVERY)
    await ground.serve(module, ground.courier.dedupes())
    facts: list[Any] = []
    for n in range(4 * EVERY):
        event = Act(str(n), add=1 + n % 3, owe=("=",) if n % 5 == 0 else (), wake=1_000 if n % 11 == 0 else None)
        await ground.deliver(event, module=module)
        await ground.advance("2s")
        facts = await ground.facts(module=module)
        whole = reduce(evolve, [fact for fact in facts if not isinstance(fact, Summed)], module.initial)
        await ground.crash()
        expect(await ground.read(module=module), whole, f"the state after {n + 1} events")
    snapshots = [index for index, fact in enumerate(facts, 1) if isinstance(fact, Summed)]
    expect(
        len(snapshots) >= len(facts) // (EVERY + 5), True, f"whether snapshots at {snapshots} are as often as was asked"
    )
    seqs = [row.seq for row in await ground.host.history(module, "a", caller=ground.caller())]
    expect(seqs, list(range(1, len(facts) + 1)), "the numbers of the facts")


@promise("a snapshot frees no id: what came before it is still known, with its reply")
async def ids_outlive_snapshots(ground: Ground) -> None:
    module = make(snapshot_every=EVERY)
    await ground.serve(module, ground.courier.dedupes())
    told = [await ground.deliver(Act(str(n), add=1), module=module) for n in range(3 * EVERY)]
    expect(
        any(isinstance(fact, Summed) for fact in await ground.facts(module=module)), True, "whether there is a snapshot"
    )
    await ground.crash()
    again = [await ground.deliver(Act(str(n), add=1), module=module) for n in range(3 * EVERY)]
    expect(again, told, "the replies to repeats")
    await refused(ground.deliver(Act("0", add=2), module=module), KeyConflict, "other content under the first id")
    expect((await ground.read(module=module)).total, 3 * EVERY, "the total")


@promise("a prune frees no id, keeps each reply, and leaves state and numbers as they were")
async def ids_outlive_prunes(ground: Ground) -> None:
    module = make(snapshot_every=EVERY)
    await ground.serve(module, ground.courier.dedupes())
    told = [await ground.deliver(Act(str(n), add=1), module=module) for n in range(2 * EVERY)]
    pruned = await ground.host.prune(module, "a", caller=ground.caller(None))
    expect(pruned.facts > 0, True, "whether facts went")
    for again in ("in memory", "after a crash"):
        repeats = [await ground.deliver(Act(str(n), add=1), module=module) for n in range(2 * EVERY)]
        expect(repeats, told, f"the replies to repeats, {again}")
        expect((await ground.read(module=module)).total, 2 * EVERY, f"the total, {again}")
        await ground.crash()


@promise("a history longer than one look at the store is read whole")
async def long_histories(ground: Ground) -> None:
    for n in range(0, 600, 50):
        await asyncio.gather(*(ground.act(str(m), add=1) for m in range(n, n + 50)))
    await ground.crash()
    expect((await ground.read()).total, 600, "the total")
    expect(len(await ground.facts()), 600, "the facts")


@promise("new code reads the rows of older code, and takes no retry from before it for another event")
async def newer_code(ground: Ground) -> None:
    await ground.act("1", add=5, owe=("=",))
    await ground.settle()
    await ground.act("2", add=1)
    newer: Module[Any, Any, Any, Any, Any] = Module(
        "vault",
        initial=0,
        key=lambda event: event.vault,
        decide=_decide_newer,
        evolve=_evolve_newer,
        view=_view_newer,
    )
    await ground.serve(newer)
    caller = ground.caller()
    expect(await ground.host.read(newer, "a", caller=caller), 6, "the state")
    told = await ground.host.deliver(newer, NewerAct("2", "a", 1), caller=caller)
    expect(told, Total(6), "a repeat of what older code was sent, with a field it did not know")
    await ground.host.deliver(newer, NewerAct("3", "a", 1, "x"), caller=caller)
    expect(await ground.host.read(newer, "a", caller=caller), 7, "the state after a new event")


@dataclass(frozen=True)
class NewerAct:
    id: str
    vault: str = "a"
    add: int = 0
    note: str = ""


@dataclass(frozen=True)
class _Added:
    by: int
    at: datetime
    note: str = ""


_Added.__name__ = _Added.__qualname__ = "Added"
NewerAct.__name__ = NewerAct.__qualname__ = "Act"


@dataclass(frozen=True)
class Promised:
    name: str
    parcel: int
    since: datetime | None = None


def _decide_newer(total: int, event: NewerAct, now: datetime) -> Decision[_Added | Promised | Heard, Reply]:
    return Decision(facts=[_Added(event.add, now, event.note)], reply=Total(total + event.add))


def _evolve_newer(total: int, fact: _Added | Promised | Heard) -> int:
    return total + fact.by if isinstance(fact, _Added) else total


def _view_newer(total: int) -> int:
    return total


@promise("a repeat whose first reply this code cannot read is told that it is done, and keeps nobody else from hearing")
async def unreadable_replies(ground: Ground) -> None:
    await ground.act("1", add=5)
    module = make(decide=_decide_in_numbers)
    await ground.serve(module, ground.courier.dedupes())
    events = (Act("1", add=5), Act("2", add=1), Act("1", "b", add=2))
    attempts = [ground.deliver(event, module=module) for event in events]
    told = await asyncio.gather(*attempts, return_exceptions=True)
    expect(isinstance(told[0], AlreadyDone), True, f"whether {told[0]!r} says that it is done")
    expect(told[1:], [6, 2], "what the others are told")
    expect((await ground.read()).total, 6, "the total")


def _decide_in_numbers(vault: Vault, event: Act, now: datetime) -> Decision[Fact, int]:
    told = decide(vault, event, now)
    return Decision(facts=told.facts, reply=vault.total + event.add)


@promise("an actor with a fact this code does not know is left alone, whatever comes; code that knows it goes on")
async def unknown_facts(ground: Ground) -> None:
    await ground.act("1", add=5, wake=60_000)
    await ground.act("1", "other", add=1)
    older: Module[Any, Any, Any, Any, Any] = make(evolve=_evolve_older, wake=None, on_alarm=None, on_answer=None)
    await ground.serve(older, ground.courier.dedupes())
    before = await ground.picture()
    for attempt in (ground.act("2", add=1), ground.act("1", add=5, wake=60_000), ground.read()):
        waits = await refused(attempt, WaitsForCode, "a verb on an actor with an unknown fact")
        expect(waits.fact, "Planned", "the fact it names")
    await ground.advance("10m")
    expect(await ground.picture(), before, "the rows")
    expect(await ground.act("2", "other", add=1), Total(2), "an actor this code knows")
    await ground.serve(VAULT, ground.courier.dedupes())
    await ground.advance("2m")
    expect([type(fact) for fact in (await ground.facts())[2:]], [Rang], "what was waited for")
    expect(await ground.act("2", add=1), Total(6), "the next event")


def _evolve_older(vault: Any, fact: Added | Heard | Summed) -> Any:
    known: Fact = fact
    return evolve(vault, known)


@promise("a fact, once written, is never changed: what a history said it says for ever")
async def facts_stay(ground: Ground) -> None:
    module = make(snapshot_every=EVERY)
    await ground.serve(module, ground.courier.dedupes())
    said: list[Any] = []
    for n in range(3):
        for m in range(6):
            await ground.deliver(Act(f"{n} {m}", add=1, wake=500, owe=("=",)), module=module)
        await ground.advance("1m")
        turns = [row[: TURN.at["gen"]] for row in (await ground.picture())["turn"]]
        expect(turns[: len(said)], said, "the rows that were there before")
        said = turns
        await ground.crash()


CHECKS = (
    evicted,
    rebuilt,
    ids_outlive_snapshots,
    ids_outlive_prunes,
    long_histories,
    newer_code,
    unreadable_replies,
    unknown_facts,
    facts_stay,
)
