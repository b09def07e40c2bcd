"""testing.store_suite.commits - many parties in one physical commit: their order, their isolation, running again.

For: ask, body, run and landed in their order; refusals and raises beside neighbours; bodies that met a key.
Never: a disk that fails (outcomes).
"""

from __future__ import annotations

import asyncio
from typing import Any

from onefold.store.contract import (
    Answer,
    Append,
    Body,
    Cas,
    Claim,
    Done,
    Inc,
    Last,
    Outcome,
    Put,
    Query,
    Refusal,
    Remove,
    Space,
)
from onefold.terms.errors import Broken, Busy, Contended, NotOpen
from onefold.testing.store_suite.ground import (
    Asking,
    Ground,
    Member,
    Unfulfilled,
    asking,
    done,
    expect,
    picture,
    promise,
    quietly,
    refused,
    refusing,
    rows,
    together,
    turns,
    write,
    writing,
)
from onefold.testing.store_suite.tables import OWNER, SENT, TASK, TURN, Histories, task

PHASES = ("ask", "body", "run", "landed")
AGAIN_AT_MOST = 16  # runs of a body that never passes; more would hold up its company


@promise("everybody is asked before anybody decides, decides before anything runs, and is told after the commit")
async def the_order_of_a_commit(ground: Ground) -> None:
    space = await ground.open()
    log: list[tuple[str, str]] = []
    members = [
        Member("writes", asking(Query(TASK), then=[Put(TASK, [task(1)])]), asks=(Query(TASK),), log=log),
        Member("idles", None, log=log),
        Member("refuses", refusing(Put(TASK, [task(2)])), log=log),
        Member("writes too", writing(Put(TASK, [task(3)])), asks=(Query(TASK), Query(SENT)), log=log),
    ]
    for member in members:
        space.join(member)
    expect(log, [], "what was called by joining alone")
    outcomes = [await member.outcome for member in members]
    expect([p for p, _ in log], sorted((p for p, _ in log), key=PHASES.index), "the phases, one after another")
    for phase in PHASES:
        called = [name for p, name in log if p == phase]
        missing = {"idles"} if phase == "run" else set()
        expect(sorted(called), sorted({m.name for m in members} - missing), f"who was called, once each: {phase}")
    expect(outcomes[1], Done(None), "the outcome of a party that writes nothing")
    expect([m.answers for m in members], [([],), (), (), ([], [])], "the answers to their questions")


@promise("a question shows what is committed, and nothing of the commit it is asked for")
async def questions_come_first(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1)]))
    members = [
        Member(str(i), asking(Append(TASK, [task(10 + i)])), asks=(Query(TASK, order=("id",)),)) for i in range(3)
    ]
    for member in members:
        space.join(member)
    for member in members:
        done(await member.outcome)
        expect(member.answers, ([task(1)],), "what was known before the commit")


@promise("a party that joins again from landed takes part in the next commit")
async def joining_from_landed(ground: Ground) -> None:
    space = await ground.open()

    class Twice(Member):
        def landed(self, outcome: Outcome[Any], /) -> None:
            if self.log.count(("landed", "twice")) < 2:
                self.log.append(("landed", "twice"))
                space.join(self)
            else:
                super().landed(outcome)

    party = Twice("twice", writing(Put(TASK, [task(1)]), Cas(TASK, [((1,), {}, {"tries": Inc(1)})])))
    space.join(party)
    done(await party.outcome)
    calls = [phase for phase, _ in party.log]
    expect(calls, list(PHASES) * 3, "what was called in three commits")


@promise("a party that joins again while it is asked takes part in this commit and in the next")
async def joining_from_ask(ground: Ground) -> None:
    space = await ground.open()

    class Eager(Member):
        def ask(self) -> tuple[Query, ...]:
            if len(self.log) < len(PHASES):
                space.join(self)
            return super().ask()

        def landed(self, outcome: Outcome[Any], /) -> None:
            if len(self.log) < 2 * len(PHASES) - 1:
                self.log.append(("landed", self.name))
            else:
                super().landed(outcome)

    party = Eager("eager", writing(Put(TASK, [task(1)])))
    space.join(party)
    done(await party.outcome)
    expect([phase for phase, _ in party.log], list(PHASES) * 2, "what was called in two commits")


@promise("a party that raises when it is told keeps nobody else from hearing")
async def raising_when_told(ground: Ground) -> None:
    space = await ground.open()

    class Deaf(Member):
        def landed(self, outcome: Outcome[Any], /) -> None:
            super().landed(outcome)
            raise ZeroDivisionError

    members = [
        Deaf("deaf", writing(Put(TASK, [task(1)]))),
        Member("hears", writing(Put(TASK, [task(2)]))),
        Deaf("deaf too", refusing()),
        Member("hears too", None),
    ]
    async with quietly(ZeroDivisionError):
        for member in members:
            space.join(member)
        outcomes = [await member.outcome for member in members]
        await turns()
    expect([type(outcome).__name__ for outcome in outcomes], ["Done", "Done", "Refused", "Done"], "what each was told")
    await write(space, Put(TASK, [task(3)]))
    expect(await rows(space, TASK), [task(1), task(2), task(3)], "the rows")


