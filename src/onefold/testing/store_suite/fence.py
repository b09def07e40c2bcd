"""testing.store_suite.fence - who may: claims that never share a row, owners whose epoch fences everybody before.

For: claimers in turn and in one commit; owner rows read under a share lock beside the write that they guard, from
every space of a world that keeps them in one database.
Never: leases and times (fleet); the guard compares epochs alone.
Was wrong once: a guard that was asked for and never sent along. What a store does with one among the last writes was
nobody's promise.
"""

from __future__ import annotations

import asyncio
from itertools import count, cycle
from typing import Any

from onefold.store.contract import (
    Append,
    Body,
    Cas,
    Claim,
    Condition,
    Done,
    Inc,
    Last,
    Put,
    Query,
    Refusal,
    Remove,
    Row,
    Space,
    Still,
    Table,
)
from onefold.terms.errors import Contended, LoadRefused, OwnedElsewhere
from onefold.testing.store_suite.ground import (
    Asking,
    Ground,
    Member,
    ask,
    asking,
    done,
    expect,
    promise,
    refused,
    refusing,
    rows,
    together,
    write,
)
from onefold.testing.store_suite.tables import (
    DEED,
    OWNER,
    REIGN,
    SCHEMA,
    SENT,
    SHARED,
    TASK,
    TURN,
    Histories,
    task,
)

SLOT = "slot/17"


def _claiming(who: str, limit: int) -> Body[Any]:
    """Takes the soonest tasks that are due, under a lease."""
    due: tuple[Condition, ...] = (("ready", "<=", 9), ("kind", "in", ("a", "b")))
    return asking(Claim(TASK, due, ("ready", "id"), limit, {"ready": None, "kind": who, "tries": Inc(1)}))


@promise("two claimers never hold one row, and between them they hold every row that was due")
async def claims_are_exclusive(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(i, kind="ab"[i % 2], ready=i % 12) for i in range(60)]))
    held: dict[int, str] = {}
    for size in cycle((1, 3, 2)):
        names = ("one", "two", "three")
        outcomes = await together(space, *[_claiming(name, size) for name in names])
        taken = [(int(str(row[0])), n) for n, o in zip(names, outcomes, strict=True) for row in done(o).value[0]]
        for id, name in taken:
            expect(held.get(id), None, f"who else holds task {id}, which {name} was given")
            held[id] = name
        if not taken:
            break
    due = {i for i in range(60) if i % 12 <= 9}
    expect(set(held), due, "the tasks that somebody holds")
    found = {row[0]: (row[1], row[4]) for row in await rows(space, TASK) if row[0] in due}
    expect(found, {id: (name, 1) for id, name in held.items()}, "the rows: who holds each, claimed how often")


@promise("a claim that did not commit holds nothing")
async def undone_claims_hold_nothing(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1), task(2)]))
    outcomes = await together(
        space, refusing(Claim(TASK, (), ("id",), 2, {"kind": "gone", "ready": None})), _claiming("mine", 5)
    )
    refused(outcomes[0], Contended)
    expect([row[:2] for row in done(outcomes[1]).value[0]], [(1, "mine"), (2, "mine")], "what the next claimer gets")


@promise("a lock changes no answer")
async def locks_change_no_answer(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(TASK, [task(1, ready=2), task(2, ready=1)]))
    soonest = Query(TASK, order=("ready",), limit=1)
    for locked in (
        Query(TASK, order=("ready",), limit=1, lock="share"),
        Query(TASK, order=("ready",), limit=1, lock="update"),
        Query(TASK, order=("ready",), limit=1, lock="update", skip_locked=True),
    ):
        expect(await ask(space, soonest, locked), ([task(2, ready=1)], [task(2, ready=1)]), f"in a body: {locked}")
        expect(await space.look(locked), ([task(2, ready=1)],), f"outside of one: {locked}")


