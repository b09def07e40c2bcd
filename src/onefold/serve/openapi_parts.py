"""serve.openapi_parts - the parts of the document that are the same for every application.

For: schemas, parameters, headers and answers by name.
Never: knows a host; a schema that a route's code does not keep to.
Was wrong once: one schema for all of a list's fields, "anything". A client generated from it had no
types worth having.
"""

from __future__ import annotations

from typing import Any, Final

JSON: Final = "application/json"
TEXT: Final = {"type": "string"}
_WHEN: Final = {"type": "string", "format": "date-time"}


def ref(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def of(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


SCHEMAS: Final[dict[str, Any]] = {
    "Problem": of(
        ["type", "title", "status", "code", "retry", "instance", "detail"],
        type={"type": "string", "description": "urn:onefold: and the code"},
        title=TEXT,
        status={"type": "integer"},
        code=TEXT,
        retry={"enum": ["never", "same"], "description": "never: ask differently. same: send the same again."},
        instance=TEXT,
        detail=TEXT,
        run_id=TEXT,
        errors={
            "type": "array",
            "items": of(["field", "problem"], field=TEXT, problem=TEXT, got={}),
        },
    ),
    "JournalRow": {
        **of(
            ["seq", "path", "step", "kind", "attempt", "at"],
            seq={"type": "integer"},
            path=TEXT,
            step=TEXT,
            kind=TEXT,
            attempt={"type": "integer"},
            at=_WHEN,
            result={},
            error={},
        ),
    },
    "Verdict": of(
        ["outcome"],
        outcome={"enum": ["decided", "already_decided", "expired", "cancelled"]},
        by={"type": ["string", "array"], "items": TEXT},
        at=_WHEN,
        way={"enum": ["approved", "rejected"]},
    ),
    "Parked": of(
        ["id", "kind", "program", "cause", "since"], id=TEXT, kind=TEXT, program=TEXT, cause=TEXT, since=_WHEN
    ),
    "ParkedDetail": of(
        ["id", "kind", "program", "cause", "since", "retry", "drop"],
        id=TEXT,
        kind=TEXT,
        program=TEXT,
        cause=TEXT,
        since=_WHEN,
        retry=TEXT,
        drop=TEXT,
        key=TEXT,
        principal=TEXT,
        port=TEXT,
        owed=TEXT,
        tries={"type": "integer"},
        next_at=_WHEN,
        body={},
    ),
    "Actor": of(["key"], key=TEXT, alarm=_WHEN),
    "View": of(["key", "view"], key=TEXT, view={}, alarm=_WHEN),
    "Fact": of(["seq", "at", "fact"], seq={"type": "integer"}, at=_WHEN, fact={"type": "object"}),
    "Rows": of(
        ["columns", "rows", "next"],
        columns={"type": "array", "items": TEXT},
        rows={"type": "array", "items": {"type": "array"}},
        next={"type": ["string", "null"]},
    ),
}

PARAMETERS: Final[dict[str, Any]] = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "minLength": 1, "maxLength": 512},
        "description": "The same key with the same content gives the first answer; with other content 422. Bare or quoted.",
    },
    "Callback": {
        "name": "Onefold-Callback",
        "in": "header",
        "schema": {"type": "string", "format": "uri"},
        "description": "Where the ended receipt is posted, signed by Standard Webhooks. https with a public name.",
    },
    "Prefer": {
        "name": "Prefer",
        "in": "header",
        "schema": {"type": "string"},
        "description": "wait=N, 0 to 25 seconds, 20 by default; respond-async is wait=0.",
    },
    "Limit": {
        "name": "limit",
        "in": "query",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
    "After": {"name": "after", "in": "query", "schema": TEXT, "description": "`next` of the page before."},
    "AfterSeq": {
        "name": "after",
        "in": "query",
        "schema": {"type": "integer", "minimum": 0},
        "description": "The last seq seen.",
    },
}

HEADERS: Final[dict[str, Any]] = {
    "Location": {"schema": TEXT, "description": "Where the run is."},
    "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds after which asking again is worth it."},
    "Onefold-Replayed": {"schema": {"const": "true"}, "description": "This answer was given before."},
}

_PROBLEM: Final = {"application/problem+json": {"schema": ref("schemas", "Problem")}}
_REFUSED: Final = {
    "400": ("Malformed", "No JSON, or no request that makes sense. Nothing was done."),
    "401": ("Unauthenticated", "No key, or none of ours."),
    "403": ("Forbidden", "The key lacks the right."),
    "404": ("NotFound", "There is no such thing, or it is somebody else's."),
    "409": ("Conflict", "The run was cancelled or is parked, or was changed meanwhile."),
    "413": ("TooLarge", "The body is over 1 MiB. Nothing was stored."),
    "422": ("BadArguments", "Arguments that cannot be taken, one entry each, or a key with other content."),
    "429": ("Busy", "A queue is full. Nothing was taken; send the same again."),
    "500": ("Failed", "The program failed."),
    "503": ("Unavailable", "The store or the application is not there now; send the same again."),
}
RESPONSES: Final[dict[str, Any]] = {
    name: {"description": description, "content": _PROBLEM} for name, description in _REFUSED.values()
}


def refusals(*statuses: str) -> dict[str, Any]:
    return {status: ref("responses", _REFUSED[status][0]) for status in statuses}
