"""The clock: keys in local fields, what was missed, pauses, and a watermark that only goes forward."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from onefold.almanac import clock_rule
from onefold.reflex.words import OnSignal
from onefold.terms.instant import down, moment
from tests.reflex.ground import T0, At, reflex

DAILY = {"every": "day", "at": "03:00", "tz": "Europe/Vienna"}
MINUTE = {"cron": "* * * * *", "tz": "UTC"}


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def keys(at: At, **where: object) -> list[str]:
    return [run["cause"].removeprefix("occurrence:") for run in await at.runs(**where)]


# --- keys -------------------------------------------------------------------------------------------------


async def test_an_occurrence_becomes_one_run_however_often_it_is_looked_at(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY, overlap="allow")])
    for hours in (0, 1, 3, 3, 0, 24):
        at.later(hours=hours)
        await at.settle(engine)
    assert await keys(at) == ["2026-03-01", "2026-03-02"]


async def test_what_is_still_to_come_is_no_row(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY)])
    await at.settle(engine)
    assert await at.runs() == []
    assert await engine.next_due(at.now) == day("2026-03-01T02:00")


async def test_a_run_says_which_zone_data_it_was_reckoned_with(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY)])
    await at.settle(engine, day("2026-03-01T02:00"))
    (run,) = await at.runs()
    assert run["tz"]
    assert run["env"] == b'{"at":"2026-03-01T02:00:00Z","key":"2026-03-01"}'


@pytest.mark.parametrize(
    "clause,since,until,expected",
    [
        ({"every": "month", "on": 31, "at": "03:00", "tz": "UTC"}, "2026-01-15", "2026-04-30T12:00",
         ["2026-01-31T03:00", "2026-02-28T03:00", "2026-03-31T03:00", "2026-04-30T03:00"]),
        ({"every": "day", "at": "02:30", "tz": "Europe/Vienna"}, "2026-03-28T12:00", "2026-03-30T12:00",
         ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ({"every": "day", "at": "02:30", "tz": "Europe/Vienna"}, "2026-10-24T12:00", "2026-10-26T12:00",
         ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ({"every": "day", "at": "23:30", "tz": "America/Nuuk"}, "2026-03-27T12:00", "2026-03-30T12:00",
         ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]),
        ({"at": "2026-09-14T09:00", "tz": "Europe/Vienna"}, "2026-09-01", "2027-01-01", ["2026-09-14T07:00"]),
    ],
)  # fmt: skip
async def test_edges_of_the_calendar_lose_and_repeat_no_key(
    at: At, clause: dict[str, object], since: str, until: str, expected: list[str]
) -> None:
    engine = await at.engine()
    at.now = day(since)
    await at.load(engine, [reflex("a", clause, overlap="allow")])
    await at.pass_until(engine, day(until))
    runs = await at.runs()
    assert [moment(run["occurred_at"]) for run in runs] == [day(text) for text in expected]
    assert len({run["cause"] for run in runs}) == len(expected)


async def test_a_year_of_nights_is_a_run_each_and_none_twice(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", {**DAILY, "at": "02:30"}, overlap="allow")])
    days = 365 if at.store != "postgres" else 60
    await at.pass_until(engine, T0 + timedelta(days=days))
    found = await keys(at)
    assert len(found) == days
    assert set(Counter(found).values()) == {1}


# --- what was missed ----------------------------------------------------------------------------------------


async def test_missed_occurrences_run_late_each(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY, overlap="allow")])
    await at.settle(engine, T0 + timedelta(days=3))
    assert await keys(at, state="skipped") == []
    assert await keys(at) == ["2026-03-01", "2026-03-02", "2026-03-03"]


async def test_missed_together_the_oldest_runs_and_the_rest_are_repeats_of_it(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY)])
    await engine.advance(at.later(days=3))
    assert await keys(at, state="skipped") == ["2026-03-02", "2026-03-03"]
    notes = {run["note"] for run in await at.runs(state="skipped")}
    assert notes == {"overlap: reflex_run_1 of this reflex has not settled yet"}


async def test_skip_drops_what_is_late_and_says_so(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY, catch_up="skip", overlap="allow")])
    await at.settle(engine, day("2026-03-03T02:59"))
    skipped = await at.runs(state="skipped")
    assert [run["cause"] for run in skipped] == ["occurrence:2026-03-01", "occurrence:2026-03-02"]
    assert all(run["note"].startswith("catchUp skip: 2026-03-0") and run["settled_at"] for run in skipped)
    assert await keys(at) == ["2026-03-01", "2026-03-02", "2026-03-03"]


async def test_latest_runs_once_however_many_calls_it_takes(at: At) -> None:
    """Three chunks of minutes: the original fired once for each chunk."""
    engine = await at.engine()
    await at.load(engine, [reflex("a", MINUTE, catch_up="latest", overlap="allow")])
    await at.settle(engine, T0 + timedelta(minutes=1_200))
    runs = await at.runs()
    assert len(runs) == 1_200
    assert [run["cause"] for run in runs if run["state"] != "skipped"] == ["occurrence:2026-03-01T20:00"]


async def test_a_full_call_stops_at_its_last_row_and_the_next_goes_on(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", MINUTE, overlap="allow"), reflex("b", DAILY)])
    at.later(minutes=700)
    first = await engine.advance(at.now)
    assert (first.materialized, first.moved) == (500, True)
    assert (await at.state("a"))["watermark"] == "2026-03-01T08:20"
    assert await engine.next_due(at.now) == at.now
    await at.settle(engine)
    assert len(await at.runs(reflex="a")) == 700
    assert len(await at.runs(reflex="b")) == 1


# --- pauses and arming ----------------------------------------------------------------------------------------


async def test_a_pause_is_a_pause(at: At) -> None:
    """Eight days off were eight runs the instant it came back, because the watermark had stood still."""
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY, overlap="allow")])
    await at.pass_until(engine, T0 + timedelta(days=1))
    await at.load(engine, [reflex("a", DAILY, overlap="allow", enabled=False)])
    await at.pass_until(engine, T0 + timedelta(days=9))
    assert (await at.state("a"))["watermark"] == "2026-03-09"
    await at.load(engine, [reflex("a", DAILY, overlap="allow")])
    await at.pass_until(engine, T0 + timedelta(days=10))
    assert await keys(at) == ["2026-03-01", "2026-03-10"]


async def test_a_paused_reflex_moves_on_in_one_step(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", MINUTE, enabled=False)])
    reports = await at.settle(engine, T0 + timedelta(days=300))
    assert len(reports) == 2
    assert await at.runs() == []


async def test_who_comes_back_into_the_set_begins_at_that_instant(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY), reflex("b", OnSignal("x"))])
    await at.load(engine, [reflex("b", OnSignal("x"))])
    await at.pass_until(engine, T0 + timedelta(days=5))
    await at.load(engine, [reflex("a", DAILY), reflex("b", OnSignal("x"))])
    await at.pass_until(engine, T0 + timedelta(days=6))
    assert await keys(at) == ["2026-03-06"]


async def test_a_clock_without_a_baseline_takes_one_and_makes_nothing(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY)])
    await at.put_state("a", watermark=None, next_at=0)
    await at.settle(engine, T0 + timedelta(days=40))
    assert await at.runs() == []
    assert (await at.state("a"))["watermark"] == "2026-04-09"


async def test_who_left_the_set_is_not_looked_at_again(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("b", OnSignal("x"))])
    await at.put_state("gone", principal="-", version="", enabled=1, armed_at=0, watermark="2020", next_at=0, gen=1)
    await at.settle(engine)
    assert (await at.state("gone"))["next_at"] is None
    assert await engine.next_due(at.now) is None


# --- clocks that disagree ---------------------------------------------------------------------------------------


async def test_a_clock_that_goes_back_only_delays(at: At) -> None:
    engine, slow = await at.engine(), await at.engine()
    await at.load(engine, [reflex("a", DAILY, overlap="allow")])
    assert engine.loaded is not None
    await slow.adopt(engine.loaded)
    await at.settle(engine, T0 + timedelta(days=2))
    before = await at.state("a")
    for hours in (-40, -1, -30, 0):
        await at.settle(slow, T0 + timedelta(days=2, hours=hours))
        assert await at.state("a") == before
    await at.settle(slow, T0 + timedelta(days=3))
    assert await keys(at) == ["2026-03-01", "2026-03-02", "2026-03-03"]


async def test_the_watermark_is_a_key_and_new_zone_data_moves_only_its_instant(at: At) -> None:
    """An instant that new data moved to later is found early, moved, and fires once."""
    engine = await at.engine()
    await at.load(engine, [reflex("a", DAILY)])
    coming = clock_rule(DAILY).next(down(at.now))
    assert coming is not None
    await at.put_state("a", next_at=coming.at - 3_600_000)
    await at.settle(engine, moment(coming.at - 3_600_000))
    assert await at.runs() == []
    assert (await at.state("a"))["next_at"] == coming.at
    await at.settle(engine, moment(coming.at))
    assert await keys(at) == ["2026-03-01"]