class Node:
    """A node as the fence meets it: it believes in the epoch that it was given."""

    def __init__(self, name: str, space: Space, owners: Table = OWNER) -> None:
        self.name = name
        self.space = space
        self.owners = owners
        self.epoch = 0

    def seizing(self, of: str = "") -> Body[int]:
        """Takes the slot, whoever has it; in the name of another, if that is said."""

        def run() -> Asking:
            (found,) = yield (Query(self.owners, on=("name",), keys=[(SLOT,)], lock="update"),)
            epoch = found[0][2] + 1 if found else 1
            self.epoch = epoch
            return Last((Put(self.owners, [(SLOT, of or self.name, epoch)]),), epoch)

        return run

    def guarded(self, *writes: Any) -> Body[None]:
        """Writes, if the owner row still says what this node believes."""

        def run() -> Asking:
            (found,) = yield (Query(self.owners, on=("name",), keys=[(SLOT,)], lock="share"),)
            _, owner, epoch = found[0] if found else (SLOT, None, 0)
            if epoch != self.epoch:
                raise Refusal(OwnedElsewhere(SLOT, owner, self.epoch, epoch))
            return Last(writes, None)

        return run

    def relying(self, *writes: Any) -> Body[None]:
        """As `guarded`, in one trip: the owner row goes with the writes, and is asked for where it was another's."""
        runs = count()

        def run() -> Asking:
            if next(runs):
                yield from self.guarded()()
            return Last((Still(self.owners, [((SLOT,), {"node": self.name, "epoch": self.epoch})]), *writes), None)

        return run


@promise("an owner row read under a share lock refuses the append of a stale epoch in the same body")
async def stale_epochs_are_refused(ground: Ground) -> None:
    space = await ground.open()
    one, two = Node("one", space), Node("two", space)
    turn = Histories(space)
    done(await space.transact(one.seizing()))
    first = turn.row(1, "a")
    done(await space.transact(one.guarded(Append(TURN, [first]))))
    done(await space.transact(two.seizing()))
    error = refused(await space.transact(one.guarded(Append(TURN, [(99, 1, first[0], "b", None)]))), OwnedElsewhere)
    expect(error.fields["record_epoch"], 2, "the epoch that it was refused for")
    second = turn.row(1, "c")
    done(await space.transact(two.guarded(Append(TURN, [second]))))
    expect(await rows(space, TURN), [first, second], "the history")


@promise("after a takeover no write, removal or claim of an older epoch lands, in one commit or in many")
async def nothing_stale_lands(ground: Ground) -> None:
    space = await ground.open()
    one, two = Node("one", space), Node("two", space)
    await write(space, Append(TASK, [task(1), task(2)]), Append(SENT, [(1, "k", b"")]))
    done(await space.transact(one.seizing()))
    stale = (
        Put(TASK, [task(1, kind="stale")]),
        Remove(SENT, keys=[(1, "k")]),
        Cas(TASK, [((2,), {}, {"ready": 5})]),
        Append(SENT, [(2, "stale", b"")]),
    )
    bodies = [one.guarded(write) for write in stale]
    fresh = one.guarded(Append(SENT, [(3, "fresh", b"")]))
    outcomes = await together(space, fresh, two.seizing(), *bodies, two.guarded(Append(SENT, [(4, "two", b"")])))
    done(outcomes[0])
    done(outcomes[1])
    for outcome in [*outcomes[2:6], *[await space.transact(body) for body in bodies]]:
        refused(outcome, OwnedElsewhere)
    done(outcomes[6])
    expect(await rows(space, TASK), [task(1), task(2)], "the tasks")
    expect([row[1] for row in await rows(space, SENT)], ["k", "fresh", "two"], "what was sent")


def _relying(told: dict[str, Any], *writes: Any, key: str = SLOT, first: Any = ()) -> Body[None]:
    """Writes, if the owner row is still as told. It asks nothing, so that it is refused as it is met."""

    def run() -> Asking:
        yield first
        return Last((*writes, Still(OWNER, [((key,), told)])), None)

    return run


