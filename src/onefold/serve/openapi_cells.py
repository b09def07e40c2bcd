"""serve.openapi_cells - the paths of the document that speak of cells.

For: what a cell's routes take, give and refuse.
Never: a path for each shape: a document of a hundred shapes would say the same thing a hundred times.
"""

from __future__ import annotations

from typing import Any, Final

from onefold.serve.openapi_parts import JSON, TEXT, of, ref
from onefold.serve.openapi_paths import empty_body, json_body, operation, page_of, path_of, query_of

_KEY: Final = ref("parameters", "IdempotencyKey")
_CELL: Final = of(["id", "shape", "state"], id=TEXT, shape=TEXT, state={"type": "object"})
_TURN: Final = of(["branch", "value", "ran"], branch=TEXT, value={}, ran={"type": "integer", "minimum": 0})
_CALL: Final = {
    "type": "object",
    "properties": {"method": TEXT, "arguments": {"type": "object"}, "program": TEXT},
    "additionalProperties": False,
}
_SET: Final = {
    "type": "object",
    "required": ["set"],
    "properties": {"set": {"type": "object"}},
    "additionalProperties": False,
}
_WRITES: Final = ("409", "413", "422", "429")


def paths() -> dict[str, Any]:
    """The paths of cells."""
    one = path_of("shape", "id")
    return {
        "/cells/{shape}": {
            "get": operation(
                "list_cells",
                "cells",
                "The ids of a shape's cells, in order; retired ones too.",
                page_of(of(["id"], id=TEXT)),
                parameters=[
                    *path_of("shape"),
                    query_of("prefix"),
                    ref("parameters", "Limit"),
                    ref("parameters", "After"),
                ],
                refused=("422",),
            )
        },
        "/cells/{shape}/{id}": _one(one),
        "/cells/{shape}/{id}/fields/{field}": {
            "get": operation(
                "get_field",
                "cells",
                "One field: its value, or that nobody has set it.",
                of(["outcome"], outcome={"enum": ["value", "unset"]}, value={}),
                parameters=path_of("shape", "id", "field"),
                refused=("422",),
            )
        },
        "/cells/{shape}/{id}/turns": {"post": _turns(one)},
        "/cells/{shape}/{id}/evict": {
            "post": operation(
                "evict",
                "cells",
                "Let it leave memory; nothing is lost.",
                of(["outcome"], outcome={"enum": ["evicted", "absent"]}),
                parameters=one,
                body=empty_body(),
                refused=("413", "422", "429"),
            )
        },
    }


def _one(one: list[dict[str, Any]]) -> dict[str, Any]:
    spawned = of(["outcome"], outcome={"enum": ["spawned", "resident"]})
    spawn = operation(
        "spawn",
        "cells",
        "Let it exist. 201 when it is new, 200 when it was there.",
        spawned,
        parameters=[*one, _KEY],
        body=empty_body(),
        refused=_WRITES,
    )
    spawn["responses"]["201"] = spawn["responses"]["200"]
    return {
        "put": spawn,
        "get": operation("read_cell", "cells", "Its committed record.", _CELL, parameters=one, refused=("422",)),
        "patch": operation(
            "capture",
            "cells",
            "Set fields, in one commit.",
            _CELL,
            parameters=[*one, _KEY],
            body=json_body(_SET),
            refused=_WRITES,
        ),
        "delete": operation(
            "retire",
            "cells",
            "Let it exist no longer.",
            None,
            parameters=[*one, _KEY],
            body=empty_body(),
            refused=_WRITES,
        ),
    }


def _turns(one: list[dict[str, Any]]) -> dict[str, Any]:
    turn = operation(
        "turn",
        "cells",
        "A method with its arguments, or a program: one turn, one commit. Either may be posted: respond-async.",
        _TURN,
        parameters=[*one, _KEY, ref("parameters", "Prefer")],
        body=json_body(_CALL),
        refused=_WRITES,
    )
    posted = of(["outcome", "id"], outcome={"const": "posted"}, id=TEXT, owner={"type": ["string", "null"]})
    turn["responses"]["202"] = {"description": "In the cell's box.", "content": {JSON: {"schema": posted}}}
    return turn
