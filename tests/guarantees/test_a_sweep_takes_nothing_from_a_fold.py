"""Sweeps and folds begun in any order, and interleaved by the loop: what a committed row names is there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onefold.errors import BlobDamaged, NotFound
from onefold.kernel.blob import BLOB, Spill, address_of, digest_text, pointed
from onefold.kernel.tables import TURN
from onefold.node.blob_sweep import BlobSweep, _Plan
from onefold.store.contract import Last, Query, Remove, Row
from onefold.terms.codec import digest
from onefold.terms.limits import BLOB_DELAY_MS, BLOB_GRACE_MS
from onefold.testing import Stage, staged
from tests.guarantees.documents import Printer, Write, documents, later, rows, settled, sweep_of

Act = tuple[str, int]
BYTES = (b"first", b"second")


class Race:
    """Acts are begun and not awaited. `kept`: blobs that were there when a fold that names them was decided."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.caller = stage.caller("a")
        self.sweep = sweep_of(stage)
        self.going: list[asyncio.Future[None]] = []
        self.names: dict[int, str] = {}
        self.kept: set[str] = set()
        self.count = 0
        self.blobs = stage.host._core.blobs["main"]
        self.decided = self.blobs.about_to_commit
        vars(self.blobs)["about_to_commit"] = self.about_to_commit

    def about_to_commit(self, spills: Sequence[Spill], refs: Sequence[Row]) -> None:
        """Whether the blobs that this fold names are there now, from the rows and without a turn of the loop."""
        self.decided(spills, refs)
        space: Any = self.blobs.space
        engine = space.engine if hasattr(space, "engine") else space._engine
        there = {row[BLOB.at["address"]] for row in engine.run(Query(BLOB))}
        names = {address_of("a", digest(data)): digest_text(digest(data)) for data in BYTES}
        self.kept.update(names[ref[0]] for ref in refs if ref[0] in names and ref[0] in there)

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
@settings(max_examples=10 if not os.environ.get("CI") else 300)
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


# --- and the race has teeth ------------------------------------------------------------------------------------


class AsksBeforehand(BlobSweep):
    """Believes in the transaction what it saw before it."""

    def _body(self, doubtful: Any, away: set[Any], now: int) -> Any:
        gone = [row for row in doubtful if row[BLOB.at["condemned"]] is not None]
        if not gone:
            return (yield from super()._body(doubtful, away, now))
        yield ()
        return Last((Remove(BLOB, keys=[(row[0],) for row in gone]),), _Plan(gone=gone))


class TakesAtOnce(BlobSweep):
    """Removes what it condemns, however lately it was put."""

    def _body(self, doubtful: Any, away: set[Any], now: int) -> Any:
        yield ()
        return Last((Remove(BLOB, keys=[(row[0],) for row in doubtful]),), _Plan(gone=list(doubtful)))


@pytest.mark.parametrize("twin", [AsksBeforehand, TakesAtOnce])
async def test_a_sweep_that_does_not_ask_again_is_found_out(twin: type[BlobSweep]) -> None:
    async with staged(documents, Printer().port()) as stage:
        stage.host._core.driver.janitor = lambda: False
        race = Race(stage)
        race.sweep = twin(race.sweep._blobs, race.sweep._look)
        early: list[Act] = [("day", 0), ("name", 0), ("sweep", 0)]
        with pytest.raises((NotFound, BlobDamaged)):
            await race.play(early if twin is TakesAtOnce else [*CONDEMNED, ("name", 0), ("sweep", 0)])
