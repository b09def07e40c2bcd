"""A sweep and a prune over HTTP: durations as people write them, what is not there refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold.serve import asgi_app
from onefold.testing import staged
from tests.guarantees.shop import make
from tests.serve.conftest import client_of
from tests.serve.fake_host import FakeHost


async def test_a_sweep_says_how_much_went(host: FakeHost, client: AsyncClient) -> None:
    body = {"runs": "1 day", "replies": "2h", "reflex_runs": "3 days", "intake": "1s", "dry_run": True}
    told = await client.post("/sweep", json=body)
    went = {"runs": 3, "replies": 2, "reflex_runs": 4, "intake": 5, "dry_run": True}
    assert (told.status_code, told.json()) == (200, went)
    assert (await client.post("/sweep")).json()["dry_run"] is False
    asked = ("sweep", 86_400_000, 7_200_000, 259_200_000, 1_000, True)
    assert host.acted == [asked, ("sweep", None, None, None, None, False)]


@pytest.mark.parametrize(
    "body, field",
    [
        ({"reflex_runs": "later"}, "reflex_runs"),
        ({"intake": -1}, "intake"),
        ({"runs": "soon"}, "runs"),
        ({"replies": 30}, "replies"),
        ({"dry_run": "yes"}, "dry_run"),
        ({"facts": "1 day"}, "facts"),
    ],
)
async def test_what_cannot_be_swept_is_refused_by_name(
    host: FakeHost, client: AsyncClient, body: dict[str, object], field: str
) -> None:
    told = await client.post("/sweep", json=body)
    assert told.status_code == 422
    assert told.json()["errors"][0]["field"] == field
    assert host.acted == []


async def test_a_prune_says_where_the_history_begins(host: FakeHost, client: AsyncClient) -> None:
    told = await client.post("/modules/counter/room%2F7/prune")
    assert (told.status_code, told.json()) == (200, {"facts": 4, "begins": 5})
    assert host.acted == [("prune", "counter", "room/7")]


async def test_over_the_real_host_a_late_repeat_is_a_problem_and_a_pruned_history_says_where_it_begins() -> None:
    module = make(snapshot_every=4)
    async with staged(module) as stage:
        front = asgi_app(stage.host)
        async with client_of(front) as client:

            async def send(id: str, amount: int = 1) -> Any:
                event = {"type": "Deposit", "id": id, "account": "a", "amount": amount}
                return await client.post("/modules/bank/events", json=event)

            for n in range(9):
                assert (await send(f"d{n}")).json()["reply"]["balance"] == n + 1
            assert (await client.post("/sweep")).json()["errors"][0]["field"] == ""
            stage.clock.step_to(stage.clock.now() + 1_000)
            assert (await client.post("/sweep", json={"replies": "1s", "dry_run": True})).json()["replies"] == 9
            assert (await client.post("/sweep", json={"replies": "1s"})).json()["replies"] == 9
            late = await send("d0")
            assert (late.status_code, late.json()["code"], late.json()["retry"]) == (409, "already_done", "never")
            assert (await send("d0", 2)).json()["code"] == "key_conflict"

            whole = (await client.get("/modules/bank/a/facts")).json()
            assert "begins" not in whole
            pruned = (await client.post("/modules/bank/a/prune")).json()
            kept = (await client.get("/modules/bank/a/facts?limit=2")).json()
            assert kept["begins"] == pruned["begins"] == kept["items"][0]["seq"] > 1
            assert kept["items"] == whole["items"][pruned["facts"] :][:2]
            assert "begins" not in (await client.get(f"/modules/bank/a/facts?after={pruned['facts']}")).json()
            assert (await client.post("/modules/none/a/prune")).status_code == 404
        await front.aclose()
