"""A thousand spaces at rest: a start glances at each file once, activates nobody, and no beat opens one again.

Counted in openings and statements: what a start costs on a busy machine says nothing.
"""

from __future__ import annotations

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


def multiply(store: Path, count: int) -> None:
    """The first tool's file for every other, under its own name: all names have one length."""
    raw = (store / "tool_0000.db").read_bytes()
    for number in range(1, count - 1):
        name = f"tool_{number:04}"
        (store / f"{name}.db").write_bytes(raw.replace(b"tool_0000", name.encode()))


@asynccontextmanager
async def at_rest(store: Path, count: int = COUNT, **settings: Any) -> AsyncIterator[tuple[Stage, str]]:
    """So many waiting runs, a space each, and nobody has them open; the run of the last, which is due first."""
    parts = [tool(number) for number in range(count)]
    async with staged(*parts, store=store, settings=settings) as stage:
        await waits(stage, 0, timedelta(days=1))
        soon = await waits(stage, count - 1, timedelta(minutes=6))
        await stage.close()
        multiply(store, count)
        yield stage, soon


def of_tools(disk: FaultyDisk) -> Counter[str]:
    return Counter({name: many for name, many in disk.opened.items() if name.startswith("tool_")})


async def test_a_start_glances_at_each_file_once_and_a_beat_at_none(
    place: Path, disk: FaultyDisk, statements: Statements
) -> None:
    async with at_rest(place) as (stage, soon):
        disk.opened.clear()
        statements.count = 0
        await stage.open()
        await stage.settle()
        spaces = of_tools(disk)
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

        await stage.advance("2m")
        due = f"tool_{COUNT - 1:04}"
        assert set(disk.opened) == {f"{due}.db", f"{due}.db-wal", f"{due}.mark"}
        assert (await stage.host.receipt(soon, caller=stage.caller())).status == "done"
        assert stage.host.resident_count == 1


async def test_who_asks_for_the_apps_health_again_opens_no_file(place: Path, disk: FaultyDisk) -> None:
    async with at_rest(place, 40) as (stage, _):
        await stage.open()
        await stage.settle()
        first = await stage.host.ready()
        disk.opened.clear()
        assert await stage.host.ready() == first
        assert disk.opened == {}


async def test_a_sweep_at_each_beat_opens_no_file_at_rest_again(place: Path, disk: FaultyDisk) -> None:
    async with at_rest(place, 40, retention={"runs": "365 days"}) as (stage, _):
        disk.opened.clear()
        await stage.open()
        await stage.advance("1m")
        assert len(of_tools(disk)) == 40
        disk.opened.clear()
        await stage.advance("4m")
        assert of_tools(disk) == {}


async def test_a_call_is_answered_while_a_start_still_looks_at_its_spaces(place: Path, disk: FaultyDisk) -> None:
    async with at_rest(place) as (stage, _):
        disk.opened.clear()
        await stage.open()
        arguments = {"at": (stage.clock.moment + timedelta(days=2)).isoformat()}
        await stage.host.start(f"tool_{COUNT - 1:04}", arguments, caller=stage.caller())
        assert len(of_tools(disk)) < COUNT // 2
