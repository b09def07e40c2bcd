"""reflex.explain - from a fact, a reflex run or a task to the first cause, newest first.

For: the walk over rows, as questions and their answers; a link as people see it.
Never: crosses a principal; needs a row that a sweep may take to know what it was of.
Was wrong once: a chain that was put together from logs. The one that was asked for had been rotated away.

    task ─→ its run ─→ the fact or the occurrence it was of ─→ the task that emitted the fact, or the run that settled ─→ …
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from typing import Any, Final

from onefold.reflex.birth import OCCURRENCE
from onefold.reflex.tables import INTAKE, REFLEX_RUN, TASK
from onefold.reflex.words import FACT as FACT_ID
from onefold.reflex.words import RUN as RUN_ID
from onefold.reflex.words import TASK as TASK_ID
from onefold.reflex.words import Cause, Json, fact_id, number_of, run_id, task_id
from onefold.store.contract import Answer, Query, Table
from onefold.terms import codec
from onefold.terms.errors import NotFound
from onefold.terms.ids import Principal, principal_of
from onefold.terms.instant import moment

LINKS_AT_MOST: Final = 1_000
"""Links of one answer. Released facts may go deeper than the ceiling of a chain; nobody reads on after so many."""

Walk = Generator[tuple[Query, ...], tuple[Answer, ...], list[Cause]]
_KINDS: Final[Mapping[str, Table]] = {"fact": INTAKE, "run": REFLEX_RUN, "task": TASK}
_IDS: Final = {"fact": fact_id, "run": run_id, "task": task_id}


def links(id: str, principals: Collection[Principal] | None = None) -> Walk:
    """The chain that led to this row, itself first. Yields what to look up, a link at a time.

    `principals`: whose it may be; None is anybody's. Where a sweep took the next row, the last link says which it was.
    Raises: NotFound.
    """
    kind, n = _named(id)
    chain: list[Cause] = []
    whose: str | None = None
    while n is not None and len(chain) < LINKS_AT_MOST:
        (rows,) = yield (Query(_KINDS[kind], on=_KINDS[kind].key, keys=[(n,)]),)
        cells = dict(zip(_KINDS[kind].at, rows[0], strict=True)) if rows else None
        if (
            whose is None
            and cells is not None
            and (principals is None or principal_of(cells["principal"]) in principals)
        ):
            whose = cells["principal"]
        if cells is None or cells["principal"] != whose:
            if not chain:
                raise NotFound("fact, run or task", id)
            chain[-1] = _torn(chain[-1], _IDS[kind](n))
            break
        chain.append(_link(kind, cells))
        if kind == "run" and str(cells["cause"]).startswith(OCCURRENCE):
            chain.append(_occurrence(cells))
            break
        kind, n = _before(kind, cells)
    return chain


def _named(id: str) -> tuple[str, int | None]:
    for kind, prefix in (("fact", FACT_ID), ("run", RUN_ID), ("task", TASK_ID)):
        n = number_of(id, prefix)
        if n is not None:
            return kind, n
    raise NotFound("fact, run or task", id)


def _before(kind: str, cells: Mapping[str, Any]) -> tuple[str, int | None]:
    """What a row came of. A fact from outside, or of a person, came of nothing that is known here."""
    if kind == "task":
        return "run", cells["run"]
    if kind == "run":
        return "fact", cells["fact"]
    of, _, number = (cells["cause"] or "").partition(":")
    return of, int(number) if number else None


def _link(kind: str, cells: Mapping[str, Any]) -> Cause:
    detail = {"task": _of_task, "run": _of_run, "fact": _of_fact}[kind](cells)
    told = {name: value for name, value in detail.items() if value is not None}
    return Cause(kind, _IDS[kind](cells["n"]), moment(cells["at"]), principal_of(cells["principal"]), told)


def _of_task(cells: Mapping[str, Any]) -> dict[str, Json]:
    return {name: cells[name] for name in ("reflex", "effect", "unit", "state", "attempt", "error")}


def _of_run(cells: Mapping[str, Any]) -> dict[str, Json]:
    return {
        name: cells[name] for name in ("reflex", "cause", "version", "state", "note", "total", "done", "failed", "tz")
    }


def _of_fact(cells: Mapping[str, Any]) -> dict[str, Json]:
    swept = cells["state"] == "swept"
    body = {} if swept else codec.parse(cells["body"], "a fact")
    return {
        "kind": cells["kind"],
        "subject": cells["subject"],
        "op": cells["op"],
        "state": cells["state"],
        "note": cells["note"],
        "key": body.get("dedupeKey"),
        "by": body.get("by"),
        "depth": cells["depth"],
        "released": True if cells["released"] else None,
    }


def _occurrence(run: Mapping[str, Any]) -> Cause:
    """The clock: the first cause of whatever it set off."""
    key = str(run["cause"]).removeprefix(OCCURRENCE)
    whose = principal_of(run["principal"])
    return Cause("occurrence", f"{run['reflex']}:{key}", moment(run["occurred_at"]), whose, {"key": key})


def _torn(last: Cause, id: str) -> Cause:
    return Cause(last.kind, last.id, last.at, last.principal, {**last.detail, "swept": id})
