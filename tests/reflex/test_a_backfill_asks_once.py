"""Past occurrences that a person asks for: each once, whoever asks and how often, and never two at once unseen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onefold.reflex import birth
from onefold.reflex.seams import Task
from onefold.reflex.tables import STATE
from onefold.reflex.words import OnSignal, Selection
from onefold.store.contract import Cas, Last
from onefold.terms.errors import BadArguments, Contended
from tests.reflex.ground import STORES, T0, At, ground, reflex

MONTHLY = {"every": "month", "on": 31, "at": "02:30", "tz": "Europe/Vienna"}
YEAR: dict[str, Any] = {"since": datetime(2025, 1, 1, tzinfo=UTC), "until": datetime(2025, 12, 31, 23, tzinfo=UTC)}
MONTHS = [f"occurrence:2025-{month:02}" for month in range(1, 13)]


@pytest.fixture(params=STORES)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        yield found


async def test_twelve_months_are_twelve_keys(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY, overlap="allow", input={"$": "occurrence.key"})])
    assert await engine.backfill("report", **YEAR, now=at.now) == 12
    await at.settle(engine)
    runs = await at.runs()
    assert [run["cause"] for run in runs] == MONTHS
    assert {run["note"] for run in runs} == {birth.BACKFILL}, "and each says why it is there"
    assert [run["occurred_at"] for run in runs][1] == int(datetime(2025, 2, 28, 1, 30, tzinfo=UTC).timestamp() * 1000)


async def test_asked_again_it_makes_nothing(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY, overlap="allow")])
    half: dict[str, Any] = {**YEAR, "until": datetime(2025, 6, 30, 23, tzinfo=UTC)}
    assert await engine.backfill("report", **half, now=at.now) == 6
    assert await engine.backfill("report", **YEAR, now=at.now) == 6
    assert await engine.backfill("report", **YEAR, now=at.now) == 0


async def test_an_occurrence_that_the_clock_made_is_not_made_again(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY, overlap="allow")])
    await at.settle(engine, T0 + timedelta(days=40))
    assert [run["cause"] for run in await at.runs()] == ["occurrence:2026-03"]
    assert await engine.backfill("report", since=T0, until=at.now, now=at.now) == 0


async def test_the_clock_does_not_repeat_what_was_backfilled(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY, overlap="allow")])
    at.later(days=40)
    assert await engine.backfill("report", since=T0, until=at.now, now=at.now) == 1
    await at.settle(engine)
    assert [run["cause"] for run in await at.runs()] == ["occurrence:2026-03"]


async def test_the_watermark_stays(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY)])
    before = await at.state("report")
    await engine.backfill("report", **YEAR, now=at.now)
    assert await at.state("report") == before


async def test_a_disarmed_reflex_can_be_backfilled(at: At) -> None:
    """Arming stops triggers. This is a person."""
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY, enabled=False)])
    assert await engine.backfill("report", **YEAR, now=at.now) == 12


async def test_what_must_not_overlap_waits_its_turn_and_none_is_dropped(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY, overlap="skip", input={"$": "occurrence.key"})])
    together: list[int] = []

    async def act(task: Task, key: Any) -> Any:
        together.append(sum(run["open"] == "report" for run in await at.runs()))
        return key

    at.act.does = act
    assert await engine.backfill("report", **YEAR, now=at.now) == 12
    await engine.advance(at.now)
    waiting = [run for run in await at.runs() if run["state"] == "pending"]
    assert len(waiting) == 11, "one goes, eleven wait"
    assert {run["due_at"] for run in waiting} == {None}, "for nothing that a clock could bring"
    await at.settle(engine)
    assert at.act.inputs == [cause.partition(":")[2] for cause in MONTHS], "in the order of their keys"
    assert together == [1] * 12, "and never two at once"
    assert {run["state"] for run in await at.runs()} == {"settled"}


async def test_a_queue_goes_on_after_the_process_that_made_it_is_gone(at: At) -> None:
    engine = await at.engine()
    reflexes = [reflex("report", MONTHLY, overlap="skip")]
    await at.load(engine, reflexes)
    await engine.backfill("report", **YEAR, now=at.now)
    await engine.advance(at.now)
    await at.reopen()
    again = await at.engine()
    await at.load(again, reflexes)
    await at.pass_until(again, at.now + timedelta(hours=1))
    assert [run["state"] for run in await at.runs()] == ["settled"] * 12


async def test_two_engines_let_the_same_one_go_once(at: At) -> None:
    one, two = await at.engine(), await at.engine()
    await at.load(one, [reflex("report", MONTHLY, overlap="skip")])
    await two.reload()
    await one.backfill("report", **YEAR, now=at.now)
    for _ in range(60):
        await asyncio.gather(one.advance(at.now), two.advance(at.now))
        assert sum(run["open"] == "report" for run in await at.runs()) <= 1
    assert {run["state"] for run in await at.runs()} == {"settled"}
    assert len(at.act.inputs) == 12


async def test_the_next_occurrence_of_the_clock_gives_way_to_a_past_one_that_is_open(at: At) -> None:
    """That is what overlap says, and the row says which it gave way to."""
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY, overlap="skip", select=Selection({"from": "rows"}, "batch"))])
    at.rows.down = ConnectionError("it stays open")
    await engine.backfill("report", **YEAR, now=at.now)
    await at.settle(engine)
    await at.settle(engine, T0 + timedelta(days=31))
    (march,) = await at.runs(cause="occurrence:2026-03")
    assert march["state"] == "skipped"
    assert "has not settled" in march["note"]


async def test_a_stuck_engine_is_told_of_and_writes_nothing(at: At) -> None:
    """Another engine loaded a newer set meanwhile: what this one holds of the reflex may be old."""
    old, new = await at.engine(), await at.engine()
    await at.load(old, [reflex("report", MONTHLY)])
    await at.load(new, [reflex("report", MONTHLY, input={"changed": True})])
    with pytest.raises(Contended):
        await old.backfill("report", **YEAR, now=at.now)
    assert await at.runs() == []


async def test_what_a_sweep_took_is_never_made_again(at: At) -> None:
    """Its run is gone, and with it the row that said that everybody was charged."""
    engine = await at.engine()
    await at.load(engine, [reflex("report", MONTHLY, overlap="allow")])
    june = int(datetime(2025, 6, 30, 0, 30, tzinfo=UTC).timestamp() * 1000)

    def swept() -> Any:
        yield ()
        return Last((Cas(STATE, [(("report",), {}, {"swept_at": june})]),), None)

    await (await at.space()).transact(swept)
    assert await engine.backfill("report", **YEAR, now=at.now) == 6
    assert [run["cause"] for run in await at.runs()] == MONTHS[6:]


async def test_more_than_a_thousand_are_made_in_several_commits(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("hourly", {"cron": "0 * * * *", "tz": "UTC"}, overlap="allow")])
    since = T0 - timedelta(hours=1199)
    assert await engine.backfill("hourly", since=since, until=T0, now=at.now) == 1200
    assert await engine.backfill("hourly", since=since, until=T0, now=at.now) == 0


@pytest.mark.parametrize(
    "given, told",
    [
        ({"since": T0, "until": T0 + timedelta(seconds=1)}, "lies in the future"),
        ({"since": T0, "until": T0 - timedelta(days=1)}, "lies after `until`"),
        ({"since": T0 - timedelta(days=30), "until": T0}, "more than 10000 occurrences"),
    ],
)
async def test_what_cannot_be_meant_is_refused(at: At, given: dict[str, Any], told: str) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("minutely", {"cron": "* * * * *", "tz": "UTC"})])
    with pytest.raises(BadArguments, match=told):
        await engine.backfill("minutely", **given, now=at.now)
    assert await at.runs() == []


async def test_a_reflex_without_a_clock_has_no_past(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("hook", OnSignal("stripe"))])
    with pytest.raises(BadArguments, match="has no clock"):
        await engine.backfill("hook", **YEAR, now=at.now)