@promise("bodies of one commit run one after another: each sees what was kept, and nothing that was rolled back")
async def bodies_see_what_was_kept(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1), task(2)]))
    gone = (
        Append(TASK, [task(4)]),
        Put(TASK, [task(1, kind="n")]),
        Cas(TASK, [((2,), {}, {"tries": Inc(9)})]),
        Append(SENT, [(1, "k", b"")]),
        Remove(TASK, keys=[(2,)]),
    )
    outcomes = await together(
        space,
        asking(Append(TASK, [task(3)])),
        refusing(*gone),
        asking(Query(TASK, order=("id",)), Query(SENT), Append(SENT, [(1, "k", b"mine")])),
        refusing(Append(TASK, [task(5)])),
        asking(Query(TASK, order=("id",)), Query(SENT), Claim(TASK, (), ("id",), 9, {"kind": "c"})),
    )
    refused(outcomes[1], Contended)
    refused(outcomes[3], Contended)
    kept = [task(1), task(2), task(3)]
    expect(done(outcomes[2]).value, (kept, [], [None]), "what the third body sees")
    claimed = [task(i, kind="c") for i in (1, 2, 3)]
    expect(done(outcomes[4]).value, (kept, [(1, "k", b"mine")], claimed), "what the last body sees")
    expect(await rows(space, TASK), claimed, "the rows")


