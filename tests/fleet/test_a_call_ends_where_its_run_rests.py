"""A wait for a run ends where the run rests for somebody, whichever node is asked and whatever it rested at before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from onefold import Receipt, Run, actuator
from tests.contracts.backends import store_of
from tests.fleet.served import SECRET, nodes

PATIENCE_MS = 60_000  # what is waited for comes much sooner, or not at all
LOOKS = 500


class Said(BaseModel):
    word: str


@actuator
async def asks(run: Run) -> str:
    """Sleep a little, then ask."""
    await run.sleep("300 ms")
    return (await run.wait_for_event(Said)).word


@actuator
async def asks_at_once(run: Run) -> str:
    return (await run.wait_for_event(Said)).word


async def rests(receipt: Receipt[str], kind: str) -> None:
    for _ in range(LOOKS):
        if [wait.kind for wait in (await receipt.refresh()).waits] == [kind]:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"no {kind}: {await receipt.refresh()}")


@pytest.fixture(params=("sqlite", "postgres"))
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    return store_of(request.param, tmp_path)


async def test_a_run_that_slept_when_it_was_first_looked_at_is_told_once_it_asks(store: str) -> None:
    async with nodes(store, asks) as apps:
        for number, app in enumerate(apps):
            receipt = await app.start(asks, key=f"k{number}")
            await rests(receipt, "sleep")
            async with asyncio.timeout(PATIENCE_MS / 4_000):
                shown = await app.host.receipt(receipt.run_id, wait_ms=PATIENCE_MS, caller=app.caller)
            assert [wait.kind for wait in shown.waits] == ["event"], shown


async def test_a_run_that_asks_before_the_first_look_is_told_to_whom_it_was_shown_at_its_start(store: str) -> None:
    async with nodes(store, asks_at_once) as apps:
        for number, app in enumerate(apps):
            started = await app.host.start("asks_at_once", {}, key=f"k{number}", caller=app.caller)
            running = replace(started.receipt, status="running", waits=())  # from afar it may ask by now
            receipt = await app.receipt(running.run_id)
            await rests(receipt, "event")
            async with asyncio.timeout(PATIENCE_MS / 4_000):
                shown = await app.host.receipt(receipt.run_id, wait_ms=PATIENCE_MS, seen=running, caller=app.caller)
            assert [wait.kind for wait in shown.waits] == ["event"], shown
