"""Sweeps and folds begun in any order, and interleaved by the loop: what a committed row names is there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onefold.errors import NotFound
from onefold.kernel.blob import pointed
from onefold.kernel.tables import TURN
from onefold.terms.limits import BLOB_DELAY_MS, BLOB_GRACE_MS
from onefold.testing import Stage, staged
from tests.guarantees.documents import Printer, Write, documents, later, rows, settled, sweep_of

Act = tuple[str, int]
BYTES = (b"first", b"second")


class Race:
    """Acts are begun and not awaited. `kept`: blobs that were there when the row that names them was committed."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.caller = stage.caller("a")
        self.sweep = sweep_of(stage)
        self.going: list[asyncio.Future[None]] = []
        self.names: dict[int, str] = {}
        self.kept: set[str] = set()
        self.count = 0

    async def play(self, acts: list[Act]) -> None:
        does: dict[str, Callable[[int], Awaitable[None]]] = {
            "turn": self.turn,
            "hour": self.hour,
            "day": self.day,
        }
        begins: dict[str, Callable[[int], Coroutine[Any, Any, None]]] = {
            "put": self.put,
            "name": self.name,
            "reply": self.reply,
            "sweep": self.round,
            "forget": self.forget,
        }
        for n in range(len(BYTES)):
            await self.put(n)
        for act, n in acts:
            if act in does:
                await does[act](n)
            else:
                self.going.append(asyncio.ensure_future(begins[act](n)))
        await asyncio.gather(*self.going)
        await settled(self.stage)
        await self.holds()

    async def holds(self) -> None:
        """Nothing that a row names is gone, now and after any number of sweeps."""
        for _ in range(3):
            for name in self.kept:
                assert await self.stage.host.blobs_get(name, caller=self.caller) in BYTES
            for row in await rows(self.stage, TURN):
                reply = row[TURN.at["reply"]]
                if isinstance(reply, bytes) and (wanted := pointed(reply)) is not None:
                    assert len(await self.stage.host._core.blobs["main"].fetch("a", wanted)) >= 5_000
            later(self.stage, BLOB_GRACE_MS)
            await sweep_of(self.stage).round()

    def id(self) -> str:
        self.count += 1
        return f"e{self.count}"

    async def turn(self, n: int) -> None:
        for _ in range(1 + n):
            await asyncio.sleep(0)

    async def hour(self, n: int) -> None:
        later(self.stage, BLOB_DELAY_MS)

    async def day(self, n: int) -> None:
        later(self.stage, BLOB_GRACE_MS)

    async def put(self, n: int) -> None:
        self.names[n] = await self.stage.host.blobs_put(BYTES[n % 2], caller=self.caller)

    async def name(self, n: int) -> None:
        name = self.names[n % 2]
        event = Write(self.id(), "d", text=name)
        await self.stage.host.deliver(documents, event, caller=self.caller)
        try:
            await self.stage.host.blobs_get(name, caller=self.caller)
        except NotFound:
            return  # it was gone before: whoever names a blob a day after it was put may be too late
        self.kept.add(name)

    async def reply(self, n: int) -> None:
        event = Write(self.id(), "d", reply=5_000 + n % 2)
        assert len(await self.stage.host.deliver(documents, event, caller=self.caller)) == 4_998 + n % 2

    async def round(self, n: int) -> None:
        self.sweep._rests_until = 0
        await self.sweep.round()

    async def forget(self, n: int) -> None:
        await self.stage.host.sweep(replies=0, caller=self.stage.caller())


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["put", "name", "name", "reply", "sweep", "sweep", "hour", "day", "forget", "turn", "turn"]),
        st.integers(0, 3),
    ),
    max_size=20,
)
CONDEMNED: list[Act] = [("day", 0), ("sweep", 0), ("turn", 3), ("turn", 3), ("turn", 3), ("hour", 0)]


@pytest.mark.parametrize("store", ["memory", "files"])
@settings(max_examples=15 if not os.environ.get("CI") else 300)
@given(acts=ACTS)
@example(acts=[*CONDEMNED, ("sweep", 0), ("name", 0)])
@example(acts=[*CONDEMNED, ("name", 0), ("sweep", 0)])
@example(acts=[*CONDEMNED, ("name", 0), ("turn", 1), ("sweep", 0)])
@example(acts=[*CONDEMNED, ("sweep", 0), ("turn", 1), ("name", 0), ("name", 1)])
@example(acts=[*CONDEMNED, ("sweep", 0), ("turn", 0), ("reply", 0), ("forget", 0), ("reply", 0)])
def test_sweeps_racing_folds_never_take_what_a_row_names(
    store: str, acts: list[Act], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path | str = "memory:" if store == "memory" else tmp_path_factory.mktemp("race")
    values = None if store == "memory" else {"blobs": "files"}

    async def play() -> None:
        async with staged(documents, Printer().port(), store=folder, settings=values) as stage:
            stage.host._core.driver.janitor = lambda: False
            await Race(stage).play(acts)

    asyncio.run(play())
