"""testing.store_suite.keys - the keys that hold the exactly-once promises, and the numbers that make new ones.

For: unique keys across bodies, commits, endings and crashes; None in a key; contended writes; `mint`.
Never: the unique key of a chain (chain).
"""

from __future__ import annotations

from onefold.store.contract import Append, Cas, Claim, Put, Query, Remove, Verb
from onefold.terms.errors import Contended
from onefold.testing.store_suite.ground import (
    Ground,
    ask,
    asking,
    done,
    expect,
    promise,
    refused,
    rows,
    together,
    write,
)
from onefold.testing.store_suite.tables import MAIL, SENT, TASK, TURN, Histories, task


@promise("a row that meets two keys is answered with the holder of the primary one")
async def the_primary_key_answers_first(ground: Ground) -> None:
    space = await ground.open()
    one, two = task(1, baton="x"), task(2, baton="y")
    await write(space, Append(TASK, [one, two]))
    expect(await ask(space, Append(TASK, [task(2, baton="x")])), ([two],), "a row between two others")


@promise("a unique key with a None in it meets nothing")
async def none_meets_nothing(ground: Ground) -> None:
    space = await ground.open()
    expect(await ask(space, Append(TASK, [task(1), task(2)])), ([None, None],), "two rows without a baton")
    half = [(1, "t", None), (2, "t", None), (3, None, b"r"), (4, None, b"r"), (5, None, None), (6, None, None)]
    expect(await ask(space, Append(MAIL, half)), ([None] * 6,), "six rows with half a key or none")
    whole = [(7, "t", b"r"), (8, "t", b"r")]
    expect(await ask(space, Append(MAIL, whole)), ([None, whole[0]],), "two rows with a whole key")
    await write(space, Put(TASK, [task(1, kind="n"), task(3)]))
    expect(len(await rows(space, TASK)), 3, "rows put without a baton")


@promise("a key is met in the same commit, the next one, after a clean end and after a crash")
async def keys_are_remembered(ground: Ground) -> None:
    space = await ground.open()
    held = task(1, baton="b")
    first, second = await together(space, asking(Append(TASK, [held])), asking(Append(TASK, [task(2, baton="b")])))
    expect(done(first).value, ([None],), "the first body of the commit")
    expect(done(second).value, ([held],), "its neighbour, with the same unique key")
    for step in ("the next commit", "a clean end", "a crash"):
        if step == "a clean end":
            space = await ground.reopened()
        elif step == "a crash":
            space = await ground.crashed()
        met = await ask(space, Append(TASK, [task(1, kind="k"), task(3, baton="b")]))
        expect(met, ([held, held],), f"the primary and the unique key after {step}")


@promise("a key of several columns is met by all of them together")
async def keys_of_several_columns(ground: Ground) -> None:
    space = await ground.open()
    sent = [(1, "a", b""), (1, "b", b""), (2, "a", b""), (12, "", b""), (1, "2", b"")]
    expect(await ask(space, Append(SENT, sent)), ([None] * 5,), "keys that share columns")
    expect(await ask(space, Append(SENT, [(1, "b", b"z")])), ([sent[1]],), "one of them again")
    expect(await ask(space, Remove(SENT, keys=[(1, "b"), (2, "b")])), (1,), "removing by key")


@promise("a key is free again once its row is gone or was changed, also in the same body")
async def keys_are_freed(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1, baton="b"), task(2, baton="c")]))
    answers = await ask(
        space,
        Remove(TASK, keys=[(1,)]),
        Append(TASK, [task(3, baton="b")]),
        Cas(TASK, [((2,), {}, {"baton": None})]),
        Append(TASK, [task(1, baton="c")]),
    )
    expect(answers[1::2], ([None], [None]), "a key removed and a key set to None, taken again")
    await write(space, Put(TASK, [task(1)]), Append(TASK, [task(4, baton="c")]))
    batons = {row[0]: row[2] for row in await rows(space, TASK)}
    expect(batons, {1: None, 2: None, 3: "b", 4: "c"}, "the batons")


@promise("a write that would take another row's unique key is refused as contended, and changes nothing")
async def taking_a_key_is_contended(ground: Ground) -> None:
    space = await ground.open()
    before = [task(1, baton="b"), task(2, baton="c"), task(3, ready=9)]
    await write(space, Append(TASK, before))
    takes: tuple[Verb, ...] = (
        Put(TASK, [task(2, baton="b")]),
        Put(TASK, [task(4), task(5, baton="b")]),
        Cas(TASK, [((3,), {}, {"kind": "n"}), ((2,), {}, {"baton": "b"})]),
        Claim(TASK, (("ready", "=", 9),), ("id",), 1, {"baton": "c"}),
    )
    for take in takes:
        look = Query(TASK, limit=1)
        error = refused(await space.transact(asking(look, take)), Contended)
        expect(isinstance(error, Contended), True, "it says what is contended")
        expect(await rows(space, TASK), before, f"the rows after {type(take).__name__}")


@promise("a body that takes a key of its neighbour is refused alone, whichever came first")
async def one_of_two_takes_a_key(ground: Ground) -> None:
    space = await ground.open()
    look = Query(TASK, limit=1)
    one, two, three = await together(
        space,
        asking(look, then=[Put(TASK, [task(1, baton="b")])]),
        asking(look, then=[Put(TASK, [task(7)]), Put(TASK, [task(2, baton="b")])]),
        asking(look, then=[Put(TASK, [task(3, baton="c")])]),
    )
    done(one)
    refused(two, Contended)
    done(three)
    expect(await rows(space, TASK), [task(1, baton="b"), task(3, baton="c")], "the rows")


@promise("a number is minted once, for each table apart, also after a clean end and after a crash")
async def numbers_are_minted_once(ground: Ground) -> None:
    space = await ground.open()
    used: list[int] = []
    for step in range(4):
        numbers = [space.mint(MAIL) for _ in range(3)]
        expect(numbers, sorted(set(numbers)), "numbers minted one after another")
        expect(set(numbers) & set(used), set(), f"numbers minted again in life {step + 1} of the space")
        # the first stays, the second is removed, the third has no row: only the third may ever come again
        await write(space, Append(MAIL, [(numbers[0], None, None), (numbers[1], None, None)]))
        await write(space, Remove(MAIL, keys=[(numbers[1],)]))
        used += numbers[:2]
        space = await (ground.crashed() if step % 2 else ground.reopened())
    expect(len(await rows(space, MAIL)), 4, "rows")


@promise("a number minted for a row that is committed late is not minted meanwhile")
async def late_numbers_are_kept(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    late = [turn.row(actor, "late") for actor in range(3)]
    soon = [turn.row(actor, "soon") for actor in range(10, 13)]
    await write(space, Append(TURN, soon))
    await write(space, Append(TURN, late))
    space = await ground.crashed()
    again = space.mint(TURN)
    expect(again in {row[0] for row in (*late, *soon)}, False, "a number of a row, minted again")
    expect(len(await rows(space, TURN)), 6, "rows")


CHECKS = (
    the_primary_key_answers_first,
    none_meets_nothing,
    keys_are_remembered,
    keys_of_several_columns,
    keys_are_freed,
    taking_a_key_is_contended,
    one_of_two_takes_a_key,
    numbers_are_minted_once,
    late_numbers_are_kept,
)
