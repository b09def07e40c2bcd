"""A preview is the engine without its last step: what it shows is what would happen, and it writes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onefold.reflex.tables import LEDGER
from onefold.reflex.words import ByHand, OnRun, OnSignal, OnWrite, Selection, Signal, Write
from onefold.store.contract import Query
from onefold.terms.errors import BadArguments, UnknownName
from tests.reflex.ground import STORES, T0, At, ground, reflex

MONTHLY = {"every": "month", "on": 31, "at": "02:30", "tz": "Europe/Vienna"}
MEMBERS = [{"id": "ada", "owes": 19}, {"id": "ben", "owes": 29}]
DUE = Selection({"from": "due", "month": {"$": "occurrence.key"}}, "each", "id")


@pytest.fixture(params=STORES)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        found.rows.tables["due"] = MEMBERS
        yield found


async def everything(at: At) -> dict[str, Any]:
    """Each row of each table."""
    space = await at.space()
    answers = await space.look(*[Query(table, order=table.key) for table in LEDGER.tables])
    return {table.name: rows for table, rows in zip(LEDGER.tables, answers, strict=True)}


async def test_it_shows_the_members_by_name_and_what_each_would_be_charged(at: At) -> None:
    engine = await at.engine()
    charge = reflex("charge", MONTHLY, select=DUE, input={"who": {"$": "row.id"}, "of": {"$": "occurrence.key"}})
    await at.load(engine, [charge])
    seen = await engine.preview("charge", now=at.now)
    assert (seen.reflex, seen.cause) == ("charge", "occurrence:2026-03")
    assert seen.rows == ({"id": "ada", "owes": 19}, {"id": "ben", "owes": 29})
    assert [(task.unit, task.input) for task in seen.tasks] == [
        ("ada", {"who": "ada", "of": "2026-03"}),
        ("ben", {"who": "ben", "of": "2026-03"}),
    ]
    assert seen.tasks[0].shows == "act {'of': '2026-03', 'who': 'ada'}"
    assert [moment.isoformat() for moment in seen.next_occurrences[:3]] == [
        "2026-03-31T00:30:00+00:00",  # the 29th lost an hour in Vienna
        "2026-04-30T00:30:00+00:00",
        "2026-05-31T00:30:00+00:00",
    ]
    assert at.act.inputs == [], "no effect ran"


async def test_it_writes_nothing(at: At) -> None:
    engine = await at.engine()
    reflexes = [
        reflex("charge", MONTHLY, select=DUE),
        reflex("paid", OnWrite("invoices"), when={"$": "fact.row.paid"}),
        reflex("hand", ByHand()),
    ]
    await at.load(engine, reflexes)
    await at.write(engine, "invoices", {"id": 1, "paid": True})
    await at.settle(engine, T0 + timedelta(days=40))
    before = await everything(at)
    row = Write("invoices", "insert", {"id": 2, "paid": True})
    times: list[dict[str, Any]] = [{}, {"at": at.now + timedelta(days=9)}]
    for given in times:
        await engine.preview("charge", now=at.now, **given)
        await engine.preview("paid", now=at.now, fact=row, **given)
        await engine.preview("paid", now=at.now, **given)
        await engine.preview("hand", now=at.now, fact={"kind": "manual", "payload": 1}, **given)
    assert await everything(at) == before


async def test_it_works_on_a_disarmed_reflex(at: At) -> None:
    engine = await at.engine()
    at.rows.tables["due"] = MEMBERS
    await at.load(engine, [reflex("charge", MONTHLY, select=DUE, enabled=False)])
    seen = await engine.preview("charge", now=at.now)
    assert (seen.cause, len(seen.tasks)) == ("occurrence:2026-03", 2)


async def test_a_slip_in_a_template_is_an_error_on_its_task(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("charge", MONTHLY, select=DUE, input={"who": {"$": "row.idd"}})])
    seen = await engine.preview("charge", now=at.now)
    assert [(task.unit, task.input) for task in seen.tasks] == [("ada", None), ("ben", None)]
    assert "row.idd" in (seen.tasks[0].error or "")


async def test_a_template_that_needs_an_occurrence_fails_when_fired_by_hand(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("charge", MONTHLY, input={"of": {"$": "occurrence.key"}})])
    seen = await engine.preview("charge", now=at.now, fact={"kind": "manual", "payload": {}})
    assert seen.cause == "fact"
    assert "occurrence.key" in (seen.tasks[0].error or "")


async def test_a_fact_is_tried_by_the_same_when(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("paid", OnWrite("invoices", "update"), when={"$": "fact.row.tags"})])

    async def cause(fact: Any) -> str:
        return (await engine.preview("paid", now=at.now, fact=fact)).cause

    assert await cause(Write("invoices", "update", {"tags": ["x"]})) == "fact"
    assert await cause(Write("invoices", "update", {"tags": []})) == "nothing: its `when` does not let this fact pass"
    assert (await cause(Write("invoices", "update", {}))).startswith("nothing: its `when` failed: BadArguments")
    assert await cause(Write("invoices", "insert", {"tags": ["x"]})) == (
        "nothing: it waits for an update of invoices, and this fact is an insert of invoices"
    )
    assert await cause(Signal("stripe", {})) == (
        "nothing: it waits for an update of invoices, and this fact is a signal stripe"
    )


async def test_it_says_what_a_reflex_waits_for(at: At) -> None:
    engine = await at.engine()
    waiting: dict[str, Any] = {
        "paid": OnWrite("invoices"),
        "hook": OnSignal("stripe"),
        "after": OnRun("paid"),
        "hand": ByHand(),
    }
    await at.load(engine, [reflex(id, on) for id, on in waiting.items()])
    said = {id: (await engine.preview(id, now=at.now)).cause for id in waiting}
    assert said == {
        "paid": "nothing by itself: it waits for a write of invoices; give it a fact to see",
        "hook": "nothing by itself: it waits for the signal stripe; give it a fact to see",
        "after": "nothing by itself: it waits for a settled run of paid; give it a fact to see",
        "hand": "nothing by itself: it waits for a person who fires it; give it a fact to see",
    }


async def test_a_settled_run_can_be_tried(at: At) -> None:
    engine = await at.engine()
    digest = reflex("digest", OnRun("charge"), input={"$": "fact.stats.failed"}, when={"$": "fact.stats.total"})
    await at.load(engine, [digest])
    fact = {"kind": "run", "stats": {"total": 5, "done": 4, "failed": 1}}
    seen = await engine.preview("digest", now=at.now, fact=fact)
    assert [task.input for task in seen.tasks] == [1]
    with pytest.raises(BadArguments, match="statts"):
        await engine.preview("digest", now=at.now, fact={"kind": "run", "statts": {}})


async def test_no_rows_is_an_ordinary_outcome(at: At) -> None:
    engine = await at.engine()
    at.rows.tables["due"] = []
    await at.load(engine, [reflex("charge", MONTHLY, select=DUE)])
    seen = await engine.preview("charge", now=at.now)
    assert (seen.cause, seen.rows, seen.tasks) == ("occurrence:2026-03", (), ())


async def test_what_would_refuse_the_run_refuses_the_preview(at: At) -> None:
    engine = await at.engine()
    at.rows.tables["due"] = [{"id": "ada"}, {"id": "ada"}]
    await at.load(engine, [reflex("charge", MONTHLY, select=DUE)])
    assert "two rows of the selection have id 'ada'" in (await engine.preview("charge", now=at.now)).cause
    at.rows.down = ConnectionError("no route")
    assert (await engine.preview("charge", now=at.now)).cause == "nothing: ConnectionError: no route"


async def test_at_shows_the_first_occurrence_from_there(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("charge", MONTHLY, input={"$": "now"})])
    exactly = datetime(2026, 10, 31, 1, 30, tzinfo=UTC)
    seen = await engine.preview("charge", now=at.now, at=exactly)
    assert (seen.cause, seen.tasks[0].input) == ("occurrence:2026-10", "2026-10-31T01:30:00Z")
    assert seen.next_occurrences[0] == exactly
    later = await engine.preview("charge", now=at.now, at=exactly + timedelta(milliseconds=1), count=1)
    assert (later.cause, len(later.next_occurrences)) == ("occurrence:2026-11", 1)


async def test_what_has_come_and_was_not_made_yet_stands_before_what_is_to_come(at: At) -> None:
    """Counted from now, an operator read on the morning after an outage that the night's run comes tomorrow."""
    engine = await at.engine()
    await at.load(engine, [reflex("a", {"every": "day", "at": "03:00", "tz": "UTC"})])
    at.later(days=1, hours=12)
    seen = await engine.preview("a", now=at.now, count=3)
    assert [each.day for each in seen.next_occurrences] == [1, 2, 3]
    await at.settle(engine)
    seen = await engine.preview("a", now=at.now, count=3)
    assert [each.day for each in seen.next_occurrences] == [3, 4, 5]


