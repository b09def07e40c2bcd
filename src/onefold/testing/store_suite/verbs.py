"""testing.store_suite.verbs - what each write does, and what it answers.

For: Append, Put, Cas, Remove, `Inc`, `DbNow`, cells of every kind.
Never: what two parties see of each other (commits), what a key forbids (keys).
"""

from __future__ import annotations

from onefold.store.contract import Append, Cas, DbNow, Inc, Put, Query, Remove, Row, Table
from onefold.terms.errors import Broken
from onefold.testing.store_suite.ground import (
    Ground,
    ask,
    asking,
    expect,
    picture,
    promise,
    refused,
    rows,
    together,
    write,
    writing,
)
from onefold.testing.store_suite.tables import MAIL, OWNER, SENT, TABLES, TASK, TURN, Histories, task

CENTURY_MS = (946_684_800_000, 4_102_444_800_000)  # 2000 to 2100


@promise("a row comes back cell by cell as it was written")
async def cells_come_back(ground: Ground) -> None:
    space = await ground.open()
    wide = [
        (1, "", b""),
        (2, "é ß 漢字 \U0001f600 'quoted\" \n", bytes(range(256))),
        (3, None, None),
        (-(2**63), "x" * 70_000, b"\x00" * 70_000),
        (2**63 - 1, "ends with a blank ", b"'"),
    ]
    expect((await write(space, Append(MAIL, wide))), ([None] * 5,), "appending cells of every kind")
    expect(await rows(space, MAIL), sorted(wide), "the rows")
    expect(await rows(await ground.reopened(), MAIL), sorted(wide), "the rows after reopening")


@promise("append answers nothing for a new row, and the whole row that holds the key for a met one")
async def append_answers_what_it_met(ground: Ground) -> None:
    space = await ground.open()
    held = task(1, baton="b", ready=7)
    await write(space, Append(TASK, [held]))
    new, met = task(2), task(1, kind="other", tries=9)
    expect(await ask(space, Append(TASK, [new, met])), ([None, held],), "appending a new row and one that is met")
    last = await write(space, Append(TASK, [task(3, baton="b"), task(4)], met="keep"))
    expect(last, ([held, None],), "appending in the last writes")
    expect(await rows(space, TASK), [held, new, task(4)], "the rows")


@promise("rows of one append see each other")
async def rows_of_one_verb_see_each_other(ground: Ground) -> None:
    space = await ground.open()
    one, again, other = task(1, baton="b"), task(1, kind="z"), task(2, baton="b")
    expect(await ask(space, Append(TASK, [one, again, other])), ([None, one, one],), "three rows, two keys")
    turn = Histories(space)
    first = turn.row(1, "e")
    second = (space.mint(TURN), 1, first[0], "e", b"")
    expect(await ask(space, Append(TURN, [first, second])), ([None, first],), "two turns of one event")


@promise("a kept row stays as it was, and the writes beside it go on")
async def keep_goes_on(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(SENT, [(1, "k", b"first")]))
    answers = await write(
        space,
        Put(TASK, [task(1)]),
        Append(SENT, [(1, "k", b"second"), (1, "l", b"new")], met="keep"),
        Remove(TASK, keys=[(9,)]),
    )
    expect(answers, (None, [(1, "k", b"first"), None], 0), "the answers of the last writes, in their order")
    expect(await rows(space, SENT), [(1, "k", b"first"), (1, "l", b"new")], "the rows")
    expect(await rows(space, TASK), [task(1)], "what was put beside it")


@promise("put inserts or replaces by primary key, and answers nothing")
async def put_replaces(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1, baton="b"), task(2)]))
    put = [task(1, kind="n", baton=None, ready=None, tries=3), task(3, baton="b")]
    expect(await ask(space, Put(TASK, put)), (None,), "putting one known and one new row")
    expect(await rows(space, TASK), [put[0], task(2), put[1]], "the rows")
    expect(await write(space, Put(TASK, [put[0], put[0]])), (None,), "putting what is there already")
    expect(await write(space, Put(SENT, [(1, "k", b"a"), (1, "k", b"b")])), (None,), "putting one key twice")
    expect(await rows(space, SENT), [(1, "k", b"b")], "the row put last")


@promise("cas answers with the row after, or with nothing where the row is absent or differs")
async def cas_hits_and_misses(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1, ready=5), task(2, ready=None, tries=None)]))
    (answer,) = await ask(
        space,
        Cas(
            TASK,
            [
                ((1,), {"ready": 5, "kind": "a"}, {"ready": 6}),
                ((1,), {"ready": 5}, {"ready": 7}),
                ((2,), {"ready": None}, {"ready": 1, "baton": "b"}),
                ((2,), {"tries": 0}, {"ready": 2}),
                ((3,), {}, {"ready": 3}),
                ((1,), {}, {"kind": "any"}),
            ],
        ),
    )
    hit, null, anyway = task(1, ready=6), task(2, baton="b", ready=1, tries=None), task(1, kind="any", ready=6)
    expect(answer, [hit, None, null, None, None, anyway], "row by row")
    expect(await rows(space, TASK), [anyway, null], "the rows")
    last = await write(space, Cas(SENT, [((1, "k"), {}, {"digest": b"x"})]), Cas(TASK, [((1,), {"ready": 6}, {})]))
    expect(last, ([None], [anyway]), "an absent row, and a hit that sets nothing, in the last writes")


