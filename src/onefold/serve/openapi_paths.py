"""serve.openapi_paths - the paths of the document that no actuator brings.

For: runs, tables, modules, parked items, health: what goes in, what comes out, how it is refused.
Never: knows a host; leaves out a refusal a route can give.
Was wrong once: written out operation by operation. Half of them forgot that a key may lack a right.
"""

from __future__ import annotations

from typing import Any, Final

from onefold.serve.openapi_parts import JSON, TEXT, of, ref, refusals


def _page(item: dict[str, Any]) -> dict[str, Any]:
    return of(["items", "next"], items={"type": "array", "items": item}, next={"type": ["string", "null"]})


def _path(*names: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in names
    ]


def _query(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema or TEXT}


def _json(schema: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": {JSON: {"schema": schema}}}


def _operation(
    name: str,
    tag: str,
    summary: str,
    schema: dict[str, Any] | None,
    *,
    parameters: list[dict[str, Any]] | None = None,
    body: dict[str, Any] | None = None,
    refused: tuple[str, ...] = (),
    headers: tuple[str, ...] = (),
    open_to_all: bool = False,
) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Nothing to say." if schema is None else "As it is."}
    if headers:
        good["headers"] = {name: ref("headers", name) for name in headers}
    if schema is not None:
        good["content"] = {JSON: {"schema": schema}}
    told: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        "responses": {
            "204" if schema is None else "200": good,
            **refusals("400", "401", "403", "404", "503", *refused),
        },
    }
    if parameters:
        told["parameters"] = parameters
    if body:
        told["requestBody"] = body
    if open_to_all:
        told["security"] = []
    return told


_LIMIT, _AFTER = ref("parameters", "Limit"), ref("parameters", "After")
_RECEIPT: Final = ref("schemas", "Receipt")
_EMPTY: Final = {"type": "object", "additionalProperties": False}
_REASON: Final = {"type": "object", "properties": {"reason": TEXT}, "additionalProperties": False}
_STATUS: Final = {"enum": ["running", "waiting", "done", "failed", "cancelled", "parked"]}
_DECISION: Final = {
    "type": "object",
    "required": ["approve"],
    "properties": {"approve": {"type": "boolean"}, "reason": TEXT, "comment": TEXT, "value": {}},
    "additionalProperties": False,
}


def common() -> dict[str, Any]:
    """The paths that every application has."""
    return {
        **_looking_at_runs(),
        **_telling_runs(),
        **_forking_runs(),
        **_tables(),
        **_modules(),
        **_keeping(),
        **_parked(),
        **_health(),
    }


def _looking_at_runs() -> dict[str, Any]:
    filters = [_query("program"), _query("status", **_STATUS), _query("key"), _LIMIT, _AFTER]
    wait = _query("wait", type="integer", minimum=0, maximum=25, default=0)
    return {
        "/runs": {
            "get": _operation(
                "list_runs", "runs", "Runs, newest first.", _page(_RECEIPT), parameters=filters, refused=("422",)
            )
        },
        "/runs/{id}": {
            "get": _operation(
                "get_run",
                "runs",
                "A run's receipt, in any status.",
                _RECEIPT,
                parameters=[*_path("id"), wait],
                refused=("422",),
            )
        },
        "/runs/{id}/journal": {
            "get": _operation(
                "get_journal",
                "runs",
                "Every act of a run.",
                _page(ref("schemas", "JournalRow")),
                parameters=_path("id"),
                refused=("422",),
            )
        },
    }


def _telling_runs() -> dict[str, Any]:
    posted = ("409", "413", "422")
    events = [*_path("id", "event"), ref("parameters", "IdempotencyKey")]
    return {
        "/runs/{id}/events/{event}": {
            "post": _operation(
                "send_event",
                "runs",
                "Send a run an event.",
                _RECEIPT,
                parameters=events,
                body=_json({}),
                refused=posted,
            )
        },
        "/runs/{id}/cancel": {
            "post": _operation(
                "cancel_run",
                "runs",
                "End a run for good.",
                _RECEIPT,
                parameters=_path("id"),
                body=_json(_REASON, required=False),
                refused=posted,
            )
        },
        "/runs/{id}/retry": {
            "post": _operation(
                "retry_run",
                "operation",
                "Try a failed or parked run again.",
                _RECEIPT,
                parameters=_path("id"),
                body=_json(_EMPTY, required=False),
                refused=posted,
            )
        },
        "/runs/{id}/approvals/{name}": {
            "post": _operation(
                "decide",
                "operation",
                "Approve or reject.",
                ref("schemas", "Verdict"),
                parameters=_path("id", "name"),
                body=_json(_DECISION),
                refused=posted,
            )
        },
    }


def _forking_runs() -> dict[str, Any]:
    return {
        "/runs/{id}/fork": {
            "post": _operation(
                "fork_run",
                "runs",
                "Begin a run that has what the steps before one gave, and goes on from there.",
                _RECEIPT,
                parameters=_path("id"),
                body=_json(of(["from"], **{"from": TEXT})),
                refused=("409", "413", "422"),
            )
        },
    }


