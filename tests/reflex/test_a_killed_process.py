"""A real process, killed with -9 in the midst of it: whoever comes next ends what it began, and nothing counts twice."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from onefold.reflex.claim import CLAIMS_AT_MOST
from onefold.reflex.tables import INTAKE, LEDGER, REFLEX_RUN, TASK
from onefold.store.contract import Query, Table
from onefold.store.sqlite import SqliteWorld
from tests.reflex.child import UNITS

ROOT = Path(__file__).resolve().parents[2]
BEGIN = 1_772_323_200  # 2026-03-01T00:00:00Z, in s
LEASE_S = 120


async def live(folder: Path, now: int, place: str) -> int:
    """One process from its start to its end. Returns: its exit status."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.reflex.child", str(folder), str(now), place, cwd=ROOT
    )
    return await child.wait()


class Left:
    """What the processes left behind."""

    def __init__(self, acted: list[str], rows: dict[str, list[dict[str, Any]]]) -> None:
        self.units = Counter(line for line in acted if line.startswith("u"))
        self.digests = [line for line in acted if line.startswith("digest")]
        self.runs, self.tasks, self.facts = rows["reflex_run"], rows["task"], rows["intake"]
        (self.charge,) = [run for run in self.runs if run["reflex"] == "charge"]
        self.charged = [task for task in self.tasks if task["reflex"] == "charge"]


async def left(folder: Path) -> Left:
    world = SqliteWorld(folder / "store", clock=lambda: 0)
    space = await world.open("main", [LEDGER])
    rows = {}
    for table in (REFLEX_RUN, TASK, INTAKE):
        rows[table.name] = await _rows(space, table)
    await world.close()
    acted = (folder / "acted").read_text().splitlines() if (folder / "acted").exists() else []
    return Left(acted, rows)


async def _rows(space: Any, table: Table) -> list[dict[str, Any]]:
    (found,) = await space.look(Query(table, order=table.key))
    return [dict(zip(table.at, row, strict=True)) for row in found]


@pytest.mark.parametrize(
    "at,twice",
    [("row:200", 0), ("commit:4", 0), ("commit:6", 100), ("unit:u237", 100)],
    ids=["mid-fan-out", "before the tasks", "before a record", "mid-batch"],
)
async def test_a_kill_in_the_midst_loses_nothing_and_counts_nothing_twice(at: str, twice: int, place: Path) -> None:
    """Only what was in flight acts twice, and then under the same key."""
    assert await live(place, BEGIN, at) == -signal.SIGKILL
    assert await live(place, BEGIN + LEASE_S, "none") == 0
    found = await left(place)
    assert found.units.keys() == {f"u{n}" for n in range(UNITS)}
    assert sum(found.units.values()) <= UNITS + twice
    assert max(found.units.values()) <= 2
    assert (found.charge["state"], found.charge["done"], found.charge["failed"]) == ("settled", UNITS, 0)
    assert [task["state"] for task in found.charged] == ["done"] * UNITS
    assert found.digests == [f"digest {UNITS} 0"]
    charged = [fact for fact in found.facts if fact["subject"] == "charged"]
    assert len(charged) == UNITS


async def test_a_unit_that_kills_its_process_is_parked_and_takes_nobody_along(place: Path) -> None:
    deaths, now = 0, BEGIN
    while (status := await live(place, now, "each:u7")) != 0:
        assert status == -signal.SIGKILL
        deaths += 1
        assert deaths <= CLAIMS_AT_MOST
        now += LEASE_S
    now += LEASE_S
    assert await live(place, now, "each:u7") == 0
    found = await left(place)
    assert deaths == CLAIMS_AT_MOST
    assert (found.charge["state"], found.charge["done"], found.charge["failed"]) == ("settled", UNITS - 1, 1)
    assert [task["unit"] for task in found.charged if task["state"] != "done"] == ["u7"]
    (parked,) = [task for task in found.charged if task["state"] == "parked"]
    assert "never answered" in parked["error"]
    assert found.digests == [f"digest {UNITS - 1} 1"]
