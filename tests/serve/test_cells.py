"""Cells over HTTP and MCP, over the application itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from httpx2 import AsyncClient
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from onefold import Cell, actuator
from onefold.actuators.run import Run
from onefold.cell import Handle, cost
from onefold.host.config import settle
from onefold.host.opening import open_host
from onefold.serve import asgi_app
from onefold.terms.errors import LoadRefused
from tests.serve.conftest import LOCAL, client_of


@dataclass(frozen=True)
class Kept:
    topic: str


@dataclass(frozen=True)
class Full:
    at_most: int


class Ticket: ...


class AgentMemory(Cell, tool=True, on_demand=True):
    """What an agent remembers of one conversation."""

    notes: dict[str, str] = {}  # noqa: RUF012 - a draft never shares it

    def recall(self, topic: str) -> str | None:
        """What was remembered."""
        return self.notes.get(topic)

    @cost(5)
    def remember(self, topic: str, text: str, at_most: int = 3) -> Kept | Full:
        if len(self.notes) >= at_most:
            return Full(at_most)
        self.notes[topic] = text
        return Kept(topic)

    def ticket(self) -> Handle[Ticket]:
        return Handle(Ticket())


class Room(Cell):
    visits: int = 0

    def greet(self, name: str) -> str:
        self.visits += 1
        return f"hello {name}"


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    host = await open_host(settle(code={"store": "memory:"}), [AgentMemory, Room])
    front = asgi_app(host)
    async with client_of(front) as client:
        yield client
    await front.aclose()
    await host.close()


async def asked(client: AsyncClient, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    answer = await client.request(method, path, json=body, headers=headers)
    return answer.status_code, answer.json() if answer.content else None


async def test_a_cell_lives_over_http(client: AsyncClient) -> None:
    assert (await asked(client, "GET", "/cells/Room/lobby"))[0] == 404
    assert (await asked(client, "POST", "/cells/Room/lobby/turns", {"method": "greet", "arguments": {"name": "a"}}))[
        0
    ] == 404
    assert await asked(client, "PUT", "/cells/Room/lobby") == (201, {"outcome": "spawned"})
    assert await asked(client, "PUT", "/cells/Room/lobby", {}) == (200, {"outcome": "resident"})
    assert await asked(client, "GET", "/cells/Room/lobby/fields/visits") == (200, {"outcome": "unset"})
    turn = {"method": "greet", "arguments": {"name": "guest"}}
    told = (200, {"branch": "", "value": "hello guest", "ran": 1})
    assert await asked(client, "POST", "/cells/Room/lobby/turns", turn, **{"idempotency-key": "k"}) == told
    assert await asked(client, "POST", "/cells/Room/lobby/turns", turn, **{"idempotency-key": "k"}) == told
    assert await asked(client, "GET", "/cells/Room/lobby/fields/visits") == (200, {"outcome": "value", "value": 1})
    seen = (200, {"id": "lobby", "shape": "Room", "state": {"visits": 41}})
    assert await asked(client, "PATCH", "/cells/Room/lobby", {"set": {"visits": 41}}) == seen
    assert await asked(client, "POST", "/cells/Room/lobby/evict") == (200, {"outcome": "evicted"})
    assert await asked(client, "POST", "/cells/Room/lobby/evict", {}) == (200, {"outcome": "absent"})
    assert await asked(client, "GET", "/cells/Room/lobby") == seen
    assert await asked(client, "GET", "/cells/Room") == (200, {"items": [{"id": "lobby"}], "next": None})
    assert await asked(client, "DELETE", "/cells/Room/lobby") == (204, None)
    assert (await asked(client, "GET", "/cells/Room/lobby"))[0] == 404
    assert (await asked(client, "DELETE", "/cells/Room/lobby"))[0] == 404


async def test_a_program_is_one_turn_over_http(client: AsyncClient) -> None:
    program = "if recall('rent') is None:\n    last = remember('rent', text='on the 1st')\nlast"
    status, told = await asked(client, "POST", "/cells/AgentMemory/a%2Fb/turns", {"program": program})
    assert (status, told) == (200, {"branch": "Kept", "value": {"type": "Kept", "topic": "rent"}, "ran": 2})
    assert (await asked(client, "GET", "/cells/AgentMemory/a%2Fb"))[1]["state"] == {"notes": {"rent": "on the 1st"}}


@pytest.mark.parametrize(
    "body,status,code,turn",
    [
        ({"program": "greet("}, 422, "parse_failed", {"kind": "parse", "line": 1}),
        (
            {"program": "x = 1\ngreeet('a')"},
            422,
            "unknown_call",
            {"kind": "call", "name": "greeet", "nearest": "greet"},
        ),
        ({"program": "x = 1\n1 / 0"}, 422, "program_raised", {"kind": "raised", "ran": 1, "of": 2}),
        ({"program": "while greet('x'):\n    pass"}, 422, "limit_hit", {"kind": "limit"}),
        ({"method": "greet", "arguments": {"nam": "a"}}, 422, "bad_arguments", None),
        ({"method": "greet", "arguments": [1]}, 422, "bad_arguments", None),
        ({"method": "nothing"}, 404, "not_found", None),
        ({"method": 3}, 422, "bad_arguments", None),
        ({"program": 3}, 422, "bad_arguments", None),
        ({"program": "greet('a')", "method": "greet"}, 422, "bad_arguments", None),
        ({"program": "greet('a')", "arguments": {}}, 422, "bad_arguments", None),
        ({}, 422, "bad_arguments", None),
    ],
)
async def test_what_a_turn_cannot_do_is_a_problem_with_its_record(
    client: AsyncClient, body: Any, status: int, code: str, turn: dict[str, Any] | None
) -> None:
    await asked(client, "PUT", "/cells/Room/lobby")
    found, problem = await asked(client, "POST", "/cells/Room/lobby/turns", body)
    assert (found, problem["code"]) == (status, code)
    if turn is not None:
        assert {name: problem["turn"][name] for name in turn} == turn
    assert (await asked(client, "GET", "/cells/Room/lobby"))[1]["state"] == {"visits": 0}


@pytest.mark.parametrize(
    "method,path,body,status",
    [
        ("PATCH", "/cells/Room/lobby", {"set": {"visit": 1}}, 422),
        ("PATCH", "/cells/Room/lobby", {"set": {"visits": "many"}}, 422),
        ("PATCH", "/cells/Room/lobby", {"set": 3}, 422),
        ("PATCH", "/cells/Room/lobby", {}, 422),
        ("PUT", "/cells/Room/lobby", {"visits": 3}, 422),
        ("GET", "/cells/Room/lobby/fields/visit", None, 422),
        ("GET", "/cells/Rom/lobby", None, 404),
        ("GET", "/cells/Rom", None, 404),
        ("GET", "/cells/Room?limit=0", None, 422),
    ],
)
async def test_what_is_asked_wrongly_changes_nothing(
    client: AsyncClient, method: str, path: str, body: Any, status: int
) -> None:
    await asked(client, "PUT", "/cells/Room/lobby")
    assert (await asked(client, method, path, body))[0] == status
    assert (await asked(client, "GET", "/cells/Room/lobby"))[1]["state"] == {"visits": 0}


async def test_who_would_rather_not_wait_is_answered_once_it_is_in_the_box(client: AsyncClient) -> None:
    await asked(client, "PUT", "/cells/Room/lobby")
    path, body = "/cells/Room/lobby/turns", {"program": "greet('a')"}
    said = {"prefer": "respond-async", "idempotency-key": "k"}
    for _ in range(2):
        assert await asked(client, "POST", path, body, **said) == (202, {"outcome": "posted", "id": "k", "owner": None})
    assert await asked(client, "POST", path, body, **{"idempotency-key": "k"}) == (
        200,
        {"branch": "", "value": "hello a", "ran": 1},
    )
    assert (await asked(client, "GET", "/cells/Room/lobby"))[1]["state"] == {"visits": 1}
    assert (await asked(client, "POST", path, body, prefer="respond-async"))[0] == 422


async def test_a_method_may_be_posted_too_and_is_answered_under_its_key(client: AsyncClient) -> None:
    await asked(client, "PUT", "/cells/Room/lobby")
    path, body = "/cells/Room/lobby/turns", {"method": "greet", "arguments": {"name": "it's \\ \u00e9\n"}}
    said = {"prefer": "respond-async", "idempotency-key": "k"}
    for _ in range(2):
        assert await asked(client, "POST", path, body, **said) == (202, {"outcome": "posted", "id": "k", "owner": None})
    answered = {"branch": "", "value": "hello it's \\ \u00e9\n", "ran": 1}
    assert await asked(client, "POST", path, body, **{"idempotency-key": "k"}) == (200, answered)
    assert (await asked(client, "GET", "/cells/Room/lobby"))[1]["state"] == {"visits": 1}
    other = {**body, "arguments": {"name": "x"}}
    assert (await asked(client, "POST", path, other, **{"idempotency-key": "k"}))[0] == 422
    for wrong in (
        {"method": "a b"},
        {"method": "greet", "arguments": [1]},
        {"method": "greet", "arguments": {"a b": 1}},
    ):
        assert (await asked(client, "POST", path, wrong, **{**said, "idempotency-key": "w"}))[0] == 422


# --- agents -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_keeps_its_memory_in_a_cell(client: AsyncClient, mode: Any) -> None:
    transport = streamable_http_client(f"{LOCAL}/mcp", http_client=client)
    async with Client(transport, mode=mode) as agent:
        tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert {"agent_memory_recall", "agent_memory_remember", "agent_memory_run"} <= tools.keys()
        assert not [name for name in tools if name.startswith("room") or name.endswith("ticket")]
        takes = tools["agent_memory_remember"].input_schema
        assert (list(takes["properties"]), takes["required"]) == (
            ["id", "topic", "text", "at_most"],
            ["id", "topic", "text"],
        )
        assert takes["properties"]["at_most"] == {"type": "integer", "default": 3}
        said = str(tools["agent_memory_run"].description)
        assert "- recall(topic: str) -> str | None: What was remembered." in said
        assert "- remember(topic: str, text: str, at_most: int = 3) -> Kept | Full (costs 5)" in said
        done = await agent.call_tool("agent_memory_remember", {"id": "c42", "topic": "rent", "text": "on the 1st"})
        assert done.structured_content == {"branch": "Kept", "value": {"type": "Kept", "topic": "rent"}, "ran": 1}
        program = "found = recall('rent')\n[found, recall('other')]"
        ran = await agent.call_tool("agent_memory_run", {"id": "c42", "program": program})
        assert ran.structured_content == {"branch": "", "value": ["on the 1st", None], "ran": 2}


@pytest.mark.parametrize(
    "tool,arguments,told",
    [
        ("agent_memory_recall", {"topic": "rent"}, "id: must be the cell's name"),
        ("agent_memory_recall", {"id": "c", "topik": "rent"}, "did you mean 'topic'"),
        ("agent_memory_run", {"id": "c", "program": ""}, "must be the text of a program"),
        ("agent_memory_run", {"id": "c", "program": "1", "more": 2}, "more: is not an argument here"),
        ("agent_memory_run", {"id": "c", "program": "recal('x')"}, "Did you mean 'recall'?"),
        ("agent_memory_run", {"id": "c", "program": "x = 1\n1 / 0"}, "It had run 1 of 2 statements."),
    ],
)
async def test_a_fault_is_told_to_an_agent_in_words(
    client: AsyncClient, tool: str, arguments: dict[str, Any], told: str
) -> None:
    transport = streamable_http_client(f"{LOCAL}/mcp", http_client=client)
    async with Client(transport) as agent:
        result = await agent.call_tool(tool, arguments)
        assert result.is_error
        assert told in result.content[0].text  # type: ignore[union-attr] # faults are text


async def test_a_tool_of_two_owners_is_refused_at_load() -> None:
    @actuator(name="agent_memory_recall")
    async def other(run: Run) -> None:
        """The same name."""

    with pytest.raises(
        LoadRefused, match=r"the tool .agent_memory_recall. of AgentMemory\.recall is that of another tool"
    ):
        await open_host(settle(code={"store": "memory:"}), [AgentMemory, other])
