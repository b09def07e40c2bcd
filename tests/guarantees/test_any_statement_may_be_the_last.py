"""Promises 1, 2, 3 and 10 at each SQL statement of a fold: dead before it, dead after it, or refused by the disk.

What is left is what some whole number of commits made, to the byte. What was told is there. The same again tells
the same, the end is the end of a life without a fault, and what leaves, leaves under one key with one content.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from onefold.terms.errors import OutcomeUnknown, StoreUnavailable
from tests.guarantees.folds import FOLDS, dump
from tests.guarantees.tries import Bench


@pytest.fixture(params=FOLDS, ids=lambda fold: fold.name)
async def bench(request: pytest.FixtureRequest, place: Path) -> Bench:
    one = Bench(request.param, place)
    await one.prepare()
    return one


async def test_dead_at_any_statement_a_fold_is_whole_or_absent_and_counts_once(bench: Bench) -> None:
    at, dead = 1, True
    while dead:
        async with bench.once() as one:
            dead = await one.dies(at)
            if dead:
                assert dump(one.folder) == await bench.after(one.commits), f"half of a fold at {at}"
            await one.stage.open()
            await one.ends_as(bench.whole)
        at += bench.stride
    assert at > bench.whole.points


async def test_refused_at_any_statement_a_fold_leaves_the_store_as_it_was(bench: Bench) -> None:
    at, struck = 1, True
    while struck:
        async with bench.once() as one:
            one.watch(OSError(errno.EIO, os.strerror(errno.EIO)), at, lasting=False)
            try:
                await one.acts()
            except StoreUnavailable:
                assert one.commits == 0 or not one.told
                if one.commits == 0:
                    assert dump(one.folder) == await bench.after(0), f"refused, and not as it was, at {at}"
            except OutcomeUnknown:
                assert one.commits > 0
            struck = one.points >= at
            one.stage.live_on()
            await one.ends_as(bench.whole)
        at += bench.stride
    assert at > bench.whole.points
