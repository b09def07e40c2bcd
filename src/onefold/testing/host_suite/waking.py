"""testing.host_suite.waking - one clock: an actor is woken when something is due, without traffic, and never in vain twice.

For: the alarm row against what is due, early rings, wakes that fail, actors that are not in memory, restarts.
Never: a real clock; sleeps.
"""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta
from typing import Any

from onefold.kernel.tables import ALARM, OWED
from onefold.kernel.words import Decision
from onefold.terms.instant import up
from onefold.testing.host_suite.ground import Ground, Unfulfilled, expect, hits, promise
from onefold.testing.host_suite.vault import VAULT, Act, Fact, Planned, Rang, Vault, make

MINUTE = 60_000


@promise("a wake is folded at its instant, without traffic, and leaves no row behind")
async def rings(ground: Ground) -> None:
    due = ground.clock.moment + timedelta(minutes=10)
    await ground.act("1", wake=10 * MINUTE)
    await ground.advance("9m")
    expect((await ground.read()).rung, 0, "rings before its instant")
    await ground.advance("4h")
    expect((await ground.facts())[-1], Rang(due), "the fact of the alarm")
    expect((await ground.read()).rung, 1, "rings")
    expect(await ground.alarm_row(), None, "the row")


@promise("an alarm is a fold like any other: its facts, what it owes and the next wake are one commit")
async def alarms_fold(ground: Ground) -> None:
    for hit in hits():
        key = f"v{hit}"
        await ground.act("1", key, wake=MINUTE)
        await ground.settle()
        struck, _ = await ground.killed_in(_pass(ground, MINUTE), "statement", hit)
        facts = await ground.facts(key)
        await ground.advance("5s")
        expect(len(facts) in (1, 2), True, f"whether {facts} is whole")
        expect(len(await ground.facts(key)), 2, f"facts after a kill at statement {hit}")
        expect((await ground.read(key)).rung, 1, "rings")
        if not struck:
            return


async def _pass(ground: Ground, ms: int) -> None:
    ground.clock.step_to(ground.clock.now() + ms)
    await ground.settle()


@promise("an actor that is not in memory wakes at its instant, also after a clean end and after a crash")
async def cold_actors_wake(ground: Ground) -> None:
    ground.keep(1)
    await ground.restart()
    for n in range(6):
        await ground.act("1", f"v{n}", wake=(n + 1) * MINUTE)
    due = [ground.clock.moment + timedelta(minutes=n + 1) for n in range(6)]
    await ground.advance("150s")
    await ground.restart()
    await ground.advance("2m")
    await ground.crash()
    await ground.advance("10m")
    expect([(await ground.facts(f"v{n}"))[1:] for n in range(6)], [[Rang(at)] for at in due], "the facts of the alarms")


@promise("what fell due while no host was there is folded when one is, once")
async def missed(ground: Ground) -> None:
    await ground.act("1", wake=10 * MINUTE)
    await ground.close()
    ground.clock.step_to(ground.clock.now() + 24 * 60 * MINUTE)
    await ground.open()
    await ground.settle()
    expect((await ground.facts())[1:], [Rang(ground.clock.moment)], "the facts of the alarm")
    await ground.advance("4h")
    expect((await ground.read()).rung, 1, "rings")


@promise("the alarm is armed in the commit of the fold: a process that ends right after it loses no wake")
async def armed_within(ground: Ground) -> None:
    for point in ("after-commit", "statement", "before-commit"):
        for hit in hits():
            key = f"{point} {hit}"
            struck, _ = await ground.killed_in(ground.act("1", key, wake=MINUTE), point, hit)
            folded = await ground.facts(key)
            row = await ground.alarm_row(key)
            expect(row is not None, bool(folded), f"whether there is a row beside {folded}, killed at {key}")
            await ground.advance("61s")
            expect((await ground.read(key)).rung, len(folded), f"rings after a kill at {key}")
            if not struck:
                break


@promise("after any folds, sends, rings and crashes the row is no later than the soonest wake or owed retry")
async def never_late(ground: Ground) -> None:
    for seed in range(3):
        chance = random.Random(seed)  # noqa: S311 - a check's data is no secret
        key = f"v{seed}"
        for n in range(30):
            what = chance.randrange(6)
            if what < 2:
                mood: Any = chance.choice(("", "raises", "idles"))
                await ground.act(f"{n}", key, wake=chance.choice((-1, 0, 500, MINUTE, 9 * MINUTE)), mood=mood)
            elif what == 2:
                ground.courier.down(chance.randrange(4))
                await ground.act(f"{n}", key, owe=("=",))
            elif what == 3:
                await ground.crash()
            else:
                await ground.advance(f"{chance.randrange(1, 90)}s")
            await in_time(ground)


