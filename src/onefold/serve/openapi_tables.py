"""serve.openapi_tables - what the document says of an actuator's own tables.

For: their names, a page or all of one, all of them as a file.
Never: what a tool takes and gives (openapi).
Was wrong once: rows as JSON alone in the document. A generated client could not ask for CSV.
"""

from __future__ import annotations

from typing import Any

from onefold.serve.openapi_parts import TEXT, ref
from onefold.serve.openapi_paths import operation, path_of, query_of

_LIMIT, _AFTER = ref("parameters", "Limit"), ref("parameters", "After")


def tables() -> dict[str, Any]:
    rows = operation(
        "get_rows",
        "operation",
        "Rows of a table, as JSON or CSV.",
        ref("schemas", "Rows"),
        parameters=[*path_of("name", "table"), _LIMIT, _AFTER],
        refused=("422",),
    )
    rows["responses"]["200"]["content"]["text/csv"] = {"schema": TEXT}
    names = {"type": "array", "items": TEXT}
    return {
        "/tools/{name}/tables": {
            "get": operation(
                "list_tables",
                "operation",
                "The tables of a tool's own database.",
                names,
                parameters=path_of("name"),
                refused=("422",),
            )
        },
        "/tools/{name}/tables/{table}": {"get": rows},
        "/tools/{name}/export": {"get": _export()},
    }


def _export() -> dict[str, Any]:
    kinds = query_of("as") | {"schema": {"type": "string", "enum": ["sql", "sqlite"], "default": "sql"}}
    whole = operation(
        "export",
        "operation",
        "The whole database of a tool, as SQL or as a SQLite file.",
        TEXT,
        parameters=[*path_of("name"), kinds],
        refused=("422",),
    )
    binary = {"type": "string", "format": "binary"}
    media = {"application/sql": {"schema": TEXT}, "application/vnd.sqlite3": {"schema": binary}}
    whole["responses"]["200"]["content"] = media
    return whole
