"""testing.host_suite.outcomes - a commit is done, refused or unknown, and nobody is told what is not so.

For: disks that fail at each statement, answers of commits that are lost, processes that end anywhere.
Never: a power cut, which is for tests with root; here the process ends and its file stays.
Was wrong once: an error of COMMIT told as a refusal. The caller sent the same under another id, and both counted.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from onefold.terms.errors import OutcomeUnknown, StoreUnavailable
from onefold.testing.host_suite.ground import Ground, Unfulfilled, expect, hits, promise, refused
from onefold.testing.host_suite.vault import Heard, Short, Total

POINTS = ("statement", "before-commit", "after-commit")


@promise("a commit that was refused leaves every row and the view as they were, and the same again counts")
async def refused_commits(ground: Ground) -> None:
    ground.courier.down(9)
    await ground.act("0", add=5, owe=("=",), wake=60_000)
    await ground.settle()
    before = await ground.picture()
    for times in (1, 3):
        failed = ground.fail_at("before-commit", times=times)
        for _ in range(times):
            await refused(
                ground.act("1", add=2, owe=("more",), wake=10), StoreUnavailable, "a commit on a failing disk"
            )
        expect(failed(), True, "whether the disk failed")
        expect(await ground.picture(), before, "the rows")
        expect((await ground.read()).total, 5, "the view")
    ground.live_on()
    expect(await ground.act("1", add=2, owe=("more",), wake=10), Total(7), "the same again")


@promise("wherever the disk fails, a caller is told the truth, and the same again gives one fold and one reply")
async def any_failure(ground: Ground) -> None:
    ground.courier.down(999)
    for point in POINTS:
        for hit in hits():
            key = f"{point} {hit}"
            await ground.act("0", key, add=1)
            await ground.settle()
            failed = ground.fail_at(point, hit)
            told = await answered(ground, "1", key)
            struck = failed()
            ground.live_on()
            facts = await ground.facts(key)
            if isinstance(told, StoreUnavailable) and len(facts) != 1:
                raise Unfulfilled(f"a fold that was refused at {key} left {facts}")
            expect(await answered(ground, "1", key), Total(3), f"the same again after {told!r} at {key}")
            await ground.crash()
            expect((await ground.read(key)).total, 3, f"the total after a failure at {key}")
            if not struck:
                break


async def answered(ground: Ground, id: str, key: str) -> Any:
    """The reply, or the fault of the store."""
    try:
        return await ground.act(id, key, add=2, owe=("=",), wake=60_000)
    except (StoreUnavailable, OutcomeUnknown) as fault:
        return fault


@promise(
    "a commit whose answer was lost is looked up by its id: it counts once, and its caller gets its reply or is told"
)
async def lost_answers(ground: Ground) -> None:
    for times in (1, 2, 3):
        id = str(times)
        failed = ground.fail_at("after-commit", times=times)
        told = await answered(ground, id, "a")
        expect(failed(), True, "whether an answer was lost")
        if told != Total(2 * times) and not isinstance(told, OutcomeUnknown):
            raise Unfulfilled(f"a commit whose answer was lost was told as {told!r}")
        ground.live_on()
        expect(await answered(ground, id, "a"), Total(2 * times), "the reply to the same again")
    expect((await ground.read()).total, 6, "the total")


@promise(
    "who was committed is never told of a refusal, also where the disk that lost the answer stays dead for a while"
)
async def no_false_refusals(ground: Ground) -> None:
    for dead in hits():
        key = f"v{dead}"
        await ground.act("0", key, add=1)
        met = 0

        def die(point: str, dead: int = dead) -> None:
            nonlocal met
            if met or point == "after-commit":
                met += 1
                if met <= dead:
                    raise OSError(5, "the check's disk is dead")

        ground.failpoint = die
        told = await answered(ground, "1", key)
        ground.live_on()
        if told != Total(3) and not isinstance(told, OutcomeUnknown):
            raise Unfulfilled(f"a commit whose answer was lost was told as {told!r}")
        expect(await answered(ground, "1", key), Total(3), "the same again")
        expect((await ground.read(key)).total, 3, "the total")
        if met < dead:
            return


@promise("no answer leaves before its commit: neither a reply, nor a decline, nor that of a repeat")
async def after_the_commit(ground: Ground) -> None:
    await ground.act("0", add=5)
    attempts: list[asyncio.Task[Any]] = []
    early: list[Any] = []
    commits = 0

    def look(point: str) -> None:
        nonlocal commits
        if point == "before-commit":
            commits += 1
            early.extend(attempt.result() for attempt in attempts if attempt.done())

    ground.failpoint = look
    loop = asyncio.get_running_loop()
    attempts += [loop.create_task(ground.act(*each[:1], add=each[1])) for each in (("1", -5), ("2", -5), ("1", -5))]
    told = await asyncio.gather(*attempts)
    expect((early, commits), ([], 1), "what was told before the commit, and how many there were")
    expect(told, [Total(0), Short(5), Total(0)], "what was told after it")


@promise("who was answered finds it after the process ended, whatever the answer was: reply, decline or repeat")
async def answers_are_durable(ground: Ground) -> None:
    """The process ends as soon as somebody was told something."""
    for what, add in (("a reply", 1), ("a decline", -9)):
        for hit in hits():
            key = f"{what} {hit}"
            await ground.act("0", key, add=2)
            struck, told = await ground.killed_in(_twice(ground, key, add), "before-reply", hit)
            for reply in told or ():
                expect(await ground.act("1", key, add=add), reply, f"the same again after {what}")
            total = (await ground.read(key)).total
            expect(total in ((2,) if add < 0 else (2, 3)), True, f"whether {total} is whole")
            if not struck:
                break


async def _twice(ground: Ground, key: str, add: int) -> list[Any]:
    return list(await asyncio.gather(ground.act("1", key, add=add), ground.act("1", key, add=add)))


@promise("a reply whose commit the disk then refuses is never given: what is told is what is there")
async def no_reply_from_nowhere(ground: Ground) -> None:
    for n in range(4):
        failed = ground.fail_at("before-commit")
        told = await asyncio.gather(
            ground.act(f"{n} 1", add=1), ground.act(f"{n} 2", "b", add=1), return_exceptions=True
        )
        expect(failed(), True, "whether the disk failed")
        await ground.crash()
        there = [len(await ground.facts(key)) for key in "ab"]
        counted = [sum(isinstance(one, Total) for one in told[i : i + 1]) for i in range(2)]
        expect(there, counted, f"what is there after {told}")
        ground.live_on()
        for key in "ab":
            await ground.act(f"{n} 1" if key == "a" else f"{n} 2", key, add=1)
        await ground.serve(*ground.parts)
        expect([len(await ground.facts(key)) for key in "ab"], [1, 1], "facts once it was sent again")
        for key in "ab":
            await ground.act(f"{n} back", key, add=-1)
        return


@promise("a decline is not told from a fold whose commit then failed")
async def declines_wait(ground: Ground) -> None:
    await ground.act("0", add=5)
    failed = ground.fail_at("before-commit")
    told = await asyncio.gather(ground.act("1", add=-5), ground.act("2", add=-5), return_exceptions=True)
    expect(failed(), True, "whether the disk failed")
    expect([type(one) for one in told], [StoreUnavailable] * 2, "what both are told")
    ground.live_on()
    expect(await ground.act("2", add=-5), Total(0), "the second, sent again first")
    expect(await ground.act("1", add=-5), Short(5), "the first, sent again second")


@promise("a repeat is not answered from a fold whose commit then failed")
async def repeats_wait(ground: Ground) -> None:
    failed = ground.fail_at("before-commit")
    told = await asyncio.gather(ground.act("1", add=5), ground.act("1", add=5), return_exceptions=True)
    expect(failed(), True, "whether the disk failed")
    expect([type(one) for one in told], [StoreUnavailable] * 2, "what both are told")
    expect(await ground.facts(), [], "the facts")


@promise(
    "wherever the process ends, an event is wholly there or wholly absent, and sent again counts once and is acted on once"
)
async def killed_anywhere(ground: Ground) -> None:
    for point in (*POINTS, "before-send", "after-send", "before-reply"):
        for hit in hits():
            key = f"{point} {hit}"
            struck, told = await ground.killed_in(ground.act("1", key, add=3, owe=("=",), wake=60_000), point, hit)
            facts = await ground.facts(key)
            if len(facts) not in (0, 3, 4) or (told is not None and not facts):
                raise Unfulfilled(f"killed at {key}: {facts}, told {told!r}")
            if facts and (await ground.alarm_row(key)) is None:
                raise Unfulfilled(f"killed at {key}: {facts} and no alarm row")
            expect(await ground.act("1", key, add=3, owe=("=",), wake=60_000), Total(3), f"the same again after {key}")
            await ground.advance("2m")
            vault = await ground.read(key)
            expect((vault.total, vault.rung, vault.heard), (3, 1, ("1: ok",)), f"the state after a kill at {key}")
            sent = [body for sent, body, _ in ground.courier.calls if f"/{key}/" in sent]
            expect(len(set(sent)), 1, f"how many contents were sent after a kill at {key}")
            if not struck:
                break
        expect(hit > 1, True, f"whether {point} was met")


@promise("when faults stop, what had piled up is folded, sent and rung, and nothing twice")
async def backlogs_drain(ground: Ground) -> None:
    chance = random.Random(7)  # noqa: S311 - a check's data is no secret

    def sometimes(point: str) -> None:
        if point in POINTS and chance.random() < 0.1:
            raise OSError(5, "the check's disk is tired")

    async def until_told(key: str, id: str) -> None:
        for _ in range(200):
            if not isinstance(await answered(ground, id, key), Exception):
                return
        raise Unfulfilled("two hundred tries, and never an answer")

    ground.courier.down(20)
    ground.failpoint = sometimes
    for n in range(5):
        await asyncio.gather(*(until_told(f"v{m}", f"{n}") for m in range(4)))
    ground.live_on()
    await ground.crash()
    await ground.advance("1h")
    for m in range(4):
        vault = await ground.read(f"v{m}")
        expect(
            (vault.total, vault.rung, sorted(vault.heard)),
            (10, 1, [f"{n}: ok" for n in range(5)]),
            f"the state of v{m}",
        )
    picture = await ground.picture()
    expect((picture["owed"], await ground.parked()), ([], []), "what is owed and parked")
    answers = [fact for m in range(4) for fact in await ground.facts(f"v{m}") if isinstance(fact, Heard)]
    expect(len(answers), 20, "answers")


CHECKS = (
    refused_commits,
    any_failure,
    lost_answers,
    no_false_refusals,
    after_the_commit,
    answers_are_durable,
    no_reply_from_nowhere,
    declines_wait,
    repeats_wait,
    killed_anywhere,
    backlogs_drain,
)
