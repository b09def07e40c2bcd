"""testing.store_suite.queries - which rows a question finds, in which order, and where it stops.

For: conditions, keys, order, limit, first k for each, claims of one party alone.
Never: locks between parties (claims, fence); histories (chain).
"""

from __future__ import annotations

from typing import TypeAlias

from onefold.store.contract import Append, Claim, Condition, DbNow, Each, Inc, Query, Row, Space
from onefold.testing.store_suite.ground import Ground, ask, expect, promise, rows, write
from onefold.testing.store_suite.tables import MAIL, SENT, TASK, task

Where: TypeAlias = "tuple[Condition, ...]"
_TASKS = (
    task(1, kind="a", baton="x", ready=10, tries=0),
    task(2, kind="a", baton=None, ready=None, tries=None),
    task(3, kind="b", baton="y", ready=5, tries=2),
    task(4, kind="b", baton=None, ready=10, tries=1),
    task(5, kind="é", baton="z", ready=-1, tries=None),
)


async def _filled(ground: Ground) -> Space:
    space = await ground.open()
    await write(space, Append(TASK, _TASKS))
    return space


async def _ids(space: Space, query: Query) -> list[object]:
    """The ids found, looked for outside a body and inside one, with a lock: all the same, or it raises."""
    (outside,) = await space.look(query)
    (inside,) = await ask(space, query)
    expect(_settled(query, inside), _settled(query, outside), "a question in a body, against one outside")
    return [row[0] for row in _settled(query, outside)]


def _settled(query: Query, found: list[Row]) -> list[Row]:
    return list(found) if query.order else sorted(found, key=lambda row: row[0])  # type: ignore[arg-type,return-value]


@promise("a condition finds the rows that meet it, and a None meets no condition but null")
async def conditions_find(ground: Ground) -> None:
    space = await _filled(ground)
    table: tuple[tuple[Condition, list[int]], ...] = (
        (("ready", "=", 10), [1, 4]),
        (("ready", "!=", 10), [3, 5]),
        (("ready", "<", 10), [3, 5]),
        (("ready", "<=", 5), [3, 5]),
        (("ready", ">", 5), [1, 4]),
        (("ready", ">=", 5), [1, 3, 4]),
        (("ready", "in", (5, 10, 77)), [1, 3, 4]),
        (("ready", "in", ()), []),
        (("ready", "in", (None, 5)), [3]),
        (("ready", "=", None), []),
        (("ready", "!=", None), []),
        (("ready", "<", None), []),
        (("ready", "null", True), [2]),
        (("ready", "null", False), [1, 3, 4, 5]),
        (("baton", "null", True), [2, 4]),
        (("kind", "=", "b"), [3, 4]),
        (("kind", ">", "b"), [5]),
        (("kind", "in", ("a", "é")), [1, 2, 5]),
        (("id", "in", (5, 1, 1)), [1, 5]),
    )
    for condition, ids in table:
        expect(await _ids(space, Query(TASK, where=(condition,))), ids, f"where {condition}")


@promise("conditions are met together")
async def conditions_are_anded(ground: Ground) -> None:
    space = await _filled(ground)
    both: Where = (("kind", "=", "b"), ("tries", ">=", 1), ("ready", "<", 10))
    expect(await _ids(space, Query(TASK, where=both)), [3], "three conditions")
    same: Where = (("ready", ">", 0), ("ready", "<", 10))
    expect(await _ids(space, Query(TASK, where=same)), [3], "two on one column")
    none: Where = (("kind", "in", ("a", "b")), ("ready", "in", (7,)))
    expect(await _ids(space, Query(TASK, where=none)), [], "two lists that have nothing in common")
    expect(await _ids(space, Query(TASK)), [1, 2, 3, 4, 5], "no condition at all")


