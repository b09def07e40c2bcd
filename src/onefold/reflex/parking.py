"""reflex.parking - what waits for a person: facts whose chain is too long, tasks that nobody lived to answer.

For: finding them without looking through the ledger, giving one up for a reason; and claims that a dead process left.
Never: takes one that is not parked; lets one go by itself.
Was wrong once: parked tasks found by their state. A look at what is parked went through a million that were done.

A parked task stands in the index of the serial queue, under a name that no reflex has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from onefold.reflex import listing
from onefold.reflex.claim import holder_of
from onefold.reflex.intake import DELIVERED, PARKED
from onefold.reflex.tables import INTAKE, TASK
from onefold.reflex.words import FACT, IntakeRow, TaskRow, number_of
from onefold.reflex.words import TASK as TASK_ID
from onefold.store.contract import Answer, Body, Condition, Last, Put, Query, Row, Table, Verb, Write
from onefold.terms.errors import NotFound
from onefold.terms.ids import Principal, principal_of, principal_text
from onefold.terms.instant import Instant

ASIDE: Final = "!"
"""What `queue` says of a parked task. No reflex's id begins with it."""

LISTED: Final = 1_000
Principals: TypeAlias = "Collection[Principal] | None"
Waiting: TypeAlias = "IntakeRow | TaskRow"


def questions(principals: Principals, limit: int = LISTED) -> tuple[Query, Query]:
    """What to look up: parked facts, and parked tasks."""
    facts = listing.facts(principals, state=PARKED, limit=limit)
    whose = () if principals is None else (("principal", "in", tuple(principal_text(one) for one in principals)),)
    tasks = Query(TASK, where=(("queue", "=", ASIDE), *whose), order=("n",), limit=limit)
    return replace(facts, order=("at", "n")), tasks


def found(answers: tuple[Answer, ...]) -> list[Waiting]:
    """The rows behind these answers."""
    facts, tasks = answers
    return [*(listing.fact_row(row) for row in facts), *(listing.task_row(row) for row in tasks)]


def is_one(id: str) -> bool:
    """Whether an id names a fact or a task."""
    return number_of(id, FACT) is not None or number_of(id, TASK_ID) is not None


def dropping(id: str, reason: str, principals: Principals) -> Body[None]:
    """Give up a parked fact or task. The fact wakes nobody; the task stays failed, as its run has counted it.

    Raises, as the body's refusal: NotFound for what is not parked.
    """
    fact = number_of(id, FACT)
    n = number_of(id, TASK_ID) if fact is None else fact
    table = TASK if fact is None else INTAKE

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
        (rows,) = yield (Query(table, on=table.key, keys=[(n,)], lock="update"),)
        cells = _cells(table, rows[0]) if rows else None
        whose = principals is None or (cells is not None and principal_of(cells["principal"]) in principals)
        if cells is None or cells["state"] != PARKED or not whose:
            raise NotFound("parked item", id)
        if table is INTAKE:
            cells |= {"state": DELIVERED, "note": f"{cells['note']}; dropped: {reason}"}
        else:
            cells |= {"state": "failed", "queue": None, "error": f"{cells['error']}; dropped: {reason}"}
        return Last((Put(table, [tuple(cells.values())]),), None)

    return body


def left_behind(now: Instant) -> Body[int]:
    """Let go of every claim. For a process that alone has the store: whoever made them is dead, and no lease need lapse.

    Each still counts as a claim without an answer. Value: how many there were.
    """

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[int]]:
        where: tuple[Condition, ...] = (("ready_at", ">", now), ("state", "=", "claimed"))
        (rows,) = yield (Query(TASK, where=where, order=("ready_at", "n"), limit=LISTED, lock="update"),)
        held = [tuple({**_cells(TASK, row), "ready_at": now}.values()) for row in rows]
        return Last((Put(TASK, held),) if held else (), len(held))

    return body


def claimed(now: Instant) -> Query:
    """What somebody has claimed, and said who: those that lapse first, as many as are looked at at a time."""
    where: tuple[Condition, ...] = (("ready_at", ">", now), ("state", "=", "claimed"), ("holder", "null", False))
    return Query(TASK, where=where, order=("ready_at", "n"), limit=LISTED, lock="update")


def of_the_dead(rows: Sequence[Row], over: Callable[[str], bool]) -> list[Row]:
    """Those of these tasks whose claimer's life is over."""
    lives = [(row, holder_of(row)) for row in rows]
    return [row for row, life in lives if life is not None and over(life)]


def let_go(rows: Sequence[Row], now: Instant) -> tuple[Write, ...]:
    """Let go of claims of the dead. Each still counts as one without an answer, and an answer that comes late is nobody's."""
    freed = [tuple({**_cells(TASK, row), "ready_at": now, "token": None, "holder": None}.values()) for row in rows]
    return (Put(TASK, freed),) if freed else ()


def _cells(table: Table, row: Row) -> dict[str, Any]:
    return dict(zip(table.at, row, strict=True))
