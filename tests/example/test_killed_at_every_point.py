"""Killed at any point, by SIGKILL, the example refunds once, asks once, and answers the same."""

from __future__ import annotations

import asyncio
import itertools
import random
from pathlib import Path

import pytest

from tests.example.caller import Order, ask, ask_as_agent, whole
from tests.example.ledger import Ledger, left
from tests.example.shop import SEED, Died, Shop, shop

# Two at a time, each in a shop of its own: while one process starts, the other is killed.
POINTS = [
    ("before-commit", "after-commit"),
    ("before-send", "after-send"),
    ("step-returned", "before-reply"),
    ("before-answer", "after-answer"),
]
STATEMENTS, FRESH, STARTS = (
    6,
    3,
    3,
)  # of some 70 in one refund, some 70 in a first call, 12 in a start with nothing to do
NEVER = 10**9


async def killed_in_the_middle(shop: Shop, ledger: Ledger, order: Order, point: str, hit: int) -> bool:
    """One refund, killed at the hit. Whether the point was met so often."""
    await shop.app.arm(point, hit)
    try:
        await whole(shop, ledger, order)
        assert await shop.app.met() < hit
        await shop.app.arm("nothing", 1)
    except Died:
        assert await shop.app.ended() == -9, shop.app.said
        return True
    return False


async def goes_on_by_itself(shop: Shop, ledger: Ledger, order: Order) -> None:
    """Open again over what the kill left. Nobody calls, and what was accepted goes on."""
    found = left(shop.store, order.key)
    assert found.there or order.key not in ledger.receipts
    assert "Approval" in found.facts or order.key not in ledger.decided
    await shop.opens()
    if found.there and order.big:
        await shop.app.outlives(shop.post.asks(order.id))
    if found.there and ("Approval" in found.facts or not order.big):
        await shop.app.outlives(shop.provider.paid(order.arguments["bill_id"]))


async def comes_out_right(shop: Shop, ledger: Ledger, order: Order, mode: str) -> None:
    """The same key again, over HTTP and over MCP: one run, one answer, one refund, one notice."""
    receipt = await whole(shop, ledger, order)
    assert await ask_as_agent(shop, ledger, order, mode) == receipt
    table = (await shop.app.http.get("/tools/refund_order/tables/refunds")).json()
    (row,) = [row for row in table["rows"] if row[0] == order.id]
    assert (row[1], row[-1]) == (receipt["run_id"], receipt["result"]["refund_id"])
    await ledger.agrees(shop)


async def survives(shop: Shop, ledger: Ledger, point: str, hit: int, amount: str = "150") -> bool:
    """One refund that is killed at the hit, and all that must be true afterwards. Whether it was killed."""
    order = Order(f"{point}-{hit}", amount)
    killed = await killed_in_the_middle(shop, ledger, order, point, hit)
    if killed:
        await goes_on_by_itself(shop, ledger, order)
    await comes_out_right(shop, ledger, order, ("auto", "legacy")[hit % 2])
    return killed


async def sweep(folder: Path, point: str) -> int:
    """Kill at the point's first hit, at its second, until a refund meets none. How often it was killed."""
    ledger = Ledger()
    async with shop(folder) as one:
        await one.opens()
        for hit in itertools.count(1):
            if not await survives(one, ledger, point, hit):
                return hit - 1
    raise AssertionError("there is no last hit")


@pytest.mark.parametrize("points", POINTS, ids=" and ".join)
async def test_killed_at_any_hit_of_a_point_it_refunds_once(tmp_path: Path, points: tuple[str, str]) -> None:
    async with asyncio.TaskGroup() as at_once:
        sweeps = [at_once.create_task(sweep(tmp_path / point, point)) for point in points]
    killed = [each.result() for each in sweeps]
    assert min(killed) > 0
    if "before-commit" in points:
        assert min(killed) > 6  # a refund is nine commits, less those that met in one


async def test_killed_at_some_statement_it_refunds_once(open_shop: Shop, ledger: Ledger) -> None:
    await open_shop.app.arm("statement", NEVER)
    await whole(open_shop, ledger, Order("counted", "150"))
    count = await open_shop.app.met()
    hits = sorted(random.Random(SEED).sample(range(1, count), STATEMENTS))
    assert any([await survives(open_shop, ledger, "statement", hit) for hit in hits])


@pytest.mark.parametrize("nth", range(FRESH))
async def test_killed_in_the_first_call_of_all_it_refunds_once(open_shop: Shop, ledger: Ledger, nth: int) -> None:
    """The tool's own space is made, migrated and written by this call."""
    hit = random.Random(f"{SEED} {nth}").randint(1, 50)
    assert await survives(open_shop, ledger, "statement", hit, "40")


async def test_killed_at_each_fact_of_its_recovery_it_gets_there(open_shop: Shop, ledger: Ledger) -> None:
    """One fact more at each start. Nobody calls: each process dies of what it does by itself."""
    order = Order("stubborn", "40")
    await open_shop.app.arm("after-commit", 1)
    with pytest.raises(Died):
        await ask(open_shop, ledger, order)
    facts = [left(open_shop.store, order.key).facts]
    while True:
        app = await open_shop.begins("after-commit", "3")  # the alarm, the attempt, and what comes of it
        try:
            await app.hears(" serves ")
            await app.met()
            break
        except Died:
            assert await app.ended() == -9, app.said
            facts.append(left(open_shop.store, order.key).facts)
    assert len(facts) > 3
    await app.kill()
    assert left(open_shop.store, order.key).facts[-1] == "Finished"
    await open_shop.opens()
    await comes_out_right(open_shop, ledger, order, "auto")


async def test_killed_while_it_starts_it_starts_again(open_shop: Shop, ledger: Ledger) -> None:
    order = Order("late", "40")
    await open_shop.app.arm("after-commit", 2)
    with pytest.raises(Died):
        await ask(open_shop, ledger, order)
    for hit in sorted(random.Random(SEED).sample(range(1, 12), STARTS)):
        app = await open_shop.begins("statement", str(hit))
        assert await app.ended() == -9, (hit, app.said)
    await open_shop.opens()
    await open_shop.app.outlives(open_shop.provider.paid(order.arguments["bill_id"]))
    await comes_out_right(open_shop, ledger, order, "legacy")
