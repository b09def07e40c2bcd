"""serve.openapi_paths - the paths of the document that no actuator brings.

For: runs, tables, modules, parked items, health: what goes in, what comes out, how it is refused.
Never: knows a host; leaves out a refusal a route can give.
Was wrong once: written out operation by operation. Half of them forgot that a key may lack a right.
"""

from __future__ import annotations

from typing import Any, Final

from onefold.serve.keeping import KEPT
from onefold.serve.openapi_parts import JSON, TEXT, of, ref, refusals


def page_of(item: dict[str, Any]) -> dict[str, Any]:
    return of(["items", "next"], items={"type": "array", "items": item}, next={"type": ["string", "null"]})


def path_of(*names: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in names
    ]


def query_of(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema or TEXT}


def json_body(schema: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": {JSON: {"schema": schema}}}


def operation(
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


_JOURNAL = page_of(ref("schemas", "JournalRow"))
_JOURNAL["properties"]["history"] = {"type": "object", "description": "What `onefold replay` needs beside the items."}
_LIMIT, _AFTER = ref("parameters", "Limit"), ref("parameters", "After")
_RECEIPT: Final = ref("schemas", "Receipt")
_EMPTY: Final = {"type": "object", "additionalProperties": False}
_REASON: Final = {"type": "object", "properties": {"reason": TEXT}, "additionalProperties": False}


def empty_body() -> dict[str, Any]:
    """A body that says nothing, and may be left out."""
    return json_body(_EMPTY, required=False)


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
        **_modules(),
        **_keeping(),
        **_parked(),
        **_health(),
    }


def _looking_at_runs() -> dict[str, Any]:
    filters = [query_of("program"), query_of("status", **_STATUS), query_of("key"), _LIMIT, _AFTER]
    wait = query_of("wait", type="integer", minimum=0, maximum=25, default=0)
    return {
        "/runs": {
            "get": operation(
                "list_runs", "runs", "Runs, newest first.", page_of(_RECEIPT), parameters=filters, refused=("422",)
            )
        },
        "/runs/{id}": {
            "get": operation(
                "get_run",
                "runs",
                "A run's receipt, in any status.",
                _RECEIPT,
                parameters=[*path_of("id"), wait],
                refused=("422",),
            )
        },
        "/runs/{id}/journal": {
            "get": operation(
                "get_journal",
                "runs",
                "Every act of a run.",
                _JOURNAL,
                parameters=[*path_of("id"), _LIMIT, _AFTER],
                refused=("422",),
            )
        },
    }


def _telling_runs() -> dict[str, Any]:
    posted = ("409", "413", "422")
    events = [*path_of("id", "event"), ref("parameters", "IdempotencyKey")]
    return {
        "/runs/{id}/events/{event}": {
            "post": operation(
                "send_event",
                "runs",
                "Send a run an event.",
                _RECEIPT,
                parameters=events,
                body=json_body({}),
                refused=posted,
            )
        },
        "/runs/{id}/cancel": {
            "post": operation(
                "cancel_run",
                "runs",
                "End a run for good.",
                _RECEIPT,
                parameters=path_of("id"),
                body=json_body(_REASON, required=False),
                refused=posted,
            )
        },
        "/runs/{id}/retry": {
            "post": operation(
                "retry_run",
                "operation",
                "Try a failed or parked run again.",
                _RECEIPT,
                parameters=path_of("id"),
                body=empty_body(),
                refused=posted,
            )
        },
        "/runs/{id}/approvals/{name}": {
            "post": operation(
                "decide",
                "operation",
                "Approve or reject.",
                ref("schemas", "Verdict"),
                parameters=path_of("id", "name"),
                body=json_body(_DECISION),
                refused=posted,
            )
        },
    }


def _forking_runs() -> dict[str, Any]:
    return {
        "/runs/{id}/fork": {
            "post": operation(
                "fork_run",
                "runs",
                "Begin a run that has what the steps before one gave, and goes on from there.",
                _RECEIPT,
                parameters=path_of("id"),
                body=json_body(of(["from"], **{"from": TEXT})),
                refused=("409", "413", "422"),
            )
        },
    }


def _modules() -> dict[str, Any]:
    reply = of(["reply"], reply={})
    after = ref("parameters", "AfterSeq")
    return {
        "/modules/{module}/events": {
            "post": operation(
                "deliver",
                "modules",
                "One event; the reply, after it is committed.",
                reply,
                parameters=path_of("module"),
                body=json_body({}),
                refused=("409", "413", "422", "429"),
                headers=("Onefold-Replayed",),
            )
        },
        "/modules/{module}": {
            "get": operation(
                "list_actors",
                "modules",
                "Actors of a module.",
                page_of(ref("schemas", "Actor")),
                parameters=[*path_of("module"), query_of("prefix"), _LIMIT, _AFTER],
                refused=("422",),
            )
        },
        "/modules/{module}/{key}": {
            "get": operation(
                "get_view",
                "modules",
                "What an actor shows.",
                ref("schemas", "View"),
                parameters=path_of("module", "key"),
                refused=("422",),
            )
        },
        "/modules/{module}/{key}/facts": {
            "get": operation(
                "get_facts",
                "modules",
                "An actor's history. `begins`: where it begins, when earlier facts were asked for and are pruned.",
                _facts(),
                parameters=[*path_of("module", "key"), _LIMIT, after],
                refused=("422",),
            )
        },
    }


def _keeping() -> dict[str, Any]:
    duration = {"type": "string", "minLength": 1}
    sweep = {
        "type": "object",
        "properties": {**dict.fromkeys(KEPT, duration), "dry_run": {"type": "boolean"}},
        "additionalProperties": False,
    }
    count = {"type": "integer", "minimum": 0}
    return {
        "/sweep": {
            "post": operation(
                "sweep",
                "operation",
                "Take away what is older than this, or than the settings say.",
                of([*KEPT, "dry_run"], **dict.fromkeys(KEPT, count), dry_run={"type": "boolean"}),
                body=json_body(sweep, required=False),
                refused=("413", "422"),
            )
        },
        "/modules/{module}/{key}/prune": {
            "post": operation(
                "prune",
                "operation",
                "Take away an actor's facts behind its latest snapshot.",
                of(["facts", "begins"], facts=count, begins=count),
                parameters=path_of("module", "key"),
                body=empty_body(),
                refused=("413", "422"),
            )
        },
    }


def _facts() -> dict[str, Any]:
    page = page_of(ref("schemas", "Fact"))
    return {**page, "properties": {**page["properties"], "begins": {"type": "integer"}}}


def _parked() -> dict[str, Any]:
    drop = {**_REASON, "properties": {"reason": {"type": "string", "minLength": 1}}, "required": ["reason"]}
    return {
        "/parked": {
            "get": operation(
                "list_parked",
                "operation",
                "What waits for a person.",
                page_of(ref("schemas", "Parked")),
                parameters=[_LIMIT, _AFTER],
                refused=("404", "422"),
            )
        },
        "/parked/{id}": {
            "get": operation(
                "show_parked",
                "operation",
                "One item: whose it is, through which port, and what a retry and a drop would do.",
                ref("schemas", "ParkedDetail"),
                parameters=path_of("id"),
                refused=("422",),
            )
        },
        "/parked/{id}/retry": {
            "post": operation(
                "retry_parked",
                "operation",
                "Try it again.",
                None,
                parameters=path_of("id"),
                body=empty_body(),
                refused=("409", "413", "422"),
            )
        },
        "/parked/{id}/drop": {
            "post": operation(
                "drop_parked",
                "operation",
                "Give it up.",
                None,
                parameters=path_of("id"),
                body=json_body(drop),
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
