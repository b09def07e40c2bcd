"""Each operation on the disk fails, one after another: a clear error, nothing in part, no answer that was not so,
and the same process goes on as soon as the disk does.

A failed sync leaves what Linux leaves: the cache shows what was written, the disk may never get it, and the next
sync says that all is well.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from onefold.store.contract import Done, Query, Refused, Unknown
from onefold.store.sqlite import SqliteWorld, chain, wal
from onefold.terms.errors import StoreUnavailable
from onefold.testing.faulty_disk import CHANGES, FaultyDisk, Platter
from onefold.testing.faulty_disk.tape import Note
from tests.store.child import clock
from tests.store.life import DEEP, LATER, LATER_NOTES, SCHEMA, Known, Life, holds, laid_out, numbers
from tests.store.tables import TURN

CUTS = 4 if DEEP else 2


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, company: None) -> None:
    """What takes thousands of commits comes after some."""
    monkeypatch.setattr(wal, "FROM", 3)
    monkeypatch.setattr(wal, "AHEAD", 60_000)
    monkeypatch.setattr(wal, "LONGEST", 60)
    monkeypatch.setattr(chain, "GENERATION", 8)
    monkeypatch.setattr(chain, "LUMP", 2)


class HardLife(Life):
    """A life on a disk that fails somewhere. Whatever fails is tried again once the disk is well, and is done then."""

    async def dares(self, verb: Callable[[], Awaitable[Any]]) -> None:
        for last in (False, True):
            try:
                outcomes = await verb()
            except StoreUnavailable:
                assert not last, "it did not recover"
                self.disk.heal()
                continue
            for outcome in outcomes if isinstance(outcomes, list) else [outcomes]:
                if isinstance(outcome, Refused | Unknown):
                    assert isinstance(outcome.error, StoreUnavailable), outcome
                    assert not last, "it did not recover"
            return

    async def opened(self, schema: Any) -> None:
        await self.dares(lambda: self.opens(schema))

    async def written(self, count: int) -> None:
        first = self.number + 1
        outcomes = await self.writes(count)
        if all(isinstance(outcome, Done) for outcome in outcomes):
            return
        self.disk.heal()
        there = await numbers(self.space)
        for number, outcome in enumerate(outcomes, first):
            if isinstance(outcome, Done):
                assert number in there
                continue
            assert isinstance(outcome.error, StoreUnavailable), outcome
            assert number not in there or isinstance(outcome, Unknown), "refused, and there"
            assert isinstance(await self.again(number), Done), "it did not recover"

    async def stepped(self) -> None:
        number = self.number + 1
        try:
            outcome = await self.steps()
            if isinstance(outcome, Done):
                return
            fault: Any = outcome.error
        except StoreUnavailable as raised:
            outcome, fault = Refused(raised), raised
        assert isinstance(fault, StoreUnavailable)
        self.disk.heal()
        there = await numbers(self.space)
        assert number not in there or isinstance(outcome, Unknown), "refused, and there"
        assert isinstance(await self.steps(), Done), "it did not recover"

    async def lives(self) -> set[int]:
        """All that a life has. What is there at its end."""
        await self.opened(SCHEMA)
        for width in (1, 3, 1, 2):
            await self.written(width)
        await self.dares(self.migrates)
        await self.stepped()
        self.checks_in()
        for width in (4, 16, 1):
            await self.written(width)
        await self.dares(self.looks)
        await self.closes()
        await self.opened(LATER)
        await self.dares(lambda: self.migrates(LATER_NOTES))
        await self.stepped()
        await self.written(9)
        self.dies()
        await self.opened(LATER)
        await self.written(1)
        await self.closes()
        await self.opened(LATER)
        self.disk.heal()
        there = await self.looks()
        await self.closes()
        return there


async def lived(folder: Path, disk: FaultyDisk) -> set[int]:
    life = HardLife(folder, disk)
    try:
        return await life.lives()
    finally:
        life.dies()


async def sweep(place: Path, stride: int, breaks: Callable[[FaultyDisk, int], None]) -> int:
    """One life for each place at which its disk may fail. How many places there were."""
    at = 0
    while True:
        at += 1 if DEEP else stride
        disk = FaultyDisk()
        try:
            breaks(disk, at)
            try:
                there = await lived(place / str(at), disk)
            except BaseException as fault:
                fault.add_note(f"the disk failed at {at}: {disk.hit}")
                raise
            struck = disk.struck
            known = Known()
            for op in disk.tape.ops:
                if isinstance(op, Note):
                    known.hear(op.said)
            assert known.sure <= there, "acknowledged, and gone"
            await holds(place / str(at), known)
        finally:
            disk.close()
        shutil.rmtree(place / str(at))
        if not struck:
            return at


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for a while"])
@pytest.mark.parametrize("error", ["io", "full", "read-only"])
async def test_any_change_of_the_disk_may_fail(place: Path, error: Any, lasting: bool) -> None:
    places = await sweep(place, 59, lambda disk, at: disk.fail(error, at=at, lasting=lasting, kinds=CHANGES))
    assert places > 150


@pytest.mark.parametrize("error, on", [("io", ""), ("short", "-wal")])
async def test_any_reading_of_the_disk_may_fail(place: Path, error: Any, on: str) -> None:
    """What is missing in the middle of the main file SQLite takes for zeros; `doctor` looks for that."""
    places = await sweep(place, 29, lambda disk, at: disk.fail(error, at=at, kinds=("read",), on=on))
    assert places > 40


@pytest.mark.parametrize("kind, on", [("sync", "-wal"), ("sync", ".db"), ("sync", ".mark"), ("folder", "")])
async def test_a_sync_that_failed_is_never_taken_for_one_that_did_not(
    place: Path, kind: Any, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not by what comes after it: the power goes at each later place, and nothing acknowledged is lost."""
    nth, struck = 0, True
    starts = 1
    monkeypatch.setattr("onefold.store.sqlite.file.boot", lambda: b"start %010d" % starts)
    while struck:
        nth += 1 if DEEP or on != "-wal" else 6
        starts = 1
        disk = FaultyDisk()
        disk.fail("io", at=nth, kinds=(kind,), on=on)
        await lived(place / str(nth), disk)
        struck = disk.struck > 0
        starts = 2
        for seed in range(CUTS):
            platter, known, since = Platter(seed=seed), Known(), -1
            for at, op in enumerate((*disk.tape.ops, Note(("end", 0)))):
                if since >= 0 and (since % (13 if DEEP else 151) == seed or at == len(disk.tape.ops)):
                    left = laid_out(place / f"{nth}-{at}-{seed}", platter.after_a_cut((nth, at, seed)))
                    await holds(left, known)
                    shutil.rmtree(left)
                if type(op).__name__ == "SyncFailed" or since >= 0:
                    since += 1
                if isinstance(op, Note):
                    known.hear(op.said)
                platter.play(op)
        disk.close()
        shutil.rmtree(place / str(nth))
    assert nth > 1


async def test_a_disk_that_cannot_even_be_looked_at_is_said_to_be_unusable(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FaultyDisk()
    life = Life(place / "store", disk)
    space = await life.opens()
    await life.migrates()
    stat = os.stat

    def failing(path: Any, **more: Any) -> os.stat_result:
        if str(path).startswith(str(place)):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return stat(path, **more)

    with monkeypatch.context() as patch:
        patch.setattr("os.stat", failing)
        (outcome,) = await life.writes(1)
        assert isinstance(outcome, Refused)
        assert isinstance(outcome.error, StoreUnavailable)
        for asked in (life.steps, life.migrates, life.looks, space.author_tables):
            with pytest.raises(StoreUnavailable):
                await asked()
        with pytest.raises(StoreUnavailable):
            await SqliteWorld(place / "store", clock=clock).soonest("main", Query(TURN))
    assert isinstance(await life.again(1), Done)
    await life.closes()
    disk.close()