@promise("rows are found by primary, unique and indexed keys, each once")
async def keys_find(ground: Ground) -> None:
    space = await _filled(ground)
    by_id = Query(TASK, on=("id",), keys=[(4,), (9,), (1,), (4,)])
    expect(await _ids(space, by_id), [1, 4], "by primary key, one asked for twice, one absent")
    by_baton = Query(TASK, on=("baton",), keys=[("z",), ("x",), ("none",)])
    expect(await _ids(space, by_baton), [1, 5], "by unique key")
    by_kind = Query(TASK, on=("kind",), keys=[("b",), ("c",), ("b",)])
    expect(await _ids(space, by_kind), [3, 4], "by the first column of an index")
    by_both = Query(TASK, on=("kind", "ready"), keys=[("b", 10), ("a", 5)])
    expect(await _ids(space, by_both), [4], "by a whole index")
    expect(await _ids(space, Query(TASK, on=("id",), keys=[])), [], "no keys at all")
    await write(space, Append(SENT, [(1, "k", b"1"), (1, "l", b"2"), (2, "k", b"3")]))
    (found,) = await space.look(Query(SENT, on=("actor", "key"), keys=[(2, "k"), (2, "l"), (1, "l")], order=("actor",)))
    expect(found, [(1, "l", b"2"), (2, "k", b"3")], "by a key of two columns")


@promise("conditions narrow the rows found by key, and a None equals no key")
async def keys_are_narrowed(ground: Ground) -> None:
    space = await _filled(ground)
    narrowed = Query(TASK, where=(("ready", ">", 5),), on=("id",), keys=[(1,), (3,), (4,)])
    expect(await _ids(space, narrowed), [1, 4], "keys and a condition")
    last = Query(TASK, on=("kind",), keys=[("a",), ("b",)], order=("-id",), limit=2)
    expect(await _ids(space, last), [4, 3], "keys, in order, the first two")
    expect(await _ids(space, Query(TASK, on=("baton",), keys=[(None,)])), [], "a unique key of None")
    expect(await _ids(space, Query(TASK, on=("kind", "ready"), keys=[("a", None)])), [], "an indexed key with a None")


@promise("an order is ascending or descending by column, with None first and, descending, last")
async def orders(ground: Ground) -> None:
    space = await _filled(ground)
    table: tuple[tuple[tuple[str, ...], list[int]], ...] = (
        (("id",), [1, 2, 3, 4, 5]),
        (("-id",), [5, 4, 3, 2, 1]),
        (("ready", "id"), [2, 5, 3, 1, 4]),
        (("-ready", "id"), [1, 4, 3, 5, 2]),
        (("ready", "-id"), [2, 5, 3, 4, 1]),
        (("kind", "-ready"), [1, 2, 4, 3, 5]),
        (("-kind", "ready"), [5, 3, 4, 2, 1]),
        (("tries", "-baton", "id"), [5, 2, 1, 4, 3]),
    )
    for order, ids in table:
        expect(await _ids(space, Query(TASK, order=order)), ids, f"in the order {order}")
        expect(await _ids(space, Query(TASK, order=order, limit=3)), ids[:3], f"the first three in the order {order}")


@promise("text sorts by code point, and bytes by value")
async def sorts_plainly(ground: Ground) -> None:
    space = await ground.open()
    texts = ["", "A", "Z", "a", "aa", "b", "z", "é", "ﬀ", "\U0001f600"]
    raws = [b"", b"\x00", b"\x00\x00", b"a", b"\x7f", b"\x80", b"\xff", b"\xff\x00", b"\xff\xfe", b"\xff\xff"]
    pairs = list(enumerate(zip(texts, raws, strict=True)))
    await write(space, Append(MAIL, [(i, text, raw) for i, (text, raw) in reversed(pairs)]))
    expect(await _ids(space, Query(MAIL, order=("text",))), list(range(10)), "by text")
    expect(await _ids(space, Query(MAIL, order=("-raw",))), list(range(10))[::-1], "by bytes, descending")
    expect(await _ids(space, Query(MAIL, where=(("text", ">", "z"),))), [7, 8, 9], "texts beyond z")


