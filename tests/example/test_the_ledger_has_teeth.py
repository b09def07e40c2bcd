"""The oracle of the kill tests goes red when it should: a loss, a double, a change of mind."""

from __future__ import annotations

import shutil
from typing import Any

import httpx2
import pytest

from tests.example.caller import Order, ask, whole
from tests.example.ledger import Ledger
from tests.example.shop import Shop

FIRST, SECOND = "2026-11-30T10:00:00Z", "2026-11-30T10:00:00.500Z"
RECEIPT: dict[str, Any] = {"run_id": "run_1", "status": "waiting", "started_at": FIRST, "updated_at": SECOND}


@pytest.mark.parametrize(
    "first,later",
    [
        ({}, {"run_id": "run_2"}),
        ({}, {"started_at": SECOND}),
        ({}, {"updated_at": FIRST}),
        ({}, {"status": "failed"}),
        ({"status": "done", "result": 1}, {"status": "done", "result": 2}),
        ({"status": "done", "result": 1}, {"status": "waiting"}),
    ],
)
def test_a_receipt_that_takes_something_back_is_noticed(first: dict[str, Any], later: dict[str, Any]) -> None:
    ledger = Ledger()
    ledger.told("k", RECEIPT | first)
    ledger.told("k", RECEIPT | first)
    with pytest.raises(AssertionError):
        ledger.told("k", RECEIPT | later)


async def test_a_store_that_was_lost_is_noticed(open_shop: Shop, ledger: Ledger) -> None:
    order = Order("1", "40")
    await whole(open_shop, ledger, order)
    await open_shop.app.kill()
    shutil.rmtree(open_shop.store)
    await open_shop.opens()
    with pytest.raises(AssertionError):
        await ask(open_shop, ledger, order)


async def test_a_second_refund_for_one_call_is_noticed(open_shop: Shop, ledger: Ledger) -> None:
    order = Order("1", "40")
    await whole(open_shop, ledger, order)
    await ledger.agrees(open_shop)
    again = {"bill": order.arguments["bill_id"], "amount": order.amount}
    async with httpx2.AsyncClient() as http:
        await http.post(f"{open_shop.provider.url}/refunds", json=again, headers={"idempotency-key": "another"})
    with pytest.raises(AssertionError):
        await ledger.agrees(open_shop)


async def test_a_second_letter_under_another_id_is_noticed(open_shop: Shop, ledger: Ledger) -> None:
    await whole(open_shop, ledger, Order("1", "150"))
    await ledger.agrees(open_shop)
    (letter,) = open_shop.post.letters
    open_shop.post.letters.append(letter)
    await ledger.agrees(open_shop)
    open_shop.post.letters[-1] = type(letter)()
    open_shop.post.letters[-1]["Subject"], open_shop.post.letters[-1]["Message-ID"] = letter["subject"], "<another>"
    with pytest.raises(AssertionError):
        await ledger.agrees(open_shop)
