"""What people see of a fleet: the nodes, what each owns under which epochs, the mail that waits, how late alarms are."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx2
import pytest

from onefold.cell import Cell
from onefold.fleet.words import Claimed
from onefold.serve.openapi_fleet import paths
from tests.contracts.backends import store_of
from tests.fleet.served import SECRET, keys_of, nodes, standing


class Room(Cell, on_demand=True):
    visits: int = 0

    def enter(self) -> int:
        self.visits += 1
        return self.visits


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    return store_of(request.param, tmp_path)


async def told(url: str, *flags: str) -> str:
    """What the command says."""
    line = (sys.executable, "-c", "from onefold.cli import main; main()", "fleet", "--url", url, *flags)
    child = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE, env=dict(os.environ))
    said, _ = await child.communicate()
    assert child.returncode == 0
    return said.decode()


async def test_the_fleet_is_shown_by_each_of_its_nodes_and_by_the_command(store: str) -> None:
    async with nodes(store, Room) as (a, b):
        (key,) = keys_of(b, "Room", 1)
        assert isinstance(await a.fleet.claim(f"Room/{key}"), Claimed)
        urls = [standing(app).seen.nodes[standing(app).me.name].url for app in (a, b)]
        async with httpx2.AsyncClient() as http:
            shown = [(await http.get(f"{url}/fleet")).json() for url in urls]
        for one in shown:
            first, second = one["nodes"]
            assert [(node["name"], node["state"]) for node in one["nodes"]] == [("a", "live"), ("b", "live")]
            assert first["slots"] + second["slots"] == 1024
            assert first["epochs"][0] <= first["epochs"][1]
            assert list(first["names"].values()) == [1]
            assert [node["url"] for node in one["nodes"]] == urls
            assert one["mail"] == {"waiting": 0, "parked": 0}
            assert one["oldest_overdue_seconds"] == 0
            schema = paths()["/fleet"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            assert set(one) == set(schema["required"])
        assert urls[0] is not None
        assert json.loads(await told(urls[0], "--json"))["nodes"][0]["name"] == "a"
        said = await told(urls[0])
        assert all(word in said for word in ("a ", "b ", "live", "mail waiting", "oldest overdue", key))
