"""The power goes at any place of a store's life: what was acknowledged is there, the rest is whole or absent.

A tape of everything that was done to the disk is played up to each place, and of what was not synced there any part
is left, torn. The disk that lies about syncing must lose what was acknowledged, or these tests could not fail.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from onefold.store.contract import Done
from onefold.store.sqlite import chain, wal
from onefold.terms.errors import OnefoldError
from onefold.testing.faulty_disk import FaultyDisk, Platter, Tape
from onefold.testing.faulty_disk.tape import Gone, Made, Note, Wrote
from tests.store.life import DEEP, LATER, LATER_NOTES, NOTES, SCHEMA, Known, Life, holds, laid_out, places

SEEDS = 6 if DEEP else 2  # cuts at each place


class Machine:
    """What the store takes for the machine: `starts` is how often it was started."""

    starts = 1

    def boot(self) -> bytes:
        return b"start %010d" % self.starts


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    one = Machine()
    monkeypatch.setattr("onefold.store.sqlite.file.boot", one.boot)
    return one


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, company: None) -> None:
    """What takes thousands of commits comes after some."""
    monkeypatch.setattr(wal, "FROM", 3)
    monkeypatch.setattr(wal, "AHEAD", 60_000)
    monkeypatch.setattr(wal, "LONGEST", 60)
    monkeypatch.setattr(chain, "GENERATION", 8)
    monkeypatch.setattr(chain, "LUMP", 2)


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    one = FaultyDisk()
    yield one
    one.close()


async def a_life(folder: Path, disk: FaultyDisk, durability: str = "full") -> Tape:
    """Made, filled, its WAL grown and begun anew, migrated, closed, opened, killed, opened again, closed."""
    life = Life(folder, disk, durability)
    await life.opens(SCHEMA)
    for width in (1, 3, 1, 7, 2):
        assert all(isinstance(outcome, Done) for outcome in await life.writes(width))
    await life.migrates(NOTES)
    assert isinstance(await life.steps(), Done)
    life.checks_in()
    for width in (4, 1, 20, 2, 1):
        await life.writes(width)
    await life.looks()
    await life.closes()
    await life.opens(LATER)
    await life.migrates(LATER_NOTES)
    await life.steps()
    for width in (2, 1, 12):
        await life.writes(width)
    life.dies()
    await life.opens()
    await life.looks()
    await life.writes(1)
    await life.closes()
    return disk.tape


async def test_a_life_has_all_that_may_be_cut_in_two(place: Path, disk: FaultyDisk) -> None:
    """Else the sweeps of this file would pass over what they are for."""
    tape = await a_life(place / "life", disk)
    names = {op.file: op.name for op in tape.ops if isinstance(op, Made)}
    wrote = [(names[op.file], op) for op in tape.ops if isinstance(op, Wrote)]
    begun = [op for name, op in wrote if name == "main.db-wal" and op.at == 0 and len(op.data) == 32]
    assert len(begun) >= 4, "the WAL was begun anew"
    assert any(name == "main.db-wal" and not any(op.data) and len(op.data) > 10_000 for name, op in wrote), "and grown"
    assert any(name == "main.db-wal" and len(op.data) > 10_000 and any(op.data) for name, op in wrote), "written again"
    assert any(name == "main.db-journal" for name, _ in wrote), "the file was made"
    assert len([1 for name, op in wrote if name == "main.db" and op.at == 0]) >= 4, "and checked into, and migrated"
    assert len([op for op in tape.ops if isinstance(op, Gone) and op.name == "main.db-wal"]) == 2, "and closed"
    assert {said[0] for said in tape.notes(len(tape.ops))} == {"tried", "told", "seen"}


async def test_wherever_the_power_goes_nothing_acknowledged_is_lost(
    place: Path, disk: FaultyDisk, machine: Machine
) -> None:
    tape = await a_life(place / "life", disk)
    machine.starts += 1
    cuts = 0
    for at, known, platter in places(tape, stride=19):
        for seed in range(SEEDS):
            folder = laid_out(place / f"{at}-{seed}", platter.after_a_cut((at, seed)))
            await holds(folder, known)
            shutil.rmtree(folder)
            cuts += 1
    assert cuts > 20


async def test_wherever_the_process_dies_nothing_acknowledged_is_lost(place: Path, disk: FaultyDisk) -> None:
    tape = await a_life(place / "life", disk)
    kills = 0
    for at, known, platter in places(tape, stride=41, first=7):
        folder = laid_out(place / str(at), platter.after_a_kill())
        await holds(folder, known)
        shutil.rmtree(folder)
        kills += 1
    assert kills > 10


async def test_what_was_seen_after_a_kill_is_there_after_a_power_cut_too(
    place: Path, disk: FaultyDisk, machine: Machine
) -> None:
    """The kill came between a write and its sync: the next process finds in the cache what the disk may not have."""
    tape = await a_life(place / "life", disk)
    for at, known, platter in places(tape, stride=37, first=3):
        folder = laid_out(place / str(at), platter.after_a_kill())
        after = copy.deepcopy(platter)
        second = FaultyDisk(after)
        machine.starts = 1
        life = Life(folder, second)
        await life.opens()
        seen = await life.looks()
        assert known.sure <= seen
        life.dies()
        second.close()
        for op in second.tape.ops:
            after.play(op)
        machine.starts = 2
        for seed in range(SEEDS):
            left = laid_out(place / f"{at}-{seed}", after.after_a_cut(seed))
            await holds(left, Known(known.tried, known.sure | seen))
            shutil.rmtree(left)
        shutil.rmtree(folder)


async def test_who_chose_the_weaker_level_may_lose_the_end_and_nothing_before_it(
    place: Path, disk: FaultyDisk, machine: Machine
) -> None:
    """`lossy-on-power-cut` keeps every file sound and every commit whole; what is lost is the newest of them."""
    tape = await a_life(place / "life", disk, "lossy-on-power-cut")
    machine.starts += 1
    lost = 0
    for at, known, platter in places(tape, stride=19, first=5):
        for seed in range(SEEDS):
            folder = laid_out(place / f"{at}-{seed}", platter.after_a_cut((at, seed)))
            there = await holds(folder, Known(known.tried), "lossy-on-power-cut")
            shutil.rmtree(folder)
            gone = known.sure - there
            lost += bool(gone)
            assert not gone or max(known.sure & there, default=0) < min(gone), "a hole"
    assert lost > 0


async def test_a_disk_that_lies_about_syncing_loses_what_was_acknowledged(
    place: Path, disk: FaultyDisk, machine: Machine
) -> None:
    """The control: the same harness, and it must come out red."""
    tape = await a_life(place / "life", disk)
    machine.starts += 1
    platter, known, lost, cuts = Platter(lying=True), Known(), 0, 0
    for at, op in enumerate(tape.ops):
        if isinstance(op, Note):
            known.hear(op.said)
        platter.play(op)
        if known.sure and at % 37 == 0:
            folder = laid_out(place / str(at), platter.after_a_cut(at))
            cuts += 1
            try:
                await holds(folder, known)
            except (AssertionError, OnefoldError, apsw.Error):
                lost += 1
            shutil.rmtree(folder)
    assert lost > cuts // 2 > 3
