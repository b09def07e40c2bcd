"""Over HTTP, MCP and the command line every node of a fleet answers alike: status, headers and body."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient

from onefold.cell import Cell
from onefold.reflex import Reflexes
from tests.fleet import shared
from tests.fleet.matrix import STORES, Side, assert_alike, fleet_on, having
from tests.fleet.nodes import Fleet, until
from tests.fleet.shared import Room, asks, hears, provider, work
from tests.guarantees.shop import bank
from tests.host.automated import Effect, reflex
from tests.serve.mcp.wire import post

COMMAND = "from onefold.cli import main; main()"
HEADERS = ("onefold-replayed", "content-type", "location", "retry-after")


class Memory(Cell, tool=True, on_demand=True):
    notes: dict[str, str] = {}  # noqa: RUF012 - a field's default

    def remember(self, topic: str, text: str) -> int:
        """Keep a note."""
        self.notes[topic] = text
        return len(self.notes)

    def recall(self, topic: str) -> str | None:
        """What was kept."""
        return self.notes.get(topic)


@pytest.fixture(params=STORES)
async def fleet(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fleet]:
    provider.paid.clear()
    provider.failing = []
    shared.failing.clear()
    automations = Reflexes([reflex()], effects=[Effect()])
    parts = (work, hears, asks, bank, provider.dedupes(), Room, Memory, automations)
    async with fleet_on(request.param, tmp_path, monkeypatch, *parts) as fleet:
        yield fleet


def client_of(side: Side) -> AsyncClient:
    return AsyncClient(transport=ASGITransport(side.app), base_url="http://127.0.0.1")


async def http(side: Side, method: str, path: str, body: Any = None, *, races: bool = False, **headers: str) -> Any:
    """One request, kept; its body as JSON where it is some. races: it shows a run that goes on just then."""
    raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    async with client_of(side) as client:
        told = await client.request(
            method, path, content=raw, headers={n.replace("_", "-"): v for n, v in headers.items()}
        )
    shows = "" if races else told.text
    side.keep(method, path, told.status_code, [told.headers.get(name) for name in HEADERS], shows)
    return told.json() if told.headers.get("content-type", "").endswith("json") else told.text


# --- HTTP -------------------------------------------------------------------------------------------


async def modules(side: Side) -> None:
    key = side.key("bank")
    deposit = {"type": "Deposit", "id": "d1", "account": key, "amount": 5}
    for sent in (
        deposit,
        deposit,
        {**deposit, "amount": 6},
        {**deposit, "id": "d2", "amount": "x"},
        {"type": "Break", "id": "b", "account": key},
        {"type": "Nothing"},
        b"{",
        b'{"a":1,"a":2}',
    ):
        await http(side, "POST", "/modules/bank/events", sent)
    await http(side, "POST", "/modules/banks/events", deposit)
    for path in ("", f"?prefix={key}", f"/{key}", f"/{key}/facts", f"/{key}/facts?after=1", "/nobody", "/nobody/facts"):
        if path:
            await http(side, "GET", f"/modules/bank{path}")
    await http(side, "POST", f"/modules/bank/{key}/prune")
    await http(side, "POST", "/modules/bank/nobody/prune")
    await http(side, "GET", "/modules/work")


async def cells(side: Side) -> None:
    key = side.key("Room")
    room, greet = f"/cells/Room/{key}", {"method": "greet", "arguments": {"name": "x"}}
    await http(side, "GET", room)
    await http(side, "PUT", room)
    await http(side, "PUT", room)
    for sent, headers in (
        (greet, {}),
        (greet, {"idempotency_key": "k"}),
        (greet, {"idempotency_key": "k"}),
        ({**greet, "arguments": {"name": "y"}}, {"idempotency_key": "k"}),
        ({"method": "fail", "arguments": {}}, {}),
        ({"method": "nothing", "arguments": {}}, {}),
        ({"method": "greet", "arguments": {"name": 7}}, {}),
        ({"program": 'a = greet(name="p")\ngreet(name=a)'}, {"idempotency_key": "p"}),
        ({"program": 'a = greet(name="p")\ngreet(name=a)'}, {"idempotency_key": "p"}),
        ({"program": "greet("}, {}),
        ({"program": 'greet(name="x")\nfail()'}, {}),
        ({}, {}),
    ):
        await http(side, "POST", f"{room}/turns", sent, **headers)  # type: ignore[arg-type]
    for path in ("", "/fields/visits", "/fields/nothing"):
        await http(side, "GET", f"{room}{path}")
    await http(side, "PATCH", room, {"set": {"visits": 3}})
    await http(side, "PATCH", room, {"set": {"nothing": 3}})
    await http(side, "POST", f"{room}/evict")
    await http(
        side, "POST", f"{room}/turns", {"program": 'greet(name="m")'}, prefer="respond-async", idempotency_key="m"
    )

    async def came() -> bool:
        return "m" in (await side.app.cell(Room, key).read()).names

    await until(came)
    await http(side, "GET", "/cells/Room?prefix=" + key)
    await http(side, "DELETE", room)
    await http(side, "DELETE", room)
    await http(side, "GET", room)


async def runs(side: Side) -> None:
    key = side.call_key("work")
    told = await http(side, "POST", "/tools/work", {"n": 3}, idempotency_key=key)
    await http(side, "POST", "/tools/work", {"n": 3}, idempotency_key=key)
    await http(side, "POST", "/tools/work", {"n": 4}, idempotency_key=key)
    await http(side, "POST", "/tools/work", {"n": "x"}, idempotency_key=key)
    await http(side, "POST", "/tools/nothing", {"n": 3})
    for path in (f"?key={key}", f"/{told['run_id']}", f"/{told['run_id']}/journal", "/run_nowhere", "?status=odd"):
        await http(side, "GET", f"/runs{path}")
    for path in ("cancel", "events/Fed", "fork"):
        await http(side, "POST", f"/runs/{told['run_id']}/{path}", {})
    shared.failing.add(9)
    failed = await http(side, "POST", "/tools/work", {"n": 9}, idempotency_key=side.call_key("work"))
    shared.failing.discard(9)
    await http(side, "GET", f"/runs/{failed['run_id']}")
    await http(side, "POST", f"/runs/{failed['run_id']}/retry", races=True)
    await until(partial(ended, side, failed["run_id"]))
    await http(side, "GET", f"/runs/{failed['run_id']}")


async def ended(side: Side, run: str) -> bool:
    return (await side.app.receipt(run)).status in ("done", "failed", "cancelled")


async def rests(side: Side, run: str) -> bool:
    return (await side.app.receipt(run)).status == "waiting"


async def waits(side: Side) -> None:
    first = await side.app.start(hears, shared.Ask(n=1), key=side.call_key("hears"))
    await until(partial(rests, side, first.run_id))
    run = f"/runs/{first.run_id}"
    for event, sent, headers in (
        ("Nothing", {"n": 1}, {"idempotency_key": "e"}),
        ("Fed", {"n": 2}, {"idempotency_key": "f"}),
        ("Fed", {"n": 3}, {"idempotency_key": "f"}),
    ):
        await http(side, "POST", f"{run}/events/{event}", sent, races=True, **headers)
    await http(side, "GET", f"{run}?wait=20")
    await http(side, "GET", f"{run}/journal")
    second = await side.app.start(hears, shared.Ask(n=1), key=side.call_key("hears"))
    await until(partial(rests, side, second.run_id))
    await http(side, "POST", f"/runs/{second.run_id}/cancel", {"reason": "enough"})
    await http(side, "POST", f"/runs/{second.run_id}/events/Fed", {"n": 1})


async def approvals(side: Side) -> None:
    run = (await side.app.start(asks, shared.Ask(n=1), key=side.call_key("asks"))).run_id
    await until(partial(rests, side, run))
    assert run in await inbox(side)
    await http(side, "POST", f"/runs/{run}/approvals/nothing", {"approve": True, "by": "ann"})
    await http(side, "POST", f"/runs/{run}/approvals/go", {"approve": "x"})
    await http(side, "POST", f"/runs/{run}/approvals/go", {"approve": True, "comment": "fine"})
    await http(side, "POST", f"/runs/{run}/approvals/go", {"approve": False, "reason": "late"})
    assert run not in await inbox(side)
    await http(side, "GET", f"/runs/{run}?wait=20")
    await http(side, "GET", "/parked")
    await http(side, "POST", "/parked/owed.main.77/retry")
    await http(side, "POST", "/parked/owed.main.77/drop", {"reason": "x"})


async def inbox(side: Side) -> str:
    async with client_of(side) as client:
        return str((await client.get("/approve")).text)


async def the_rest(side: Side) -> None:
    for path in ("", "/graph", "/overdue", "/shop.thank", "/nothing", "/nothing/runs", "/runs/7/tasks", "/explain/7"):
        await http(side, "GET", f"/reflexes{path}")
    fact = {"kind": "signal", "name": "other", "payload": {"n": 1}, "dedupe_key": side.free()}
    await http(side, "POST", "/facts", fact)
    await http(side, "POST", "/facts", fact)
    await http(side, "POST", "/facts", {**fact, "kind": "odd"})
    await http(side, "POST", "/facts/7/release")
    await http(side, "POST", "/reflexes/shop.thank/preview", {})
    await http(side, "POST", "/reflexes/nothing/fire", {})
    await http(side, "POST", "/reflexes/draft", {"id": "shop.odd"})
    await http(side, "PUT", "/reflexes", [])
    await http(side, "POST", "/reflexes/tasks/7/retry")
    await http(side, "GET", "/openapi.json")
    await http(side, "GET", "/healthz")
    await http(side, "GET", "/nothing")


async def test_http(fleet: Fleet) -> None:
    for scenario in (modules, cells):
        await assert_alike(fleet, scenario)
    for scenario, actuator in ((runs, work), (waits, hears), (approvals, asks)):
        await assert_alike(fleet, scenario, owners=having(fleet, actuator.name))
    await assert_alike(fleet, the_rest, owners=[fleet.nodes["a"]])


# --- MCP --------------------------------------------------------------------------------------------


async def call(side: Side, name: str, given: dict[str, Any], key: str | None = None, *, races: bool = False) -> Any:
    """One call of a tool, kept."""
    meta = None if key is None else {"onefold/idempotencyKey": key}
    async with client_of(side) as client:
        told = await post(client, "tools/call", {"name": name, "arguments": given}, meta=meta)
    side.keep(name, told.status_code, "" if races else told.text)
    return told.json().get("result", {}).get("structuredContent", {})


async def tools(side: Side) -> None:
    key = side.call_key("work")
    done = await call(side, "work", {"n": 3}, key)
    await call(side, "work", {"n": 3}, key)
    await call(side, "work", {"n": 4}, key)
    await call(side, "work", {"n": "x"})
    await call(side, "nothing", {})
    await call(side, "get_run", {"run_id": done["run_id"]})
    await call(side, "get_run", {"run_id": "run_nowhere"})
    await call(side, "cancel_run", {"run_id": done["run_id"]})
    await call(side, "list_runs", {"status": "cancelled"})


async def told_by_agents(side: Side) -> None:
    run = (await side.app.start(hears, shared.Ask(n=1), key=side.call_key("hears"))).run_id
    await until(partial(rests, side, run))
    await call(side, "get_run", {"run_id": run, "wait_seconds": 0})
    await call(side, "send_event", {"run_id": run, "event": "Fed", "body": {"n": 5}, "key": "e"}, races=True)
    await call(side, "send_event", {"run_id": run, "event": "Fed", "body": {"n": 6}, "key": "e"})
    await call(side, "get_run", {"run_id": run})


async def memories(side: Side) -> None:
    id = side.key("Memory")
    await call(side, "memory_remember", {"id": id, "topic": "rent", "text": "first"}, "m")
    await call(side, "memory_remember", {"id": id, "topic": "rent", "text": "first"}, "m")
    await call(side, "memory_remember", {"id": id, "topic": "rent", "text": "other"}, "m")
    await call(side, "memory_recall", {"id": id, "topic": "rent"})
    await call(side, "memory_remember", {"id": id})
    await call(side, "memory_run", {"id": id, "program": 'a = recall(topic="rent")\nremember(topic="b", text=a)'})
    await call(side, "memory_run", {"id": id, "program": "nonesuch()"})


async def test_mcp(fleet: Fleet) -> None:
    await assert_alike(fleet, tools, owners=having(fleet, "work"))
    await assert_alike(fleet, told_by_agents, owners=having(fleet, "hears"))
    await assert_alike(fleet, memories)


# --- the command line -------------------------------------------------------------------------------


async def commands(side: Side) -> None:
    """Every command speaks HTTP to one node: a few of each sort, as they are typed."""

    async def typed(*said: str, codes: tuple[int, ...] = (0,)) -> None:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", COMMAND, *said, "--url", side.asked.url, stdout=PIPE, stderr=PIPE
        )
        told, wrong = await child.communicate()
        assert child.returncode in codes, wrong
        side.keep(said[0], child.returncode, told.decode(), wrong.decode().replace(side.asked.url, "<url>"))

    key = side.call_key("work")
    await typed("call", "work", "n=3", "--key", key, "--json")
    await typed("call", "work", "n=4", "--key", key, codes=(3,))
    await typed("turn", "Memory", side.key("Memory"), 'remember(topic="a", text="b")', "--key", "t")
    await typed("runs", "show", "run_nowhere", codes=(4,))
    await typed("parked", "list", "--json")


async def test_the_command_line(fleet: Fleet) -> None:
    await assert_alike(fleet, commands, owners=having(fleet, "work")[:1])
