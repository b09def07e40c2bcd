"""Promises 1, 2, 3 and 10 at each SQL statement of a fold: dead before it, dead after it, or refused by the disk.

What is left is what some whole number of commits made, to the byte. What was told is there. The same again tells
the same, the end is the end of a life without a fault, and what leaves, leaves under one key with one content.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from onefold.terms.errors import OutcomeUnknown, StoreUnavailable
from onefold.testing import Killed, Stage, staged
from tests.guarantees.folds import FOLDS, Dump, Fold, Told, World, dump, until_dead_or_done

DEEP = os.environ.get("ONEFOLD_DEEP") == "1"
PLACES = 8  # of all the statements of a fold, where not all of them are tried
POINTS = ("statement", "before-commit", "after-commit")


class Try:
    """One try of a fold over a copy of what was prepared for it."""

    def __init__(self, fold: Fold, stage: Stage, folder: Path, world: World) -> None:
        self.fold, self.stage, self.folder, self.world = fold, stage, folder, world
        self.points = self.commits = 0
        self.told: Told = []

    def watch(self, fault: BaseException | None = None, at: int = 0, *, only: str = "", lasting: bool = True) -> None:
        """Count the points of the store; raise `fault` at the `at`-th, and at all that come after it if it lasts."""

        def point(name: str) -> None:
            if name not in POINTS:
                if lasting and fault is not None and self.points >= at:
                    raise fault
                return
            self.commits += name == "after-commit"
            self.points += only in ("", name)
            if fault is not None and (self.points >= at if lasting else self.points == at and only in ("", name)):
                raise fault

        self.stage.failpoint = point

    async def acts(self) -> None:
        await self.fold.act(self.stage, self.told)

    async def dies(self, at: int, only: str = "") -> bool:
        """Whether it died before it was done with everything."""
        self.watch(Killed("here"), at, only=only)
        attempt = asyncio.ensure_future(self.acts())
        await until_dead_or_done(self.stage, attempt, lambda: self.points >= at)
        dead = self.points >= at
        await self.stage.let_die()
        self.stage.live_on()
        return dead

    async def ends_as(self, whole: Try) -> None:
        """Done again, it tells the same, and comes to the same end."""
        before = list(self.told)
        await self.acts()
        await self.stage.advance("1m")
        assert before == whole.told[: len(before)], "told something else"
        assert self.told[len(before) :] == whole.told, "told something else the second time"
        assert await self.fold.came_of_it(self.stage) == whole.end
        calls = self.world.provider.calls
        assert {(key, body) for key, body, _ in calls} == {(key, body) for key, body, _ in whole.world.provider.calls}
        assert self.world.provider.paid == whole.world.provider.paid

    end: Any = None


@pytest.fixture(params=FOLDS, ids=lambda fold: fold.name)
def fold(request: pytest.FixtureRequest) -> Fold:
    return request.param  # type: ignore[no-any-return]


class Bench:
    """A fold, prepared; tries of it, and the one that met no fault."""

    def __init__(self, fold: Fold, place: Path) -> None:
        self.fold, self.place = fold, place
        self.prepared = place / "prepared"
        self.whole: Any = None
        self._states: dict[int, Dump] = {}
        self._count = 0

    @asynccontextmanager
    async def once(self) -> AsyncIterator[Try]:
        self._count += 1
        folder = self.place / str(self._count)
        shutil.copytree(self.prepared, folder)
        world = World()
        async with staged(*self.fold.parts(world), store=folder, seed=2) as stage:
            await stage.settle()
            yield Try(self.fold, stage, folder, world)
        shutil.rmtree(folder)

    async def prepare(self) -> None:
        async with staged(*self.fold.parts(World()), store=self.prepared, seed=1) as stage:
            await self.fold.prepare(stage)
        async with self.once() as whole:
            self._states[0] = dump(whole.folder)
            whole.watch()
            await whole.acts()
            whole.stage.live_on()
            await whole.stage.advance("1m")
            whole.end = await self.fold.came_of_it(whole.stage)
            self.whole = whole

    @property
    def stride(self) -> int:
        return 1 if DEEP else 1 + self.whole.points // PLACES

    async def after(self, commits: int) -> Dump:
        """What so many commits leave behind them: the files of one that died as soon as the last of them was done."""
        if commits not in self._states:
            async with self.once() as one:
                assert await one.dies(commits, "after-commit")
                self._states[commits] = dump(one.folder)
                await one.stage.open()
        return self._states[commits]


@pytest.fixture
async def bench(fold: Fold, place: Path) -> Bench:
    one = Bench(fold, place)
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
