"""Deploying over HTTP, over the real host: a file sent is a tool of every door at once. The sandbox is stood in for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

import onefold
from onefold import Run, actuator
from onefold.host.deployable import SOURCE_LIMIT
from tests.host.deployable import SECOND, source, stands_in

__all__ = ["stands_in"]
pytestmark = pytest.mark.usefixtures("stands_in")
KEYS = {"CALL_KEY": "call", "READ_KEY": "read", "OPERATE_KEY": "operate", "DEPLOY_KEY": "deploy"}
BASE = "http://127.0.0.1:8600"


@actuator
async def trusted(run: Run) -> str:
    """The app's own."""
    return "own"


@asynccontextmanager
async def served(folder: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> AsyncIterator[Any]:
    """An app with a key for each right; `of(right)` is a client that shows it."""
    keys = []
    for name, right in KEYS.items():
        monkeypatch.setenv(name, f"{right}-key-0123456789")
        keys.append({"secret_env": name, "may": [right], "principal": right})
    app = onefold.App(trusted, store=folder, config={"keys": keys, **more})

    def of(right: str) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", 1))
        headers = {"authorization": f"Bearer {right}-key-0123456789"}
        return httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers)

    async with app:
        yield of


async def tools_of(client: httpx2.AsyncClient, path: str = "/mcp") -> set[str]:
    async with Client(streamable_http_client(f"{BASE}{path}", http_client=client)) as agent:
        return {tool.name for tool in (await agent.list_tools()).tools}


async def test_a_deployed_file_is_a_tool_at_every_door_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path, monkeypatch) as of, of("deploy") as deployer, of("call") as agent:
        assert "keep" not in (await agent.get("/openapi.json")).json()["paths"]
        assert "keep" not in await tools_of(agent)
        told = await deployer.put("/deployed/notes", json={"source": source()})
        assert (told.status_code, told.json()["outcome"], told.json()["version"]) == (200, "deployed", 1)
        assert (told.json()["tools"], told.json()["by"], told.json()["file"]) == (["keep"], "deploy", "notes")
        again = (await deployer.put("/deployed/notes", json={"source": source()})).json()
        assert again == {**told.json(), "outcome": "unchanged"}
        paths = (await agent.get("/openapi.json")).json()["paths"]
        assert {"/tools/keep", "/hooks/keep"} <= paths.keys()
        ran = await agent.post("/tools/keep", json={"said": "x"})
        assert (ran.status_code, ran.json()["result"]) == (200, "first 1")
        assert "keep" in await tools_of(agent)
        async with Client(streamable_http_client(f"{BASE}/mcp", http_client=agent)) as client:
            called = await client.call_tool("keep", {"said": "y"})
            assert called.structured_content is not None
            assert called.structured_content["result"] == "first 2"
        await deployer.put("/deployed/notes", json={"source": source("other", more=SECOND)})
        assert {"keep", "second"} <= await tools_of(agent)
        assert await tools_of(agent, "/tools/second/mcp") >= {"second", "get_run"}
        assert (await agent.post("/tools/second", json={})).json()["result"] == "other"
        await deployer.post("/deployed/notes/rollback", json={"version": 1})
        assert "second" not in await tools_of(agent)
        assert (await agent.post("/tools/second", json={})).status_code == 404
        assert (await agent.post("/tools/keep", json={"said": "z"})).json()["result"] == "first 3"
        versions = (await deployer.get("/deployed/notes")).json()["items"]
        assert [(one["version"], one.get("back_to")) for one in versions] == [(3, 1), (2, None), (1, None)]
        page = (await deployer.get("/deployed/notes", params={"limit": 1})).json()
        assert ([one["version"] for one in page["items"]], page["next"]) == ([3], "1")
        (newest,) = (await deployer.get("/deployed")).json()["items"]
        assert newest == versions[0]


async def test_a_file_that_is_taken_away_is_no_tool_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, monkeypatch) as of, of("deploy") as deployer, of("call") as agent:
        assert (await deployer.delete("/deployed/notes")).status_code == 404
        await deployer.put("/deployed/notes", json={"source": source()})
        told = (await deployer.delete("/deployed/notes")).json()
        assert (told["outcome"], told["version"], told["tools"], "digest" in told) == ("removed", 2, [], False)
        assert (await deployer.delete("/deployed/notes")).json() == {**told, "outcome": "unchanged"}
        assert (await agent.post("/tools/keep", json={"said": "x"})).status_code == 404
        assert "keep" not in await tools_of(agent)
        assert "/tools/keep" not in (await agent.get("/openapi.json")).json()["paths"]
        assert (await deployer.get("/deployed")).json()["items"] == []
        assert len((await deployer.get("/deployed/notes")).json()["items"]) == 2
        there = await deployer.post("/deployed/notes/rollback", json={"version": 2})
        assert (there.status_code, there.json()["outcome"]) == (200, "unchanged")
        assert (await deployer.post("/deployed/notes/rollback", json={"version": 1})).json()["version"] == 3
        assert (await deployer.post("/deployed/notes/rollback", json={"version": 2})).status_code == 404
        assert (await agent.post("/tools/keep", json={"said": "x"})).json()["result"] == "first 1"


