"""A process killed at any place: what it acknowledged is there, what it did not is whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from onefold.store.contract import Query
from onefold.store.sqlite import SqliteWorld
from tests.store.child import child, clock
from tests.store.tables import OWED, SCHEMA, TURN


async def held(folder: Path) -> tuple[set[int], set[int]]:
    """The numbers that turns carry, and those that owed rows carry; every history walked from its head."""
    world = SqliteWorld(folder, clock=clock)
    space = await world.open("main", [SCHEMA])
    all_turns, owed = await space.look(Query(TURN), Query(OWED))
    walked = []
    for actor in range(5):
        (history,) = await space.look(Query(TURN, where=(("actor", "=", actor),), order=("-n",)))
        walked += history
        keys = [(r[1], r[3]) for r in history]
        (found,) = await space.look(Query(TURN, on=("actor", "event"), keys=keys))
        assert sorted(found) == sorted(history), "an id was forgotten"
    assert sorted(walked) == sorted(all_turns), "a history lost its head"
    world.abandon()
    return {int(str(r[3])[1:]) for r in all_turns}, {int(bytes(r[2])) for r in owed}


async def test_killed_again_and_again_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    ledger: set[int] = set()
    observed: set[int] = set()
    first = 1
    for acknowledged in (1, 40, 3, 500, 1_500, 7):
        with child("write", tmp_path, first) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            for line in process.stdout:
                ledger.add(int(line))
                if int(line) >= first + acknowledged:
                    break
            process.kill()
            ledger |= {int(line) for line in process.stdout.read().split()}
        turns, owed = await held(tmp_path)
        assert ledger <= turns, "acknowledged, and gone"
        assert turns == owed, "half of a transaction"
        assert observed <= turns, "once observed, and gone"
        assert len(turns - ledger - observed) <= 7, "more was committed than was under way"
        observed = turns
        first = max(turns) + 1


@pytest.mark.timeout(300)
async def test_killed_at_each_statement_it_is_whole_or_absent(tmp_path: Path) -> None:
    point, closed = 0, False
    while not closed and point < 200:
        point += 1
        folder = tmp_path / str(point)
        with child("sweep", folder, point) as process:
            said = process.communicate()[0].split()
        closed = "closed" in said
        world = SqliteWorld(folder, clock=clock)
        space = await world.open("main", [SCHEMA])
        turns, owed = await space.look(Query(TURN, order=("n",)), Query(OWED, order=("n",)))
        events = [row[3] for row in turns]
        assert events in ([], ["a"], ["a", "b"]), point
        assert [bytes(r[2]).decode() for r in owed] == events, f"half of a transaction at {point}"
        assert [s for s in said if s != "closed"] == events[: len(said)], f"acknowledged, and gone at {point}"
        (walked,) = await space.look(Query(TURN, where=(("actor", "=", 1),), order=("-n",)))
        assert walked == turns[::-1]
        world.abandon()
    assert closed, "the sweep met no end"
    assert point > 20, "fewer places to be killed at than there are statements"
