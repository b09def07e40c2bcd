"""cli.welcome - what a person needs to try an app: its addresses, ready to paste.

For: console, MCP with a client's configuration line, OpenAPI, a curl for each tool.
Never: prints a key; guesses arguments beyond what the schema shows.
Was wrong once: addresses alone. The first thing everybody did was to look up how an MCP client is
told about one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
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
