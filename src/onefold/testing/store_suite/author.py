"""testing.store_suite.author - the one narrow door for an author's SQL.

For: a step that commits with its journal or not at all, its budget, its one statement at a time, its migrations.
Never: which statements a dialect has beyond the plainest (a backend's own tests try to break out).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from onefold.store.contract import Append, AuthorSpace, Body, Last, Outcome, Put, Refusal, Refused, Tx
from onefold.terms.errors import BadStatement, Busy, NotOpen, OnefoldError, StepFenced
from onefold.testing.store_suite.ground import (
    Asking,
    Disk,
    Ground,
    Member,
    Unfulfilled,
    done,
    expect,
    promise,
    refused,
    rows,
    turns,
    write,
    writing,
)
from onefold.testing.store_suite.tables import SENT, TASK, TURN, Histories, task

MIGRATIONS = (
    "create table notes (id integer primary key, said text)",
    "insert into notes values (1, 'from the migration')",
)
INSERT = "insert into notes values (:id, :said)"
FOR_EVER = "with recursive c(x) as (select 1 union all select x+1 from c) select max(x) as x from c"
AMPLE_MS = 15_000
SHORT_MS = 40  # real milliseconds; only how long the check takes hangs on it


async def opened(ground: Ground, *, disk: Disk | None = None) -> AuthorSpace:
    space = await ground.open(disk=disk)
    await space.author_migrate(MIGRATIONS)
    return space


async def notes(space: AuthorSpace) -> dict[int, object]:
    _, page, _ = await space.author_rows("notes", limit=100, after=None)
    return {int(str(row[0])): row[1] for row in page}


def _noting(id: int, then: Callable[[Tx], object] = lambda tx: None) -> Callable[[Tx], int]:
    def step(tx: Tx) -> int:
        tx.execute(INSERT, id=id, said=f"note {id}")
        then(tx)
        return id

    return step


def journal(id: int) -> Body[int]:
    def run() -> Asking:
        (met,) = yield (Append(SENT, [(id, "step", b"")]),)
        return Last((Append(TASK, [task(id)]),), id if met == [None] else 0)

    return run


async def _fails(space: AuthorSpace, step: Callable[[Tx], int], kind: type[Exception], what: str) -> Exception:
    """The raise of a step that must fail, with neither its rows nor its journal."""
    before = (await notes(space), await rows(space, TASK), await rows(space, SENT))
    try:
        outcome = await space.author(step, journal, budget_ms=AMPLE_MS)
    except kind as fault:
        after = (await notes(space), await rows(space, TASK), await rows(space, SENT))
        expect(after, before, f"the rows after {what}")
        return fault
    raise Unfulfilled(f"{what} ended {outcome!r}; promised was {kind.__name__}")


@promise("a database step commits with its journal, which is made of its result")
async def steps_commit_with_theirjournal(ground: Ground) -> None:
    space = await opened(ground)
    told: list[object] = []

    def step(tx: Tx) -> int:
        told.append(tx.execute(INSERT, id=2, said="x"))
        told.append(tx.execute("update notes set said = :said", said="all"))
        told.append(tx.fetch("select id, said from notes order by id"))
        told.append(tx.fetch_one("select count(*) as n from notes"))
        told.append(tx.fetch_one("select id from notes where id = :id", id=9))
        return 7

    outcome = done(await space.author(step, journal, budget_ms=AMPLE_MS))
    expect((outcome.value, outcome.answers), (7, ([None],)), "the outcome")
    found = [{"id": 1, "said": "all"}, {"id": 2, "said": "all"}]
    expect(told, [1, 2, found, {"n": 2}, None], "what the step was answered")
    for life in ("now", "after a crash"):
        expect(await notes(space), {1: "all", 2: "all"}, f"the author's rows {life}")
        expect((await rows(space, TASK), await rows(space, SENT)), ([task(7)], [(7, "step", b"")]), f"ours {life}")
        space = await ground.crashed()


@promise("a step that raises leaves nothing, and its raise is the caller's")
async def raising_steps_leave_nothing(ground: Ground) -> None:
    space = await opened(ground)
    fault = ZeroDivisionError("by nought")

    def fails(tx: Tx) -> None:
        raise fault

    expect(await _fails(space, _noting(2, fails), ZeroDivisionError, "a step that raises"), fault, "the raise")
    done(await space.author(_noting(2), journal, budget_ms=AMPLE_MS))
    expect(await notes(space), {1: "from the migration", 2: "note 2"}, "the next step's rows")


@promise("a journal that is refused takes the step's rows along")
async def refused_journals_leave_nothing(ground: Ground) -> None:
    space = await opened(ground)
    busy = Busy("the journal", 1)

    def refuses(id: int) -> Body[int]:
        def run() -> Asking:
            yield (Put(TASK, [task(id)]),)
            raise Refusal(busy)

        return run

    outcome = await space.author(_noting(2), refuses, budget_ms=AMPLE_MS)
    expect(refused(outcome), busy, "the refusal")
    await write(space, Append(SENT, [(3, "step", b"")]))
    blunt = lambda id: writing(Put(TASK, [task(id)]), Append(SENT, [(id, "step", b"")]))  # noqa: E731 - one line
    refused(await space.author(_noting(3), blunt, budget_ms=AMPLE_MS))
    expect((await notes(space), await rows(space, TASK)), ({1: "from the migration"}, []), "the rows")


@promise("a history goes on through the journal of a step")
async def journals_reach_histories(ground: Ground) -> None:
    space = await opened(ground)
    turn = Histories(space)
    first = turn.row(1, "e0")
    await write(space, Append(TURN, [first]))
    second, third = turn.row(1, "e1"), turn.row(1, "e2")
    done(await space.author(_noting(2), lambda _: writing(Append(TURN, [second])), budget_ms=AMPLE_MS))
    met = writing(Append(TURN, [(space.mint(TURN), 1, None, "e1", b"")], met="keep"))
    expect(done(await space.transact(met)).answers, ([second],), "the journal's turn, met by the next commit")
    await write(space, Append(TURN, [third]))
    expect(await rows(await ground.crashed(), TURN), [first, second, third], "the history after a crash")


@promise("a step past its budget is fenced: nothing of it is there, its handle is dead, and the space goes on")
async def steps_are_fenced(ground: Ground) -> None:
    space = await opened(ground)
    late: list[object] = []
    ended = threading.Event()

    def slow(tx: Tx) -> int:
        tx.execute(INSERT, id=2, said="too late")
        for statement in (FOR_EVER, "select id from notes", FOR_EVER):
            try:
                late.append(tx.fetch(statement))
            except StepFenced as fence:
                late.append(type(fence))
        ended.set()
        return 2

    try:
        outcome = await space.author(slow, journal, budget_ms=SHORT_MS)
    except StepFenced:
        pass
    else:
        raise Unfulfilled(f"a step past its budget ended {outcome!r}; promised was StepFenced")
    expect(await asyncio.to_thread(ended.wait, AMPLE_MS / 1000), True, "its thread came to an end")
    expect(late, [StepFenced] * 3, "what the thread was answered that came too late")
    expect((await notes(space), await rows(space, TASK)), ({1: "from the migration"}, []), "the rows")
    done(await space.author(_noting(3), journal, budget_ms=AMPLE_MS))
    await write(space, Put(TASK, [task(4)]))
    expect(await rows(space, TASK), [task(3), task(4)], "who comes after it is served")


@promise("the handle of a step is dead once it has ended")
async def handles_end(ground: Ground) -> None:
    space = await opened(ground)
    kept: list[Tx] = []
    done(await space.author(_noting(2, kept.append), journal, budget_ms=AMPLE_MS))
    try:
        kept[0].execute(INSERT, id=3, said="late")
    except StepFenced:
        expect(sorted(await notes(space)), [1, 2], "the rows")
    else:
        raise Unfulfilled("a handle worked after its step; promised was StepFenced")


@promise("the space commits nothing else while a step runs, and everything that waited after it")
async def steps_run_alone(ground: Ground) -> None:
    space = await opened(ground)
    inside, go = threading.Event(), threading.Event()

    def waits(tx: Tx) -> None:
        inside.set()
        go.wait(AMPLE_MS / 1000)

    async def other() -> None:
        await write(space, Put(TASK, [task(3)]))

    async def running() -> None:
        done(await space.author(_noting(2, waits), journal, budget_ms=AMPLE_MS))

    async with asyncio.TaskGroup() as tasks:
        step = tasks.create_task(running())
        await asyncio.to_thread(inside.wait, AMPLE_MS / 1000)
        waiting = tasks.create_task(other())
        await turns()
        expect((step.done(), waiting.done()), (False, False), "who is through while the step runs")
        expect((await rows(space, TASK), space.mint(TURN) > 0), ([], True), "a look and a number meanwhile")
        go.set()
    expect((sorted(await notes(space)), await rows(space, TASK)), ([1, 2], [task(2), task(3)]), "the rows")


@promise("a space that closes while a step runs fences it, refuses who waited, and is whole for who opens it next")
async def closing_fences_steps(ground: Ground) -> None:
    space = await opened(ground)
    inside, go = threading.Event(), threading.Event()

    def waits(tx: Tx) -> None:
        inside.set()
        go.wait(AMPLE_MS / 1000)

    running = asyncio.create_task(_raise_of(space.author(_noting(2, waits), journal, budget_ms=AMPLE_MS)))
    await asyncio.to_thread(inside.wait, AMPLE_MS / 1000)
    second = asyncio.create_task(_raise_of(space.author(_noting(3), journal, budget_ms=AMPLE_MS)))
    waiting = Member("waiting", writing(Put(TASK, [task(4)])))
    space.join(waiting)
    await turns()
    await ground.close()
    refused(await waiting.outcome, NotOpen)
    expect(await second, NotOpen, "what the step was told that waited for its turn")
    space = await ground.open()
    await write(space, Put(TASK, [task(5)]))
    go.set()
    expect(await running, StepFenced, "what the step was told that ran")
    expect((await notes(space), await rows(space, TASK)), ({1: "from the migration"}, [task(5)]), "the rows")


async def _raise_of(step: Awaitable[Outcome[Any]]) -> type[OnefoldError] | Outcome[Any]:
    try:
        return await step
    except OnefoldError as error:
        return type(error)


@promise("a step that nobody waits for any more is fenced, and the space goes on")
async def cancelled_steps(ground: Ground) -> None:
    space = await opened(ground)
    inside, go, ended = threading.Event(), threading.Event(), threading.Event()
    late: list[object] = []

    def waits(tx: Tx) -> None:
        inside.set()
        go.wait(AMPLE_MS / 1000)
        try:
            late.append(tx.execute(INSERT, id=3, said="late"))
        except StepFenced as fence:
            late.append(type(fence))
        ended.set()

    running = asyncio.create_task(_raise_of(space.author(_noting(2, waits), journal, budget_ms=AMPLE_MS)))
    await asyncio.to_thread(inside.wait, AMPLE_MS / 1000)
    running.cancel()
    await asyncio.wait([running])
    expect(running.cancelled(), True, "the wait")
    done(await space.author(_noting(4), journal, budget_ms=AMPLE_MS))
    go.set()
    await asyncio.to_thread(ended.wait, AMPLE_MS / 1000)
    expect(late, [StepFenced], "what its thread was answered")
    expect((sorted(await notes(space)), await rows(space, TASK)), ([1, 4], [task(4)]), "the rows")


@promise("values are bound and never become SQL, and each statement comes alone")
async def values_are_bound(ground: Ground) -> None:
    space = await opened(ground)
    evil = "'); drop table notes; --"

    def step(tx: Tx) -> int:
        tx.execute(INSERT, id=2, said=evil)
        expect(tx.fetch("select id from notes where said = :said", said=evil), [{"id": 2}], "found by its value")
        return 2

    done(await space.author(step, journal, budget_ms=AMPLE_MS))
    expect((await notes(space))[2], evil, "the text, as it was bound")
    two = "delete from notes where id = 1; delete from notes where id = 2"
    wrong: tuple[tuple[str, dict[str, object]], ...] = (
        (two, {}),
        (INSERT, {"id": 3}),
        (INSERT, {"id": 3, "said": "x", "more": 1}),
        (INSERT, {"id": 3, "said": object()}),
        ("insert into nowhere values (1)", {}),
        ("not a statement", {}),
    )
    for text, values in wrong:
        fault = await _fails(space, _noting(9, partial(_execute, text, values)), BadStatement, text)
        expect(bool(str(fault)), True, "it says why")


def _execute(text: str, values: dict[str, object], tx: Tx) -> None:
    tx.execute(text, **values)


@promise("a step cannot end its transaction: whatever it tries, it commits with its journal or not at all")
async def transactions_stand(ground: Ground) -> None:
    space = await opened(ground)
    texts = ("commit", "rollback", "begin", "savepoint s", "end", "insert or rollback into notes values (1, 'twice')")
    for number, text in enumerate(texts, start=10):

        def tries(tx: Tx, text: str = text) -> None:
            try:
                tx.execute(text)
            except OnefoldError:
                return
            raise Unfulfilled(f"{text!r} was run in a step")

        try:
            outcome = await space.author(_noting(number, tries), journal, budget_ms=AMPLE_MS)
            landed = not isinstance(outcome, Refused)
        except BadStatement:
            landed = False
        there = (number in await notes(space), task(number) in await rows(space, TASK))
        expect(there, (landed, landed), f"the step's row and its journal after {text!r}")


@promise("a step whose commit fails leaves neither its rows nor its journal, and one whose answer is lost has both")
async def failing_commits_of_steps(ground: Ground) -> None:
    disk = Disk()
    space = await opened(ground, disk=disk)
    for number, point in enumerate(("before-commit", "after-commit"), start=2):
        disk.fail_at(point)
        outcome = await space.author(_noting(number), journal, budget_ms=AMPLE_MS)
        struck = disk.struck
        disk.heal()
        expect(struck, True, f"the disk failed at {point}")
        there = (number in await notes(space), task(number) in await rows(space, TASK))
        if isinstance(outcome, Refused):
            expect(there, (False, False), f"the rows of a step that was refused at {point}")
        else:
            expect(there, (True, True), f"the rows of a step that ended {type(outcome).__name__} at {point}")
        expect(isinstance(outcome, Refused), point == "before-commit", f"whether it was refused at {point}")
    done(await space.author(_noting(9), journal, budget_ms=AMPLE_MS))
    expect(9 in await notes(await ground.crashed()), True, "the next step's row, after a crash")


CHECKS = (
    steps_commit_with_theirjournal,
    raising_steps_leave_nothing,
    refused_journals_leave_nothing,
    journals_reach_histories,
    steps_are_fenced,
    handles_end,
    steps_run_alone,
    closing_fences_steps,
    cancelled_steps,
    values_are_bound,
    transactions_stand,
    failing_commits_of_steps,
)
