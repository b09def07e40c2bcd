"""A sweep and a prune over HTTP: durations as people write them, what is not there refused by name."""

from __future__ import annotations

import pytest
from httpx2 import AsyncClient

from tests.serve.fake_host import FakeHost


async def test_a_sweep_says_how_much_went(host: FakeHost, client: AsyncClient) -> None:
    told = await client.post("/sweep", json={"runs": "1 day", "replies": "2h", "dry_run": True})
    assert (told.status_code, told.json()) == (200, {"runs": 3, "replies": 2, "dry_run": True})
    assert (await client.post("/sweep")).json()["dry_run"] is False
    assert host.acted == [("sweep", 86_400_000, 7_200_000, True), ("sweep", None, None, False)]


@pytest.mark.parametrize(
    "body, field",
    [
        ({"reflex_runs": "1 day"}, "reflex_runs"),
        ({"intake": "1 day"}, "intake"),
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