def _tables() -> dict[str, Any]:
    rows = _operation(
        "get_rows",
        "operation",
        "Rows of a table, as JSON or CSV.",
        ref("schemas", "Rows"),
        parameters=[*_path("name", "table"), _LIMIT, _AFTER],
        refused=("422",),
    )
    rows["responses"]["200"]["content"]["text/csv"] = {"schema": TEXT}
    names = {"type": "array", "items": TEXT}
    return {
        "/tools/{name}/tables": {
            "get": _operation(
                "list_tables",
                "operation",
                "The tables of a tool's own database.",
                names,
                parameters=_path("name"),
                refused=("422",),
            )
        },
        "/tools/{name}/tables/{table}": {"get": rows},
    }


def _modules() -> dict[str, Any]:
    reply = of(["reply"], reply={})
    after = ref("parameters", "AfterSeq")
    return {
        "/modules/{module}/events": {
            "post": _operation(
                "deliver",
                "modules",
                "One event; the reply, after it is committed.",
                reply,
                parameters=_path("module"),
                body=_json({}),
                refused=("409", "413", "422", "429"),
                headers=("Onefold-Replayed",),
            )
        },
        "/modules/{module}": {
            "get": _operation(
                "list_actors",
                "modules",
                "Actors of a module.",
                _page(ref("schemas", "Actor")),
                parameters=[*_path("module"), _query("prefix"), _LIMIT, _AFTER],
                refused=("422",),
            )
        },
        "/modules/{module}/{key}": {
            "get": _operation(
                "get_view",
                "modules",
                "What an actor shows.",
                ref("schemas", "View"),
                parameters=_path("module", "key"),
                refused=("422",),
            )
        },
        "/modules/{module}/{key}/facts": {
            "get": _operation(
                "get_facts",
                "modules",
                "An actor's history. `begins`: where it begins, when earlier facts were asked for and are pruned.",
                _facts(),
                parameters=[*_path("module", "key"), _LIMIT, after],
                refused=("422",),
            )
        },
    }


def _keeping() -> dict[str, Any]:
    duration = {"type": "string", "minLength": 1}
    sweep = {
        "type": "object",
        "properties": {"runs": duration, "replies": duration, "dry_run": {"type": "boolean"}},
        "additionalProperties": False,
    }
    count = {"type": "integer", "minimum": 0}
    return {
        "/sweep": {
            "post": _operation(
                "sweep",
                "operation",
                "Take away ended runs and replies that are older than this, or than the settings say.",
                of(["runs", "replies", "dry_run"], runs=count, replies=count, dry_run={"type": "boolean"}),
                body=_json(sweep, required=False),
                refused=("413", "422"),
            )
        },
        "/modules/{module}/{key}/prune": {
            "post": _operation(
                "prune",
                "operation",
                "Take away an actor's facts behind its latest snapshot.",
                of(["facts", "begins"], facts=count, begins=count),
                parameters=_path("module", "key"),
                body=_json(_EMPTY, required=False),
                refused=("413", "422"),
            )
        },
    }


def _facts() -> dict[str, Any]:
    page = _page(ref("schemas", "Fact"))
    return {**page, "properties": {**page["properties"], "begins": {"type": "integer"}}}


def _parked() -> dict[str, Any]:
    drop = {**_REASON, "properties": {"reason": {"type": "string", "minLength": 1}}, "required": ["reason"]}
    return {
        "/parked": {
            "get": _operation(
                "list_parked",
                "operation",
                "What waits for a person.",
                _page(ref("schemas", "Parked")),
                parameters=[_LIMIT, _AFTER],
                refused=("404", "422"),
            )
        },
        "/parked/{id}": {
            "get": _operation(
                "show_parked",
                "operation",
                "One item: whose it is, through which port, and what a retry and a drop would do.",
                ref("schemas", "ParkedDetail"),
                parameters=_path("id"),
                refused=("422",),
            )
        },
        "/parked/{id}/retry": {
            "post": _operation(
                "retry_parked",
                "operation",
                "Try it again.",
                None,
                parameters=_path("id"),
                body=_json(_EMPTY, required=False),
                refused=("409", "413", "422"),
            )
        },
        "/parked/{id}/drop": {
            "post": _operation(
                "drop_parked",
                "operation",
                "Give it up.",
                None,
                parameters=_path("id"),
                body=_json(drop),
                refused=("409", "413", "422"),
            )
        },
    }


def _health() -> dict[str, Any]:
    ready = of(
        ["ready", "store", "oldest_overdue_seconds", "parked"],
        ready={"type": "boolean"},
        store=TEXT,
        oldest_overdue_seconds={"type": "number"},
        parked={"type": "integer"},
    )
    answers = {
        "200": {"description": "Takes work.", "content": {JSON: {"schema": ready}}},
        "503": {"description": "Takes none now.", "content": {JSON: {"schema": ready}}},
    }
    alive = {"200": {"description": "It is up.", "content": {JSON: {"schema": of(["ok"], ok={"const": True})}}}}
    return {
        "/healthz": {
            "get": {
                "operationId": "healthz",
                "summary": "Is it up?",
                "tags": ["operation"],
                "security": [],
                "responses": alive,
            }
        },
        "/readyz": {
            "get": {
                "operationId": "readyz",
                "summary": "Does it take work?",
                "tags": ["operation"],
                "security": [],
                "responses": answers,
            }
        },
    }
