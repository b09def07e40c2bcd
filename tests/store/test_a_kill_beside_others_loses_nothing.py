"""Processes that append and count on one file at once, and are killed: each event is there once, and none is lost."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from onefold.store.contract import Append, Query
from tests.store.child import child
from tests.store.company import does, history, sizes, world_of
from tests.store.tables import OWED, SCHEMA, TASK, TURN

EVENTS = 400


async def counted(folder: Path, acknowledged: set[int], *, shared: bool = True) -> set[int]:
    """What is there is whole, once, in its history and in its number's place, and nothing acknowledged is missing."""
    world = world_of(folder, shared=shared)
    space = await world.open("main", [SCHEMA])
    turns, owed, tasks = await space.look(Query(TURN), Query(OWED), Query(TASK, order=("id",)))
    there = [int(str(row[3])[1:]) for row in turns]
    assert len(set(there)) == len(there)
    assert acknowledged <= set(there)
    assert sorted(int(bytes(row[2])) for row in owed) == sorted(there)
    assert [row[4] for row in tasks] == [sum(number % 5 == actor for number in there) for actor in range(5)]
    walked = []
    for actor in range(5):
        rows = await history(space, actor)
        assert [row[2] for row in rows] == [*[row[0] for row in rows[1:]], None][: len(rows)]
        assert [row[0] for row in rows] == sorted([row[0] for row in rows], reverse=True)
        walked += rows
    assert sorted(walked) == sorted(turns)
    world.abandon()
    return set(there)


async def prepared(folder: Path) -> None:
    world = world_of(folder)
    space = await world.open("main", [SCHEMA])
    await does(space, Append(TASK, [(actor, "a", None, None, 0) for actor in range(5)]))
    await world.close()


def told(process: subprocess.Popen[str], enough: int = EVENTS + 2) -> list[str]:
    """What it said, up to so many lines."""
    assert process.stdout is not None
    return [line.strip() for line in islice(process.stdout, enough)]


async def test_processes_count_each_event_once(tmp_path: Path) -> None:
    await prepared(tmp_path)
    with child("share", tmp_path, 1, EVENTS) as one, child("share", tmp_path, 2, EVENTS) as two:
        for process in (one, two):
            said = told(process)
            assert (said[0], said[-1], len(said)) == ("open", "closed", EVENTS + 2)
    assert await counted(tmp_path, set()) == set(range(EVENTS))
    assert await counted(tmp_path, set(), shared=False) == set(range(EVENTS))


async def test_a_killed_process_loses_nothing_and_the_others_go_on(tmp_path: Path) -> None:
    await prepared(tmp_path)
    acknowledged: set[int] = set()
    many = 10 * EVENTS
    with child("share", tmp_path, 1, many) as survivor:
        for who, enough in ((2, 3), (3, 40), (4, 1), (5, 90)):
            with child("share", tmp_path, who, many) as process:
                said = told(process, enough)
                process.kill()
                said += told(process, many)
            acknowledged |= {int(line) for line in said if line.isdecimal()}
        said = told(survivor, many + 2)
        assert said[-1] == "closed"
    assert await counted(tmp_path, acknowledged) == set(range(many))


async def test_all_of_them_killed_lose_nothing(tmp_path: Path) -> None:
    await prepared(tmp_path)
    acknowledged: set[int] = set()
    for life in range(3):
        with child("share", tmp_path, 10 + life, 5_000) as one, child("share", tmp_path, 20 + life, 5_000) as two:
            said = told(one, 60 + 100 * life) + told(two, 30)
            one.kill()
            two.kill()
            said += told(one, 5_000) + told(two, 5_000)
        acknowledged |= {int(line) for line in said if line.isdecimal()}
        there = await counted(tmp_path, acknowledged, shared=life != 1)
        assert len(there) >= len(acknowledged) > 60 * life


async def test_processes_that_open_a_new_folder_at_once_make_it_once(tmp_path: Path) -> None:
    with ExitStack() as all_of_them:
        processes = [all_of_them.enter_context(child("hold", tmp_path / "new", "shared")) for _ in range(4)]
        assert [told(process, 1) for process in processes] == [["open"]] * 4
        world = world_of(tmp_path / "new")
        space = await world.open("main", [SCHEMA])
        await does(space, Append(TASK, [(1, "a", None, None, None)]))
        for process in processes[:2]:
            process.kill()
        for process in processes:
            process.communicate()
        await does(space, Append(TASK, [(2, "a", None, None, None)]))
        await world.close()
    assert "main.db-wal" not in sizes(tmp_path / "new")
