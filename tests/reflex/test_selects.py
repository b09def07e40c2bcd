"""Selections: rows by the name of a question, and who asks bound by the engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from onefold.reflex.seams import Query
from onefold.reflex.selects import Selects, SqlSelect, select
from onefold.terms.errors import BadArguments, LoadRefused, StoreUnavailable, UnknownName

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@select("subscriptions.overdue")
async def overdue(query: Query) -> AsyncIterator[dict[str, Any]]:
    for n in range(query.params["count"]):
        yield {"id": f"s{n}", "who": query.principal, "at": query.now}


@select("plain.rows")
def plain(query: Query) -> Iterator[dict[str, Any]]:
    for n in range(query.params.get("count", 2)):
        yield {"id": n, "thread": threading.current_thread() is threading.main_thread()}


@select("plain.list")
def listed(query: Query) -> list[dict[str, Any]]:
    return [{"id": 1}]


@select("awaited.list")
async def awaited(query: Query) -> list[dict[str, Any]]:
    return [{"id": 1}]


class Asked:
    """A database that keeps what it was asked."""

    def __init__(self, rows: list[dict[str, object]] | None = None) -> None:
        self.given = rows or [{"id": 1}]
        self.asked: list[tuple[str, Mapping[str, Any], int]] = []
        self.left = False

    async def rows(self, sql: str, values: Mapping[str, Any], *, timeout_ms: int, named: str) -> AsyncIterator[Any]:
        self.asked.append((sql, values, timeout_ms))
        try:
            for row in self.given:
                yield row
        finally:
            self.left = True


DUE = "SELECT id FROM due WHERE tenant = :principal AND month = :month"
due = select.sql("subscriptions.due", DUE, on="env:SHOP_DB", timeout="5 seconds")
open_to_all = select.sql("prices.all", "SELECT * FROM prices", on="env:SHOP_DB")


async def rows(selects: Selects, query: Any, principal: str | None = None) -> list[Any]:
    return [row async for row in selects(query, principal, NOW)]


def all_of(database: Asked | None = None) -> Selects:
    asked = database or Asked()
    return Selects([overdue, plain, listed, awaited, due, open_to_all], lambda on: asked)


# --- functions --------------------------------------------------------------------------------------


async def test_a_function_gives_rows_for_whoever_asks() -> None:
    given = await rows(all_of(), {"name": "subscriptions.overdue", "with": {"count": 2}}, "studio_42")
    assert given == [{"id": f"s{n}", "who": "studio_42", "at": "2026-03-01T00:00:00Z"} for n in range(2)]


async def test_a_plain_function_runs_off_the_loop() -> None:
    assert await rows(all_of(), {"name": "plain.rows"}) == [{"id": n, "thread": False} for n in range(2)]
    assert len(await rows(all_of(), {"name": "plain.rows", "with": {"count": 1_234}})) == 1_234
    assert await rows(all_of(), {"name": "plain.list"}) == [{"id": 1}]
    assert await rows(all_of(), {"name": "awaited.list"}) == [{"id": 1}]


async def test_a_selection_without_an_end_is_left() -> None:
    closed = threading.Event()

    @select("endless")
    def endless(query: Query) -> Iterator[dict[str, Any]]:
        try:
            while True:
                yield {"id": 1}
        finally:
            closed.set()

    given = Selects([endless])({"name": "endless"}, None, NOW)
    assert await anext(given) == {"id": 1}
    await given.aclose()  # type: ignore[attr-defined]
    del given


async def test_what_a_function_raises_is_raised() -> None:
    @select("fails")
    def fails(query: Query) -> list[dict[str, Any]]:
        raise ConnectionError("down")

    with pytest.raises(ConnectionError):
        await rows(Selects([fails]), {"name": "fails"})


async def test_the_loop_goes_on_while_a_function_blocks() -> None:
    go_on = threading.Event()

    @select("blocks")
    def blocks(query: Query) -> list[dict[str, Any]]:
        assert go_on.wait(60)
        return []

    asking = asyncio.ensure_future(rows(Selects([blocks]), {"name": "blocks"}))
    for _ in range(5):
        await asyncio.sleep(0)
    go_on.set()
    assert await asking == []


async def test_a_selection_that_never_answers_is_left_and_may_be_tried_again() -> None:
    let_go = threading.Event()

    @select("hangs", timeout="20ms")
    def hangs(query: Query) -> list[dict[str, Any]]:
        let_go.wait(60)
        return []

    @select("waits", timeout="20ms")
    async def waits(query: Query) -> AsyncIterator[dict[str, Any]]:
        yield {"id": 1}
        await asyncio.Event().wait()

    @select("raises")
    async def raises(query: Query) -> list[dict[str, Any]]:
        raise TimeoutError("the database's own")

    for name, part in (("hangs", hangs), ("waits", waits)):
        with pytest.raises(StoreUnavailable, match=r"longer than its 0\.02 s"):
            await rows(Selects([part]), {"name": name})
    let_go.set()
    with pytest.raises(TimeoutError, match="own"):
        await rows(Selects([raises]), {"name": "raises"})


@dataclass
class Line:
    id: str
    amount: Decimal


async def test_rows_are_json() -> None:
    @select("kinds")
    async def kinds(query: Query) -> AsyncIterator[Any]:
        yield Line("a", Decimal("1.50"))
        yield {
            "d": Decimal("0.10"),
            "at": NOW,
            "local": NOW.replace(tzinfo=None),
            "day": date(2026, 3, 1),
            "raw": b"\0",
        }
        yield {"id": UUID(int=1), "l": (Decimal(1), [None]), "m": {"x": NOW}}

    assert await rows(Selects([kinds]), {"name": "kinds"}) == [
        {"id": "a", "amount": "1.50"},
        {"d": "0.10", "at": "2026-03-01T00:00:00Z", "local": "2026-03-01T00:00:00", "day": "2026-03-01", "raw": "AA=="},
        {"id": "00000000-0000-0000-0000-000000000001", "l": ["1", [None]], "m": {"x": "2026-03-01T00:00:00Z"}},
    ]


@pytest.mark.parametrize("row", [1, "x", [1], {1: 2}, {"a": object()}, None])
async def test_what_is_no_row_is_told(row: Any) -> None:
    @select("odd")
    async def odd(query: Query) -> list[Any]:
        return [row]

    with pytest.raises(BadArguments, match="odd"):
        await rows(Selects([odd]), {"name": "odd"})


def test_the_function_stays_a_function() -> None:
    assert callable(plain.function)
    assert overdue.name == "subscriptions.overdue"


# --- SQL --------------------------------------------------------------------------------------------


async def test_who_asks_is_bound_from_the_run() -> None:
    database = Asked()
    query = {"name": "subscriptions.due", "with": {"month": "2026-03"}}
    assert await rows(all_of(database), query, "studio_42") == [{"id": 1}]
    assert await rows(all_of(database), query, None) == [{"id": 1}]
    await rows(all_of(database), {"name": "prices.all"}, "studio_42")
    assert database.asked == [
        (DUE, {"month": "2026-03", "principal": "studio_42"}, 5_000),
        (DUE, {"month": "2026-03", "principal": None}, 5_000),
        ("SELECT * FROM prices", {}, 30_000),
    ]


@pytest.mark.parametrize(
    "given, field, problem",
    [
        ({"month": "1", "principal": "studio_7"}, "with.principal", "bound by the engine"),
        ({}, "with.month", "is missing"),
        ({"mnth": "1", "month": "1"}, "with.mnth", "did you mean 'month'?"),
        ({"quite": "1", "month": "1"}, "with.quite", "takes month"),
    ],
)
async def test_parameters_are_checked_at_load_and_when_it_runs(given: Any, field: str, problem: str) -> None:
    database = Asked()
    query = {"name": "subscriptions.due", "with": given}
    with pytest.raises(BadArguments) as told:
        await rows(all_of(database), query, "studio_42")
    assert told.value.faults[0].field == field
    assert problem in told.value.faults[0].problem
    (finding,) = all_of().findings(query, "select.query", "studio_42")
    assert (finding.where, finding.level) == (f"select.query.{field}", "refused")
    assert problem in finding.problem
    assert database.asked == []


async def test_nobody_else_sets_who_asks_a_function() -> None:
    query = {"name": "plain.rows", "with": {"principal": "studio_7"}}
    with pytest.raises(BadArguments, match="bound by the engine"):
        await rows(all_of(), query, "studio_42")
    assert len(all_of().findings(query)) == 1


@pytest.mark.parametrize(
    "query, where, problem",
    [
        ("subscriptions.due", "q", "is an object"),
        ({"nmae": "x"}, "q", "did you mean 'name'?"),
        ({"sql": "DROP TABLE due"}, "q", "does not know 'sql'"),
        ({"with": {}}, "q", "must be the name"),
        ({"name": {"$": "params.q"}}, "q", "written out"),
        ({"name": "subscriptions.deu"}, "q.name", "did you mean 'subscriptions.due'?"),
        ({"name": "zzz"}, "q.name", "there is subscriptions.overdue"),
        ({"name": "subscriptions.due", "with": {"$": "params"}}, "q.with", "is an object of names"),
    ],
)
async def test_a_query_that_nobody_can_answer_is_refused(query: Any, where: str, problem: str) -> None:
    (finding,) = all_of().findings(query, "q")
    assert finding.where == where
    assert problem in finding.problem
    with pytest.raises((BadArguments, UnknownName)):
        await rows(all_of(), query)


def test_templates_may_fill_what_is_asked_for() -> None:
    query = {"name": "subscriptions.due", "with": {"month": {"$": "occurrence.key"}}}
    assert all_of().findings(query, principal="studio_42") == []
    assert all_of().findings({"name": "plain.rows", "with": {"$": "params"}}) == []


def test_a_question_with_the_same_answer_for_all_is_named() -> None:
    (finding,) = all_of().findings({"name": "prices.all"}, principal="studio_42")
    assert finding.level == "warning"
    assert ":principal" in finding.problem
    assert all_of().findings({"name": "prices.all"}) == []


async def test_a_database_is_let_go_when_its_rows_are_left() -> None:
    database = Asked([{"id": n} for n in range(10)])
    given = all_of(database)({"name": "prices.all"}, None, NOW)
    await anext(given)
    await given.aclose()  # type: ignore[attr-defined]
    assert database.left


@pytest.mark.parametrize(
    "sql, problem",
    [
        ("", "is empty"),
        ("-- nothing", "is empty"),
        ("DELETE FROM due", "only reads"),
        ("PRAGMA writable_schema = on", "only reads"),
        ("ATTACH 'x' AS y", "only reads"),
        ("SELECT 1; DELETE FROM due", "one statement"),
        ("SELECT ';' /* ; */; SELECT 2", "one statement"),
    ],
)
def test_a_text_that_is_no_question_is_refused(sql: str, problem: str) -> None:
    with pytest.raises(LoadRefused, match=problem):
        select.sql("x", sql, on="env:DB")


@pytest.mark.parametrize(
    "sql", ["SELECT ';'", "SELECT 1;", "  -- told\n  with a as (select 1) select * from a ; -- end", "VALUES (1)"]
)
def test_a_text_that_is_one_question_is_taken(sql: str) -> None:
    assert isinstance(select.sql("x", sql, on="env:DB"), SqlSelect)


def test_values_are_found_where_they_stand() -> None:
    sql = """SELECT a::int, ':text', ":quoted", $$:dollar$$, 5 % 2 -- :comment
        FROM x /* :other */ WHERE a = :a AND b LIKE '%:b' AND c = :c AND a > :a"""
    asked = select.sql("x", sql, on="tool:shop")
    assert asked.takes == frozenset("ac")
    assert asked.shared


@pytest.mark.parametrize("on", ["SHOP_DB", "env:", "env:1X", "postgres://u:p@h/d", "tool:Not-A-Tool", "file:x"])
def test_an_address_in_the_code_is_refused(on: str) -> None:
    with pytest.raises(LoadRefused, match="neither") as told:
        select.sql("x", "SELECT 1", on=on)
    assert "test_selects.py:" in told.value.findings[0].where


def test_names_are_words_with_dots_and_stand_once() -> None:
    for name in ("", "Upper", "a..b", "a b", "1a"):
        with pytest.raises(LoadRefused):
            select.sql(name, "SELECT 1", on="env:DB")
    with pytest.raises(TypeError, match="needs the name"):
        select(listed.function)  # type: ignore[arg-type]
    with pytest.raises(LoadRefused, match="stands twice"):
        Selects([plain, plain])
    with pytest.raises(LoadRefused, match="is no selection"):
        Selects([print])
    with pytest.raises(LoadRefused, match="no database was given"):
        Selects([due])
