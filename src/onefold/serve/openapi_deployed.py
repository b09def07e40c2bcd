"""serve.openapi_deployed - the paths of the document that speak of deployed files.

For: what is sent to deploy and to roll back, and what a version looks like.
Never: the tools of a deployed file: those stand with all others.
"""

from __future__ import annotations

from typing import Any, Final

from onefold.serve.openapi_parts import TEXT, of, ref
from onefold.serve.openapi_paths import json_body, operation, page_of, path_of

_COUNT: Final = {"type": "integer", "minimum": 1}
_VERSION: Final = of(
    ["file", "version", "generation", "tools", "by", "at"],
    file=TEXT,
    version=_COUNT,
    generation=_COUNT,
    tools={"type": "array", "items": TEXT},
    digest=TEXT,
    by=TEXT,
    at=TEXT,
    back_to=_COUNT,
)
_OUTCOME: Final = {
    **_VERSION,
    "required": ["outcome", *_VERSION["required"]],
    "properties": {"outcome": {"enum": ["deployed", "removed", "unchanged"]}, **_VERSION["properties"]},
}


def paths() -> dict[str, Any]:
    """The paths of deployed files."""
    pages = [ref("parameters", "Limit"), ref("parameters", "After")]
    source = {**of(["source"], source=TEXT), "additionalProperties": False}
    back = {**of(["version"], version=_COUNT), "additionalProperties": False}
    given = ("409", "413", "422", "429")
    rows = page_of(_VERSION)
    newest = operation(
        "list_deployed", "operation", "The newest version of each file.", rows, parameters=pages, refused=("422",)
    )
    versions = operation(
        "list_versions",
        "operation",
        "The versions of one file, newest first.",
        rows,
        parameters=[*path_of("file"), *pages],
        refused=("422",),
    )
    deploy = operation(
        "deploy",
        "operation",
        "Deploy a file: its actuators are tools at once. The same text again is the same version.",
        _OUTCOME,
        parameters=path_of("file"),
        body=json_body(source),
        refused=given,
    )
    rollback = operation(
        "rollback",
        "operation",
        "Make an earlier version of a file the newest again.",
        _OUTCOME,
        parameters=path_of("file"),
        body=json_body(back),
        refused=given,
    )
    remove = operation(
        "remove_deployed",
        "operation",
        "Take a file away: its tools are none any more, its databases stay.",
        _OUTCOME,
        parameters=path_of("file"),
        refused=given,
    )
    return {
        "/deployed": {"get": newest},
        "/deployed/{file}": {"get": versions, "put": deploy, "delete": remove},
        "/deployed/{file}/rollback": {"post": rollback},
    }
