"""testing.store_suite.chain - histories: found by key and from their newest end, however late a store writes its lookups.

For: reading a history, its unique key over many thousand rows and after every kind of ending, cutting its oldest end.
Never: which rows a store keeps in memory.
"""

from __future__ import annotations

from typing import Any

from onefold.store.contract import (
    Append,
    Cas,
    Claim,
    Condition,
    Done,
    Each,
    Outcome,
    Put,
    Query,
    Remove,
    Row,
    Space,
    Unknown,
)
from onefold.terms.errors import Broken, Contended
from onefold.testing.store_suite.ground import (
    Disk,
    Ground,
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
    writing,
)
from onefold.testing.store_suite.tables import TURN, Histories

A_COMMIT = 512
LIVES = (9, 15, 3, 1)
# Commits until the next ending: several generations of what a store of ours keeps in memory, and endings
# within, before and after the late writing of one.
ACTORS = 96
ALONE = 100_000  # actors from here on have one turn each


async def _history(space: Space, actor: int, *, limit: int | None = None) -> list[Row]:
    """Newest first."""
    (found,) = await space.look(Query(TURN, (("actor", "=", actor),), order=("-n",), limit=limit))
    return list(found)


@promise("a history is read newest first, oldest first, from a number on, and by its newest row alone")
async def histories_are_read(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    one = [turn.row(1, f"e{i}", bytes([i])) for i in range(3)]
    other = turn.row(2, "e0")
    await write(space, Append(TURN, [*one, other]))
    one += [turn.row(1, f"e{i}", bytes([i])) for i in range(3, 6)]
    await write(space, Append(TURN, one[3:]))
    mine: Condition = ("actor", "=", 1)
    table: tuple[tuple[Query, list[Row]], ...] = (
        (Query(TURN, (mine,), order=("-n",)), one[::-1]),
        (Query(TURN, (mine,), order=("n",)), one),
        (Query(TURN, (mine,), order=("-n",), limit=1), one[-1:]),
        (Query(TURN, (mine,), order=("-n",), limit=2), one[:3:-1]),
        (Query(TURN, (mine,), order=("n",), limit=2), one[:2]),
        (Query(TURN, (mine, ("n", ">", one[3][0])), order=("n",)), one[4:]),
        (Query(TURN, (mine, ("n", ">=", one[3][0])), order=("-n",)), one[:2:-1]),
        (Query(TURN, (mine, ("n", "<", one[3][0])), order=("-n",), limit=1), one[2:3]),
        (Query(TURN, (mine, ("n", "<=", one[3][0])), order=("-n",), limit=2), one[3:1:-1]),
        (Query(TURN, (mine, ("n", "<=", other[0])), order=("-n",)), one[2::-1]),
        (Query(TURN, (mine, ("n", "<=", one[4][0]), ("n", ">", one[0][0])), order=("n",)), one[1:5]),
        (Query(TURN, (mine, ("n", "<=", 10**9)), order=("-n",), limit=1), one[-1:]),
        (Query(TURN, (mine, ("facts", ">=", b"\x04")), order=("n",)), one[4:]),
        (Query(TURN, (mine, ("event", "=", "e2"))), one[2:3]),
        (Query(TURN, on=("actor",), keys=[(1,)], order=("-n",), limit=2), one[:3:-1]),
        (Query(TURN, on=("n",), keys=[(one[1][0],), (10**9,)]), one[1:2]),
        (Query(TURN, (("actor", "=", 3),), order=("-n",)), []),
    )
    for query, found in table:
        expect(await space.look(query), (found,), f"outside a body: {query}")
        expect(await ask(space, query), (found,), f"in a body: {query}")


@promise("the newest of several histories are found together")
async def newest_of_several(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    all_rows = [turn.row(actor, f"e{i}") for i in range(4) for actor in (1, 2, 3)]
    await write(space, Append(TURN, all_rows))
    of = {actor: [row for row in all_rows if row[1] == actor][::-1] for actor in (1, 2, 3)}
    each = Query(TURN, order=("-n",), each=Each("actor", (3, 1, 9), 2))
    (found,) = await space.look(each)
    expect(found, sorted([*of[1][:2], *of[3][:2]], reverse=True), "the newest two of two")
    (found,) = await space.look(Query(TURN, (("actor", "in", (1, 2)),), order=("-n",), limit=3))
    expect(found, sorted([*of[1], *of[2]], reverse=True)[:3], "the newest three among two")
    keys = [(1, "e1"), (2, "e9"), (3, "e0"), (1, "e1")]
    (found,) = await space.look(Query(TURN, on=("actor", "event"), keys=keys, order=("n",)))
    expect(found, [of[3][3], of[1][2]], "turns by their events")


@promise("a turn is met by its event in the same body, the same commit, and ever after")
async def events_are_met(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    first = turn.row(1, "e", b"first")
    again = Append(TURN, [(space.mint(TURN), 1, first[0], "e", b"again")])
    other = turn.row(2, "e")
    outcomes = await together(space, asking(Append(TURN, [first]), again), asking(Append(TURN, [other]), again))
    expect(done(outcomes[0]).value, ([None], [first]), "in the same body")
    expect(done(outcomes[1]).value, ([None], [first]), "in the same commit")
    for life in ("another commit", "a clean end", "a crash"):
        if life != "another commit":
            space = await (ground.crashed() if life == "a crash" else ground.reopened())
        expect(await ask(space, again), ([first],), f"by its event, after {life}")
        numbered = Append(TURN, [(first[0], 5, None, "new", None)])
        expect(await ask(space, numbered), ([first],), f"by its number, after {life}")
    expect(await rows(space, TURN), [first, other], "the rows")


@promise("what was asked for just before is known to be new, and what a neighbour appends is met all the same")
async def asked_and_appended(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    query = Query(TURN, on=("actor", "event"), keys=[(1, "e"), (1, "f")])
    first, same, next_ = turn.row(1, "e"), (space.mint(TURN), 1, None, "e", b""), turn.row(1, "f")
    outcomes = await together(
        space,
        asking(query, then=[Append(TURN, [first])]),
        refusing(Append(TURN, [next_])),
        asking(query, Append(TURN, [same, next_])),
        asking(query),
    )
    done(outcomes[0])
    expect(done(outcomes[2]).value, ([first], [first, None]), "one neighbour kept, one refused")
    expect(done(outcomes[3]).value, ([first, next_],), "both, for who comes last")


@promise("a turn that was rolled back is gone from its history, its key and its newest row")
async def rolled_back_turns(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    first = turn.row(1, "a")
    await write(space, Append(TURN, [first]))
    gone = [turn.row(1, "b"), turn.row(2, "a")]
    for company in ([], [writing()]):
        await together(space, refusing(Append(TURN, gone), Put(TURN, [(*first[:4], b"gone")])), *company)
        expect(await _history(space, 1), [first], "the history")
        expect(await _history(space, 2), [], "the history that was to begin")
    kept = (space.mint(TURN), 1, first[0], "b", b"kept")
    expect(await ask(space, Append(TURN, [kept])), ([None],), "its event, appended at last")
    for life in ("now", "after a crash"):
        expect(await _history(space, 1, limit=1), [kept], f"the newest row {life}")
        space = await ground.crashed()


@promise("cells of a turn may change, its number and its place in its history never do")
async def turns_change_little(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    one, two = turn.row(1, "a", b"1"), turn.row(1, "b", b"2")
    await write(space, Append(TURN, [one, two]))
    await write(space, Put(TURN, [(*one[:4], None)]))
    answer = await ask(space, Cas(TURN, [((two[0],), {"facts": b"2"}, {"facts": b"3"})]))
    expect(answer, ([(*two[:4], b"3")],), "a turn's facts, set")
    claimed = await ask(space, Claim(TURN, (("actor", "=", 1),), ("n",), 1, {"facts": b"c"}))
    expect(claimed, ([(*one[:4], b"c")],), "a turn, claimed")
    for changed in ((one[0], 2, None, "a", None), (*two[:2], None, *two[3:])):
        refused(await space.transact(asking(Query(TURN, limit=1), Put(TURN, [changed]))), Broken)
    expect(await rows(space, TURN), [(*one[:4], b"c"), (*two[:4], b"3")], "the rows")


@promise("an event that a turn gave up is new again, and the turn keeps its place")
async def events_are_freed(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    one = [turn.row(1, f"e{i}") for i in range(3)]
    await write(space, Append(TURN, one))
    held = Cas(TURN, [((one[0][0],), {}, {"event": "e1"})])
    refused(await space.transact(asking(Query(TURN, limit=1), held)), Contended)
    freed = [(*row[:3], f"freed/{at}", *row[4:]) for at, row in enumerate(one[:2])]
    free = Cas(TURN, [((row[0],), {}, {"event": row[3]}) for row in freed])
    await together(space, refusing(free))
    expect(await ask(space, Append(TURN, [turn.row(1, "e0")])), ([one[0]],), "taken back: the event is held")
    again = (space.mint(TURN), 1, one[2][0], "e0", b"again")
    await write(space, free, Append(TURN, [again]))
    query = Query(TURN, on=("actor", "event"), keys=[(1, "e0"), (1, "e1"), (1, freed[1][3])], order=("n",))
    for life in ("now", "after a crash", "after a clean end"):
        expect(await _history(space, 1), [again, one[2], *freed[::-1]], f"the history {life}")
        expect((await space.look(query))[0], [freed[1], again], f"by event {life}")
        space = await (ground.crashed() if life == "now" else ground.reopened())
    new = Append(TURN, [(space.mint(TURN), 1, again[0], "e1", None)])
    expect(await ask(space, new), ([None],), "the other event, new again")


@promise("a history is cut at its oldest end only, and what was cut is gone for good")
async def histories_are_cut(ground: Ground) -> None:
    space = await ground.open()
    turn = Histories(space)
    one = [turn.row(1, f"e{i}") for i in range(5)]
    await write(space, Append(TURN, [*one, turn.row(2, "e0")]))
    for keys in ([(one[1][0],)], [(one[0][0],), (one[2][0],)]):
        refused(await space.transact(writing(Remove(TURN, keys=keys))), Broken)
    expect(await ask(space, Remove(TURN, keys=[(one[0][0],), (one[1][0],)])), (2,), "the oldest two")
    cut = Remove(TURN, where=(("actor", "=", 1), ("n", "<=", one[2][0])))
    expect(await ask(space, cut), (1,), "the oldest of the rest, by condition")
    for life in ("now", "after a crash", "after a clean end"):
        expect(await _history(space, 1), one[:2:-1], f"the history {life}")
        (found,) = await space.look(Query(TURN, on=("actor", "event"), keys=[(1, "e1"), (1, "e3")]))
        expect(found, one[3:4], f"by event {life}")
        space = await (ground.crashed() if life == "now" else ground.reopened())
    again = (space.mint(TURN), 1, one[4][0], "e1", b"again")
    expect(sorted([again, one[4]]), [one[4], again], "numbers grow along a history")
    expect(await ask(space, Append(TURN, [again])), ([None],), "an event that was cut, new again")
    expect(await ask(space, Remove(TURN, where=(("actor", "=", 1),))), (3,), "a whole history")
    for life in ("now", "after a crash", "after a clean end"):
        expect((await _history(space, 1), len(await _history(space, 2))), ([], 1), f"what is left {life}")
        space = await (ground.crashed() if life == "now" else ground.reopened())
    anew = (space.mint(TURN), 1, None, "e1", b"anew")
    await write(space, Append(TURN, [anew]))
    expect(await _history(await ground.crashed(), 1), [anew], "a history that began anew")


@promise("histories are whole over many thousand rows, through crashes and clean ends")
async def many_thousand_rows(ground: Ground) -> None:
    book = Book(await ground.open())
    for life, commits in enumerate(LIVES):
        for _ in range(commits):
            await book.commit(late=life % 2 == 0)
        await book.end()
        await book.check(f"at the end of life {life}")
        book.turn.space = await (ground.reopened() if life == 2 else ground.crashed())
        await book.check(f"at the beginning of life {life + 1}")


@promise("histories are whole over many thousand rows, through commits that failed at any statement")
async def many_failed_commits(ground: Ground) -> None:
    disk = Disk()
    book = Book(await ground.open(disk=disk))
    for hit in range(1, 13):
        disk.fail_at("statement", hit)
        await book.commit(disk)
    await book.end()
    await book.check("after commits that failed")
    book.turn.space = await ground.crashed()
    await book.check("after a crash")


class Book:
    """Many rows as a busy node writes them: a few long histories, many of one turn, numbers committed out of order."""

    def __init__(self, space: Space) -> None:
        self.turn = Histories(space)
        self.written: list[Row] = []
        self.cut: list[Row] = []
        self._late: list[Row] = []
        self._made = 0

    async def commit(self, disk: Disk | None = None, *, late: bool = True) -> None:
        """Write so many rows, some of them `late`; once more, with `disk` healed, when that failed."""
        start, self._made = self._made, self._made + A_COMMIT
        numbers = range(start, start + A_COMMIT)
        fresh = [self.turn.row(i % ACTORS if i % 61 else ALONE + i, f"e/{i}") for i in numbers]
        kept = [row for row in fresh if late and int(str(row[1])) % 8 == 0]
        batch = [*self._late, *(row for row in fresh if row not in kept)]
        self._late = kept
        space = self.turn.space
        outcome: Outcome[Any] = await space.transact(asking(Append(TURN, batch[:7]), then=[Append(TURN, batch[7:])]))
        if disk is not None:
            disk.heal()
            if not (await space.look(Query(TURN, on=("n",), keys=[batch[0][:1]])))[0]:
                outcome = await space.transact(writing(Append(TURN, batch)))
            elif isinstance(outcome, Unknown):
                outcome = Done(None)
        done(outcome)
        self.written += batch

    async def end(self) -> None:
        """Write what was kept back, and cut a history of one turn."""
        await write(self.turn.space, Append(TURN, self._late))
        self.written += self._late
        self._late = []
        alone = next(row for row in self.written[len(self.written) // 3 :] if int(str(row[1])) >= ALONE)
        await write(self.turn.space, Remove(TURN, keys=[alone[:1]]))
        self.written.remove(alone)
        self.cut.append(alone)

    async def check(self, when: str) -> None:
        space, sample = self.turn.space, self.written[:: len(self.written) // 61]
        event = ("actor", "event")
        (found,) = await space.look(Query(TURN, on=event, keys=[(row[1], row[3]) for row in sample], order=("n",)))
        expect(found, sorted(sample), f"turns by their events {when}")
        absent = [*((row[1], "none") for row in sample), *((row[1], row[3]) for row in self.cut)]
        expect(await space.look(Query(TURN, on=event, keys=absent)), ([],), f"events that are not there {when}")
        met = [(space.mint(TURN), row[1], None, row[3], b"again") for row in sample]
        expect(await ask(space, Append(TURN, met)), (sample,), f"turns that are appended again {when}")
        alone = [row for row in self.written if int(str(row[1])) >= ALONE]
        for actor in (1, ACTORS - 1, *(int(str(row[1])) for row in alone[::5])):
            mine = sorted((row for row in self.written if row[1] == actor), reverse=True)
            expect(await _history(space, actor), mine, f"a whole history {when}")
            expect(await _history(space, actor, limit=1), mine[:1], f"its newest row {when}")


CHECKS = (
    histories_are_read,
    newest_of_several,
    events_are_met,
    asked_and_appended,
    rolled_back_turns,
    turns_change_little,
    events_are_freed,
    histories_are_cut,
    many_thousand_rows,
    many_failed_commits,
)
