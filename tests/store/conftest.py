"""What several files of this folder are run under."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onefold.store.sqlite.space import SqliteSpace
from tests.store.company import BOTH, world_of
from tests.store.life import Life


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def company(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test once for a process that has its file alone, and once for one of several."""
    monkeypatch.setattr(Life, "shared", request.param)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[SqliteSpace, SqliteSpace]]:
    worlds = [world_of(tmp_path, node=node) for node in ("one", "two")]
    one, other = [await world.open("main", BOTH) for world in worlds]
    yield one, other
    for world in worlds:
        world.abandon()
