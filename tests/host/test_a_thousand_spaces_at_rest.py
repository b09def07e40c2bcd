"""A thousand spaces at rest: a start glances at each file once, activates nobody, and no beat opens one again.

Counted in openings and statements: what a start costs on a busy machine says nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from pydantic import BaseModel

from onefold import Actuator, Run, actuator
from onefold.store.sqlite import SqliteWorld
from onefold.testing import Stage, staged
from onefold.testing.faulty_disk import FaultyDisk

COUNT = 1_000
DUE = COUNT - 1  # the one that has something to do first


class Due(BaseModel):
    at: datetime


def tool(number: int) -> Actuator[Due, str]:
    @actuator(name=f"tool_{number:04}")
    async def tool(run: Run, due: Due) -> str:
        """Wait, and be done."""
        await run.sleep_until(due.at)
        return "done"

    return tool


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyDisk]:
    one = FaultyDisk()

    def make_world(config: Any, clock: Any, **more: Any) -> SqliteWorld:
        return SqliteWorld(config.folder, clock=clock.now, disk=one)

    monkeypatch.setattr("onefold.testing.stage.make_world", make_world)
    yield one
    one.close()


class Statements:
    """How many statements were run, on any connection."""

    count = 0

    def __call__(self, connection: apsw.Connection) -> None:
        connection.exec_trace = self.counts

    def counts(self, cursor: apsw.Cursor, text: str, values: Any) -> bool:
        self.count += 1
        return True


@pytest.fixture
def statements() -> Iterator[Statements]:
    one = Statements()
    apsw.connection_hooks.append(one)
    yield one
    apsw.connection_hooks.remove(one)


async def waits(stage: Stage, number: int, for_: timedelta) -> str:
    arguments = {"at": (stage.clock.moment + for_).isoformat()}
    started = await stage.host.start(f"tool_{number:04}", arguments, caller=stage.caller())
    await stage.settle()
    return started.receipt.run_id


def multiply(store: Path) -> None:
    """The first tool's file for every other, under its own name: all names have one length."""
    raw = (store / "tool_0000.db").read_bytes()
    for number in range(1, DUE):
        name = f"tool_{number:04}"
        (store / f"{name}.db").write_bytes(raw.replace(b"tool_0000", name.encode()))


@asynccontextmanager
async def at_rest(store: Path) -> AsyncIterator[tuple[Stage, str]]:
    """A thousand waiting runs, a space each, and nobody has them open; the run that is due first."""
    parts = [tool(number) for number in range(COUNT)]
    async with staged(*parts, store=store) as stage:
        await waits(stage, 0, timedelta(days=1))
        soon = await waits(stage, DUE, timedelta(minutes=6))
        await stage.close()
        multiply(store)
        yield stage, soon


async def test_a_start_glances_at_each_file_once_and_a_beat_at_none(
    place: Path, disk: FaultyDisk, statements: Statements
) -> None:
    async with at_rest(place) as (stage, soon):
        disk.opened.clear()
        statements.count = 0
        await stage.open()
        await stage.settle()
        spaces = Counter({name: many for name, many in disk.opened.items() if name.startswith("tool_")})
        assert set(spaces.values()) == {1}
        assert len(spaces) == COUNT
        assert {name.partition(".")[2] for name in spaces} == {"db"}, "a glance leaves no WAL and no mark"
        assert stage.host.resident_count == 0
        assert statements.count < 2 * COUNT + 200

        disk.opened.clear()
        statements.count = 0
        await stage.advance("5m")
        assert disk.opened == {}
        assert statements.count < 11 * 10  # beats: each asks the space that is open
        await stage.host.ready()
        statements.count = 0
        disk.opened.clear()
        await stage.host.ready()
        assert disk.opened == {}, "who asks for the app's health opens no file either"

        await stage.advance("2m")
        assert set(disk.opened) == {f"tool_{DUE:04}.db", f"tool_{DUE:04}.db-wal", f"tool_{DUE:04}.mark"}
        assert (await stage.host.receipt(soon, caller=stage.caller())).status == "done"
        assert stage.host.resident_count == 1


async def test_callers_are_let_through_while_a_start_looks_at_its_spaces(place: Path, disk: FaultyDisk) -> None:
    async with at_rest(place) as (stage, _):
        disk.opened.clear()
        await stage.open()
        await asyncio.wait_for(waits(stage, DUE, timedelta(days=2)), 20)
        assert stage.host.resident_count >= 1
