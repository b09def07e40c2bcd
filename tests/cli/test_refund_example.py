"""The example keeps its promises against the real provider: a limit, a manager above 100, once per order."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import onefold
from onefold.host.caller import inside
from onefold.host.target import load

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def pay_url() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / "provider.py"), "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as provider:
        assert provider.stdout is not None
        yield provider.stdout.readline().strip()
        provider.kill()


@pytest.fixture
def shop(pay_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The example's module, with this provider."""
    monkeypatch.setenv("PAY_URL", pay_url)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (actuator,) = load("refund.py", onefold.App, EXAMPLES).parts
    yield sys.modules[actuator.function.__module__]
    del sys.modules[actuator.function.__module__]


@pytest.fixture
async def app(shop: Any, tmp_path: Path) -> AsyncIterator[onefold.App]:
    async with onefold.App(shop.refund_order, store=tmp_path / "data", config={}) as app:
        yield app


def paid(pay_url: str) -> list[tuple[str, str]]:
    return [(one["bill"], one["amount"]) for one in httpx2.get(f"{pay_url}/refunds").json()["refunds"]]


def order(shop: Any, amount: str, order_id: str = "7") -> Any:
    return shop.Refund(order_id=order_id, bill_id=f"b{order_id}", amount=amount)


async def waiting(app: onefold.App, shop: Any, amount: str) -> Any:
    """A run that waits for the manager."""
    receipt = await app.start(shop.refund_order, order(shop, amount))
    receipt = await receipt.refresh(wait="20 seconds")
    assert receipt.status == "waiting"
    return receipt


async def test_a_small_refund_is_paid_and_written_down(app: onefold.App, shop: Any, pay_url: str) -> None:
    assert await app.call(shop.refund_order, order(shop, "40")) == shop.Refunded(refund_id="re_1")
    assert paid(pay_url) == [("b7", "40")]


async def test_the_same_order_gets_the_earlier_refund(app: onefold.App, shop: Any, pay_url: str) -> None:
    first = await app.call(shop.refund_order, order(shop, "40"))
    assert await app.call(shop.refund_order, order(shop, "40"), key="another") == first
    assert await app.call(shop.refund_order, order(shop, "400"), key="a-third") == first
    assert len(paid(pay_url)) == 1


async def test_above_the_limit_nothing_begins(app: onefold.App, shop: Any, pay_url: str) -> None:
    arguments = {"order_id": "7", "bill_id": "b7", "amount": 900}
    with pytest.raises(onefold.errors.BadArguments, match="must be at most 500"):
        await app.host.start("refund_order", arguments, key=None, caller=inside(None))
    assert (await app.runs.list()).items == []
    assert paid(pay_url) == []


async def test_above_100_a_manager_decides(app: onefold.App, shop: Any, pay_url: str) -> None:
    receipt = await waiting(app, shop, "150")
    assert paid(pay_url) == []
    await app.approvals.approve(receipt.run_id, "manager", by="anna")
    assert await receipt.result(timeout="20 seconds") == shop.Refunded(refund_id="re_1")


async def test_a_no_pays_nothing_and_leaves_the_order_free(app: onefold.App, shop: Any, pay_url: str) -> None:
    receipt = await waiting(app, shop, "150")
    await app.approvals.reject(receipt.run_id, "manager", by="anna", reason="not ours")
    assert await receipt.result(timeout="20 seconds") == shop.Declined(reason="not ours")
    assert await app.call(shop.refund_order, order(shop, "40")) == shop.Refunded(refund_id="re_1")


async def test_of_two_approved_runs_for_one_order_one_pays(app: onefold.App, shop: Any, pay_url: str) -> None:
    """Two principals share the tool's tables; each has a run of its own that was agreed to."""
    runs = [await waiting(app.acting_as(who), shop, "150") for who in ("north", "south")]
    assert runs[0].run_id != runs[1].run_id
    for receipt in runs:
        await app.approvals.approve(receipt.run_id, "manager", by="anna")
    results = [await receipt.result(timeout="20 seconds") for receipt in runs]
    assert shop.Refunded(refund_id="re_1") in results
    assert len(paid(pay_url)) == 1


@pytest.mark.parametrize("fault", [{"lose_answers": 1}, {"answer_500": 1}])
async def test_a_provider_that_fails_is_asked_again_and_pays_once(
    app: onefold.App, shop: Any, pay_url: str, fault: dict[str, int]
) -> None:
    httpx2.post(f"{pay_url}/faults", json=fault)
    assert await app.call(shop.refund_order, order(shop, "40")) == shop.Refunded(refund_id="re_1")
    assert httpx2.get(f"{pay_url}/refunds").json()["calls"] == 2
    assert paid(pay_url) == [("b7", "40")]
