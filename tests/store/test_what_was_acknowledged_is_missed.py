"""A file that ends before what was acknowledged is refused at start, says so, and can be accepted on purpose."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw
import pytest

from onefold.store.contract import Append, Done, Put, Query
from onefold.store.sqlite import SqliteWorld, hold
from onefold.terms.errors import StoreRolledBack, StoreUnavailable
from tests.store.child import clock
from tests.store.life import Life
from tests.store.shorthand import turn, writing
from tests.store.tables import SCHEMA, SENT, TURN


@pytest.fixture(autouse=True)
def _company(company: None) -> None:
    """Marks are kept otherwise where several have the file."""


async def written(folder: Path, events: str, *, checkpoint: bool = False, puts: int = 0) -> None:
    """One acknowledged turn each, then an end as by a kill."""
    world = SqliteWorld(folder, clock=clock, shared=Life.shared)
    space = await world.open("main", [SCHEMA])
    for event in events:
        assert isinstance(
            await space.transact(writing(Append(TURN, [turn(space, 1, event, None, b"x" * 3_000)]))), Done
        )
    for i in range(puts):
        assert isinstance(await space.transact(writing(Put(SENT, [(i, "k", b"")]))), Done)
    if checkpoint:
        space.engine.file.checkpoint()
    world.abandon()


async def events(folder: Path, *, accept: bool = False) -> list[str]:
    world = SqliteWorld(folder, clock=clock, accept_rollback=accept, shared=Life.shared)
    try:
        space = await world.open("main", [SCHEMA])
        (rows,) = await space.look(Query(TURN, order=("n",)))
        return [str(row[3]) for row in rows]
    finally:
        await world.close()


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith(("-shm", ".mark", ".mark-0"))}


async def test_a_removed_wal_is_missed(tmp_path: Path) -> None:
    await written(tmp_path, "abc", checkpoint=True)
    await written(tmp_path, "de")
    (tmp_path / "main.db-wal").unlink()
    before = bytes_of(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreRolledBack) as missed:
            await events(tmp_path)
        assert (missed.value.expected, missed.value.found) == (5, 3) or missed.value.found < missed.value.expected
    assert {k: v for k, v in bytes_of(tmp_path).items() if v} == before, "a refused file was touched"
    assert await events(tmp_path, accept=True) == ["a", "b", "c"]
    assert await events(tmp_path) == ["a", "b", "c"]


async def test_a_removed_wal_is_missed_where_no_turn_was_written(tmp_path: Path) -> None:
    await written(tmp_path, "a", checkpoint=True)
    await written(tmp_path, "", puts=3)
    (tmp_path / "main.db-wal").unlink()
    with pytest.raises(StoreRolledBack):
        await events(tmp_path)


async def test_an_older_copy_is_missed(tmp_path: Path) -> None:
    await written(tmp_path, "abc")
    assert await events(tmp_path) == ["a", "b", "c"]
    shutil.copy(tmp_path / "main.db", tmp_path / "older")
    await written(tmp_path, "de")
    assert await events(tmp_path) == ["a", "b", "c", "d", "e"]
    shutil.copy(tmp_path / "older", tmp_path / "main.db")
    with pytest.raises(StoreRolledBack):
        await events(tmp_path)
    assert await events(tmp_path, accept=True) == ["a", "b", "c"]


async def test_an_older_copy_under_a_newer_wal_is_missed(tmp_path: Path) -> None:
    """The WAL makes the end of such a file look right; SQLite opens it and finds nothing wrong."""
    await written(tmp_path, "abc", checkpoint=True)
    shutil.copy(tmp_path / "main.db", tmp_path / "older")
    await written(tmp_path, "defghi", checkpoint=True)
    await written(tmp_path, "j")
    shutil.copy(tmp_path / "older", tmp_path / "main.db")
    with pytest.raises(StoreRolledBack):
        await events(tmp_path)


async def test_a_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    await written(tmp_path, "abc")
    for name in ("main.db", "main.db-wal", "main.db-shm"):
        os.unlink(tmp_path / name)
    with pytest.raises(StoreRolledBack):
        await events(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["main.mark", "main.mark-0"][: 1 + Life.shared]
    assert await events(tmp_path, accept=True) == []


async def test_another_stores_file_is_refused(tmp_path: Path) -> None:
    await written(tmp_path / "one", "abc")
    await written(tmp_path / "two", "abcdef")
    for name in ("main.db", "main.db-wal"):
        shutil.copy(tmp_path / "two" / name, tmp_path / "one" / name)
    with pytest.raises(StoreUnavailable, match="another store"):
        await events(tmp_path / "one")


async def test_a_whole_folder_may_be_moved_and_copied(tmp_path: Path) -> None:
    await written(tmp_path / "one", "abc", checkpoint=True)
    await written(tmp_path / "one", "de")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    (tmp_path / "one").rename(tmp_path / "three")
    for name in ("two", "three"):
        assert await events(tmp_path / name) == ["a", "b", "c", "d", "e"]


async def test_a_file_without_its_mark_is_taken_as_it_is(tmp_path: Path) -> None:
    await written(tmp_path, "abc")
    (tmp_path / "main.mark").unlink()
    assert await events(tmp_path) == ["a", "b", "c"]


async def test_a_torn_mark_is_no_mark(tmp_path: Path) -> None:
    await written(tmp_path, "abc")
    mark = tmp_path / "main.mark"
    raw = bytearray(mark.read_bytes())
    raw[560] ^= 255
    mark.write_bytes(raw)
    assert hold._read(bytes(raw)[512 : 512 + hold._BODY.size + 4]) is None
    assert await events(tmp_path) == ["a", "b", "c"]


async def test_what_a_power_cut_may_take_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who chose the weaker level accepted it: after a new start of the machine the end may be earlier."""
    await written(tmp_path, "abc", checkpoint=True)
    await written(tmp_path, "de")
    (tmp_path / "main.db-wal").unlink()
    lossy = SqliteWorld(tmp_path, clock=clock, durability="lossy-on-power-cut", shared=Life.shared)
    with pytest.raises(StoreRolledBack):
        await lossy.open("main", [SCHEMA])
    monkeypatch.setattr("onefold.store.sqlite.file.boot", lambda: b"another start...")
    await lossy.open("main", [SCHEMA])
    await lossy.close()


async def test_pages_that_are_damaged_are_said_to_be(tmp_path: Path) -> None:
    await written(tmp_path, "abcdefgh")
    await events(tmp_path)
    path = tmp_path / "main.db"
    raw = bytearray(path.read_bytes())
    path.write_bytes(b"not a database at all" + raw[21:])
    with pytest.raises(StoreUnavailable, match="not a database"):
        await events(tmp_path)
    path.write_bytes(bytes(raw[:4096]) + b"\xff" * (len(raw) - 4096))
    with pytest.raises(StoreUnavailable, match="damaged"):
        await events(tmp_path)
    with pytest.raises(apsw.CorruptError):
        apsw.Connection(str(path)).execute("select * from _onefold_turn").fetchall()