async def in_time(ground: Ground) -> None:
    """Raises: Unfulfilled where a row would ring later than what is due."""
    picture = await ground.picture()
    for number, _kind, _who, key, _slot in picture["actor"]:
        vault = await ground.read(str(key))
        retries = [row[OWED.at["next_at"]] for row in picture["owed"] if row[OWED.at["actor"]] == number]
        alarm = next((row for row in picture["alarm"] if row[0] == number), None)
        tries = 0 if alarm is None else alarm[ALARM.at["tries"]]
        due = [int(at) for at in retries if at is not None]
        if vault.wake is not None and not tries:  # one that failed counts from its retry
            due.append(up(vault.wake))
        at = None if alarm is None else alarm[ALARM.at["at"]]
        soonest = min(due, default=None)
        late = soonest is not None and (at is None or int(at) > max(soonest, ground.clock.now() + 1_000))
        expect(late, False, f"whether {alarm} is later than {soonest} at {ground.clock.now()}")


@promise("a fold writes the row only to tighten it: a wake that is put off costs no write and one early ring")
async def only_tightened(ground: Ground) -> None:
    start = ground.clock.now()
    await ground.act("0", wake=10 * MINUTE)
    for n in range(1, 6):
        await ground.act(str(n), wake=60 * MINUTE)
        expect(await ground.alarm_row(), (start + 10 * MINUTE, 0), "the row after a wake that was put off")
    await ground.act("6", wake=5 * MINUTE)
    expect(await ground.alarm_row(), (start + 5 * MINUTE, 0), "the row after a wake that was brought forward")
    await ground.act("7", wake=60 * MINUTE)
    rung = ground.host.rung
    await ground.advance("59m")
    expect(ground.host.rung - rung, 1, "rings in vain")
    expect(await ground.alarm_row(), (start + 60 * MINUTE, 0), "the row after it rang in vain")
    expect((await ground.read()).rung, 0, "alarms folded")
    await ground.advance("2m")
    expect((await ground.read()).rung, 1, "alarms folded")


@promise("a wake that was taken back rings once in vain, changes no fact, and leaves no row")
async def taken_back(ground: Ground) -> None:
    await ground.act("1", wake=MINUTE)
    await ground.act("2", wake=-1)
    facts, rung = await ground.facts(), ground.host.rung
    await ground.advance("4h")
    expect(await ground.facts(), facts, "the facts")
    expect(ground.host.rung - rung, 1, "rings")
    expect(await ground.alarm_row(), None, "the row")


@promise(
    "a wake that fails, or changes nothing and is still due, backs off and is parked with its cause; it never spins"
)
async def never_spins(ground: Ground) -> None:
    for key, mood in (("a", "raises"), ("b", "idles")):
        await ground.act("1", key, wake=MINUTE, mood=mood)
    await ground.advance("61s")
    for key in "ab":
        row = await ground.alarm_row(key)
        expect(
            row is not None and row[1] >= 1 and row[0] is not None and row[0] > ground.clock.now(),
            True,
            f"{row} backs off",
        )
    rung = ground.host.rung
    await ground.advance("4h")
    expect(ground.host.rung - rung < 60, True, f"whether {ground.host.rung - rung} rings are few")
    expect(
        sorted((item.kind, item.program) for item in await ground.parked()), [("alarm", "vault")] * 2, "what is parked"
    )
    expect(any("told to" in item.cause for item in await ground.parked()), True, "whether the cause is there")
    rung = ground.host.rung
    await ground.crash()
    await ground.advance("4h")
    expect(ground.host.rung, 0, "rings of what is parked")


@promise("a person retries a parked alarm, or drops it; an event that moves the wake takes it up again")
async def out_of_the_park(ground: Ground) -> None:
    for key in "abc":
        await ground.act("1", key, wake=MINUTE, mood="raises")
    await ground.advance("3h")
    items = {item.id: item for item in await ground.parked()}
    expect(len(items), 3, "how many are parked")
    await ground.act("2", "c", wake=MINUTE)
    await ground.advance("2m")
    expect((await ground.read("c")).rung, 1, "rings after the wake was moved")
    first, second = sorted({item.id for item in await ground.parked()})
    await ground.host.parked_drop(second, reason="no", caller=ground.caller())
    await ground.serve(make(on_alarm=_rings), ground.courier.dedupes())
    await ground.host.parked_retry(first, caller=ground.caller())
    await ground.advance("1h")
    expect((await ground.parked(), sum([(await ground.read(key)).rung for key in "ab"])), ([], 1), "parked, and rung")