@promise("rows that are still as told let a body land; where one is not, nothing of it does, and it runs again")
async def only_while_rows_are_as_told(ground: Ground) -> None:
    space = await ground.open()
    owners: list[Row] = [(SLOT, "one", 7), ("slot/18", "two", 3)]
    await write(space, Append(OWNER, owners), Append(TASK, [task(1, ready=None)]))
    written = Append(SENT, [(1, "k", b"")])
    for told in ({"node": "two"}, {"node": "one", "epoch": 6}, {"epoch": None}, {"epoch": 7, "node": ""}):
        refused(await space.transact(_relying(told, written)), Contended)
    refused(await space.transact(_relying({}, written, key="slot/99")), Contended)
    one_of_two = Still(OWNER, [((SLOT,), {"epoch": 7}), (("slot/18",), {"epoch": 4})])
    refused(await space.transact(asking(Query(OWNER), then=[written, one_of_two])), Contended)
    refused(await space.transact(asking(then=[Still(TASK, [((1,), {"ready": 0})]), written])), Contended)
    expect(await rows(space, SENT), [], "what bodies wrote that met another row")
    both = Still(OWNER, [(("slot/18",), {"epoch": 3}), ((SLOT,), {"epoch": 7, "node": "one"})])
    outcomes = await together(
        space,
        _relying({"epoch": 6}, Append(SENT, [(1, "stale", b"")]), first=(Put(TASK, [task(2)]),)),
        asking(then=[both, Still(OWNER, []), Still(TASK, [((1,), {"ready": None})]), Append(SENT, [(1, "a", b"")])]),
        _relying({}, Append(SENT, [(1, "b", b"")])),
    )
    refused(outcomes[0], Contended)
    expect(done(outcomes[1]).answers[:3], (None, None, None), "what it answers")
    done(outcomes[2])
    expect([row[1] for row in await rows(space, SENT)], ["a", "b"], "what its company wrote, and not itself")
    expect(await rows(space, OWNER), owners, "the rows that were counted on")
    expect(await rows(space, TASK), [task(1, ready=None)], "what a body wrote before it met the row")


@promise("an owner row among the last writes refuses a stale epoch, and is told apart from a key that is met")
async def stale_epochs_are_met_at_the_end(ground: Ground) -> None:
    space = await ground.open()
    one, two = Node("one", space), Node("two", space)
    done(await space.transact(one.seizing()))
    first = Append(SENT, [(1, "first", b"")])
    done(await space.transact(one.relying(first)))
    refused(await space.transact(one.relying(first)), Contended)
    done(await space.transact(two.seizing()))
    error = refused(await space.transact(one.relying(first)), OwnedElsewhere)
    expect(error.fields["record_epoch"], 2, "the epoch that it was refused for")
    stale = (Put(TASK, [task(1, kind="stale")]), Remove(SENT, keys=[(1, "first")]), Append(SENT, [(2, "stale", b"")]))
    bodies = [one.relying(each) for each in stale]
    outcomes = await together(space, two.relying(Append(SENT, [(3, "two", b"")])), *bodies, one.seizing())
    done(outcomes[0])
    for outcome in outcomes[1:4]:
        refused(outcome, OwnedElsewhere)
    done(outcomes[4])
    expect([row[1] for row in await rows(space, SENT)], ["first", "two"], "what was sent")
    expect(await rows(space, TASK), [], "the tasks")


@promise("an epoch that was asked for before the commit guards nothing: the row read in the body does")
async def asking_is_no_guard(ground: Ground) -> None:
    space = await ground.open()
    one, two = Node("one", space), Node("two", space)
    done(await space.transact(one.seizing()))
    asks = (Query(OWNER, on=("name",), keys=[(SLOT,)]),)
    late = Member("late", one.guarded(Put(TASK, [task(1)])), asks=asks)
    seizes = Member("seizes", two.seizing(), asks=asks)
    for member in (seizes, late):
        space.join(member)
    done(await seizes.outcome)
    refused(await late.outcome, OwnedElsewhere)
    expect((late.answers, await rows(space, TASK)), (([(SLOT, "one", 1)],), []), "what it was told, and the rows")


@promise("of two that take a name with the epoch they know, one has it")
async def one_of_two_takes_a_name(ground: Ground) -> None:
    space = await ground.open()
    await write(space, Append(OWNER, [(SLOT, "nobody", 7)]))

    def taking(name: str) -> Body[Row | None]:
        def run() -> Asking:
            (after,) = yield (Cas(OWNER, [((SLOT,), {"epoch": 7}, {"epoch": Inc(1), "node": name})]),)
            return Last((), after[0])

        return run

    outcomes = await together(space, *map(taking, ("one", "two", "three")))
    outcomes.append(await space.transact(taking("four")))
    won = [outcome.value for outcome in outcomes if isinstance(outcome, Done) and outcome.value]
    expect(len(won), 1, "how many took it")
    expect(await rows(space, OWNER), won, "the owner row")
    expect(won[0][2], 8, "its epoch")


