"""The protocol by hand: one POST of either era, for what no honest client would send."""

from __future__ import annotations

from typing import Any

from httpx2 import AsyncClient, Response

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
META = "io.modelcontextprotocol/"


def envelope(capabilities: Any = None, **meta: Any) -> dict[str, Any]:
    """What each request of the new era carries."""
    return {
        f"{META}protocolVersion": MODERN,
        f"{META}clientInfo": {"name": "test", "version": "1"},
        f"{META}clientCapabilities": capabilities or {},
        **meta,
    }


async def post(
    client: AsyncClient,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    capabilities: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
    path: str = "/mcp",
    headers: dict[str, str] | None = None,
    modern: bool = True,
    id: int = 1,
) -> Response:
    given = dict(params or {})
    given["_meta"] = envelope(capabilities, **(meta or {})) if modern else (meta or {})
    sent = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN if modern else LEGACY,
        **({"mcp-method": method} if modern else {}),
        **({"mcp-name": given["name"]} if modern and "name" in given else {}),
        **(headers or {}),
    }
    return await client.post(path, json={"jsonrpc": "2.0", "id": id, "method": method, "params": given}, headers=sent)


async def result(client: AsyncClient, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    told = await post(client, method, params, **more)
    assert told.status_code == 200, told.text
    found: dict[str, Any] = told.json()["result"]
    return found


async def error(client: AsyncClient, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await post(client, method, params, **more)).json()["error"]
    return found


async def call(client: AsyncClient, name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return await result(client, "tools/call", {"name": name, "arguments": arguments}, **more)
