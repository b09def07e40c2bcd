"""Tries of a fold: each over a copy of what was prepared for it, on any disk, with a fault at any place."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from onefold.store.sqlite import SqliteWorld
from onefold.store.sqlite.disk import Disk
from onefold.testing import Killed, Stage, staged
from tests.guarantees.folds import Dump, Fold, Told, World, dump, until_dead_or_done

DEEP = bool(os.environ.get("ONEFOLD_DEEP"))  # every place, not a sample of them
PLACES = 8  # of a fold, where not all of them are tried
POINTS = ("statement", "before-commit", "after-commit")


@contextmanager
def on(disk: Disk | None) -> Iterator[None]:
    """Stages that open within have their files on this disk."""

    def make_world(config: Any, clock: Any, *, failpoint: Any) -> SqliteWorld:
        return SqliteWorld(config.folder, clock=clock.now, failpoint=failpoint, disk=disk)

    with pytest.MonkeyPatch.context() as patch:
        if disk is not None:
            patch.setattr("onefold.testing.stage.make_world", make_world)
        yield


class Try:
    """One try of a fold over a copy of what was prepared for it."""

    def __init__(self, fold: Fold, stage: Stage, folder: Path, world: World) -> None:
        self.fold, self.stage, self.folder, self.world = fold, stage, folder, world
        self.points = self.commits = 0
        self.told: Told = []
        self.end: Any = None  # of the one that met no fault

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
        end = await self.fold.came_of_it(self.stage)
        assert end == whole.end, f"came to {end}, and not to {whole.end}"
        calls = self.world.provider.calls
        assert {(key, body) for key, body, _ in calls} == {(key, body) for key, body, _ in whole.world.provider.calls}
        assert self.world.provider.paid == whole.world.provider.paid


class Bench:
    """A fold, prepared; tries of it, and the one that met no fault."""

    def __init__(self, fold: Fold, place: Path) -> None:
        self.fold, self.place = fold, place
        self.prepared = place / "prepared"
        self.whole: Any = None
        self._states: dict[int, Dump] = {}
        self._count = 0

    @asynccontextmanager
    async def once(self, disk: Disk | None = None, files: Mapping[str, bytes] | None = None) -> AsyncIterator[Try]:
        """A try on this disk, over these files; over what was prepared where nothing else is said."""
        self._count += 1
        folder = self.place / str(self._count)
        folder.mkdir()
        shutil.copy2(self.prepared / "secret", folder)  # not of the store, and synced when it was made
        for name, content in (self.files() if files is None else files).items():
            (folder / name).write_bytes(content)
        world = World()
        with on(disk):
            async with staged(*self.fold.parts(world), store=folder, seed=2) as stage:
                yield Try(self.fold, stage, folder, world)
        shutil.rmtree(folder)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.prepared.iterdir() if path.name != "secret"}

    async def prepare(self) -> None:
        async with staged(*self.fold.parts(World()), store=self.prepared, seed=1) as stage:
            await self.fold.prepare(stage)
        async with self.once() as whole:
            await whole.stage.settle()
            self._states[0] = dump(whole.folder)
            whole.watch()
            await whole.acts()
            whole.stage.live_on()
            await whole.stage.advance("1m")
            whole.end = await self.fold.came_of_it(whole.stage)
            self.whole = whole

    @property
    def stride(self) -> int:
        return self.stride_of(self.whole.points)

    @staticmethod
    def stride_of(places: int, tried: int = PLACES) -> int:
        return 1 if DEEP else 1 + places // tried

    async def after(self, commits: int) -> Dump:
        """What so many commits leave behind them: the files of one that died as soon as the last of them was done."""
        if commits not in self._states:
            async with self.once() as one:
                assert await one.dies(commits, "after-commit")
                self._states[commits] = dump(one.folder)
                await one.stage.open()
        return self._states[commits]
