"""serve.mcp.server - one server of the protocol, wired to calls, tasks and the listing.

For: the low-level Server with dict results, both eras on one address, JSON answers, no sessions.
Never: a second server per actuator (the path says which one is meant); a schema check.
Was wrong once: an exception left to the package. It becomes "internal error", and nobody learns why.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER as NAME_HEADER
from mcp.shared.inbound import decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    CallToolRequestParams,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from onefold.serve import bodies
from onefold.serve.door import Caller, Host
from onefold.serve.mcp import telling
from onefold.serve.mcp.agents import CALLER, ONLY
from onefold.serve.mcp.calls import EXTENSION, Calls, Request, declared
from onefold.serve.mcp.listing import Listing
from onefold.serve.mcp.tasks import TaskParams, Tasks, UpdateParams, admit
from onefold.serve.mcp.telling import COMPLETE
from onefold.serve.problems import Unexpected
from onefold.serve.version import version
from onefold.terms.limits import MAX_BODY_BYTES

LIST_TTL_MS = 60_000  # a redeploy may change the list; a minute is what a client may miss of it
INSTRUCTIONS = (
    "These tools do durable work: once a call is accepted it goes on, whatever happens to this connection. A call "
    "that does not finish at once answers with a receipt that opens with `Not finished`; ask get_run for it later "
    "instead of calling again. To send a call again safely, give it the same key in _meta, as onefold/idempotencyKey."
)

Context = ServerRequestContext[Any, Any]


class Served:
    """The handlers. Each gets what it needs out of the request that our own door put there."""

    def __init__(self, host: Host, calls: Calls, listing: Listing) -> None:
        self._listing = listing
        self._calls = calls
        self._tasks = Tasks(host)

    async def list_tools(self, ctx: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        if params.cursor:
            raise MCPError(code=INVALID_PARAMS, message="The list has one page; this cursor is none of ours.")
        return {"tools": self._listing.of(_only(ctx)), **COMPLETE}

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> dict[str, Any]:
        only = _only(ctx)
        if not self._calls.knows(params.name, only):
            raise MCPError(code=INVALID_PARAMS, message=self._calls.unknown(params.name, self._listing.names(only)))
        request = _request(ctx)
        call = Request(
            caller=_caller(ctx),
            arguments=params.arguments or {},
            meta=(meta := _meta(ctx)),
            header_keys=tuple(v for k, v in request.scope["headers"] if k == b"idempotency-key"),
            receive=request.receive,
            tasks=ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and declared(meta),
            only=only,
        )
        try:
            result = await self._calls.call(params.name, call)
            return self._calls.signed(result) if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else result
        except bodies.ClientGone:
            return telling.fault(params.name, Unexpected("closed stream", "tools/call"))

    def _admit(self, ctx: Context, params: TaskParams) -> None:
        """Raises: MCPError for who may not ask, or whose headers say something else than the body."""
        admit(ctx.protocol_version, _meta(ctx), ctx.method)
        named = _request(ctx).headers.get(NAME_HEADER)
        if named is not None and decode_header_value(named) != params.task_id:
            raise MCPError(code=HEADER_MISMATCH, message="The Mcp-Name header names another task than the body.")

    async def get_task(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        self._admit(ctx, params)
        return await self._tasks.get(params.task_id, _caller(ctx))

    async def update_task(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        self._admit(ctx, params)
        return await self._tasks.update(params.task_id, _caller(ctx))

    async def cancel_task(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        self._admit(ctx, params)
        return await self._tasks.cancel(params.task_id, _caller(ctx))

    async def no_prompts(self, ctx: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def no_resources(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[])

    async def no_templates(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[])

    def mirrored(self, name: str) -> Mapping[str, Any] | None:
        return self._listing.mirrored(name)


def _meta(ctx: Context) -> Mapping[str, Any]:
    meta = (ctx.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def _request(ctx: Context) -> Any:
    """The HTTP request. Every way in here has one: nothing but HTTP is served."""
    if ctx.request is None:
        raise Unexpected("call without a request", ctx.method)
    return ctx.request


def _caller(ctx: Context) -> Caller:
    caller: Caller = _request(ctx).scope[CALLER]
    return caller


def _only(ctx: Context) -> str | None:
    only: str | None = _request(ctx).scope[ONLY]
    return only


def build(host: Host, calls: Calls, listing: Listing) -> StreamableHTTPSessionManager:
    """The session manager, whose `run()` is to be entered once. Host and Origin are checked before it."""
    served = Served(host, calls, listing)
    hint = CacheHint(ttl_ms=LIST_TTL_MS, scope="private")
    server: Server[Any] = Server(
        host.catalog.title,
        version=version(),
        instructions=INSTRUCTIONS,
        cache_hints={
            "tools/list": hint,
            "prompts/list": hint,
            "resources/list": hint,
            "resources/templates/list": hint,
            "server/discover": hint,
        },
        get_tool_input_schema=served.mirrored,
        on_list_prompts=served.no_prompts,
        on_list_resources=served.no_resources,
        on_list_resource_templates=served.no_templates,
    )
    server.add_request_handler("tools/list", PaginatedRequestParams, served.list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, served.call_tool)
    server.add_request_handler("tasks/get", TaskParams, served.get_task)
    server.add_request_handler("tasks/update", UpdateParams, served.update_task)
    server.add_request_handler("tasks/cancel", TaskParams, served.cancel_task)
    server.extensions[EXTENSION] = {}
    if "opentelemetry.sdk" not in sys.modules:
        server.middleware.clear()  # its one piece traces for nobody then, and costs a tenth of a call
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, security_settings=None, max_request_body_size=MAX_BODY_BYTES
    )
