"""Years of a clock that stands still, leaps and goes back, pauses and reloads, and two engines that see it otherwise."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.almanac import clock_rule, occurrences
from onefold.terms.instant import Instant, down, moment
from tests.reflex.ground import DEEP, EVERY_STORE, At, ground, reflex

CLAUSES: list[dict[str, Any]] = [
    {"every": "day", "at": "02:30", "tz": "Europe/Vienna"},
    {"every": "month", "on": 31, "at": "03:00", "tz": "America/New_York"},
    {"every": "week", "on": "sun", "at": "02:00", "tz": "America/Nuuk"},
    {"every": "year", "on": "02-29", "at": "00:00", "tz": "Pacific/Apia"},
    {"cron": "0,30 2 * * sun", "tz": "Europe/Vienna"},
]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EXAMPLES = 300 if DEEP else 8
hours = st.one_of(st.integers(-100, 1_000), st.integers(0, 30), st.just(9_000))
steps = st.lists(
    st.tuples(st.sampled_from("advance advance advance pause resume".split()), hours, st.booleans()), max_size=14
)


class Model:
    """What one clock must have done: keys from its mark on, up to the latest instant that an advance saw."""

    def __init__(self, clause: dict[str, Any], at: datetime) -> None:
        self.rule = clock_rule(clause)
        self.mark = down(at)
        self.enabled = True
        self.keys: list[str] = []

    def advanced(self, now: datetime) -> None:
        at = down(now)
        if at > self.mark:
            if self.enabled:
                self.keys += [one.key for one in occurrences(self.rule, Instant(self.mark), at, 100_000)]
            self.mark = at

    def loaded(self, enabled: bool, at: datetime) -> None:
        if enabled and not self.enabled:
            self.mark = max(self.mark, down(at))
        self.enabled = enabled


async def lived(store: str, clause: dict[str, Any], plan: list[tuple[str, int, bool]]) -> None:
    async with ground(store) as at:
        at.now = BEGIN
        engines = [await at.engine(), await at.engine()]
        model = Model(clause, BEGIN)

        async def load(enabled: bool) -> None:
            own = reflex("a", clause, overlap="allow", enabled=enabled)
            for engine in engines:
                await at.load(engine, [own])
            model.loaded(enabled, at.now)

        await load(True)
        for act, delta, which in plan:
            at.now = max(at.now + timedelta(hours=delta), BEGIN)
            if act == "advance":
                await settle(at, engines[which])
                model.advanced(at.now)
            else:
                await load(act == "resume")
        found = [run["cause"].removeprefix("occurrence:") for run in await at.runs()]
        assert sorted(found) == sorted(model.keys)
        assert set(Counter(found).values()) <= {1}
        assert {run["state"] for run in await at.runs()} <= {"settled"}
        due = await engines[0].next_due(moment(model.mark))
        coming = model.rule.next(Instant(model.mark))
        assert due == (None if coming is None else moment(coming.at))


async def settle(at: At, engine: Any) -> None:
    for _ in range(2_000):
        if not (await engine.advance(at.now)).moved:
            return
    raise AssertionError("it never rests")


@pytest.mark.parametrize("store", EVERY_STORE[:2])
@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.get("every", "cron"))
@given(plan=steps)
@settings(max_examples=EXAMPLES)
def test_every_key_comes_once_and_none_that_was_paused(
    store: str, clause: dict[str, Any], plan: list[tuple[str, int, bool]]
) -> None:
    asyncio.run(lived(store, clause, plan))