@promise("a limit takes from the front of the order")
async def limits(ground: Ground) -> None:
    space = await _filled(ground)
    expect(await _ids(space, Query(TASK, order=("-id",), limit=2)), [5, 4], "two of five")
    expect(await _ids(space, Query(TASK, order=("id",), limit=0)), [], "none of five")
    expect(await _ids(space, Query(TASK, order=("id",), limit=99)), [1, 2, 3, 4, 5], "more than there are")
    due: Where = (("ready", "<=", 10), ("kind", "in", ("b", "a", "b")))
    expect(await _ids(space, Query(TASK, where=due, order=("ready", "-id"), limit=2)), [3, 4], "among several kinds")
    expect(len(await _ids(space, Query(TASK, limit=2))), 2, "two of five, whichever")


@promise("the first k for each value are the first in the order, and the limit comes last")
async def first_for_each(ground: Ground) -> None:
    space = await ground.open()
    kinds = ("a", "b", "c")
    await write(space, Append(TASK, [task(i, kind=kinds[i % 3], ready=20 - i) for i in range(12)]))
    each = Each("kind", ("c", "a", "absent", "a"), 2)
    expect(await _ids(space, Query(TASK, order=("ready",), each=each)), [11, 9, 8, 6], "the soonest two of two kinds")
    expect(await _ids(space, Query(TASK, order=("-ready",), each=each)), [0, 2, 3, 5], "the latest two of two kinds")
    expect(await _ids(space, Query(TASK, order=("ready",), each=each, limit=3)), [11, 9, 8], "three of those")
    narrowed = Query(TASK, (("ready", ">", 12), ("id", "!=", 6)), order=("ready", "id"), each=each)
    expect(await _ids(space, narrowed), [5, 3, 2, 0], "narrowed by conditions first")
    expect(await _ids(space, Query(TASK, order=("id",), each=Each("kind", (), 2))), [], "for no value")
    expect(await _ids(space, Query(TASK, order=("id",), each=Each("baton", (None,), 2))), [], "a None is no value")


@promise("several questions are answered one by one, of one moment")
async def several_at_once(ground: Ground) -> None:
    space = await _filled(ground)
    found = await space.look(
        Query(TASK, limit=0), Query(SENT), Query(TASK, order=("id",)), Query(TASK, keys=[], on=("id",))
    )
    expect(found, ([], [], list(_TASKS), []), "four questions")
    expect(await space.look(), (), "no question")


@promise("a claim takes the first rows in its order, sets them, and answers with the rows after")
async def claims(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(i, ready=i % 3, tries=None) for i in range(6)]))
    due: Where = (("ready", "<=", 1), ("kind", "=", "a"))
    claim = Claim(TASK, due, ("ready", "-id"), 3, {"ready": None, "tries": Inc(1), "kind": "held"})
    held = [task(i, kind="held", ready=None, tries=1) for i in (3, 0, 4)]
    expect(await ask(space, claim), (held,), "the first three that are due")
    expect(await ask(space, claim), ([task(1, kind="held", ready=None, tries=1)],), "what was left")
    expect(await ask(space, claim), ([],), "nothing left")
    expect([r[1] for r in await rows(space, TASK)], ["held", "held", "a", "held", "held", "a"], "the kinds")
    (answer,) = await ask(space, Claim(TASK, (("kind", "=", "a"),), ("id",), 1, {"ready": DbNow(5), "tries": DbNow()}))
    expect(answer[0][3] - answer[0][4], 5, "a lease by the store's clock, less its clock")


CHECKS = (
    conditions_find,
    conditions_are_anded,
    keys_find,
    keys_are_narrowed,
    orders,
    sorts_plainly,
    limits,
    first_for_each,
    several_at_once,
    claims,
)
