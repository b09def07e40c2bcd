"""A real agent's client, in both eras: lists the tool, calls it, gets a receipt, waits for a person, sees the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp_types import TextContent

from tests.example.caller import TOOL, Order, nonce
from tests.example.shop import Shop, links

ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
both = pytest.mark.parametrize("mode", ERAS)
KEY = "onefold/idempotencyKey"
SMALL, BIG = Order("1", "40"), Order("2", "150")


def texts(told: Any) -> list[str]:
    return [part.text for part in told.content if isinstance(part, TextContent)]


async def paid(shop: Shop) -> list[tuple[str, str]]:
    return [(one["bill"], one["amount"]) for one in (await shop.provider.book())["refunds"]]


@both
async def test_the_tool_is_listed_with_what_it_takes_and_gives(open_shop: Shop, mode: str) -> None:
    async with open_shop.agent(mode) as agent:
        assert agent.protocol_version == ERAS[mode]
        listed = (await agent.list_tools()).tools
    assert [tool.name for tool in listed] == [TOOL, "get_run", "list_runs", "cancel_run", "send_event"]
    tool = listed[0]
    assert tool.description is not None
    assert tool.description.startswith("Pay an order back. Above 100 a manager must agree.")
    schema = tool.input_schema
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert set(schema["required"]) == set(schema["properties"]) == set(SMALL.arguments)
    assert "$ref" not in str(schema)


@both
async def test_below_the_limit_it_is_done_at_once_and_once(open_shop: Shop, mode: str) -> None:
    key: Any = {KEY: "k"}
    async with open_shop.agent(mode) as agent:
        await agent.list_tools()  # so that the client checks each answer against the output schema
        first = await agent.call_tool(TOOL, SMALL.arguments, meta=key)
        again = await agent.call_tool(TOOL, SMALL.arguments, meta=key)
        other = await agent.call_tool(TOOL, SMALL.arguments | {"amount": "41"}, meta=key)
        unkeyed = await agent.call_tool(TOOL, SMALL.arguments)
    assert first.structured_content["result"] == {"type": "Refunded", "refund_id": "re_1"}
    assert first.structured_content == again.structured_content
    assert (other.is_error, "'k'" in texts(other)[0]) == (True, True)
    assert unkeyed.structured_content["result"] == first.structured_content["result"]  # the order was paid back already
    assert await paid(open_shop) == [("bill-1", "40")]


@both
async def test_bad_arguments_are_told_in_words_and_start_nothing(open_shop: Shop, mode: str) -> None:
    async with open_shop.agent(mode) as agent:
        told = await agent.call_tool(TOOL, SMALL.arguments | {"amount": 900})
        listed = await agent.call_tool("list_runs", {})
    assert told.is_error is True
    assert texts(told) == [f"{TOOL}: nothing was started.\n- amount: must be at most 500; sent 900"]
    assert listed.structured_content["items"] == []
    assert await paid(open_shop) == []


@both
async def test_above_the_limit_a_person_agrees_in_the_browser(open_shop: Shop, mode: str) -> None:
    key: Any = {KEY: "k"}
    async with open_shop.agent(mode) as agent:
        await agent.list_tools()
        asked = await agent.call_tool(TOOL, BIG.arguments, meta=key)
        run = asked.structured_content["run_id"]
        assert asked.structured_content["status"] == "waiting"
        assert texts(asked)[0].startswith(f'Not finished: {TOOL} is waiting for approval "manager" until ')
        assert f"Call get_run with run_id {run}" in texts(asked)[0]

        waiting = asyncio.create_task(agent.call_tool("get_run", {"run_id": run}))  # long-polls
        approve, _ = links(await open_shop.post.asks(BIG.id))
        page = await open_shop.app.http.get(approve)
        assert not waiting.done()
        form = {"nonce": nonce(page.text), "choice": "approve", "reason": "the parcel came back"}
        decided = await open_shop.app.http.post(approve, data=form)
        assert decided.status_code == 200
        seen = await waiting
        while seen.structured_content["status"] != "done":
            seen = await agent.call_tool("get_run", {"run_id": run})
        again = await agent.call_tool(TOOL, BIG.arguments, meta=key)
    assert seen.structured_content["result"] == {"type": "Refunded", "refund_id": "re_1"}
    assert again.structured_content == seen.structured_content
    assert await paid(open_shop) == [("bill-2", "150")]


@both
async def test_a_call_for_the_same_order_meets_the_run_that_waits(open_shop: Shop, mode: str) -> None:
    async with open_shop.agent(mode) as agent:
        first = await agent.call_tool(TOOL, BIG.arguments)
        again = await agent.call_tool(TOOL, BIG.arguments)
        other = await agent.call_tool(TOOL, BIG.arguments | {"amount": "151"})
    assert first.structured_content["run_id"] == again.structured_content["run_id"]
    assert other.is_error is True
    assert "order_id" in texts(other)[0]
    await open_shop.post.asks(BIG.id)
    assert len(open_shop.post.letters) == 1