async def test_the_webhook_of_a_deployed_file_is_signed_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
    hooks = {"keep": {"secret_env": "HOOK", "principal": "shop"}}
    async with served(tmp_path, monkeypatch, hooks=hooks) as of, of("deploy") as deployer:
        assert (await deployer.post("/hooks/keep", json={"said": "x"})).status_code == 404
        await deployer.put("/deployed/notes", json={"source": source()})
        assert (await deployer.post("/hooks/keep", json={"said": "x"})).status_code == 401


@pytest.mark.parametrize("right", ["call", "read", "operate"])
async def test_no_other_right_deploys(right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path, monkeypatch) as of, of(right) as client, of("deploy") as deployer:
        await deployer.put("/deployed/notes", json={"source": source()})
        for method, path, body in (
            ("PUT", "/deployed/notes", {"source": source("other")}),
            ("POST", "/deployed/notes/rollback", {"version": 1}),
            ("DELETE", "/deployed/notes", None),
            ("GET", "/deployed", None),
            ("GET", "/deployed/notes", None),
        ):
            told = await client.request(method, path, json=body)
            assert (told.status_code, told.json()["code"]) == (403, "forbidden")
        assert len((await deployer.get("/deployed/notes")).json()["items"]) == 1
        assert (await deployer.post("/tools/keep", json={"said": "x"})).status_code == 403


BODIES: dict[str, tuple[bytes, int]] = {
    "no json": (b"source", 400),
    "not UTF-8": (b'{"source": "\xff"}', 400),
    "a NUL": (b'{"source": "x\\u0000"}', 400),
    "a lone surrogate": (b'{"source": "\\ud800"}', 400),
    "a key twice": (b'{"source": "a", "source": "b"}', 400),
    "nothing": (b"", 422),
    "a list": (b"[]", 422),
    "no text": (b'{"source": 1}', 422),
    "another field": (b'{"source": "", "file": "/etc/passwd"}', 422),
    "no actuator": (b'{"source": "x = 1"}', 422),
    "too large for a file": (json.dumps({"source": "#" * (SOURCE_LIMIT + 1)}).encode(), 413),
    "too large for a body": (b" " * (1 << 20) + b"{}", 413),
}


@pytest.mark.parametrize("named", BODIES)
async def test_a_hostile_body_is_refused_and_nothing_is_deployed(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, status = BODIES[named]
    async with served(tmp_path, monkeypatch) as of, of("deploy") as client:
        told = await client.put("/deployed/notes", content=raw)
        assert (told.status_code, told.headers["content-type"]) == (status, "application/problem+json")
        assert (await client.get("/deployed")).json() == {"items": [], "next": None}


@pytest.mark.parametrize("file", ["..%2Fx", "Notes", "notes.py", "a" * 33, "%00", "no%20tes", "n%C3%A4"])
async def test_a_hostile_name_is_refused(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path, monkeypatch) as of, of("deploy") as client:
        told = await client.put(f"/deployed/{file}", json={"source": source()})
        assert told.status_code in (400, 422)
        assert (await client.get("/deployed")).json()["items"] == []


@pytest.mark.parametrize("version", [None, 0, -1, "1", 1.5, True, 2**60, [1]])
async def test_a_rollback_names_a_version(version: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path, monkeypatch) as of, of("deploy") as client:
        await client.put("/deployed/notes", json={"source": source()})
        told = await client.post("/deployed/notes/rollback", json={"version": version})
        assert told.status_code == 422
        assert (await client.post("/deployed/notes/rollback", json={"version": 2})).status_code == 404
        assert (await client.post("/deployed/other/rollback", json={"version": 1})).status_code == 404
        assert (await client.post("/deployed/notes/rollback", json={"version": 1})).json()["outcome"] == "unchanged"


async def test_findings_are_told_as_the_check_prints_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = source().replace("    if note", "    import time\n    time.time()\n    if note")
    line = text[: text.index("time.time()")].count("\n") + 1
    async with served(tmp_path, monkeypatch) as of, of("deploy") as client:
        told = (await client.put("/deployed/notes", json={"source": text})).json()
        assert (told["code"], told["status"]) == ("load_refused", 422)
        (finding,) = told["findings"]
        assert finding["where"] == f"notes.py:{line}: clock"
