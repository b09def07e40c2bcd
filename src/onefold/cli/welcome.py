"""cli.welcome - what a person needs to try an app: its addresses, ready to paste.

For: console, MCP with a client's configuration line, OpenAPI, a curl for each tool, and the names of all other parts.
Never: prints a key; guesses arguments beyond what the schema shows.
Was wrong once: addresses alone. The first thing everybody did was to look up how an MCP client is
told about one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from onefold.cli.show import compact, plain


def addresses(title: str, url: str, tools: Mapping[str, Any], *, keyed: bool) -> Iterator[str]:
    """The lines to print. `tools`: name -> input schema. `keyed`: calls need a bearer key."""
    config = {"mcpServers": {title: {"type": "http", "url": f"{url}/mcp"}}}
    if keyed:
        config["mcpServers"][title]["headers"] = {"Authorization": "Bearer ${ONEFOLD_KEY}"}  # type: ignore[assignment]
    yield f"  console   {url}/console"
    yield f"  approvals {url}/approve"
    yield f"  MCP       {url}/mcp"
    yield f"            {compact(config)}"
    yield f"  OpenAPI   {url}/openapi.json"
    bearer = ' -H "Authorization: Bearer $ONEFOLD_KEY"' if keyed else ""
    for name, schema in tools.items():
        body = shlex.quote(compact(sample(schema)))
        yield f"  {name}"
        yield f"            curl {url}/tools/{name}{bearer} -H 'Content-Type: application/json' -d {body}"


def parts(url: str, named: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """A line for each kind of part that the app has: `named` is kind -> names, in the order to show. Where a kind has a
    page or a route of its own, its address stands first.
    """
    for kind, names in named.items():
        told = [plain(name) for name in names]
        told = told if len(told) <= MOST else [*told[:MOST], f"and {len(told) - MOST} more"]
        if told:
            yield f"  {kind:<9} {url}{PLACES[kind]}"
            yield f"            {', '.join(told)}"


MOST = 20  # names of one kind; an app may have a thousand
PLACES = {
    "modules": "/modules/{module}/events",
    "timers": "/modules/{module}/events",
    "cells": "/cells/{shape}/{id}",
    "reflexes": "/console/reflexes",
    "hooks": "/hooks/{name}",
    "signals": "/facts/{signal}",
}


def happened(happening: Any) -> str:
    """One line for one happening."""
    at: datetime = happening.at
    return f"{at.astimezone():%H:%M:%S}  {plain(happening.text)}"


def sample(schema: Mapping[str, Any]) -> Any:
    """Something that could be sent: the example or default a schema names, else the least of its type."""
    for known in ("examples", "enum"):
        if schema.get(known):
            return schema[known][0]
    for known in ("const", "default"):
        if known in schema:
            return schema[known]
    for known in ("anyOf", "oneOf"):
        if schema.get(known):
            return sample(schema[known][0])
    return _least(schema)


def _least(schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            required = schema.get("required", ())
            return {name: sample(one) for name, one in schema.get("properties", {}).items() if name in required}
        case "array":
            return [sample(schema["items"])] if schema.get("minItems") and "items" in schema else []
        case "integer" | "number":
            return max(1, schema.get("minimum", 1), schema.get("exclusiveMinimum", 0) + 1)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return _FORMATS.get(schema.get("format", ""), "text")


_FORMATS = {
    "date": "2026-12-01",
    "date-time": "2026-12-01T12:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uri": "https://example.com",
    "email": "somebody@example.com",
}
