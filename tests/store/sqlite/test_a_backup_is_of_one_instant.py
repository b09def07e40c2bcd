"""A backup holds all spaces as they were at one instant, whatever is written meanwhile, and is a store by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from onefold.store.contract import AuthorSpace, Done, Put, Query
from onefold.store.sqlite import SqliteWorld, backup
from tests.store.child import clock
from tests.store.shorthand import writing
from tests.store.tables import SCHEMA, SENT

SPACES = ("a", "b", "c")


async def note(space: AuthorSpace, n: int) -> None:
    assert isinstance(await space.transact(writing(Put(SENT, [(n, space.name, b"")]))), Done)


def counts(folder: Path) -> list[int]:
    found = []
    for name in SPACES:
        conn = apsw.Connection(f"file:{folder / name}.db?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | 0x40)
        found.append(int(str(conn.execute("select count(*) from _onefold_sent").fetchall()[0][0])))
        assert conn.execute("pragma integrity_check").fetchall() == [("ok",)]
        conn.close()
    return found


async def test_no_space_is_ahead_of_another_however_they_are_written(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    spaces = [await world.open(name, [SCHEMA]) for name in SPACES]
    going = True

    async def write() -> None:
        n = 0
        while going:
            n += 1
            for space in spaces:  # what the first has and the second has not yet is one at most, at any instant
                await note(space, n)
            await asyncio.sleep(0.002)

    writer = asyncio.create_task(write())
    taken = []
    for k in range(8):
        await asyncio.to_thread(backup.backup, tmp_path / "store", tmp_path / f"copy{k}")
        taken.append(counts(tmp_path / f"copy{k}"))
    going = False
    await writer
    await world.close()
    assert all(a >= b >= c >= a - 1 for a, b, c in taken), taken
    assert taken[0] != taken[-1]


async def test_what_changes_while_the_readers_begin_is_looked_at_again(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    spaces = [await world.open(name, [SCHEMA]) for name in SPACES]
    for space in spaces:
        await note(space, 1)
    loop, hits = asyncio.get_running_loop(), []

    def write() -> None:
        hits.append(1)
        if len(hits) == 1:
            asyncio.run_coroutine_threadsafe(note(spaces[0], 2), loop).result()

    await asyncio.to_thread(backup.backup, tmp_path / "store", tmp_path / "copy", failpoint=write)
    await world.close()
    assert (len(hits), counts(tmp_path / "copy")) == (2, [2, 1, 1])


async def test_a_store_that_is_never_still_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "TRIES", 3)
    world = SqliteWorld(tmp_path / "store", clock=clock)
    space = await world.open("a", [SCHEMA])
    loop, n = asyncio.get_running_loop(), iter(range(100))

    def write() -> None:
        asyncio.run_coroutine_threadsafe(note(space, next(n)), loop).result()

    with pytest.raises(backup.Moving):
        await asyncio.to_thread(backup.backup, tmp_path / "store", tmp_path / "copy", failpoint=write)
    await world.close()


async def test_a_space_at_rest_that_is_opened_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    for name in SPACES:
        await note(await world.open(name, [SCHEMA]), 1)
    await world.close()
    hits = []

    def write() -> None:
        hits.append(1)
        if len(hits) == 1:

            async def later() -> None:
                again = SqliteWorld(tmp_path / "store", clock=clock)
                await note(await again.open("b", [SCHEMA]), 2)
                await again.close()

            asyncio.run(later())

    await asyncio.to_thread(backup.backup, tmp_path / "store", tmp_path / "copy", failpoint=write)
    assert (len(hits), counts(tmp_path / "copy")) == (2, [1, 2, 1])


async def test_the_copy_is_a_store_by_itself(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    await note(await world.open("a", [SCHEMA]), 1)
    (tmp_path / "store" / "secret").write_bytes(b"s" * 32)
    (tmp_path / "store" / "blobs" / "a").mkdir(parents=True)
    (tmp_path / "store" / "blobs" / "a" / "x").write_bytes(b"long")
    assert backup.backup(tmp_path / "store", tmp_path / "copy") == ["a"]
    await note(await world.open("a", [SCHEMA]), 2)
    await world.close()
    names = sorted(str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*"))
    assert names == ["a.db", "blobs", "blobs/a", "blobs/a/x", "secret"]
    assert oct((tmp_path / "copy" / "a.db").stat().st_mode & 0o777) == "0o600"
    again = SqliteWorld(tmp_path / "copy", clock=clock)
    space = await again.open("a", [SCHEMA])
    assert await space.look(Query(SENT)) == ([(1, "a", b"")],)
    await note(space, 3)
    await again.close()
