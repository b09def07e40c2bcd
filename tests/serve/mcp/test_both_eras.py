"""The SDK's own client, in both eras, against one address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from httpx2 import AsyncClient
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from onefold.actuators.declare import actuator
from onefold.actuators.receipt import Trouble
from onefold.actuators.run import Run
from onefold.serve import asgi_app
from tests.serve.conftest import AGENT_KEY, LOCAL, Keyed, client_of
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import Outcome, waiting_for_manager

ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
Mode = Literal["auto", "legacy"]
both = pytest.mark.parametrize("mode", ERAS)


@asynccontextmanager
async def connected(client: AsyncClient, mode: str, path: str = "/mcp") -> AsyncIterator[Client]:
    async with Client(streamable_http_client(f"{LOCAL}{path}", http_client=client), mode=mode) as one:
        yield one


def texts(result: Any) -> list[str]:
    return [part.text for part in result.content if isinstance(part, TextContent)]


@both
async def test_an_agent_lists_calls_and_gets_the_result(client: AsyncClient, mode: Mode) -> None:
    async with connected(client, mode) as agent:
        assert agent.protocol_version == ERAS[mode]
        tools = (await agent.list_tools()).tools
        assert [tool.name for tool in tools] == [
            "refund_order",
            "slow_report",
            "get_run",
            "list_runs",
            "cancel_run",
            "send_event",
        ]
        told = await agent.call_tool("refund_order", {"order_id": "7", "amount": "40"})
    assert told.is_error is False
    assert told.structured_content["result"] == {"type": "Refunded", "refund_id": "re_1"}
    assert told.meta is not None
    assert told.meta["onefold/runId"] == told.structured_content["run_id"]
    assert len(texts(told)) == 1


@both
async def test_a_waiting_call_says_first_that_it_is_not_finished(
    host: FakeHost, client: AsyncClient, mode: Mode
) -> None:
    host.outcomes["refund_order"] = lambda _: waiting_for_manager()
    async with connected(client, mode) as agent:
        await agent.list_tools()  # so that the client checks the answer against the output schema
        told = await agent.call_tool("refund_order", {"order_id": "8", "amount": 150})
        id = told.structured_content["run_id"]
        first, receipt = texts(told)
        assert first == (
            'Not finished: refund_order is waiting for approval "manager" until 2026-05-29T20:26:40Z. '
            f"Call get_run with run_id {id} after 20 seconds or later to see how it ended. "
            "Do not call refund_order again for the same thing."
        )
        assert id in receipt
        host.end(id, {"type": "Refunded", "refund_id": "re_2"})
        later = await agent.call_tool("get_run", {"run_id": id, "wait_seconds": 0})
        again = await agent.call_tool("get_run", {"run_id": id})
    assert later.structured_content["result"]["refund_id"] == "re_2"
    assert again.structured_content == later.structured_content


@both
async def test_argument_faults_are_results_in_words(host: FakeHost, client: AsyncClient, mode: Mode) -> None:
    async with connected(client, mode) as agent:
        told = await agent.call_tool("refund_order", {"order_id": "8", "amount": 900, "amout": 1})
    assert told.is_error is True
    assert told.structured_content is None
    (words,) = texts(told)
    assert words.splitlines()[0] == "refund_order: nothing was started."
    assert "- amount: must be at most 500; sent 900" in words.splitlines()
    assert any(line.startswith("- amout: ") for line in words.splitlines())
    assert host.acted == []


@both
async def test_the_same_key_gives_the_first_run_and_other_arguments_a_conflict(
    host: FakeHost, client: AsyncClient, mode: Mode
) -> None:
    key: Any = {"onefold/idempotencyKey": "order-8"}
    async with connected(client, mode) as agent:
        first = await agent.call_tool("refund_order", {"order_id": "8", "amount": 1}, meta=key)
        again = await agent.call_tool("refund_order", {"order_id": "8", "amount": "1"}, meta=key)
        other = await agent.call_tool("refund_order", {"order_id": "8", "amount": 2}, meta=key)
    assert first.structured_content == again.structured_content
    assert (other.is_error, "order-8" in texts(other)[0]) == (True, True)
    assert len(host.acted) == 1


@both
async def test_a_failed_run_names_run_step_attempts_and_error(host: FakeHost, client: AsyncClient, mode: Mode) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("failed", error=Trouble("step_failed", "Http: 502", "pay", 5))
    async with connected(client, mode) as agent:
        told = await agent.call_tool("refund_order", {"order_id": "8", "amount": 1})
        id = next(iter(host.runs))
        look = await agent.call_tool("get_run", {"run_id": id})
    assert texts(told) == [f"refund_order: Run {id} failed in step 'pay': Http: 502 It was tried 5 times."]
    assert (told.is_error, told.structured_content, told.meta and told.meta["onefold/runId"]) == (True, None, id)
    assert (look.is_error, look.structured_content["status"]) == (False, "failed")


@both
async def test_an_unknown_tool_is_a_protocol_error_with_the_nearest_name(client: AsyncClient, mode: Mode) -> None:
    async with connected(client, mode) as agent:
        with pytest.raises(MCPError, match="Did you mean 'refund_order'") as told:
            await agent.call_tool("refund_ordr", {})
        assert told.value.code == -32602
        with pytest.raises(MCPError):
            await agent.call_tool("nightly", {})


@both
async def test_one_tool_has_an_address_of_its_own(client: AsyncClient, mode: Mode) -> None:
    async with connected(client, mode, "/tools/slow_report/mcp") as agent:
        assert [tool.name for tool in (await agent.list_tools()).tools][:2] == ["slow_report", "get_run"]
        assert (await agent.call_tool("slow_report", {})).structured_content["result"] == "the report"
        with pytest.raises(MCPError):
            await agent.call_tool("refund_order", {"order_id": "8", "amount": 1})


@both
async def test_runs_are_listed_cancelled_and_sent_events(host: FakeHost, client: AsyncClient, mode: Mode) -> None:
    host.outcomes["refund_order"] = lambda _: waiting_for_manager()
    async with connected(client, mode) as agent:
        await agent.list_tools()
        id = (await agent.call_tool("refund_order", {"order_id": "8", "amount": 1})).structured_content["run_id"]
        listed = await agent.call_tool("list_runs", {"program": "refund_order", "status": "waiting", "limit": 5})
        assert [one["run_id"] for one in listed.structured_content["items"]] == [id]
        sent = {"run_id": id, "event": "Paid", "body": {"sum": 1}, "key": "e1"}
        await agent.call_tool("send_event", sent)
        await agent.call_tool("send_event", sent | {"body": '{"sum": 1}'})
        gone = await agent.call_tool("cancel_run", {"run_id": id, "reason": "twice"})
    assert gone.structured_content["status"] == "cancelled"
    assert texts(gone)[0] == f"refund_order: Run {id} was cancelled."
    assert host.acted[1:] == [("send", id, "Paid", {"sum": 1}, "e1")] * 2 + [("cancel", id, "twice")]


@both
@pytest.mark.parametrize(
    "tool,arguments,line",
    [
        ("get_run", {}, "- run_id: is missing"),
        (
            "get_run",
            {"run_id": "x", "wait_seconds": 26},
            "- wait_seconds: must be a whole number from 0 to 25; sent 26",
        ),
        (
            "get_run",
            {"run_id": "x", "wait_seconds": True},
            "- wait_seconds: must be a whole number from 0 to 25; sent True",
        ),
        ("get_run", {"runid": "x", "run_id": "x"}, "- runid: is not an argument here; did you mean run_id?"),
        ("list_runs", {"status": "gone"}, "- status: must be one of"),
        ("send_event", {"run_id": "x", "event": "E", "body": [1]}, "- body: must be an object"),
        ("send_event", {"run_id": 1, "event": "E", "body": {}}, "- run_id: must be text; sent 1"),
    ],
)
async def test_our_own_tools_tell_faults_the_same_way(
    client: AsyncClient, mode: Mode, tool: str, arguments: dict[str, Any], line: str
) -> None:
    async with connected(client, mode) as agent:
        told = await agent.call_tool(tool, arguments)
    assert told.is_error is True
    assert [one for one in texts(told)[0].splitlines() if one.startswith(line)], texts(told)


@actuator
async def archive(run: Run) -> None:
    """Put everything away."""


@both
async def test_what_is_null_stays_null(mode: Mode) -> None:
    app = asgi_app(FakeHost(actuators=[archive]))
    async with client_of(app) as client, connected(client, mode) as agent:
        await agent.list_tools()
        told = await agent.call_tool("archive", {})
    assert told.structured_content["result"] is None
    await app.aclose()


@both
async def test_an_agent_without_the_right_is_told_so(locked: FakeHost, holding: Keyed, mode: Mode) -> None:
    async with holding(AGENT_KEY) as client, connected(client, mode) as agent:
        assert (await agent.call_tool("refund_order", {"order_id": "8", "amount": 1})).is_error is False
        look = await agent.call_tool("list_runs", {})
        one = await agent.call_tool("get_run", {"run_id": next(iter(locked.runs)), "wait_seconds": 0})
    assert (look.is_error, "needs the right 'operate or read'" in texts(look)[0]) == (True, True)
    assert one.is_error is False  # who may start a run may follow it
    assert next(iter(locked.runs.values())).principal == "studio"
