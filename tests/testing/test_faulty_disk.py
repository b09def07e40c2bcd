"""A disk that fails, forgets or loses its power as it is told: no kinder than a real one, and no crueller."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.testing.faulty_disk import FaultyDisk, Platter, Tape
from onefold.testing.faulty_disk.tape import SECTOR, Cut, Gone, Made, NamesSynced, Note, Op, Synced, SyncFailed, Wrote

SEEDS = range(40)


def played(*ops: Op, lying: bool = False, seed: object = 0) -> Platter:
    platter = Platter(lying=lying, seed=seed)
    for op in ops:
        platter.play(op)
    return platter


def cuts(platter: Platter) -> list[dict[str, bytes]]:
    return [platter.after_a_cut(seed) for seed in SEEDS]


# --- what a power cut leaves ------------------------------------------------------------------------


def test_what_was_synced_is_there_whatever_else_is() -> None:
    platter = played(Made("a", 1), NamesSynced(), Wrote(1, 0, b"one"), Synced(1), Wrote(1, 3, b"two"))
    left = cuts(platter)
    assert all(files["a"].startswith(b"one") for files in left)
    assert {files["a"] for files in left} >= {b"one", b"onetwo"}


def test_of_what_was_not_synced_any_part_is_left_and_some_of_it_torn() -> None:
    data = bytes(range(1, 256)) * 20
    left = {files["a"] for files in cuts(played(Made("a", 1), NamesSynced(), Wrote(1, 0, data)))}
    assert b"" in left
    assert data in left
    assert len(left) > 10
    assert any(len(content) % SECTOR for content in left if content != data), "none was torn"
    for content in left:
        assert all(byte in (0, want) for byte, want in zip(content, data, strict=False)), "bytes that nobody wrote"


def test_a_later_write_may_be_there_and_an_earlier_one_not() -> None:
    platter = played(Made("a", 1), NamesSynced(), Wrote(1, 0, b"x" * SECTOR), Wrote(1, SECTOR, b"y" * SECTOR))
    left = {files["a"] for files in cuts(platter)}
    assert bytes(SECTOR) + b"y" * SECTOR in left


def test_names_change_in_their_order_and_are_sure_once_the_folder_is_synced() -> None:
    loose = played(Made("a", 1), NamesSynced(), Gone("a"), Made("b", 2))
    assert {tuple(sorted(files)) for files in cuts(loose)} == {("a",), (), ("b",)}
    sure = played(Made("a", 1), NamesSynced(), Gone("a"), Made("b", 2), Synced(2, names=True))
    assert {tuple(sorted(files)) for files in cuts(sure)} == {("b",)}


def test_a_file_cut_short_may_still_be_long() -> None:
    left = {
        files["a"] for files in cuts(played(Made("a", 1), NamesSynced(), Wrote(1, 0, b"whole"), Synced(1), Cut(1, 0)))
    }
    assert left == {b"whole", b""}


def test_what_a_failed_sync_gave_up_no_later_sync_brings_back() -> None:
    ops = (Made("a", 1), NamesSynced(), Wrote(1, 0, b"x" * 9 * SECTOR), SyncFailed(1), Synced(1))
    left = {played(*ops, seed=seed).after_a_cut(0)["a"] for seed in SEEDS}
    assert len(left) > 10
    again = (*ops, Wrote(1, 0, b"x" * 9 * SECTOR), Synced(1))
    assert {played(*again, seed=seed).after_a_cut(0)["a"] for seed in SEEDS} == {b"x" * 9 * SECTOR}


def test_a_disk_that_lies_may_lose_everything() -> None:
    ops = (Made("a", 1), NamesSynced(), Wrote(1, 0, b"one"), Synced(1))
    assert {files["a"] for files in cuts(played(*ops))} == {b"one"}
    assert b"" in {files["a"] for files in cuts(played(*ops, lying=True))}


WRITES = st.lists(st.tuples(st.integers(0, 2_000), st.binary(min_size=1, max_size=1_200)), max_size=6)


@given(before=WRITES, after=WRITES, seed=st.integers(0, 9))
def test_a_process_that_died_leaves_all_and_a_power_cut_no_byte_that_was_not_written(
    before: list[tuple[int, bytes]], after: list[tuple[int, bytes]], seed: int
) -> None:
    ops: list[Op] = [Made("a", 1), NamesSynced(), *(Wrote(1, at, data) for at, data in before), Synced(1)]
    ops += [Wrote(1, at, data) for at, data in after]
    platter = played(*ops)
    allowed: list[set[int]] = [set() for _ in range(4_000)]
    solid = bytearray(4_000)
    for at, data in before:
        solid[at : at + len(data)] = data
    for place, byte in enumerate(solid):
        allowed[place].add(byte)
    for at, data in after:
        for place, byte in enumerate(data, at):
            allowed[place].add(byte)
    for place, byte in enumerate(platter.after_a_cut(seed)["a"]):
        assert byte in allowed[place]
    whole = bytearray()
    for at, data in (*before, *after):
        whole.extend(bytes(max(0, at + len(data) - len(whole))))
        whole[at : at + len(data)] = data
    assert platter.after_a_kill()["a"] == bytes(whole)


# --- the disk -----------------------------------------------------------------------------------------


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    one = FaultyDisk()
    yield one
    one.close()


def opened(disk: FaultyDisk, place: Path) -> apsw.Connection:
    db = apsw.Connection(str(place / "a.db"), vfs=disk.vfs)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = full")
    db.execute("create table if not exists t(x)")
    return db


def test_its_tape_holds_all_that_was_done(place: Path, disk: FaultyDisk) -> None:
    db = opened(disk, place)
    db.execute("insert into t values (1)")
    disk.note("told")
    db.close()
    platter = Platter()
    for op in disk.tape.ops:
        platter.play(op)
    there = {path.name: path.read_bytes() for path in place.iterdir() if not path.name.endswith("-shm")}
    assert platter.after_a_kill() == there
    assert disk.tape.notes(len(disk.tape.ops)) == ["told"]
    assert disk.opened["a.db"] == 1


@pytest.mark.parametrize(
    "error, kind, raised",
    [("io", "write", apsw.IOError), ("full", "write", apsw.FullError), ("io", "sync", apsw.IOError)],
)
def test_it_fails_at_the_operation_it_was_told_and_is_well_again(
    place: Path, disk: FaultyDisk, error: str, kind: str, raised: type[Exception]
) -> None:
    db = opened(disk, place)
    disk.fail(error, at=1, kinds=(kind,), on="-wal")  # type: ignore[arg-type]
    with pytest.raises(raised):
        db.execute("insert into t values (1)")
    assert (disk.struck, disk.hit) == (1, [(kind, "a.db-wal")])
    db.execute("insert into t values (2)")
    assert db.execute("select x from t").fetchall() == [(2,)]
    db.close()


def test_it_fails_from_a_place_on_until_it_is_healed(place: Path, disk: FaultyDisk) -> None:
    db = opened(disk, place)
    disk.fail("read-only", at=2, lasting=True)
    for _ in range(3):
        with pytest.raises(apsw.IOError):
            db.execute("insert into t values (1)")
    with pytest.raises(OSError, match="Read-only") as refused:
        disk.open(str(place / "mark"), os.O_RDWR | os.O_CREAT)
    assert refused.value.errno == errno.EROFS
    disk.heal()
    db.execute("insert into t values (2)")
    db.close()


def test_when_the_power_is_off_nothing_is_done_any_more(place: Path, disk: FaultyDisk) -> None:
    db = opened(disk, place)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    disk.power_off(at=2)
    with pytest.raises(apsw.IOError):
        db.execute("insert into t values (1)")
    at = len(disk.tape.ops)
    with pytest.raises(apsw.IOError):
        db.execute("insert into t values (2)")
    db.close()
    assert len(disk.tape.ops) == at
    assert not isinstance(disk.tape.ops[-1], Note | Synced)


def test_a_tape_goes_on_where_another_process_left_the_disk() -> None:
    platter = played(Made("a", 1), NamesSynced(), Wrote(1, 0, b"one"))
    tape = Tape(platter)
    tape.record(Synced(tape.file("a", new=False)))
    for op in tape.ops:
        platter.play(op)
    assert {files["a"] for files in cuts(platter)} == {b"one"}
    assert Platter.holding({"a": b"x"}).after_a_cut(0) == {"a": b"x"}
