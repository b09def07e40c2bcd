"""serve.reflex_json - what reflexes answer with, as JSON has it.

For: facts, reflexes, runs, tasks, causes, previews, findings: one shape each for HTTP, the command line and the console.
Never: leaves out what is known; shows a field that has nothing in it.
Was wrong once: each door with a dict of its own. A run had `settled` on one page and `settled_at` on another.
"""

from __future__ import annotations

from typing import Any

from onefold.reflex.words import (
    Cause,
    Draft,
    Drawn,
    IntakeRow,
    Loaded,
    Overdue,
    Preview,
    PreviewTask,
    ReflexRow,
    RunRow,
    TaskRow,
)
from onefold.serve.times import written
from onefold.terms.errors import Finding


def known(**fields: Any) -> dict[str, Any]:
    """The fields that have something in them."""
    return {name: value for name, value in fields.items() if value is not None}


def fact_json(row: IntakeRow) -> dict[str, Any]:
    return {
        **known(
            id=row.id,
            kind=row.kind,
            subject=row.subject,
            op=row.op,
            state=row.state,
            principal=row.principal,
            at=written(row.at),
            due=written(row.due),
            cause=row.cause,
            note=row.note,
        ),
        "depth": row.depth,
        "fact": row.body,
    }


def reflex_json(row: ReflexRow) -> dict[str, Any]:
    return {
        **known(
            id=row.id,
            intent=row.intent,
            principal=row.principal,
            version=row.version,
            armed_at=written(row.armed_at),
            next_at=written(row.next_at),
        ),
        "enabled": row.enabled,
        "trigger": row.trigger,
        "on": row.definition.get("on"),
        "effect": row.effect,
    }


def run_json(row: RunRow) -> dict[str, Any]:
    return {
        **known(
            id=row.id,
            reflex=row.reflex,
            cause=row.cause,
            principal=row.principal,
            version=row.version,
            state=row.state,
            note=row.note,
            at=written(row.at),
            settled_at=written(row.settled_at),
            tz=row.tz,
        ),
        "total": row.total,
        "done": row.done,
        "failed": row.failed,
    }


def task_json(row: TaskRow) -> dict[str, Any]:
    told = known(
        id=row.id,
        run=row.run,
        reflex=row.reflex,
        unit=row.unit,
        state=row.state,
        attempt=row.attempt,
        due=written(row.due),
        error=row.error,
        principal=row.principal,
        ended_at=written(row.ended_at),
    )
    return {**told, "output": row.output} if row.state == "done" else told


def cause_json(link: Cause) -> dict[str, Any]:
    told = known(kind=link.kind, id=link.id, at=written(link.at), principal=link.principal)
    return {**told, "detail": dict(link.detail)}


def overdue_json(late: Overdue) -> dict[str, Any]:
    return {"reflex": late.reflex, "what": late.what, "due": written(late.due), "late_seconds": late.late_seconds}


def preview_json(seen: Preview) -> dict[str, Any]:
    return {
        "reflex": seen.reflex,
        "cause": seen.cause,
        "rows": list(seen.rows),
        "tasks": [_task(task) for task in seen.tasks],
        "next_occurrences": [written(at) for at in seen.next_occurrences],
    }


def _task(task: PreviewTask) -> dict[str, Any]:
    told = known(unit=task.unit, shows=task.shows, error=task.error)
    return {**told, "input": task.input} if task.error is None else told


def finding_json(one: Finding) -> dict[str, Any]:
    """A finding of a definition has its reflex and the path within it; any other, where it stands."""
    reflex, path = getattr(one, "reflex", None), getattr(one, "path", None)
    place = {"where": one.where} if reflex is None else {"reflex": reflex, "path": path or ""}
    return {**place, "problem": one.problem, "level": one.level}


def loaded_json(loaded: Loaded) -> dict[str, Any]:
    return {"armed": list(loaded.armed), "findings": [finding_json(one) for one in loaded.findings]}


def draft_json(draft: Draft) -> dict[str, Any]:
    findings = [finding_json(one) for one in draft.findings]
    return {"definition": draft.definition, "findings": findings, "changes": list(draft.changes)}


def drawn_json(drawn: Drawn) -> dict[str, Any]:
    return {"text": drawn.text, "dot": drawn.dot, "findings": [finding_json(one) for one in drawn.findings]}
