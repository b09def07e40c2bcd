"""Many spaces at rest, few of them open: handles stay usable, files at rest are asked without being touched."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from onefold.store.contract import Append, Done, Put, Query
from onefold.store.sqlite import SqliteWorld, wal
from onefold.store.sqlite.world import HANDLES
from onefold.terms.errors import StoreLocked
from onefold.testing.faulty_disk import FaultyDisk
from tests.store.child import clock
from tests.store.shorthand import turn, writing
from tests.store.tables import OWED, SCHEMA, SENT, TASK, TURN


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    one = FaultyDisk()
    yield one
    one.close()


SOONEST = Query(TASK, where=(("ready", "null", False),), order=("ready",), limit=1)


def handles(folder: Path) -> int:
    """How many handles this process has on files in `folder`."""
    mine = Path("/proc/self/fd")
    return sum(1 for fd in mine.iterdir() if str(folder) in (os.readlink(fd) if fd.is_symlink() else ""))


async def test_the_least_recently_used_space_is_closed_and_opens_itself_again(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock, open_at_most=8)
    spaces = [await world.open(f"space{i}", [SCHEMA]) for i in range(20)]
    assert sum(s.engine.is_open for s in spaces) == 8
    assert handles(tmp_path) <= 8 * 4
    for number, space in enumerate(spaces):
        assert isinstance(await space.transact(writing(Append(TURN, [turn(space, 1, f"e{number}")]))), Done)
    assert sum(s.engine.is_open for s in spaces) == 8
    for number, space in enumerate(spaces):
        (rows,) = await space.look(Query(TURN))
        assert [row[3] for row in rows] == [f"e{number}"]
        assert sum(s.engine.is_open for s in spaces) <= 8
    await world.close()
    assert handles(tmp_path) == 0


async def test_a_space_that_has_work_is_not_closed(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock, open_at_most=8)
    busy = await world.open("busy", [SCHEMA])
    waiting = asyncio.gather(busy.transact(writing(Put(SENT, [(1, "k", b"")]))))
    await asyncio.sleep(0)
    held = busy.engine.is_open
    for i in range(12):
        await world.open(f"space{i}", [SCHEMA])
    assert held
    assert isinstance((await waiting)[0], Done)
    await world.close()


async def test_numbers_go_on_where_a_space_was_closed_meanwhile(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock, open_at_most=8)
    await world.open("main", [SCHEMA])
    space = await world.open("first", [SCHEMA])
    given = [space.mint(OWED), space.mint(OWED)]
    for i in range(9):
        await world.open(f"space{i}", [SCHEMA])
    assert not space.engine.is_open
    given.append(space.mint(OWED))
    assert given == sorted(set(given))
    await world.close()


async def test_a_space_at_rest_is_asked_without_a_trace(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock)
    for i in range(30):
        space = await world.open(f"space{i}", [SCHEMA])
        assert isinstance(await space.transact(writing(Append(TASK, [(1, "a", None, 100 - i, None)]))), Done)
    await world.close()
    before = sorted(os.listdir(tmp_path))
    world = SqliteWorld(tmp_path, clock=clock)
    for i in range(30):
        assert await world.soonest(f"space{i}", SOONEST) == ([(1, "a", None, 100 - i, None)],)
    assert await world.soonest("nowhere", SOONEST) == ()
    assert sorted(os.listdir(tmp_path)) == before
    assert handles(tmp_path) == 0
    await world.close()


async def test_a_space_at_rest_is_opened_once_for_a_question_until_somebody_writes_to_it(
    place: Path, disk: FaultyDisk
) -> None:
    world = SqliteWorld(place, clock=clock, disk=disk)
    space = await world.open("space", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [(1, "a", None, 100, None)]))), Done)
    await world.close()
    disk.opened.clear()
    for _ in range(50):
        assert await world.soonest("space", SOONEST) == ([(1, "a", None, 100, None)],)
    assert disk.opened["space.db"] == 1

    space = await world.open("space", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [(2, "a", None, 7, None)]))), Done)
    await world.close()
    assert await world.soonest("space", SOONEST) == ([(2, "a", None, 7, None)],)

    other = SqliteWorld(place, clock=clock)
    await (await other.open("space", [SCHEMA])).transact(writing(Append(TASK, [(3, "a", None, 5, None)])))
    await other.close()
    assert await world.soonest("space", SOONEST) == ([(3, "a", None, 5, None)],), "another's write was not seen"


async def test_at_most_256_files_stay_open(place: Path) -> None:
    world = SqliteWorld(place, clock=clock)
    spaces = [await world.open(f"space{i}", [SCHEMA]) for i in range(300)]
    most = sum(s.engine.is_open for s in spaces)
    for number in (0, 5, 299, 7, 150):
        assert isinstance(await spaces[number].transact(writing(Append(TURN, [turn(spaces[number], 1, "e")]))), Done)
        most = max(most, sum(s.engine.is_open for s in spaces))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert most == min(256, (soft - 128) // HANDLES)
    assert handles(place) <= 256 * HANDLES
    await world.close()
    assert handles(place) == 0


async def test_the_space_that_was_opened_first_keeps_others_out_however_many_are_used(place: Path) -> None:
    world = SqliteWorld(place, clock=clock, open_at_most=8)
    await world.open("main", [SCHEMA])
    for i in range(20):
        await world.open(f"space{i}", [SCHEMA])
    with pytest.raises(StoreLocked):
        await SqliteWorld(place, clock=clock).open("main", [SCHEMA])
    await world.close()


async def test_a_space_left_by_a_kill_is_asked_too(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(TASK, [(1, "a", None, 7, None)]))), Done)
    world.abandon()
    world = SqliteWorld(tmp_path, clock=clock)
    assert await world.soonest("main", SOONEST) == ([(1, "a", None, 7, None)],)
    empty = tmp_path / "empty.db"
    empty.touch()
    assert await world.soonest("empty", SOONEST) == ()
    await world.close()


async def test_the_wal_is_grown_ahead_and_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "LONGEST", 200)
    monkeypatch.setattr(wal, "AHEAD", 65_536)
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    path = tmp_path / "main.db-wal"
    sizes = []
    for i in range(600):
        rows = [turn(space, i, "e", None, os.urandom(3_000)) for _ in range(2)][:1]
        assert isinstance(await space.transact(writing(Append(TURN, rows))), Done)
        await asyncio.sleep(0)
        sizes.append(path.stat().st_size)
    assert max(sizes) < 2 * 200 * wal.FRAME + 65_536, "the WAL has no bound"
    assert sizes == sorted(sizes), "the WAL was cut short, so that commits must grow it again"
    assert space.engine.file.wal_pages < 220
    assert (tmp_path / "main.db").stat().st_size > 600 * 3_000
    world.abandon()
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    (rows,) = await space.look(Query(TURN))
    assert len(rows) == 600
    await world.close()
    assert not path.exists()


async def test_a_quiet_turn_empties_the_wal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "QUIET_S", 0)
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    rows = [turn(space, i, "e", None, os.urandom(3_000)) for i in range(100)]
    assert isinstance(await space.transact(writing(Append(TURN, rows))), Done)
    before = (tmp_path / "main.db").stat().st_size
    for _ in range(5):
        await asyncio.sleep(0.001)
    assert (tmp_path / "main.db").stat().st_size > before + 300_000
    assert space.engine.file.wal_pages == 0
    await world.close()
