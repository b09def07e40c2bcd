"""What the protocol asks of a server, and what nobody may do to one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold.serve import Front
from onefold.serve.bodies import Waits
from onefold.serve.mcp.calls import Calls
from onefold.serve.mcp.listing import Listing
from onefold.serve.mcp.server import build
from tests.serve.conftest import AGENT_KEY, READER_KEY, Keyed
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import Outcome, waiting_for_manager
from tests.serve.mcp.wire import LEGACY, MODERN, call, envelope, error, post, result
from tests.serve.raw import Asgi

ORDER = {"order_id": "7", "amount": 1}


async def test_discover_says_who_we_are_and_what_we_do(client: AsyncClient) -> None:
    told = await result(client, "server/discover")
    assert MODERN in told["supportedVersions"]
    assert told["capabilities"]["tools"] == {"listChanged": False}
    assert told["capabilities"]["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    assert "onefold/idempotencyKey" in told["instructions"]
    assert told["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "Shop tools"


async def test_lists_are_stable_say_how_long_they_hold_and_set_every_hint(client: AsyncClient) -> None:
    first, again = await result(client, "tools/list"), await result(client, "tools/list")
    assert first == again
    assert (first["ttlMs"], first["cacheScope"]) == (60_000, "private")
    for tool in first["tools"]:
        assert set(tool["annotations"]) == {
            "title",
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            assert schema["type"] == "object"
            assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()
        assert tool["inputSchema"]["additionalProperties"] is False


async def test_a_tools_schemas_go_out_as_the_actuator_has_them(host: FakeHost, client: AsyncClient) -> None:
    listed = {tool["name"]: tool for tool in (await result(client, "tools/list"))["tools"]}
    for name in ("refund_order", "slow_report"):
        actuator = host.catalog.actuators[name]
        assert listed[name]["inputSchema"] == actuator.input_schema
        assert listed[name]["outputSchema"] == actuator.output_schema
        assert listed[name]["description"] == actuator.description
    assert listed["slow_report"]["annotations"]["readOnlyHint"] is True
    assert listed["slow_report"]["annotations"]["destructiveHint"] is False


async def test_prompts_and_resources_are_empty_lists(client: AsyncClient) -> None:
    for method, field in (("prompts/list", "prompts"), ("resources/list", "resources")):
        assert (await result(client, method))[field] == []
    assert (await result(client, "resources/templates/list"))["resourceTemplates"] == []


async def test_a_schema_is_looked_up_and_never_listed_for(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = build(host, Calls(host, Waits()), Listing(host.catalog))
    assert sessions.app.get_tool_input_schema is not None
    assert Listing(host.catalog).mirrored("refund_order") is None


async def test_the_key_in_meta_goes_before_the_header_and_the_rpc_id_is_none(
    host: FakeHost, client: AsyncClient
) -> None:
    header = {"idempotency-key": '"from-the-header"'}
    await call(client, "refund_order", ORDER, headers=header, id=2)
    await call(client, "refund_order", ORDER, headers=header, meta={"onefold/idempotencyKey": "from-meta"}, id=2)
    await call(client, "refund_order", ORDER, id=2)
    await call(client, "refund_order", ORDER, id=2)
    assert [one[2] for one in host.acted] == ["from-the-header", "from-meta", None, None]


@pytest.mark.parametrize("key", ["", 7, ["a"], {}])
async def test_a_key_that_is_no_text_starts_nothing(host: FakeHost, client: AsyncClient, key: Any) -> None:
    told = await call(client, "refund_order", ORDER, meta={"onefold/idempotencyKey": key})
    assert (told["isError"], host.acted) == (True, [])


MALFORMED = [b"{", b"", b'{"a":1,"a":2}', b'{"x":NaN}', b'{"x":1e999}', b'"\\ud800"', b"[" * 200 + b"]" * 200]


@pytest.mark.parametrize("raw", MALFORMED)
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_a_body_that_is_no_json_is_a_parse_error(client: AsyncClient, raw: bytes, version: str) -> None:
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "content-type": "application/json",
    }
    told = await client.post("/mcp", content=raw, headers=headers)
    assert (told.status_code, told.json()["error"]["code"], told.json()["id"]) == (400, -32700, None)


async def test_a_batch_or_half_a_request_is_refused(client: AsyncClient) -> None:
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": MODERN}
    for body in ([], [{"jsonrpc": "2.0", "id": 1, "method": "ping"}], {"jsonrpc": "2.0", "id": None}, 7, "x"):
        assert (await client.post("/mcp", json=body, headers=headers)).status_code == 400


async def test_without_its_envelope_a_request_of_the_new_era_is_refused(client: AsyncClient) -> None:
    headers = {
        "accept": "application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/list",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    told = await client.post("/mcp", json=body, headers=headers)
    assert (told.status_code, told.json()["error"]["code"]) == (400, -32602)


async def test_a_header_that_contradicts_the_body_is_refused(host: FakeHost, client: AsyncClient) -> None:
    for header in ({"mcp-name": "slow_report"}, {"mcp-method": "tools/list"}):
        told = await error(client, "tools/call", {"name": "refund_order", "arguments": ORDER}, headers=header)
        assert told["code"] == -32020
    assert host.acted == []


async def test_blanks_around_a_headers_value_are_no_part_of_it(client: AsyncClient) -> None:
    told = await call(client, "refund_order", ORDER, headers={"mcp-name": " refund_order \t"})
    assert told["isError"] is False


async def test_an_unknown_revision_is_told_which_there_are(client: AsyncClient) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    told = await post(client, "tools/list", meta=meta, headers={"mcp-protocol-version": "2031-01-01"})
    assert (told.status_code, told.json()["error"]["code"]) == (400, -32022)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_revision_is_served_without_a_session(client: AsyncClient, version: str) -> None:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    headers = {"accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    told = await client.post("/mcp", json=body, headers=headers)
    assert told.json()["result"]["protocolVersion"] == version
    assert "mcp-session-id" not in told.headers
    listed = await post(client, "tools/list", modern=False, headers={"mcp-protocol-version": version})
    assert len(listed.json()["result"]["tools"]) == 6


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_is_no_stream_and_no_session_to_open_or_end(client: AsyncClient, method: str) -> None:
    told = await client.request(method, "/mcp", headers={"accept": "text/event-stream"})
    assert (told.status_code, told.headers["allow"]) == (405, "POST")


async def test_a_tool_that_is_not_offered_has_no_address(client: AsyncClient) -> None:
    for name in ("nightly", "nowhere"):
        assert (await post(client, "tools/list", path=f"/tools/{name}/mcp")).status_code == 404


async def test_keys_and_names_are_checked_before_the_protocol(locked: FakeHost, holding: Keyed, front: Front) -> None:
    for key, status in ((None, 401), ("wrong-key-0123456789", 401), (READER_KEY, 200)):
        async with holding(key) as client:
            assert (await post(client, "tools/list")).status_code == status
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    foreign = Asgi(front, "POST", "/mcp", body=body, host=(b"host", b"evil.test"))
    assert (await foreign.ended()).status == 421
    page = Asgi(front, "POST", "/mcp", body=body, headers=[(b"origin", b"http://evil.test")])
    assert (await page.ended()).status == 403


async def test_an_agent_acts_as_its_keys_principal_whatever_it_says(locked: FakeHost, holding: Keyed) -> None:
    async with holding(AGENT_KEY) as client:
        await call(client, "refund_order", ORDER, meta={"principal": "somebody else"})
    assert next(iter(locked.runs.values())).principal == "studio"


async def test_a_closed_stream_ends_the_wait_and_not_the_run(host: FakeHost, front: Front, client: AsyncClient) -> None:
    await result(client, "tools/list")  # the package is loaded
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    for modern in (True, False):
        params: dict[str, Any] = {"name": "refund_order", "arguments": ORDER}
        params["_meta"] = envelope() if modern else {}
        sent = client.build_request(
            "POST", "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        )
        headers = [
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
            (b"mcp-protocol-version", (MODERN if modern else LEGACY).encode()),
            *([(b"mcp-method", b"tools/call"), (b"mcp-name", b"refund_order")] if modern else []),
        ]
        one = Asgi(front, "POST", "/mcp", body=sent.content, headers=headers)
        await one.until(lambda: host.waiting == 1)
        one.leave()
        await one.ended()
        assert host.waiting == 0
    assert [run.receipt.status for run in host.runs.values()] == ["running", "running"]


async def test_a_process_that_leaves_answers_with_a_receipt(host: FakeHost, front: Front, client: AsyncClient) -> None:
    await result(client, "tools/list")
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    waiting = asyncio.create_task(call(client, "refund_order", ORDER))
    await host.waited.wait()
    front.drain()
    assert (await waiting)["structuredContent"]["status"] == "running"


async def test_a_call_that_waits_for_a_person_is_answered_at_once(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: waiting_for_manager()
    told = await call(client, "refund_order", ORDER)
    assert (told["structuredContent"]["status"], host.waited.is_set()) == ("waiting", False)


async def test_an_unforeseen_fault_is_a_result_without_its_words(
    host: FakeHost, client: AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*args: object, **named: object) -> Any:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(host, "start", broken)
    told = await call(client, "refund_order", ORDER)
    assert told["isError"] is True
    assert "hunter2" not in str(told)
    assert "unexpected RuntimeError in tool refund_order" in caplog.text


async def test_two_calls_at_once_with_one_key_are_one_run(host: FakeHost, client: AsyncClient) -> None:
    key = {"onefold/idempotencyKey": "k"}
    told = await asyncio.gather(*(call(client, "refund_order", ORDER, meta=key, id=n) for n in range(8)))
    assert len({one["structuredContent"]["run_id"] for one in told}) == 1
    assert len(host.acted) == 1
