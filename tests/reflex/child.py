"""A process that runs automations on a store of files until nothing is left to do, and dies where it is told to.

python -m tests.reflex.child FOLDER NOW_S PLACE

Each effect appends its unit to FOLDER/acted before it answers. PLACE: `row:200` dies while the 200th row is selected,
`unit:u237` while that unit's effect acts and others of its batch have, `each:u7` whenever that unit is run, `commit:3`
at the third commit, `none` never.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from onefold.reflex.engine import Engine
from onefold.reflex.seams import Task
from onefold.reflex.tables import LEDGER
from onefold.reflex.words import OnRun, OnSignal, Selection, Signal
from onefold.store.sqlite import SqliteWorld
from tests.reflex.ground import Act, reflex, shape

UNITS = 500
REFLEXES = [
    reflex(
        "charge",
        OnSignal("go"),
        effect="charge",
        select=Selection({}, "each", "id"),
        input={"$": "row.id"},
        base_ms=1_000,
    ),
    reflex("digest", OnRun("charge"), effect="digest", input={"$": "fact.stats"}),
]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Life:
    def __init__(self, folder: Path, place: str) -> None:
        self.folder = folder
        self.kind, _, self.what = place.partition(":")
        self._log = os.open(folder / "acted", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._commits = 0

    def fail(self, point: str) -> None:
        """Each commit of the store passes here."""
        self._commits += point == "before-commit"
        if self.kind == "commit" and self._commits == int(self.what):
            die()

    async def rows(self, query: Any, principal: Any, now: datetime) -> AsyncIterator[Any]:
        for n in range(UNITS):
            if self.kind == "row" and n == int(self.what):
                die()
            yield {"id": f"u{n}"}

    async def charge(self, task: Task, input: Any) -> Any:
        await asyncio.sleep(0)
        if self.kind in ("unit", "each") and input == self.what and (self.kind == "each" or task.attempt == 1):
            die()
        os.write(self._log, f"{input}\n".encode())
        task.emit(Signal("charged", input, dedupe_key=task.key))
        return input

    async def digest(self, task: Task, input: Any) -> Any:
        os.write(self._log, f"digest {input['done']} {input['failed']}\n".encode())


async def main(folder: Path, now: datetime, place: str) -> None:
    life = Life(folder, place)
    world = SqliteWorld(folder / "store", clock=lambda: 0, failpoint=life.fail, durability="lossy-on-power-cut")
    acts = {"charge": Act("charge", does=life.charge), "digest": Act("digest", does=life.digest)}
    engine = Engine(await world.open("main", [LEDGER]), transform=shape, select=life.rows, effects=acts)
    await engine.load([dict(one.definition) for one in REFLEXES], at=datetime(2026, 1, 1, tzinfo=UTC))
    await engine.ingest(Signal("go", None, dedupe_key="once"), now=now)
    while (await engine.advance(now)).moved:
        pass
    await world.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), datetime.fromtimestamp(int(sys.argv[2]), UTC), sys.argv[3]))
