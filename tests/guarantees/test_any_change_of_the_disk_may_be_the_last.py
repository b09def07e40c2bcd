"""Promises 1, 2, 3 and 10 at each change that a fold makes to its disk: the power goes there, or the disk fails there.

The power leaves what was synced and any part of the rest, torn. After it, and after a disk that recovered, the same
again tells the same, the end is the end of a life without a fault, and what left, left under one key with one content.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from onefold.terms.errors import OnefoldError, OutcomeUnknown, StoreUnavailable
from onefold.testing.faulty_disk import FaultyDisk, Platter
from onefold.testing.faulty_disk.tape import Note
from tests.guarantees.folds import FOLDS
from tests.guarantees.shop import Transfer
from tests.guarantees.tries import DEEP, Bench, Try

CUTS = 3 if DEEP else 1
ERRORS: tuple[tuple[Any, bool], ...] = (("io", False), ("io", True), ("full", True), ("read-only", True))


@pytest.fixture(params=FOLDS, ids=lambda fold: fold.name)
async def bench(request: pytest.FixtureRequest, place: Path) -> Bench:
    one = Bench(request.param, place)
    await one.prepare()
    return one


@contextmanager
def faulty(bench: Bench) -> Iterator[tuple[FaultyDisk, Platter]]:
    """A disk that holds what was prepared, and the same to play its tape on."""
    platter = Platter.holding(bench.files())
    disk = FaultyDisk(platter)
    try:
        yield disk, platter
    finally:
        disk.close()


async def told_to_the_tape(one: Try, disk: FaultyDisk) -> None:
    """The fold and all that follows, with a note of each answer and each payment when it was made."""

    class Noting(list[Any]):
        def append(self, reply: Any) -> None:
            disk.note(("told", reply))
            super().append(reply)

    one.told = Noting()
    one.world.provider.told = lambda key, amount: disk.note(("paid", (key, amount)))
    await one.acts()
    await one.stage.advance("1m")


async def test_wherever_the_power_goes_in_a_fold_it_is_whole_or_absent_and_counts_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = 1
    monkeypatch.setattr("onefold.store.sqlite.file.boot", lambda: b"start %010d" % starts)
    with faulty(bench) as (disk, platter):
        async with bench.once(disk) as one:
            await told_to_the_tape(one, disk)
        ops = disk.tape.ops
        said: list[Any] = []
        cuts = 0
        for at, op in enumerate(ops):
            if at % bench.stride_of(len(ops)) == 0:
                for seed in range(CUTS):
                    starts += 1
                    async with bench.once(files=platter.after_a_cut((at, seed))) as after:
                        after.told = [reply for what, reply in said if what == "told"]
                        before = dict(paid for what, paid in said if what == "paid")
                        after.world.provider.paid.update(before)
                        after.world.provider.calls += [(key, Transfer(amount), 1) for key, amount in before.items()]
                        await after.ends_as(bench.whole)
                    cuts += 1
            platter.play(op)
            if isinstance(op, Note):
                said.append(op.said)
        assert cuts > 5


async def test_a_fold_that_a_lying_disk_lost_is_missed_at_the_next_start(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the sweep above: what was acknowledged is gone, or the store says so and does not start."""
    starts = 1
    monkeypatch.setattr("onefold.store.sqlite.file.boot", lambda: b"start %010d" % starts)
    bench = Bench(FOLDS[0], place)
    await bench.prepare()
    platter, missed = Platter.holding(bench.files(), lying=True), 0
    disk = FaultyDisk(platter)
    async with bench.once(disk) as one:
        await told_to_the_tape(one, disk)
    disk.close()
    for op in disk.tape.ops:
        platter.play(op)
    starts = 2
    for seed in range(8):
        try:
            async with bench.once(files=platter.after_a_cut(seed)) as after:
                await after.ends_as(bench.whole)
        except (AssertionError, OnefoldError):
            missed += 1
    assert missed > 2


@pytest.mark.parametrize("error, lasting", ERRORS)
async def test_wherever_the_disk_fails_in_a_fold_its_caller_hears_the_truth(
    bench: Bench, error: Any, lasting: bool
) -> None:
    at, stride, struck = 1, 0, True
    while struck:
        with faulty(bench) as (disk, _):
            async with bench.once(disk) as one:
                disk.fail(error, at=at, lasting=lasting)
                try:
                    await one.acts()
                except StoreUnavailable:
                    assert not one.told
                except OutcomeUnknown:
                    assert not one.told
                struck = disk.struck > 0
                stride = stride or bench.stride_of(max(disk.met, 30), 3)
                disk.heal()
                await one.ends_as(bench.whole)
        at += stride
    assert at > 1
