"""`run.db`: each verb a step of its own, committed with its journal row, exactly once."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from onefold.actuators import Run, actuator
from onefold.actuators.database import read_cells, storable, write_cells
from onefold.actuators.journal import rows
from onefold.store.contract import Tx
from onefold.terms.errors import StepFailed
from tests.actuators.home import Killed, World

SEEN: list[str] = []
TABLE = ["CREATE TABLE refunds (id TEXT PRIMARY KEY, amount TEXT, at TEXT)"]


async def once(run: Run) -> list[Any]:
    changed = await run.db.execute(
        "INSERT INTO refunds VALUES (:id, :amount, :at)", id="r1", amount=Decimal("1.50"), at=run.now()
    )
    every = await run.db.fetch("SELECT id, amount, at FROM refunds ORDER BY id")
    one = await run.db.fetch_one("SELECT amount FROM refunds WHERE id = :id", id="r1")
    none = await run.db.fetch_one("SELECT amount FROM refunds WHERE id = :id", id="r2")
    return [changed, every, one, none]


async def test_each_verb_is_a_step_with_bound_values() -> None:
    world = World(actuator(migrations=TABLE)(once))
    await world.play()
    assert world.result == [
        1,
        [{"id": "r1", "amount": "1.50", "at": "2027-01-15T08:00:00Z"}],
        {"amount": "1.50"},
        None,
    ]
    assert [row.step for row in rows(world.state)] == ["db.execute", "db.fetch", "db.fetch_one", "db.fetch_one"]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("kill_at", range(2, 7))
async def test_a_write_and_its_journal_row_are_one_commit(kill_at: int, before: bool) -> None:
    world = World(actuator(migrations=TABLE)(once))
    await world.survive(kill_at, before=before)
    written = next(iter(world.rows.tables.execute("SELECT count(*) FROM refunds")))[0]
    journaled = sum(row.step == "db.execute" for row in rows(world.state))
    assert written == journaled
    await world.play()
    assert world.result[0] == 1
    assert list(world.rows.tables.execute("SELECT count(*) FROM refunds")) == [(1,)]


async def test_a_statement_that_fails_is_a_failed_step_and_is_not_tried_again() -> None:
    async def main(run: Run) -> list[str]:
        told = []
        for _ in range(2):
            try:
                await run.db.execute("INSERT INTO refunds VALUES ('x', '1', '')")
                told.append("claimed")
            except StepFailed as failed:
                told.append(f"{failed.kind} {failed.attempts}")
        return told

    world = World(actuator(migrations=TABLE)(main))
    await world.play()
    assert world.result == ["claimed", "ConstraintError 1"]


async def test_a_database_step_commits_all_it_wrote_or_nothing() -> None:
    def move(tx: Tx, first: str, second: str, fails: bool) -> list[str]:
        tx.execute("INSERT INTO refunds VALUES (:id, :amount, NULL)", id=first, amount=Decimal("2.0"))
        tx.execute("INSERT INTO refunds VALUES (:id, :amount, NULL)", id=second, amount=Decimal("3.0"))
        if fails:
            raise ValueError("no")
        return [str(row["id"]) for row in tx.fetch("SELECT id FROM refunds ORDER BY id")]

    async def main(run: Run) -> list[str]:
        try:
            await run.db.step(move)("a", "b", fails=True)
        except StepFailed as failed:
            SEEN.append(failed.kind)
        return await run.db.step(move, name="again")("c", "d", fails=False)

    world = World(actuator(migrations=TABLE)(main))
    await world.play()
    assert world.result == ["c", "d"]
    assert SEEN == ["ValueError"]
    assert [(row.step, row.kind) for row in rows(world.state)] == [("move", "failed"), ("again", "step")]


async def test_a_result_that_cannot_be_written_takes_its_writes_back() -> None:
    def odd(tx: Tx) -> int:
        tx.execute("INSERT INTO refunds VALUES ('x', '1', '')")
        return "text"  # type: ignore[return-value]

    async def main(run: Run) -> int:
        return await run.db.step(odd)()

    world = World(actuator(migrations=TABLE)(main))
    await world.play()
    assert world.state.status == "failed"
    assert list(world.rows.tables.execute("SELECT * FROM refunds")) == []


async def test_what_is_no_database_step_is_refused_at_the_call() -> None:
    async def late(tx: Tx) -> None: ...

    def bare() -> None: ...

    def plain(tx: Tx, a: int) -> None: ...

    async def main(run: Run) -> list[str]:
        told = []
        for make in (
            lambda: run.db.step(late),
            lambda: run.db.step(bare),  # type: ignore[arg-type]
            lambda: run.db.step(plain)("x", "y"),  # type: ignore[call-arg, arg-type]
            lambda: run.db.execute(5),  # type: ignore[arg-type]
            lambda: run.db.execute("SELECT :a", a=object()),
        ):
            try:
                make()
            except TypeError as wrong:
                told.append(str(wrong))
        return told

    world = World(actuator(main))
    await world.play()
    assert [told[:40] for told in world.result] == [
        "run.db.step(late): a database step is a ",
        "run.db.step(bare): its first parameter i",
        "plain(): too many positional arguments",
        "run.db.execute: the statement must be te",
        ":a is a object; a database takes numbers",
    ]
    assert not len(world.state.journal)


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    "value, stored",
    [
        (None, None),
        (True, 1),
        (2, 2),
        (1.5, 1.5),
        ("x", "x"),
        (b"\0", b"\0"),
        (Decimal("1.50"), "1.50"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Colour.RED, "red"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
    ],
)
def test_values_are_stored_as_text_where_numbers_would_lose_something(value: Any, stored: Any) -> None:
    assert storable(value, "v") == stored


@pytest.mark.parametrize("value", [0, [{"a": b"\0\xff", "b": 1.5, "c": None, "d": float("inf"), "e": "x"}], None, {}])
def test_rows_come_back_from_the_journal_as_they_were(value: Any) -> None:
    assert read_cells(write_cells(value)) == value


async def test_a_pass_that_dies_inside_a_database_step_writes_nothing() -> None:
    def dies(tx: Tx) -> int:
        tx.execute("INSERT INTO refunds VALUES ('x', '1', '')")
        if deaths:
            deaths.pop()
            raise Killed
        return 1

    async def main(run: Run) -> int:
        return await run.db.step(dies)()

    deaths = [1]
    world = World(actuator(migrations=TABLE)(main))
    with pytest.raises(Killed):
        await world.play()
    world.restart()
    await world.play()
    assert world.result == 1
    assert list(world.rows.tables.execute("SELECT count(*) FROM refunds")) == [(1,)]
