"""Killed at any point, by SIGKILL, each fact that was acknowledged is acted on under one key a unit, and told of once."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.example.automated import CUSTOMERS
from tests.example.shop import KILLED, PATIENCE_S, SEED, App, Died

LEASE_S = 60
TARGET = str(Path(__file__).parent / "automated.py")
POINTS = ("before-commit", "after-commit", "statement", "before-answer", "after-answer")
HITS = {"statement": 60, "before-answer": 1, "after-answer": 1}  # how often a fact meets the point, about; else 8


class Site:
    """The app, served from a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.app: App | None = None

    async def opens(self, *fuse: str) -> App:
        await self.ends()
        command = (KILLED, *fuse, "--", "serve", TARGET, "--listen", "127.0.0.1:0")
        app: App = await App.start(*command, folder=self.folder)
        self.app = app
        app.url = (await app.hears(r" serves \S+ on (http://\S+)"))[1]
        app.http = httpx2.AsyncClient(base_url=app.url, timeout=PATIENCE_S)
        return app

    async def tells(self, key: str) -> str | None:
        """Send a fact; its id, or None where the app died before it answered."""
        assert self.app is not None
        body = {"kind": "signal", "name": "sale", "payload": {"key": key}, "dedupeKey": key}
        try:
            told = await self.app.http.post("/facts", json=body)
        except httpx2.HTTPError:
            return None
        assert told.status_code == 202
        return str(told.json()["id"])

    async def items(self, path: str) -> Any:
        assert self.app is not None
        return (await self.app.http.get(path)).json()["items"]

    async def digested(self, count: int) -> None:
        """Returns when so many digests were sent."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.states() != ["settled"] * count:  # noqa: ASYNC110 - another process settles them
                await asyncio.sleep(0.02)

    async def states(self) -> list[str]:
        return [run["state"] for run in await self.items("/reflexes/shop.digest/runs")]

    def done(self, what: str) -> list[list[str]]:
        file = self.folder / "done"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split() for line in lines if line.startswith(f"{what} ")]

    async def ends(self) -> None:
        if self.app is not None:
            await self.app.http.aclose()
            await self.app.kill()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    one = Site(tmp_path)
    yield one
    await one.ends()


async def test_killed_anywhere_each_fact_is_acted_on_and_told_of_once(site: Site) -> None:
    chance = random.Random(f"{SEED} reflexes")
    await site.opens()
    for number, point in enumerate(POINTS):
        assert site.app is not None
        await site.app.arm(point, chance.randint(1, HITS.get(point, 8)))
        acknowledged = await site.tells(f"sale {number}")
        if acknowledged is not None:
            with suppress(Died):  # of its fuse
                await site.app.met()
        await site.opens()
        again = await site.tells(f"sale {number}")
        assert acknowledged in (None, again)
        await site.digested(number + 1)
    runs = await site.items("/reflexes/shop.thank/runs")
    assert [(run["state"], run["total"], run["done"]) for run in runs] == [("settled", CUSTOMERS, CUSTOMERS)] * len(
        POINTS
    )
    assert len({key for _, key, *_ in site.done("thank")}) == CUSTOMERS * len(POINTS)
    assert {tuple(rest) for _, _, *rest in site.done("digest")} == {(str(CUSTOMERS), "0")}
    assert len({key for _, key, *_ in site.done("digest")}) == len(POINTS)
    assert await site.items("/parked") == []


async def test_what_was_claimed_by_a_process_that_is_gone_is_taken_up_at_once(site: Site) -> None:
    app = await site.opens("before-commit", "6")
    await site.tells("sale")
    await app.ended()
    await site.opens()
    await site.tells("sale")
    async with asyncio.timeout(LEASE_S - 15):  # not after the lease of who is gone
        await site.digested(1)
    assert site.done("digest")


async def test_a_stop_is_clean_and_leaves_nothing_half_done(site: Site) -> None:
    app = await site.opens()
    for number in range(20):
        await site.tells(f"sale {number}")
    app.process.send_signal(signal.SIGTERM)
    assert await app.ended() == 0
    await site.opens()
    await site.digested(20)
    thanked = [key for _, key, *_ in site.done("thank")]
    assert len(thanked) == len(set(thanked)) == 20 * CUSTOMERS
