"""One refund from the caller's side, and from the manager's: asked for, agreed to, waited for.

For: the same steps before a kill and after it; what comes back is entered in the ledger.
Never: knows that anything was killed: to it the connection broke, and it asks again under the same key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.example.ledger import Ledger
from tests.example.shop import Died, Shop, links

TOOL = "refund_order"
# What a browser says of a form on a page without a referrer.
BROWSER = {"origin": "null", "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}


@dataclass(frozen=True)
class Order:
    """One order to be paid back. Above 100 the manager is asked."""

    id: str
    amount: str

    @property
    def key(self) -> str:
        return f"key-{self.id}"

    @property
    def arguments(self) -> dict[str, str]:
        return {"order_id": self.id, "bill_id": f"bill-{self.id}", "amount": self.amount}

    @property
    def big(self) -> bool:
        return float(self.amount) > 100


async def ask(shop: Shop, ledger: Ledger, order: Order, wait: int = 20) -> dict[str, Any]:
    """POST the call under its key. Raises: Died, when the process did not live to answer."""
    ledger.asks(order.key, order.arguments)
    headers = {"idempotency-key": order.key, "prefer": f"wait={wait}"}
    answer = await alive(shop, "POST", f"/tools/{TOOL}", json=order.arguments, headers=headers)
    assert answer.status_code in (200, 202), answer.text
    return ledger.told(order.key, answer.json())


async def look(shop: Shop, ledger: Ledger, order: Order, wait: int = 20) -> dict[str, Any]:
    run = ledger.receipts[order.key]["run_id"]
    answer = await alive(shop, "GET", f"/runs/{run}", params={"wait": str(wait)})
    assert answer.status_code == 200, answer.text
    return ledger.told(order.key, answer.json())


async def agree(shop: Shop, ledger: Ledger, order: Order) -> None:
    """Open the link of the letter, and press the button of the page."""
    link, _ = links(await shop.app.outlives(shop.post.asks(order.id)))
    page = await alive(shop, "GET", link)
    if order.key in ledger.decided:
        assert page.status_code == 410
    if page.status_code == 410:  # a decision whose answer was lost
        assert "approved" in page.text
        return
    assert page.status_code == 200, page.text
    form = {"nonce": nonce(page.text), "choice": "approve"}
    answer = await alive(shop, "POST", link, data=form, headers=BROWSER)
    assert answer.status_code == 200, answer.text
    ledger.decided.add(order.key)


async def whole(shop: Shop, ledger: Ledger, order: Order) -> dict[str, Any]:
    """All of it, to the end. Raises: Died, wherever the process dies."""
    receipt = await ask(shop, ledger, order)
    if order.big:
        await agree(shop, ledger, order)
    while receipt["status"] != "done":
        receipt = await look(shop, ledger, order)
    return receipt


async def ask_as_agent(shop: Shop, ledger: Ledger, order: Order, mode: str) -> dict[str, Any]:
    """The same call under the same key, over MCP."""
    ledger.asks(order.key, order.arguments)
    key: Any = {"onefold/idempotencyKey": order.key}
    async with shop.agent(mode) as agent:
        told = await agent.call_tool(TOOL, order.arguments, meta=key)
    assert told.is_error is False, told
    return ledger.told(order.key, told.structured_content)


async def alive(shop: Shop, method: str, path: str, **more: Any) -> httpx2.Response:
    """One request. Raises: Died, when the connection broke because the process is gone."""
    app = shop.app
    try:
        return await app.http.request(method, path, **more)
    except httpx2.TransportError as broken:
        raise Died(f"killed by {await app.ended()}") from broken


def nonce(page: str) -> str:
    found = re.search(r'name="nonce" value="(\w+)"', page)
    assert found, page
    return found[1]