async def _spaces(ground: Ground) -> tuple[Space, Space] | None:
    """`main`, and another space that has the tables of the whole world too; None in a world of files, which refuses it."""
    main = await ground.world.open("main", [SCHEMA, SHARED])
    try:
        return main, await ground.world.open("other", [SCHEMA, SHARED])
    except LoadRefused:
        return None


@promise("a table of the whole world is one for all its spaces; where each has a file, only `main` may declare it")
async def one_table_everywhere(ground: Ground) -> None:
    spaces = await _spaces(ground)
    if spaces is None:
        return
    main, other = spaces
    numbers = [space.mint(DEED) for space in (main, other, main, other)]
    expect(len(set(numbers)), 4, "numbers of two spaces for one table")
    await write(main, Append(REIGN, [("a", "one", 1), ("b", "two", 2)]), Append(DEED, [(numbers[0], "of main")]))
    await write(other, Append(DEED, [(numbers[1], "of other")]), Append(TASK, [task(1)]))
    met = await ask(other, Append(REIGN, [("a", "late", 9)]), Cas(REIGN, [(("b",), {"epoch": 2}, {"epoch": 3})]))
    expect(met, ([("a", "one", 1)], [("b", "two", 3)]), "what an append and a change from another space meet")
    for life in ("at once", "after a clean end", "after a crash"):
        expect(await rows(main, REIGN), [("a", "one", 1), ("b", "two", 3)], f"the rows in main, {life}")
        expect(await rows(other, REIGN), await rows(main, REIGN), f"the rows in another space, {life}")
        expect(await rows(other, DEED), await rows(main, DEED), f"the numbered rows in another space, {life}")
        expect((await rows(main, TASK), await rows(other, TASK)), ([], [task(1)]), "a table of each space's own")
        await ground.close() if life == "at once" else ground.abandon()
        query = Query(REIGN, on=("name",), keys=[("b",)])
        expect(await ground.world.soonest("other", query), ([("b", "two", 3)],), "asked of a space at rest")
        main, other = await _spaces(ground) or spaces


@promise("an owner row of the whole world guards the writes of every space: none of an older epoch lands")
async def owners_guard_every_space(ground: Ground) -> None:
    spaces = await _spaces(ground)
    if spaces is None:
        return
    main, other = spaces
    await write(main, Append(REIGN, [(SLOT, "one", 1)]))
    one, two = Node("one", other, REIGN), Node("two", main, REIGN)
    for epoch in range(1, 17):
        one.epoch = epoch
        guarded = one.relying if epoch > 8 else one.guarded
        done(await other.transact(guarded(Put(SENT, [(0, "in time", b"")]))))
        bodies = [guarded(Append(SENT, [(epoch, str(i), b"")])) for i in range(8)]
        async with asyncio.TaskGroup() as all_at_once:
            told = [all_at_once.create_task(other.transact(body)) for body in bodies[:4]]
            seized = await all_at_once.create_task(main.transact(two.seizing("one")))
            told += [all_at_once.create_task(other.transact(body)) for body in bodies[4:]]
        done(seized)
        outcomes = [task.result() for task in told]
        for stale in outcomes[4:]:
            refused(stale, OwnedElsewhere)
        landed = [str(i) for i, outcome in enumerate(outcomes) if isinstance(outcome, Done)]
        (found,) = await other.look(Query(SENT, (("actor", "=", epoch),), order=("key",)))
        expect([row[1] for row in found], landed, f"what landed under epoch {epoch}")
        for outcome in [outcome for outcome in outcomes if not isinstance(outcome, Done)]:
            refused(outcome, OwnedElsewhere)


CHECKS = (
    claims_are_exclusive,
    undone_claims_hold_nothing,
    locks_change_no_answer,
    stale_epochs_are_refused,
    nothing_stale_lands,
    only_while_rows_are_as_told,
    stale_epochs_are_met_at_the_end,
    asking_is_no_guard,
    one_of_two_takes_a_name,
    one_table_everywhere,
    owners_guard_every_space,
)
