"""testing.store_suite.outcomes - done, refused and unknown, on a disk that fails and in a process that ends.

For: what parties are told when a statement, the commit or its answer fails, and what is there afterwards.
Never: which error a disk gives (a backend's own tests fill disks and cut power).
"""

from __future__ import annotations

from itertools import count, product
from typing import Any

from onefold.store.contract import (
    Append,
    Body,
    Cas,
    Done,
    Inc,
    Last,
    Outcome,
    Put,
    Query,
    Refusal,
    Refused,
    Remove,
    Space,
    Unknown,
    Write,
)
from onefold.terms.errors import Contended, StoreUnavailable
from onefold.testing.store_suite.ground import (
    Asking,
    Disk,
    Ground,
    Member,
    Unfulfilled,
    done,
    expect,
    picture,
    promise,
    quietly,
    refused,
    rows,
    together,
    turns,
    write,
    writing,
)
from onefold.testing.store_suite.tables import OWNER, SENT, TASK, TURN, Histories, task

POINTS = ("statement", "before-commit", "after-commit")


@promise("a commit that failed before it was sent is refused, nothing of it is there, and the same again is done")
async def failed_before(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    body = writing(Append(TASK, [task(1)]), Put(SENT, [(1, "k", b"")]))
    disk.fail_at("before-commit", lasting=True)
    outcomes = [await space.transact(body), *await together(space, body, body)]
    disk.heal()
    for outcome in outcomes:
        refused(outcome, StoreUnavailable)
    expect((await rows(space, TASK), await rows(space, SENT)), ([], []), "the rows of refused commits")
    done(await space.transact(body))
    expect(await rows(await ground.crashed(), TASK), [task(1)], "the row of the same again")


@promise("a commit whose answer was lost is never called refused, and is found by looking it up")
async def a_lost_answer(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    await write(space, Append(OWNER, [("a", None, 0)]))
    counts = Cas(OWNER, [(("a",), {}, {"epoch": Inc(1)})])
    writes: tuple[Write, ...] = (Append(TASK, [task(1)]), Append(TASK, [task(2)]), counts, counts)
    for number, written in enumerate(writes, start=1):
        disk.fail_at("after-commit", lasting=number % 2 == 0)
        outcome = await space.transact(writing(written))
        disk.heal()
        if isinstance(outcome, Refused):
            raise Unfulfilled(f"a commit whose answer was lost ended {outcome!r}; promised was Unknown or Done")
        there = (len(await rows(space, TASK)), (await rows(space, OWNER))[0][2])
        expect(there, (min(number, 2), max(number - 2, 0)), f"what {number} lost commits wrote, looked up")
    await write(space, Append(SENT, [(1, "goes on", b"")]))
    space = await ground.crashed()
    there = (len(await rows(space, TASK)), (await rows(space, OWNER))[0][2])
    expect((there, len(await rows(space, SENT))), ((2, 2), 1), "after a crash")


@promise("every party of a lost commit is told so, but for those that were refused before it")
async def parties_of_a_lost_commit(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    for number, (refusing, lasting) in enumerate(product(range(3), (False, True)), start=1):
        disk.fail_at("after-commit", lasting=lasting)
        outcomes = await together(space, *[_body(number, place, refuses=place == refusing) for place in range(3)])
        disk.heal()
        await _agree(space, number, outcomes)
        for place, outcome in enumerate(outcomes):
            if place == refusing:
                refused(outcome, Contended)
            elif isinstance(outcome, Refused):
                raise Unfulfilled(f"a commit whose answer was lost ended {outcome!r}; promised was Unknown or Done")
    before = await picture(space)
    expect(await picture(await ground.crashed()), before, "everything, after a crash")


@promise("when a batch fails its bodies run again singly, and whoever can pass does")
async def failed_batches_run_singly(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    for number in range(1, 4):
        disk.fail_at("before-commit")
        outcomes = await together(space, *[_body(number, place, refuses=place == number) for place in range(4)])
        expect(disk.struck, True, "the disk failed")
        disk.heal()
        await _agree(space, number, outcomes)
        told = [type(outcome).__name__ for outcome in outcomes]
        expect(told, ["Refused" if place == number else "Done" for place in range(4)], "what each body was told")


@promise("wherever the disk fails, each party is told the truth, and the next commit is done without reopening")
async def told_the_truth(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    number = 0
    for point in POINTS:
        for lasting in (False, True):
            for hit in count(1):
                number += 1
                disk.fail_at(point, hit, lasting=lasting)
                bodies = (_body(number, 0), _body(number, 1, refuses=True), _body(number, 2), _body(number, 3))
                outcomes = await together(space, *bodies)
                struck = disk.struck
                disk.heal()
                await _agree(space, number, outcomes)
                if not struck:
                    break
    expect(number > 2 * len(POINTS), True, f"the disk failed somewhere in {number} commits")
    await write(space, Put(OWNER, [("last", None, number)]))
    before = await picture(space)
    expect(await picture(await ground.crashed()), before, "everything, after a crash")


@promise("a store that cannot be asked refuses every party, and nobody decides without an answer")
async def nobody_decides_unanswered(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    asks = Member("asks", writing(Put(TASK, [task(1)])), asks=(Query(TASK),))
    writes = Member("writes", writing(Put(TASK, [task(2)])))
    disk.fail_at("statement", lasting=True)
    for member in (asks, writes):
        space.join(member)
    for member in (asks, writes):
        refused(await member.outcome, StoreUnavailable)
    expect(("body", "asks") in asks.log, False, "it decided without an answer")
    try:
        await space.look(Query(TASK))
    except StoreUnavailable:
        disk.heal()
    else:
        raise Unfulfilled("a look at a dead disk raised nothing; promised was StoreUnavailable")
    expect(await rows(space, TASK), [], "the rows, once the disk is back")


@promise("wherever the disk fails in questions, they are answered or refused as unavailable, and the next are answered")
async def questions_after_a_failure(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    await write(space, Put(TASK, [task(1)]), Put(SENT, [(1, "k", b"")]))
    for hit in count(1):
        disk.fail_at("statement", hit)
        try:
            told = await space.look(Query(TASK), Query(SENT))
            expect(told, ([task(1)], [(1, "k", b"")]), "the answers")
        except StoreUnavailable:
            pass
        struck = disk.struck
        disk.heal()
        expect(
            await space.look(Query(TASK), Query(SENT)), ([task(1)], [(1, "k", b"")]), f"the answers after failure {hit}"
        )
        await write(space, Put(SENT, [(2, f"k{hit}", b"")]), Remove(SENT, keys=[(2, f"k{hit}")]))
        if not struck:
            return


@promise("what was acknowledged survives a crash, and what never was is wholly there or wholly absent")
async def killed_anywhere(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    number = 0
    async with quietly():
        for point in POINTS:
            for hit in count(1):
                number += 1
                done((await together(space, _body(number, 0)))[0])
                disk.kill_at(point, hit)
                members = [Member(str(i), _body(number, i, refuses=i == 2)) for i in range(1, 4)]
                for member in members:
                    space.join(member)
                await turns()
                struck = disk.struck
                ground.abandon()
                disk.heal()
                space = await ground.open(disk=disk)
                outcomes = [m.outcome.result() if m.outcome.done() else Unknown(Contended("")) for m in members]
                await _agree(space, number, [Done(None), *outcomes])
                if not struck:
                    break


@promise("what joined a space and was not committed when the process ended is not there")
async def joined_and_killed(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Put(TASK, [task(1)]))
    late = Member("late", writing(Put(TASK, [task(2)])))
    space.join(late)
    space = await ground.crashed()
    await turns()
    expect((await rows(space, TASK), late.outcome.done()), ([task(1)], False), "the rows, and whether it was told")


def _body(number: int, place: int, *, refuses: bool = False) -> Body[None]:
    """A body that writes to three tables, before and in its last writes; `number` and `place` name what it wrote."""

    def run() -> Asking:
        me = number * 10 + place
        yield (Query(TASK, on=("id",), keys=[(me,)]), Append(TASK, [task(me, baton=str(me))]))
        if refuses:
            raise Refusal(Contended("the check"))
        return Last((Append(SENT, [(number, str(place), b"")]), Put(OWNER, [(str(me), None, number)])), None)

    return run


async def _agree(space: Space, number: int, outcomes: list[Outcome[Any]]) -> None:
    """Raises: Unfulfilled unless what is there of each `_body` of `number` is what its outcome says."""
    for place, outcome in enumerate(outcomes):
        me = number * 10 + place
        found = await space.look(
            Query(TASK, on=("id",), keys=[(me,)]),
            Query(SENT, on=("actor", "key"), keys=[(number, str(place))]),
            Query(OWNER, on=("name",), keys=[(str(me),)]),
        )
        there = [len(answer) for answer in found]
        if isinstance(outcome, Done):
            promised = [[1, 1, 1]]
        elif isinstance(outcome, Refused):
            promised = [[0, 0, 0]]
        else:
            promised = [[0, 0, 0], [1, 1, 1]]
        if there not in promised:
            raise Unfulfilled(
                f"party {place} of commit {number} was told {outcome!r}, and {there} of its rows are there"
            )


@promise("a history is whole after commits that failed: its newest row, its keys, its numbers")
async def histories_survive_faults(ground: Ground) -> None:
    disk = Disk()
    space = await ground.open(disk=disk)
    turn = Histories(space)
    kept = [turn.row(1, "first")]
    await write(space, Append(TURN, kept))
    for point in POINTS:
        for lasting in (False, True):
            head = turn.heads[1]
            row = turn.row(1, f"{point} {lasting}")
            disk.fail_at(point, lasting=lasting)
            outcome = await space.transact(writing(Append(TURN, [row])))
            disk.heal()
            (found,) = await space.look(Query(TURN, on=("actor", "event"), keys=[(1, str(row[3]))]))
            if found:
                kept.append(row)
            else:
                turn.heads[1] = head
            if isinstance(outcome, Refused if found else Done):
                raise Unfulfilled(f"a turn was told {outcome!r}, and looking it up finds {found!r}")
    expect((await space.look(Query(TURN, (("actor", "=", 1),), order=("n",))))[0], kept, "the history")
    space = await ground.crashed()
    expect((await space.look(Query(TURN, (("actor", "=", 1),), order=("n",))))[0], kept, "the history after a crash")


CHECKS = (
    failed_before,
    a_lost_answer,
    parties_of_a_lost_commit,
    failed_batches_run_singly,
    told_the_truth,
    nobody_decides_unanswered,
    questions_after_a_failure,
    killed_anywhere,
    joined_and_killed,
    histories_survive_faults,
)
