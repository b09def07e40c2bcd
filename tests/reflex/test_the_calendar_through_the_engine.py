"""The golden cases of the calendar once more, as an engine lives them: woken at each due instant, and at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from onefold.almanac import tz_version
from onefold.reflex.words import OnClock
from onefold.terms.instant import down, moment, text
from tests.almanac.test_golden_cases import Case, cases
from tests.reflex.ground import STORES, At, ground, reflex


@pytest.fixture(params=STORES)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        yield found


def clock(case: Case) -> OnClock:
    clause = {name: value for name, value in case.rule.items() if name != "fold"}
    return OnClock({**clause, "tz": case.tz}, case.made())


async def lived(at: At) -> tuple[list[str], list[str]]:
    """The instants and keys of the runs, in the order they were born."""
    runs = await at.runs()
    assert {run["tz"] for run in runs} <= {tz_version()}, "each says by which zone data it was reckoned"
    assert {run["state"] for run in runs} <= {"fanned", "settled"}
    return [text(run["occurred_at"]) for run in runs], [run["cause"].partition(":")[2] for run in runs]


def ours(case: Case) -> bool:
    """Whether it comes at all, under the zone data of now, and is no timer's, which goes by instants and not by keys."""
    return bool(case.expect) and case.tzdata in (None, tz_version()) and "instant-keyed" not in case.note


CASES = [each for each in cases() if ours(each.values[0])]


@pytest.mark.parametrize("case", CASES)
async def test_each_occurrence_is_one_run_under_its_key_at_its_instant(at: At, case: Case) -> None:
    engine = await at.engine()
    at.now = moment(case.after)
    await at.load(engine, [reflex("clock", clock(case), overlap="allow")])
    shown = (await engine.preview("clock", now=at.now, count=len(case.expect))).next_occurrences
    assert [text(down(each)) for each in shown] == case.expect
    woken: list[datetime] = []
    while len(woken) < len(set(case.expect)):
        due = await engine.next_due(at.now)
        assert due is not None
        assert due > at.now
        woken.append(due)
        await at.settle(engine, due - timedelta(milliseconds=1))
        assert len((await lived(at))[0]) < len(case.expect), "nothing a millisecond early"
        await at.settle(engine, due)
    instants, keys = await lived(at)
    assert instants == case.expect
    assert case.keys is None or keys == case.keys


@pytest.mark.parametrize("case", CASES)
async def test_an_outage_over_all_of_them_loses_no_key_and_makes_none_twice(at: At, case: Case) -> None:
    engine = await at.engine()
    at.now = moment(case.after)
    await at.load(engine, [reflex("clock", clock(case), overlap="allow", catch_up="run")])
    await at.settle(engine, datetime.fromisoformat(case.expect[-1]))
    instants, keys = await lived(at)
    assert instants == case.expect
    assert len(set(keys)) == len(keys)


async def test_two_days_that_begin_at_one_moment_are_two_runs(at: At) -> None:
    """Apia had no 30 December 2011: a cron text too goes by its keys, and neither day is lost."""
    engine = await at.engine()
    at.now = datetime(2011, 12, 29, 12, tzinfo=UTC)
    midnight = {"cron": "0 0 * * *", "tz": "Pacific/Apia"}
    await at.load(engine, [reflex("clock", midnight, overlap="allow")])
    await at.settle(engine, at.now + timedelta(days=1))
    assert await lived(at) == (["2011-12-30T10:00:00Z"] * 2, ["2011-12-30T00:00", "2011-12-31T00:00"])
