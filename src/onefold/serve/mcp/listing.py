"""serve.mcp.listing - which tools there are, as the protocol lists them.

For: one dict a tool, made once: the actuators with `tool=True` in the order of the application, then
the four that every run needs.
Never: changes a schema; leaves a hint out (a missing `destructiveHint` means yes).
Was wrong once: listed again for every call, to look up one schema. Half of a call's time went there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onefold.actuators.schema import STATUSES, output_schema
from onefold.serve.door import Actuator, Catalog

POLL: Final = 20
WAIT_MOST: Final = 25
LIST_LIMIT, LIST_MOST = 20, 100  # what an agent can read without losing its thread

_RECEIPT: Final = output_schema({})


def _hints(*, title: str, read_only: bool, destructive: bool, idempotent: bool, open_world: bool) -> dict[str, Any]:
    return {
        "title": title,
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": open_world,
    }


def _input(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


_RUN_ID: Final = {"type": "string", "description": "The run_id of a receipt."}
_PAGE: Final = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": _RECEIPT}, "next": {"type": "string"}},
    "required": ["items"],
}

RUN_TOOLS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "get_run",
        "description": (
            "What became of a run: its receipt, with the result once it is done. Waits up to wait_seconds for it to "
            "end. Reading never consumes anything: ask as often as needed, and not sooner than poll_after_seconds."
        ),
        "inputSchema": _input(
            {
                "run_id": _RUN_ID,
                "wait_seconds": {"type": "integer", "minimum": 0, "maximum": WAIT_MOST, "default": POLL},
            },
            ["run_id"],
        ),
        "outputSchema": _RECEIPT,
        "annotations": _hints(
            title="Look at a run", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
    },
    {
        "name": "list_runs",
        "description": "The latest runs you may see, newest first, as receipts. Filter by program or status.",
        "inputSchema": _input(
            {
                "program": {"type": "string", "description": "Only runs of this tool."},
                "status": {"type": "string", "enum": STATUSES},
                "limit": {"type": "integer", "minimum": 1, "maximum": LIST_MOST, "default": LIST_LIMIT},
            },
            [],
        ),
        "outputSchema": _PAGE,
        "annotations": _hints(title="List runs", read_only=True, destructive=False, idempotent=True, open_world=False),
    },
    {
        "name": "cancel_run",
        "description": "End a run for good, in whatever state it is. Steps already taken are not taken back.",
        "inputSchema": _input(
            {"run_id": _RUN_ID, "reason": {"type": "string", "description": "Why; it is kept with the run."}},
            ["run_id"],
        ),
        "outputSchema": _RECEIPT,
        "annotations": _hints(
            title="Cancel a run", read_only=False, destructive=True, idempotent=True, open_world=False
        ),
    },
    {
        "name": "send_event",
        "description": "Send a run an event it waits for, or will wait for. Give key to send it again safely.",
        "inputSchema": _input(
            {
                "run_id": _RUN_ID,
                "event": {"type": "string", "description": "The event's name, as in the run's waits."},
                "body": {"type": "object", "description": "The event's fields."},
                "key": {"type": "string", "description": "The same key with the same body counts once."},
            },
            ["run_id", "event", "body"],
        ),
        "outputSchema": _RECEIPT,
        "annotations": _hints(
            title="Send an event", read_only=False, destructive=False, idempotent=False, open_world=False
        ),
    },
)


def tool_of(actuator: Actuator) -> dict[str, Any]:
    """An actuator as the protocol lists it. Its schemas go out as they are."""
    hints = actuator.hints
    return {
        "name": actuator.name,
        "description": actuator.description,
        "inputSchema": actuator.input_schema,
        "outputSchema": actuator.output_schema,
        "annotations": _hints(
            title=actuator.name.replace("_", " ").capitalize(),
            read_only=hints.get("read_only", False),
            destructive=hints.get("destructive", True),
            idempotent=hints.get("idempotent", False),
            open_world=hints.get("open_world", True),
        ),
    }


class Listing:
    """Every tool, listed once for each set of them. `of(None)` is all; `of(name)` one actuator's, and the four for its runs."""

    def __init__(self, catalog: Catalog, cells: Sequence[dict[str, Any]] = ()) -> None:
        """`cells`: the tools of cells, as they are listed."""
        self._catalog = catalog
        self._cells = cells
        self._list()

    def _list(self) -> None:
        self._generation = self._catalog.generation
        tools = {one.name: tool_of(one) for one in self._catalog.actuators.values() if one.tool}
        self._tools = tools
        self._all = [*tools.values(), *self._cells, *RUN_TOOLS]
        self._mirrored = {name: tool["inputSchema"] for name, tool in tools.items() if _mirrors(tool["inputSchema"])}

    def of(self, only: str | None) -> list[dict[str, Any]]:
        if self._generation != self._catalog.generation:
            self._list()
        return self._all if only is None else [*filter(None, [self._tools.get(only)]), *RUN_TOOLS]

    def names(self, only: str | None) -> list[str]:
        return [tool["name"] for tool in self.of(only)]

    def mirrored(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool some of whose fields also come as headers; None for all others."""
        if self._generation != self._catalog.generation:
            self._list()
        return self._mirrored.get(name)


def _mirrors(schema: Any) -> bool:
    """Whether `x-mcp-header` stands anywhere in a schema."""
    if isinstance(schema, dict):
        return "x-mcp-header" in schema or any(_mirrors(part) for part in schema.values())
    return isinstance(schema, list) and any(_mirrors(part) for part in schema)