def _rings(vault: Vault, now: datetime) -> Decision[Fact, None]:
    return Decision(facts=[Rang(now)])


@promise("what an actor owes rings beside its wake, whichever is sooner, also beside a wake that failed or is parked")
async def one_row(ground: Ground) -> None:
    await ground.act("1", wake=MINUTE, mood="raises")
    await ground.advance("2m")
    for n in range(2):
        ground.courier.down(1)
        await ground.act(f"o{n}", owe=("=",))
        await ground.advance("5s")
        expect(len(ground.courier.calls), 2 * (n + 1), "sends")
        await ground.advance("3h")
        expect([item.kind for item in await ground.parked()], ["alarm"], "what is parked")
    ground.courier.down(3)
    await ground.act("2", "b", wake=2_000, owe=("=",))
    await ground.advance("3s")
    expect((await ground.read("b")).rung, 1, "rings beside retries")
    await ground.advance("1m")
    expect(len(await ground.facts("b")), 4, "facts in all")


@promise("an actor whose code cannot say when to wake it holds up nobody, and is parked with what it raised")
async def broken_wakes(ground: Ground) -> None:
    for key, add in (("a", 0), ("b", 1)):
        await ground.act("1", key, add=add, wake=MINUTE)
    await ground.serve(make(wake=_raises_for_a), ground.courier.dedupes())
    await ground.advance("3h")
    expect((await ground.read("b")).rung, 1, "rings of the other")
    expect([item.kind for item in await ground.parked()], ["alarm"], "what is parked")
    expect("wake was told to" in (await ground.parked())[0].cause, True, "whether it says why")
    await ground.serve(VAULT, ground.courier.dedupes())
    item = await ground.one_parked()
    await ground.host.parked_retry(item.id, caller=ground.caller())
    await ground.settle()
    expect((await ground.read("a")).rung, 1, "rings once the code is mended")


def _raises_for_a(vault: Vault) -> datetime | None:
    if vault.wake is not None and vault.total == 0:
        raise RuntimeError("wake was told to")
    return vault.wake


@promise("the alarm verb folds what is due and gives the next; asked about nobody it gives nothing and writes nothing")
async def the_verb(ground: Ground) -> None:
    caller = ground.caller()
    await ground.act("1", wake=10 * MINUTE)
    before = await ground.picture()
    due = await ground.host.alarm(VAULT, "a", caller=caller)
    expect(due, ground.clock.moment + timedelta(minutes=10), "the next alarm")
    expect(await ground.host.alarm(VAULT, "nobody", caller=caller), None, "nobody's alarm")
    expect(await ground.picture(), before, "the rows")
    ground.host.rest()
    ground.clock.step_to(ground.clock.now() + 11 * MINUTE)
    expect(await ground.host.alarm(VAULT, "a", caller=caller), None, "the alarm after the one that was due")
    expect((await ground.read()).rung, 1, "rings")


@promise("alarms of a kind that this host does not serve wait, stand in front of nobody, and ring once it is served")
async def unknown_kinds(ground: Ground) -> None:
    second = make("safe")
    await ground.serve(VAULT, second, ground.courier.dedupes())
    for n in range(5):
        await ground.deliver(Act("1", f"v{n}", wake=MINUTE), module=second)
    await ground.act("1", wake=2 * MINUTE)
    await ground.serve(VAULT, ground.courier.dedupes())
    await ground.advance("1h")
    expect((await ground.read()).rung, 1, "rings of the kind that is served")
    await ground.serve(VAULT, second, ground.courier.dedupes())
    await ground.settle()
    expect([(await ground.read(f"v{n}", module=second)).rung for n in range(5)], [1] * 5, "rings of the others")


@promise("sleepers cost nothing until they are due, and ring once each, in their order")
async def many_sleepers(ground: Ground) -> None:
    ground.keep(20)
    await ground.restart()
    await asyncio.gather(*(ground.act("1", f"v{n}", wake=(1 + n % 4) * MINUTE) for n in range(120)))
    await ground.advance("4h")
    seen = [await ground.facts(f"v{n}") for n in range(120)]
    for n, facts in enumerate(seen):
        planned, rang = facts
        if not isinstance(planned, Planned) or rang != Rang(planned.wake or ground.clock.moment):
            raise Unfulfilled(f"v{n} has {facts}; promised was one ring at its instant")


CHECKS = (
    rings,
    alarms_fold,
    cold_actors_wake,
    missed,
    armed_within,
    never_late,
    only_tightened,
    taken_back,
    never_spins,
    out_of_the_park,
    one_row,
    broken_wakes,
    the_verb,
    unknown_kinds,
    many_sleepers,
)