@promise("an increment counts from the value, and from zero where there is none")
async def inc_counts(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1, ready=5, tries=None)]))
    up = Cas(TASK, [((1,), {}, {"ready": Inc(3), "tries": Inc(1)}), ((1,), {}, {"ready": Inc(-10), "tries": Inc(0)})])
    expect(await ask(space, up), ([task(1, ready=8, tries=1), task(1, ready=-2, tries=1)],), "two increments")
    expect(await rows(space, TASK), [task(1, ready=-2, tries=1)], "the row")


@promise("the store's clock tells milliseconds, is one instant in a body, and never goes back")
async def the_clock(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1), task(2)]))
    told = []
    for _ in range(3):
        (answer,) = await ask(
            space,
            Cas(TASK, [((1,), {}, {"ready": DbNow(), "tries": DbNow(-250)}), ((2,), {}, {"ready": DbNow(90_000)})]),
        )
        (_, _, _, now, before), (_, _, _, later, _) = answer
        expect((before - now, later - now), (-250, 90_000), "the instants of one body, as differences")
        told.append(now)
    expect(told, sorted(told), "one body after another")
    expect(CENTURY_MS[0] < told[0] < CENTURY_MS[1], True, f"{told[0]} is milliseconds since 1970")


@promise("remove answers how many rows there were, by key and by condition")
async def remove_counts(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(i, ready=i) for i in range(6)]), Append(SENT, [(1, "k", b"")]))
    expect(await ask(space, Remove(TASK, keys=[(0,), (9,), (0,), (1,)])), (2,), "two there, one absent, one twice")
    expect(await ask(space, Remove(TASK, where=(("ready", ">=", 4), ("kind", "=", "a")))), (2,), "by condition")
    expect(await ask(space, Remove(TASK, where=(("baton", "=", None),))), (0,), "a condition that nothing meets")
    last = await write(space, Remove(TASK, keys=[(2,)]), Remove(TASK, keys=[]), Remove(SENT, where=()))
    expect(last, (1, 0, 1), "in the last writes")
    expect((await rows(space, TASK), await rows(space, SENT)), ([task(3, ready=3)], []), "the rows")


@promise("each verb of a body sees what the ones before it wrote")
async def verbs_see_each_other(ground: Ground) -> None:
    space = await ground.open()
    own = ("a", "one", 1)
    answers = await ask(
        space,
        Append(OWNER, [own]),
        Query(OWNER, keys=[("a",)], on=("name",), lock="update"),
        Cas(OWNER, [(("a",), {"epoch": 1}, {"epoch": Inc(1)})]),
        Query(OWNER),
        Remove(OWNER, keys=[("a",)]),
        Query(OWNER),
        Append(OWNER, [("a", None, 9)]),
    )
    after = ("a", "one", 2)
    expect(answers, ([None], [own], [after], [after], 1, [], [None]), "one question of seven verbs")
    expect(await rows(space, OWNER), [("a", None, 9)], "the rows")


@promise("a row that does not fit its table is refused as a fault of who wrote it, and its neighbours land")
async def rows_must_fit(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1)]))
    wrong: tuple[tuple[Table, Row], ...] = (
        (TASK, (2, None, None, 0, 0)),
        (TASK, (None, "a", None, 0, 0)),
        (TASK, (2, b"bytes", None, 0, 0)),
        (TASK, (2, "a", None, "soon", 0)),
        (TASK, (2, "a", None, 2**63, 0)),
        (TASK, (2, "a", None, -(2**63) - 1, 0)),
        (TASK, (2, "a", "\ud800", 0, 0)),
        (TASK, (2, "a", None, 0)),
        (SENT, (1, "k", None)),
        (SENT, (1, None, b"")),
        (TURN, (99, 1, None, None, b"")),
        (TURN, (99, None, None, "e", b"")),
        (TURN, (99, 1, None, "e", "text")),
    )
    for table, row in wrong:
        for verb in (Append(table, [row]), Put(table, [row])):
            for company in (0, 1):
                body = asking(Query(TASK), verb)
                outcomes = await together(space, *[writing(Put(TASK, [task(1)]))] * company, body)
                error = refused(outcomes[-1], Broken)
                expect(error.__cause__ is not None, True, f"the cause is told: {verb}")
    expect(await picture(space), {**{table.name: [] for table in TABLES}, "task": [task(1)]}, "the rows")
    await write(space, Append(SENT, [(1, "k", b"")]))


@promise("a body may write nothing, and is done")
async def nothing_to_write(ground: Ground) -> None:
    space = await ground.open()
    expect(await write(space), (), "no writes")
    expect(await write(space, Append(TASK, []), Put(TASK, []), Cas(TASK, [])), ([], None, []), "writes without rows")
    outcome = await space.transact(writing())
    expect(outcome.__class__.__name__, "Done", "a body that asks and writes nothing")


CHECKS = (
    cells_come_back,
    append_answers_what_it_met,
    rows_of_one_verb_see_each_other,
    keep_goes_on,
    put_replaces,
    cas_hits_and_misses,
    inc_counts,
    the_clock,
    remove_counts,
    verbs_see_each_other,
    rows_must_fit,
    nothing_to_write,
)
