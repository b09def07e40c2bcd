"""What an advance costs does not grow: with settled runs in the ledger, with reflexes loaded that wait for others.

Counted in steps of SQLite's machine and in rows that came back, not in time: a scan of what is settled shows in both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from onefold.reflex.engine import Engine
from onefold.reflex.tables import INTAKE, REFLEX_RUN, TASK
from onefold.reflex.words import OnRun, OnSignal, Reflex, Selection
from onefold.store.contract import Append, Last, Query, Table
from tests.reflex.ground import At, ground, reflex

MORE = 1.1  # a tree is a level deeper with a hundred times the rows
CLOCK = {"every": "year", "on": "12-31", "at": "23:59", "tz": "UTC"}
WATCHED = [
    reflex("a", OnSignal("ping"), select=Selection({"from": "due"}, "each", "id"), overlap="skip"),
    reflex("b", OnRun("a"), order="serial"),
    reflex("c", CLOCK),
]


def others(count: int) -> list[Reflex]:
    """Reflexes that nothing wakes here."""
    return [reflex(f"other-{n}", OnSignal(f"s{n}") if n % 2 else CLOCK) for n in range(count)]


async def copies(at: At, table: Table, count: int, **changes: Callable[[int], Any]) -> None:
    """So many more rows like the table's first."""
    space = await at.space()
    (rows,) = await space.look(Query(table, order=table.key, limit=1))
    made = []
    for number in range(count):
        row = list(rows[0])
        row[table.at["n"]] = space.mint(table)
        for name, change in changes.items():
            row[table.at[name]] = change(number)
        made.append(tuple(row))

    def body() -> Any:
        yield ()
        return Last((Append(table, made),), None)

    await space.transact(body)


async def steps(at: At, act: Awaitable[Any]) -> int:
    """How many steps the database's machine took."""
    space: Any = await at.space()
    taken = 0

    def count() -> bool:
        nonlocal taken
        taken += 1
        return False

    connection = space.engine.file.conn
    connection.set_progress_handler(count, 1)
    try:
        await act
    finally:
        connection.set_progress_handler(None, 0)
    return taken


async def day(at: At, engine: Engine) -> None:
    """A fact comes, wakes one, selects two rows, acts, settles, and another hears of that."""
    await at.signal(engine)
    await at.settle(engine)
    await engine.next_due(at.now)


async def warmed(at: At, reflexes: list[Reflex]) -> Engine:
    at.rows.tables["due"] = [{"id": "x"}, {"id": "y"}]
    engine = await at.engine()
    await at.load(engine, [*WATCHED, *reflexes])
    for _ in range(3):
        await day(at, engine)
    return engine


@pytest.mark.parametrize("idle", [True, False], ids=["nothing due", "a fact comes"])
async def test_it_does_not_grow_with_settled_runs(idle: bool) -> None:
    taken = []
    for count in (100, 10_000):
        async with ground("sqlite") as at:
            engine = await warmed(at, [])
            await copies(at, REFLEX_RUN, count, cause=lambda n: f"old:{n}", fact=lambda n: None)
            await copies(at, TASK, count, unit=lambda n: f"old:{n}")
            await copies(at, INTAKE, count)
            await day(at, engine)
            taken.append(await steps(at, engine.advance(at.now) if idle else day(at, engine)))
    assert taken[0] > 100, "the machine was watched"
    assert taken[1] <= taken[0] * MORE


@pytest.mark.parametrize("idle", [True, False], ids=["nothing due", "a fact comes"])
async def test_it_does_not_grow_with_loaded_reflexes(idle: bool) -> None:
    taken = []
    for count in (2, 1_000):
        async with ground("sqlite") as at:
            engine = await warmed(at, others(count))
            taken.append(await steps(at, engine.advance(at.now) if idle else day(at, engine)))
    assert taken[1] <= taken[0] * MORE


async def test_a_scan_would_show() -> None:
    """The count has teeth: a question that no index serves takes a step for each row."""
    taken = []
    for count in (100, 10_000):
        async with ground("sqlite") as at:
            await warmed(at, [])
            await copies(at, REFLEX_RUN, count, cause=lambda n: f"old:{n}", fact=lambda n: None)
            space = await at.space()
            taken.append(await steps(at, space.look(Query(REFLEX_RUN, where=(("state", "=", "pending"),)))))
    assert taken[1] > taken[0] * 20
