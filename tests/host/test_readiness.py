"""What a host says of itself to whoever probes it: whether it takes work, and by how much it is behind."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.store.contract import Query
from onefold.terms.errors import StoreUnavailable
from onefold.testing import staged
from onefold.testing.host_suite.vault import VAULT, Act, Courier


async def test_it_says_by_how_many_seconds_the_oldest_due_item_is_late() -> None:
    async with staged(VAULT, Courier().dedupes()) as stage:
        for vault, minutes in (("a", 10), ("b", 20)):
            await stage.host.deliver(VAULT, Act("1", vault, wake=minutes * 60_000), caller=stage.caller())
        await stage.host._core.driver.stop()  # nobody rings any more
        stage.clock.step_to(stage.clock.now() + 9 * 60_000)
        assert (await stage.host.ready())["oldest_overdue_seconds"] == 0.0
        stage.clock.step_to(stage.clock.now() + 12 * 60_000)
        assert await stage.host.ready() == {
            "ready": True,
            "store": "ok",
            "oldest_overdue_seconds": 11 * 60.0,
            "parked": 0,
        }


async def test_a_store_that_cannot_be_read_is_said_and_no_work_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(VAULT, Courier().dedupes()) as stage:
        (place, *_) = stage.host._core.places

        async def fails(query: Query) -> Any:
            raise StoreUnavailable("main", "the disk is gone")

        with monkeypatch.context() as patched:
            patched.setattr(type(place), "look", lambda self, query: fails(query))
            told = await stage.host.ready()
        assert (told["ready"], told["store"]) == (False, str(StoreUnavailable("main", "the disk is gone")))
        assert (await stage.host.ready())["ready"] is True