@promise("a refused transaction leaves every table byte-identical")
async def a_refusal_leaves_nothing(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    first = turn.row(1, "e", b"f")
    await write(
        space,
        Append(TURN, [first, turn.row(1, "f"), turn.row(2, "e")]),
        Append(TASK, [task(1, baton="b"), task(2)]),
        Append(SENT, [(1, "k", b"d")]),
        Append(OWNER, [("a", "one", 1)]),
    )
    before = await picture(space)
    everything = (
        Append(TURN, [turn.row(1, "g"), turn.row(3, "e")]),
        Put(TURN, [(*first[:4], b"changed")]),
        Remove(TASK, keys=[(1,)]),
        Append(TASK, [task(3, baton="b")]),
        Claim(TASK, (), ("id",), 9, {"kind": "held", "tries": Inc(1)}),
        Put(SENT, [(1, "k", b"other"), (2, "k", b"new")]),
        Cas(OWNER, [(("a",), {"epoch": 1}, {"epoch": Inc(1), "node": None})]),
        Remove(SENT, where=(("actor", "=", 1),)),
    )
    told = refused(await space.transact(refusing(*everything)), Contended)
    expect(str(told), str(Contended("the check")), "the error is the one that was raised")
    expect(await picture(space), before, "the tables after a refusal alone")
    outcomes = await together(space, refusing(*everything), writing(), refusing(*everything))
    expect([type(o).__name__ for o in outcomes], ["Refused", "Done", "Refused"], "two refusals and a neighbour")
    expect(await picture(space), before, "the tables after refusals in company")
    space = await ground.crashed()
    expect(await picture(space), before, "the tables after reopening")


@promise("a raise takes its own party along and no other, and its cause is told")
async def raises_stay_alone(ground: Ground) -> None:
    space = await ground.open()
    fault, busy = ZeroDivisionError("by nought"), Busy("it", 3)

    def raising(error: Exception) -> Body[None]:
        def run() -> Asking:
            yield (Put(TASK, [task(9)]),)
            raise error

        return run

    class AsksBadly(Member):
        def ask(self) -> tuple[Query, ...]:
            raise fault

    class DecidesBadly(Member):
        def body(self, answers: tuple[Answer, ...], /) -> Body[Any] | None:
            raise fault

    good = writing(Put(TASK, [task(1)]))
    members = [
        Member("a neighbour", asking(Put(TASK, [task(2)]))),
        AsksBadly("asks badly", good),
        DecidesBadly("decides badly", good),
        Member("raises", raising(fault)),
        Member("raises one of ours", raising(busy)),
        Member("refuses", raising(Refusal(busy))),
        Member("another neighbour", asking(Put(TASK, [task(3)]))),
    ]
    for member in members:
        space.join(member)
    outcomes = [await member.outcome for member in members]
    done(outcomes[0])
    for outcome, who in zip(outcomes[1:4], ("ask", "body", "the body itself"), strict=True):
        expect(refused(outcome, Broken).__cause__, fault, f"the cause of a raise in {who}")
    for outcome in outcomes[4:6]:
        expect(refused(outcome), busy, "an error of ours lands as itself")
    done(outcomes[6])
    expect(await rows(space, TASK), [task(2), task(3)], "the rows")


@promise("a body whose last write meets a key is run again from the start, without what it wrote before")
async def meeting_a_key_runs_again(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(SENT, [(1, "k", b"")]))
    for company in (0, 1):
        runs = 0

        def body() -> Asking:
            nonlocal runs
            runs += 1
            before, _ = yield (Query(TASK), Append(TASK, [task(runs)]))
            if before:
                raise Unfulfilled(f"run {runs} sees {before}, which an earlier run wrote")
            writes = (Put(OWNER, [(f"run {runs}", None, runs)]), Append(SENT, [(1, "k" * runs, b"")]))
            return Last(writes, runs)

        outcomes = await together(space, *[writing()] * company, body)
        landed = done(outcomes[-1])
        expect((landed.value, landed.answers), (2, (None, [None])), "the value and the answers of the second run")
        expect((await rows(space, TASK), await rows(space, OWNER)), ([task(2)], [("run 2", None, 2)]), "the rows")
        await write(space, Remove(TASK, where=()), Remove(OWNER, where=()), Remove(SENT, keys=[(1, "kk")]))


@promise("a body that meets a key whenever it runs is refused as contended after a few runs, and holds up nobody")
async def never_passing_is_contended(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(SENT, [(1, "k", b"")]))
    runs = 0

    def stubborn() -> Asking:
        nonlocal runs
        runs += 1
        yield (Query(SENT),)
        return Last((Put(TASK, [task(9)]), Append(SENT, [(1, "k", b"")])), None)

    blunt = writing(Put(TASK, [task(8)]), Append(SENT, [(2, "new", b""), (1, "k", b"")]))
    first, second, third = await together(space, stubborn, blunt, writing(Put(TASK, [task(1)])))
    refused(first, Contended)
    refused(second, Contended)
    done(third)
    expect(1 < runs <= AGAIN_AT_MOST, True, f"{runs} runs of a body that asks")
    expect((await rows(space, TASK), await rows(space, SENT)), ([task(1)], [(1, "k", b"")]), "the rows")


@promise("many parties share a commit, and each is told its own")
async def many_parties(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(OWNER, [("count", None, 0)]))

    def counting(i: int) -> Body[int]:
        def run() -> Asking:
            (after,) = yield (Cas(OWNER, [(("count",), {}, {"epoch": Inc(1)})]),)
            if i % 10 == 3:
                raise Refusal(Contended(str(i)))
            return Last((Append(TASK, [task(i, tries=after[0][2])]),), i)

        return run

    outcomes = await together(space, *map(counting, range(100)))
    kept = [i for i in range(100) if i % 10 != 3]
    for i, outcome in enumerate(outcomes):
        if i in kept:
            expect(done(outcome).value, i, "whose outcome it is")
        else:
            expect(str(refused(outcome)), str(Contended(str(i))), "whose refusal it is")
    counted = [(row[0], row[4]) for row in await rows(space, TASK)]
    expect(counted, [(i, place) for place, i in enumerate(kept, start=1)], "each counted on from the one before")


@promise("a closed space takes nobody, and what joined before it closed is committed")
async def closed_spaces(ground: Ground) -> None:
    space = await ground.open()
    joined = Member("joined", writing(Put(TASK, [task(1)])))
    space.join(joined)
    await ground.close()
    done(await joined.outcome)
    for name in ("join", "transact"):
        try:
            if name == "join":
                space.join(Member("late", writing()))
            else:
                done(await space.transact(writing(Put(TASK, [task(2)]))))
        except NotOpen:
            continue
        raise Unfulfilled(f"{name} on a closed space raised nothing; promised was NotOpen")
    expect(await rows(await ground.open(), TASK), [task(1)], "the rows")


@promise("who stops waiting for a body stops nothing")
async def cancelled_waits(ground: Ground) -> None:
    space = await ground.open()
    waiting = asyncio.create_task(_told(space))
    await asyncio.sleep(0)
    waiting.cancel()
    await turns()
    expect(waiting.cancelled(), True, "the wait")
    expect(await rows(space, TASK) in ([], [task(1)]), True, "the row is wholly there or absent")
    await write(space, Put(TASK, [task(2)]))
    expect((await rows(space, TASK))[-1], task(2), "who comes after it is served")


async def _told(space: Space) -> Outcome[None]:
    return await space.transact(writing(Put(TASK, [task(1)])))


CHECKS = (
    the_order_of_a_commit,
    questions_come_first,
    joining_from_landed,
    joining_from_ask,
    raising_when_told,
    bodies_see_what_was_kept,
    a_refusal_leaves_nothing,
    raises_stay_alone,
    meeting_a_key_runs_again,
    never_passing_is_contended,
    many_parties,
    closed_spaces,
    cancelled_waits,
)
