"""Two worlds on one folder: each sees what the other committed, at once; numbers are minted apart and grow."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from onefold.store.batch import commit
from onefold.store.contract import Append, Body, Cas, Done, Inc, Query, Remove
from onefold.store.lane import Single
from onefold.store.sqlite import SqliteWorld
from onefold.store.sqlite.mint import BLOCK, LOW, Blocks
from onefold.store.sqlite.space import SqliteSpace
from onefold.terms.errors import OwnedElsewhere, StoreUnavailable
from onefold.testing.faulty_disk import FaultyDisk
from onefold.testing.store_suite.fence import Node
from onefold.testing.store_suite.ground import Member, refused
from onefold.testing.store_suite.tables import REIGN
from tests.store.child import Asking, clock
from tests.store.company import BOTH, does, following, history, world_of
from tests.store.shorthand import turn, writing
from tests.store.tables import OWED, TASK, TURN


async def test_a_history_goes_on_whoever_wrote_its_last_turn(two: tuple[SqliteSpace, SqliteSpace]) -> None:
    for number in range(40):
        for space in two if number % 3 else two[::-1]:
            outcome = await space.transact(following(space, 7, f"{space.engine.file.options.node}{number}"))
            assert isinstance(outcome, Done)
    rows = await history(two[0], 7)
    assert rows == await history(two[1], 7)
    assert len(rows) == 80
    numbers = [row[0] for row in rows]
    assert numbers == sorted(numbers, reverse=True)
    assert [row[2] for row in rows] == [*numbers[1:], None]


async def test_an_event_is_met_whichever_process_had_it(two: tuple[SqliteSpace, SqliteSpace]) -> None:
    one, other = two
    first = turn(one, 1, "e")
    assert await does(one, Append(TURN, [first])) == ([None],)
    (met,) = await does(other, Append(TURN, [turn(other, 1, "e")], met="keep"))
    assert met == [first]
    await does(other, Remove(TURN, keys=[(first[0],)]))
    again = turn(one, 1, "e")
    assert await does(one, Append(TURN, [again])) == ([None],)
    assert await history(other, 1) == [again]


async def test_a_key_that_was_not_there_when_it_was_asked_for_is_met_all_the_same(
    two: tuple[SqliteSpace, SqliteSpace],
) -> None:
    """The other process commits between the question and the transaction."""
    one, other = two
    theirs = turn(other, 1, "e")

    class Late(Member):
        def body(self, answers: Any, /) -> Body[Any] | None:
            assert answers == ([],)
            ((_, outcome),) = commit(other.engine, [Single(writing(Append(TURN, [theirs])), self.outcome)])
            assert isinstance(outcome, Done)
            return super().body(answers)

    met = Append(TURN, [turn(one, 1, "e")], met="keep")
    late = Late("late", writing(met), asks=(Query(TURN, on=("actor", "event"), keys=[(1, "e")]),))
    one.join(late)
    outcome = await late.outcome
    assert isinstance(outcome, Done)
    assert outcome.answers == ([theirs],)


@pytest.mark.parametrize("how", ["looked", "asked"])
async def test_what_is_read_in_several_statements_is_of_one_moment(tmp_path: Path, how: str) -> None:
    """Between any two of them another process takes the row away and appends another of its key."""
    between: list[Body[Any]] = []

    def meanwhile(point: str) -> None:
        if point == "statement" and between and next(skips, None) is None:
            ((_, outcome),) = commit(other.engine, [Single(between.pop(), loop.create_future())])
            assert isinstance(outcome, Done)

    loop = asyncio.get_running_loop()
    world, busy = world_of(tmp_path), SqliteWorld(tmp_path, clock=clock, shared=True, failpoint=meanwhile)
    other, one = await world.open("main", BOTH), await busy.open("main", BOTH)
    row = turn(other, 1, "e")
    await does(other, Append(TURN, [row]))
    query = Query(TURN, on=("actor", "event"), keys=[(1, "e")])
    for place in range(4):
        new = turn(other, 1, "e")
        skips = iter(range(place))
        between.append(writing(Remove(TURN, keys=[(row[0],)]), Append(TURN, [new])))
        if how == "looked":
            (found,) = await one.look(query)
        else:
            member = Member("asks", None, asks=(query,))
            one.join(member)
            await member.outcome
            assert member.answers is not None
            (found,) = member.answers
        assert found in ([row], [new])
        if between:
            await does(other, Remove(TURN, keys=[(row[0],)]), Append(TURN, [new]))
            between.clear()
        row = new
    for each in (world, busy):
        each.abandon()


async def test_counters_lose_nothing_between_processes(two: tuple[SqliteSpace, SqliteSpace]) -> None:
    await does(two[0], Append(TASK, [(1, "a", None, None, 0)]))
    for _ in range(50):
        for space in two:
            await does(space, Cas(TASK, [((1,), {}, {"tries": Inc(1)})]))
    (found,) = await two[0].look(Query(TASK))
    assert found == [(1, "a", None, None, 100)]


# --- numbers --------------------------------------------------------------------------------------


async def test_numbers_are_minted_apart(two: tuple[SqliteSpace, SqliteSpace]) -> None:
    given = [space.mint(table) for _ in range(BLOCK + 100) for space in two for table in (TURN,)]
    given += [two[0].mint(TURN) for _ in range(3 * BLOCK)]
    assert len(set(given)) == len(given)
    apart = [space.mint(OWED) for _ in range(10) for space in two]
    assert len(set(apart)) == 20


async def test_numbers_minted_in_a_body_that_was_refused_are_no_other_processs(
    two: tuple[SqliteSpace, SqliteSpace],
) -> None:
    one, other = two
    given: list[int] = []

    def refusing() -> Asking:
        yield (Query(TASK),)
        given.extend(one.mint(OWED) for _ in range(2 * BLOCK))
        raise ValueError("refused")

    async def both() -> None:
        kept = Member("kept", writing(Append(TASK, [(1, "a", None, None, None)])))
        for member in (Member("refused", refusing), kept):
            one.join(member)
        assert isinstance(await kept.outcome, Done)

    await both()
    theirs = [other.mint(OWED) for _ in range(3 * BLOCK)]
    assert not set(theirs) & set(given)


async def test_a_block_that_could_not_be_had_is_told_to_who_needed_it_and_its_company_goes_on(tmp_path: Path) -> None:
    disk = FaultyDisk()
    world = SqliteWorld(tmp_path, clock=clock, shared=True, disk=disk)
    space = await world.open("main", BOTH)

    class Needs(Member):
        def body(self, answers: Any, /) -> Body[Any] | None:
            disk.fail("io", kinds=("sync",), on="-wal")
            for _ in range(2 * BLOCK):
                space.mint(OWED)
            return super().body(answers)

    row = (1, "a", None, None, None)
    needs, beside = Needs("needs", writing()), Member("beside", writing(Append(TASK, [row])), asks=(Query(TASK),))
    for member in (needs, beside):
        space.join(member)
    error = refused(await needs.outcome, StoreUnavailable)
    assert "disk" in str(error)
    assert isinstance(await beside.outcome, Done)
    assert (await space.look(Query(TASK)))[0] == [row]
    given = [space.mint(OWED) for _ in range(2 * BLOCK)]
    assert len(set(given)) == len(given)
    world.abandon()
    disk.close()


async def test_numbers_of_a_transaction_that_was_rolled_back_are_nobodys() -> None:
    taken: list[int] = []

    def take(table: str, above: int) -> int:
        taken.append(100_000)
        return taken[-1]

    blocks = Blocks(["t"], take)
    blocks.opened({"next.t": 7}, lambda table: 3)
    assert blocks.taken() == [("next.t", 7 + BLOCK)]
    blocks.committed([])
    assert [blocks.mint("t") for _ in range(3)] == [7, 8, 9]
    blocks.seen("t", 20_000)
    blocks.begun({"next.t": 30_000})
    assert blocks.mint("t") == 30_000
    assert blocks.lines(last=False) == [("next.t", 30_000 + BLOCK)]
    blocks.rolled_back()
    assert blocks.mint("t") == 100_000, "another process may have taken that block meanwhile"
    blocks.begun({"next.t": 200_000})
    assert [blocks.mint("t") for _ in range(LOW)][-1] == 100_000 + LOW
    assert blocks.lines(last=False) == [("next.t", 200_000 + BLOCK)], "whoever runs low takes the next along"
    blocks.committed([])
    assert [blocks.mint("t") for _ in range(LOW + 1)][-2:] == [200_000, 200_001]
    blocks.seen("t", 2**63 - 1)  # what nobody minted says nothing
    assert blocks.mint("t") == 200_002


async def test_an_owner_row_is_read_anew_in_every_body(two: tuple[SqliteSpace, SqliteSpace]) -> None:
    one, other = two
    first, second = Node("one", one, REIGN), Node("two", other, REIGN)
    for _ in range(3):
        assert isinstance(await one.transact(first.seizing()), Done)
        assert isinstance(await one.transact(first.guarded(Append(OWED, [(one.mint(OWED), 1, b"")]))), Done)
        assert isinstance(await other.transact(second.seizing()), Done)
        refused(await one.transact(first.guarded(Append(OWED, [(one.mint(OWED), 1, b"")]))), OwnedElsewhere)
    assert len((await other.look(Query(OWED)))[0]) == 3
