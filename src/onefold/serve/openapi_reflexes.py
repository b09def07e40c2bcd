"""serve.openapi_reflexes - the paths of facts and reflexes in the document, and their schemas.

For: what goes in, what comes out, how it is refused.
Never: knows a host; describes a template's language (its values are any JSON).
Was wrong once: definitions as "any object". Clients sent `trigger` for `on`, and learned of it from a 422.
"""

from __future__ import annotations

from typing import Any, Final

from onefold.serve.openapi_parts import JSON, TEXT, of, ref
from onefold.serve.openapi_paths import empty_body, json_body, operation, page_of, path_of, query_of

_WHEN: Final = {"type": "string", "format": "date-time"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_ANY: Final[dict[str, Any]] = {}

SCHEMAS: Final[dict[str, Any]] = {
    "NewFact": {
        "oneOf": [
            {
                **of(
                    ["kind", "entity", "op", "row"],
                    kind={"const": "write"},
                    entity=TEXT,
                    op={"enum": ["insert", "update", "delete"]},
                    row={"type": "object"},
                    dedupeKey=TEXT,
                    notBefore=_WHEN,
                ),
                "additionalProperties": False,
            },
            {
                **of(
                    ["kind", "name", "payload"],
                    kind={"const": "signal"},
                    name=TEXT,
                    payload=_ANY,
                    dedupeKey=TEXT,
                    notBefore=_WHEN,
                ),
                "additionalProperties": False,
            },
        ]
    },
    "Ingested": of(["id", "duplicate"], id=TEXT, duplicate={"type": "boolean"}),
    "IntakeRow": of(
        ["id", "kind", "subject", "state", "at", "depth", "fact"],
        id=TEXT,
        kind={"enum": ["write", "signal", "manual", "run"]},
        subject=TEXT,
        op=TEXT,
        state=TEXT,
        principal=TEXT,
        at=_WHEN,
        due=_WHEN,
        depth=_COUNT,
        cause=TEXT,
        note=TEXT,
        fact=_ANY,
    ),
    "Reflex": of(
        ["id", "intent", "version", "enabled", "trigger", "on", "effect"],
        id=TEXT,
        intent=TEXT,
        principal=TEXT,
        version=TEXT,
        enabled={"type": "boolean"},
        trigger=TEXT,
        on={"type": "object"},
        effect=TEXT,
        armed_at=_WHEN,
        next_at=_WHEN,
        definition={"type": "object"},
    ),
    "ReflexFinding": of(["problem", "level"], reflex=TEXT, path=TEXT, where=TEXT, problem=TEXT, level=TEXT),
    "ReflexRun": of(
        ["id", "reflex", "cause", "version", "state", "at", "total", "done", "failed"],
        id=TEXT,
        reflex=TEXT,
        cause=TEXT,
        principal=TEXT,
        version=TEXT,
        state={"enum": ["pending", "fanned", "settled", "skipped"]},
        note=TEXT,
        at=_WHEN,
        settled_at=_WHEN,
        tz=TEXT,
        total=_COUNT,
        done=_COUNT,
        failed=_COUNT,
    ),
    "ReflexTask": of(
        ["id", "run", "reflex", "unit", "state", "attempt"],
        id=TEXT,
        run=TEXT,
        reflex=TEXT,
        unit=TEXT,
        state={"enum": ["queued", "ready", "claimed", "done", "failed", "parked"]},
        attempt=_COUNT,
        due=_WHEN,
        output=_ANY,
        error=TEXT,
        principal=TEXT,
        ended_at=_WHEN,
    ),
    "Cause": of(
        ["kind", "id", "at", "detail"],
        kind={"enum": ["fact", "run", "task", "occurrence"]},
        id=TEXT,
        at=_WHEN,
        principal=TEXT,
        detail={"type": "object"},
    ),
    "Overdue": of(
        ["reflex", "what", "due", "late_seconds"], reflex=TEXT, what=TEXT, due=_WHEN, late_seconds={"type": "number"}
    ),
    "Preview": of(
        ["reflex", "cause", "rows", "tasks", "next_occurrences"],
        reflex=TEXT,
        cause=TEXT,
        rows={"type": "array"},
        tasks={"type": "array", "items": of(["unit"], unit=TEXT, input=_ANY, shows=TEXT, error=TEXT)},
        next_occurrences={"type": "array", "items": _WHEN},
    ),
}

_LINES: Final = {"type": "array", "items": TEXT}
_FINDINGS: Final = {"type": "array", "items": ref("schemas", "ReflexFinding")}
_LIMIT, _AFTER = ref("parameters", "Limit"), ref("parameters", "After")
_PAGES = [_LIMIT, _AFTER]


def paths() -> dict[str, Any]:
    """The paths of facts and reflexes."""
    return {**_facts(), **_definitions(), **_looking(), **_trying(), **_acting()}


def _taken(told: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """An operation that answers 202."""
    answers = told["responses"]
    good = answers.pop("200")
    answers["202"] = {**good, "description": "Kept.", "content": {JSON: {"schema": schema}}}
    return told


def _facts() -> dict[str, Any]:
    kept = ref("schemas", "Ingested")
    signal = operation(
        "send_signal",
        "reflexes",
        "A signed delivery of another system; its own id is the key.",
        kept,
        parameters=path_of("signal"),
        body=json_body(_ANY),
        refused=("413", "422", "429"),
        headers=("Onefold-Replayed",),
        open_to_all=True,
    )
    signal = _taken(signal, kept)
    signal["responses"]["200"] = {"description": "A call that only tried the door out."}
    filters = [query_of("kind"), query_of("subject"), query_of("state"), _LIMIT, _AFTER]
    ingest = operation(
        "send_fact",
        "reflexes",
        "Something happened: kept, and matched against the reflexes of its principal.",
        kept,
        body=json_body(ref("schemas", "NewFact")),
        refused=("413", "422", "429"),
        headers=("Onefold-Replayed",),
    )
    facts = page_of(ref("schemas", "IntakeRow"))
    return {
        "/facts/{signal}": {"post": signal},
        "/facts": {
            "post": _taken(ingest, kept),
            "get": operation(
                "list_facts", "reflexes", "Facts, newest first.", facts, parameters=filters, refused=("422",)
            ),
        },
        "/facts/{id}/release": {
            "post": operation(
                "release_fact",
                "operation",
                "Let a parked fact pass.",
                of(["id", "released"], id=TEXT, released={"type": "boolean"}),
                parameters=path_of("id"),
                body=empty_body(),
                refused=("413", "422"),
            )
        },
    }


def _definitions() -> dict[str, Any]:
    definition = {"type": "object"}
    several = {"oneOf": [{"type": "array", "items": definition}, definition]}
    one = ref("schemas", "Reflex")
    loaded = of(["armed", "findings"], armed={"type": "array", "items": TEXT}, findings=_FINDINGS)
    return {
        "/reflexes": {
            "get": operation(
                "list_reflexes", "reflexes", "All of them.", page_of(one), parameters=_PAGES, refused=("422",)
            ),
            "put": operation(
                "load_reflexes",
                "operation",
                "Make these definitions the whole set. Refused where the code gives a file.",
                loaded,
                body=json_body(several),
                refused=("413", "422"),
            ),
        },
        "/reflexes/draft": {
            "post": operation(
                "draft_reflex",
                "reflexes",
                "What is wrong with a definition, its timer anchored to now, and what it would change. Arms nothing.",
                of(["definition", "findings", "changes"], definition=_ANY, findings=_FINDINGS, changes=_LINES),
                body=json_body(_ANY),
                refused=("413", "422"),
            )
        },
        "/reflexes/graph": {
            "get": operation(
                "draw_reflexes",
                "reflexes",
                "What wakes what.",
                of(["text", "dot", "findings"], text=TEXT, dot=TEXT, findings=_FINDINGS),
                refused=("422",),
            )
        },
        "/reflexes/{id}": {
            "get": operation(
                "get_reflex",
                "reflexes",
                "One reflex with its definition.",
                one,
                parameters=path_of("id"),
                refused=("422",),
            )
        },
    }


def _looking() -> dict[str, Any]:
    runs = page_of(ref("schemas", "ReflexRun"))
    pages = [_LIMIT, _AFTER]
    return {
        "/reflexes/runs": {
            "get": operation(
                "list_reflex_runs", "reflexes", "Runs of all reflexes.", runs, parameters=pages, refused=("422",)
            )
        },
        "/reflexes/{id}/runs": {
            "get": operation(
                "list_runs_of_reflex",
                "reflexes",
                "Runs of one reflex, newest first.",
                runs,
                parameters=[*path_of("id"), *pages],
                refused=("422",),
            )
        },
        "/reflexes/runs/{id}/tasks": {
            "get": operation(
                "list_tasks",
                "reflexes",
                "The tasks of a run.",
                page_of(ref("schemas", "ReflexTask")),
                parameters=[*path_of("id"), *pages],
                refused=("422",),
            )
        },
        "/reflexes/explain/{id}": {
            "get": operation(
                "explain",
                "reflexes",
                "From a fact, a run or a task to its first cause.",
                page_of(ref("schemas", "Cause")),
                parameters=[*path_of("id"), *pages],
                refused=("422",),
            )
        },
        "/reflexes/overdue": {
            "get": operation(
                "list_overdue",
                "reflexes",
                "What should have happened by now and did not.",
                page_of(ref("schemas", "Overdue")),
                parameters=pages,
                refused=("422",),
            )
        },
    }


def _trying() -> dict[str, Any]:
    preview = {
        "type": "object",
        "properties": {"fact": _ANY, "at": _WHEN, "next": {"type": "integer", "minimum": 0, "maximum": 100}},
        "additionalProperties": False,
    }
    told = operation(
        "preview_reflex",
        "reflexes",
        "What would happen, to which rows, with which inputs. Writes nothing.",
        ref("schemas", "Preview"),
        parameters=path_of("id"),
        body=json_body(preview, required=False),
        refused=("413", "422"),
    )
    return {"/reflexes/{id}/preview": {"post": told}}


def _acting() -> dict[str, Any]:
    fire = {"type": "object", "properties": {"input": _ANY, "by": TEXT}, "additionalProperties": False}
    backfill = {**of(["since", "until"], since=_WHEN, until=_WHEN), "additionalProperties": False}
    given = ("413", "422")
    fired = operation(
        "fire_reflex",
        "operation",
        "Fire a reflex of one's own principal now, armed or not.",
        of(["id"], id=TEXT),
        parameters=path_of("id"),
        body=json_body(fire, required=False),
        refused=given,
    )
    filled = operation(
        "backfill_reflex",
        "operation",
        "Make runs of past occurrences, once each.",
        of(["count"], count=_COUNT),
        parameters=path_of("id"),
        body=json_body(backfill),
        refused=given,
    )
    return {
        "/reflexes/{id}/fire": {"post": _taken(fired, of(["id"], id=TEXT))},
        "/reflexes/{id}/backfill": {"post": _taken(filled, of(["count"], count=_COUNT))},
        "/reflexes/tasks/{id}/retry": {
            "post": operation(
                "retry_task",
                "operation",
                "Open a failed or parked task again.",
                ref("schemas", "ReflexTask"),
                parameters=path_of("id"),
                body=empty_body(),
                refused=given,
            )
        },
    }
