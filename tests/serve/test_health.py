"""Is it up, is it ready, how much was asked of it."""

from __future__ import annotations

import pytest
from httpx2 import AsyncClient

from tests.serve.fake_host import FakeHost


async def test_alive_asks_nobody(host: FakeHost, client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(FakeHost, "ready")
    told = await client.get("/healthz")
    assert (told.status_code, told.json()) == (200, {"ok": True})


async def test_ready_is_503_when_no_work_is_taken(host: FakeHost, client: AsyncClient) -> None:
    told = await client.get("/readyz")
    assert (told.status_code, told.json()) == (
        200,
        {"ready": True, "store": "ok", "oldest_overdue_seconds": 1.5, "parked": 0},
    )
    host.is_ready = False
    assert (await client.get("/readyz")).status_code == 503


async def test_metrics_count_answers_by_route_and_name_nobody(host: FakeHost, client: AsyncClient) -> None:
    secret = {"idempotency-key": "a-key-of-somebody"}
    await client.post("/tools/refund_order", json={"order_id": "7", "amount": 1}, headers=secret)
    await client.post("/modules/counter/events", json={"id": "e", "counter": "an-actor"})
    await client.get("/nowhere")
    await client.get("/approve/a-token")
    told = (await client.get("/metrics")).text
    for line in (
        'onefold_answers_total{route="POST /tools/{name}",status="200"} 1.0',
        'onefold_answers_total{route="POST /modules/{module}/events",status="200"} 1.0',
        'onefold_answers_total{route="unrouted",status="404"} 1.0',
        "onefold_oldest_overdue_seconds 1.5",
        "onefold_ready 1.0",
    ):
        assert line in told.splitlines()
    for name in ("a-key-of-somebody", "an-actor", "a-token", "run_"):
        assert name not in told