async def test_what_was_missed_is_shown_as_catch_up_would_have_it(at: At) -> None:
    engine = await at.engine()
    daily = {"every": "day", "at": "03:00", "tz": "UTC"}
    await at.load(engine, [reflex(how, daily, catch_up=how) for how in ("run", "skip", "latest")])
    at.later(days=3, hours=2)
    said = {how: (await engine.preview(how, now=at.now)).cause for how in ("run", "skip", "latest")}
    assert said == {
        "run": "occurrence:2026-03-01",
        "skip": "occurrence:2026-03-04",  # an hour's lateness is the limit: the next one is tomorrow's
        "latest": "occurrence:2026-03-03",
    }


async def test_a_repeat_that_would_overlap_is_told(at: At) -> None:
    engine = await at.engine()
    at.rows.down = ConnectionError("the run stays open")
    await at.load(engine, [reflex("charge", {"every": "day", "at": "03:00", "tz": "UTC"}, select=DUE)])
    await at.settle(engine, T0 + timedelta(days=1))
    at.later(days=1)
    assert (await engine.preview("charge", now=at.now)).cause.startswith("nothing: overlap: reflex_run_")


async def test_another_principals_reflex_is_not_there(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("charge", MONTHLY, principal="studio_42")])
    with pytest.raises(UnknownName):
        await engine.preview("charge", now=at.now, principal="studio_7")
    assert (await engine.preview("charge", now=at.now, principal="studio_42")).cause == "occurrence:2026-03"
