"""On Postgres the example keeps the same promises: killed at any point it refunds once, also where its server restarts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from tests.example.caller import TOOL, Order, agree, alive, ask, ask_as_agent, whole
from tests.example.ledger import Ledger
from tests.example.shop import SEED, Died, Shop, shop
from tests.postgres import Server

# The other points are the host's alone, and met on files.
POINTS = {"before-commit": 7, "after-commit": 7, "statement": 90, "after-send": 1}  # hits in one refund, at the least

OpenOn = Callable[[str], AbstractAsyncContextManager[Shop]]


@pytest.fixture
def open_on(tmp_path: Path) -> OpenOn:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Shop]:
        async with shop(tmp_path) as one:
            one.environ |= {"ONEFOLD_STORE": url, "ONEFOLD_SECRET": "known to every test, and of no use"}
            await one.opens()
            yield one

    return opened


async def comes_out_right(shop: Shop, ledger: Ledger, order: Order) -> None:
    receipt = await whole(shop, ledger, order)
    table = (await shop.app.http.get(f"/tools/{TOOL}/tables/refunds")).json()
    (row,) = [row for row in table["rows"] if row[0] == order.id]
    assert (row[1], row[-1]) == (receipt["run_id"], receipt["result"]["refund_id"])
    await ledger.agrees(shop)


async def test_killed_at_any_point_it_refunds_once(open_on: OpenOn, postgres: str) -> None:
    ledger, chance, killed = Ledger(), random.Random(SEED), 0
    order = Order("first", "40")
    async with open_on(postgres) as one:
        for point, most in POINTS.items():
            hit = chance.randint(1, most)
            order = Order(f"{point}-{hit}", "150")
            await one.app.arm(point, hit)
            try:
                await whole(one, ledger, order)
            except Died:
                assert await one.app.ended() == -9, one.app.said
                killed += 1
                await one.opens()
            await one.app.arm("nothing", 1)
            await comes_out_right(one, ledger, order)
        assert (await ask_as_agent(one, ledger, order, "auto"))["status"] == "done"
    assert killed == len(POINTS)
    with psycopg.connect(postgres) as conn:
        assert conn.execute("select count(*) from onefold_refund_order.refunds").fetchone() == (len(POINTS),)


@pytest.mark.parametrize("how", ["immediate"])
async def test_its_server_restarts_in_the_middle(open_on: OpenOn, how: str) -> None:
    ledger = Ledger()
    done, waiting, late = Order("done", "40"), Order("waiting", "150"), Order("late", "40")
    with Server() as server:
        async with open_on(server.url()) as one:
            receipt = await whole(one, ledger, done)
            await ask(one, ledger, waiting, wait=0)
            await one.app.outlives(one.post.asks(waiting.id))
            await asyncio.to_thread(server.stop, how)
            headers = {"idempotency-key": late.key, "prefer": "wait=0"}
            refused = await alive(one, "POST", f"/tools/{TOOL}", json=late.arguments, headers=headers)
            assert (refused.status_code, refused.json()["retry"]) == (503, "same"), refused.text
            assert not (await one.app.http.get("/readyz")).json()["ready"]
            await asyncio.to_thread(server.start)
            assert await whole(one, ledger, done) == receipt
            await agree(one, ledger, waiting)
            for order in (waiting, late, done):
                await comes_out_right(one, ledger, order)
