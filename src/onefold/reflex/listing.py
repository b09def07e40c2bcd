"""reflex.listing - the ledger page by page, as people see it: facts, reflex runs, tasks.

For: what to ask for a page, and rows as words. Pure.
Never: shows a row of a principal that was not asked for; reads further than a page.
Was wrong once: pages counted from the front. While one was read, new runs moved the next one on, and rows came twice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from onefold.reflex.tables import INTAKE, REFLEX_RUN, STATE, TASK
from onefold.reflex.words import RUN, IntakeRow, Reflex, ReflexRow, RunRow, TaskRow, fact_id, number_of, run_id, task_id
from onefold.reflex.words import TASK as TASK_ID
from onefold.store.contract import Condition, Query, Row, Table
from onefold.terms import codec
from onefold.terms.errors import NotFound
from onefold.terms.faults import FIRST_PAGE
from onefold.terms.ids import Principal, principal_of, principal_text
from onefold.terms.instant import Instant, moment

MOST: Final = 2**63 - 1
DIGITS: Final = 19  # of MOST; the language itself refuses to read a number of thousands
Principals = Collection[Principal] | None


def _page(table: Table, where: list[Condition], limit: int, after: str | None, *, newest: bool) -> Query:
    """Raises: NotFound for a page that no list has named."""
    if after is not None:
        if not (after.isascii() and after.isdigit() and len(after) <= DIGITS and int(after) <= MOST):
            raise NotFound("page", after, FIRST_PAGE)
        where = [*where, ("n", "<" if newest else ">", int(after))]
    return Query(table, where=tuple(where), order=("-n" if newest else "n",), limit=limit)


def _of(principals: Principals) -> list[Condition]:
    return [] if principals is None else [("principal", "in", tuple(principal_text(one) for one in principals))]


def facts(
    principals: Principals,
    *,
    kind: str | None = None,
    subject: str | None = None,
    state: str | None = None,
    limit: int = 100,
    after: str | None = None,
) -> Query:
    """Facts, newest first."""
    said = {"kind": kind, "subject": subject, "state": state}
    where: list[Condition] = [(name, "=", value) for name, value in said.items() if value is not None]
    return _page(INTAKE, [*_of(principals), *where], limit, after, newest=True)


def runs(principals: Principals, *, reflex: str | None = None, limit: int = 100, after: str | None = None) -> Query:
    """Reflex runs, newest first."""
    where: list[Condition] = [] if reflex is None else [("reflex", "=", reflex)]
    return _page(REFLEX_RUN, [*_of(principals), *where], limit, after, newest=True)


def run(id: str, principals: Principals) -> Query:
    """One reflex run. Raises: NotFound for what is no id of one."""
    n = number_of(id, RUN)
    if n is None:
        raise NotFound("reflex run", id)
    return Query(REFLEX_RUN, where=(("n", "=", n), *_of(principals)))


def task(id: str, principals: Principals) -> Query:
    """One task. Raises: NotFound for what is no id of one."""
    n = number_of(id, TASK_ID)
    if n is None:
        raise NotFound("task", id)
    return Query(TASK, where=(("n", "=", n), *_of(principals)))


def tasks(run: str, principals: Principals, *, limit: int = 100, after: str | None = None) -> Query:
    """The tasks of a run, in the order of their selection. Raises: NotFound for what is no id of a run."""
    n = number_of(run, RUN)
    if n is None:
        raise NotFound("reflex run", run)
    return _page(TASK, [("run", "=", n), *_of(principals)], limit, after, newest=False)


def idle(effects: Collection[str], now: int, principals: Principals, limit: int = 100) -> Query:
    """Tasks that are due, whose effect is none of these."""
    strange: list[Condition] = [("effect", "!=", name) for name in effects]
    where = (("ready_at", "<=", now), *strange, *_of(principals))
    return Query(TASK, where=where, order=("ready_at", "n"), limit=limit)


def next_page(rows: list[Row], limit: int) -> tuple[list[Row], str | None]:
    """A page of rows that were asked for with one more than `limit`, and what to give as `after` for the next."""
    return rows[:limit], str(rows[limit - 1][0]) if len(rows) > limit else None


def fact_row(row: Row) -> IntakeRow:
    cell = _cells(INTAKE, row)
    return IntakeRow(
        fact_id(cell["n"]),
        cell["kind"],
        cell["subject"],
        cell["op"],
        cell["state"],
        principal_of(cell["principal"]),
        moment(cell["at"]),
        _moment(cell["due_at"]),
        cell["depth"],
        cell["cause"],
        cell["note"],
        None if cell["state"] == "swept" else codec.parse(cell["body"], "a fact"),
    )


def reflex_row(reflex: Reflex, state: Row | None) -> ReflexRow:
    """A loaded reflex, with its row of `state`."""
    from onefold.reflex.drawing import trigger_text  # it knows calendars; facts, runs and tasks need none

    cell = {} if state is None else _cells(STATE, state)
    return ReflexRow(
        reflex.id,
        reflex.intent,
        reflex.principal,
        reflex.version,
        reflex.enabled,
        trigger_text(reflex.on),
        reflex.effect,
        {**reflex.definition, "enabled": reflex.enabled},
        _moment(cell.get("armed_at")),
        _moment(cell.get("next_at")) if reflex.enabled else None,
    )


def run_row(row: Row) -> RunRow:
    cell = _cells(REFLEX_RUN, row)
    return RunRow(
        run_id(cell["n"]),
        cell["reflex"],
        cell["cause"],
        principal_of(cell["principal"]),
        cell["version"],
        cell["state"],
        cell["note"],
        cell["total"],
        cell["done"],
        cell["failed"],
        moment(cell["at"]),
        _moment(cell["settled_at"]),
        cell["tz"],
    )


def task_row(row: Row) -> TaskRow:
    cell = _cells(TASK, row)
    return TaskRow(
        task_id(cell["n"]),
        run_id(cell["run"]),
        cell["reflex"],
        cell["unit"],
        cell["state"],
        cell["attempt"],
        _moment(cell["ready_at"]),
        None if cell["output"] is None else codec.parse(cell["output"], "an output"),
        cell["error"],
        principal_of(cell["principal"]),
        _moment(cell["ended_at"]),
    )


def _moment(at: int | None) -> Any:
    return None if at is None else moment(Instant(at))


def _cells(table: Table, row: Row) -> dict[str, Any]:
    return dict(zip(table.at, row, strict=True))
