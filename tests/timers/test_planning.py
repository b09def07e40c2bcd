"""Which instant comes next, and where new zone data moves it: never twice, never lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.almanac import At, Every, Key, next_instant, rule_of
from onefold.almanac import triggers as almanac_triggers
from onefold.almanac import zones as almanac_zones
from onefold.terms.instant import down, moment, up
from onefold.timers import making, planning
from onefold.timers.facts import Planned, Schedule, TickSealed, evolve
from onefold.timers.planning import SPREAD_MS, anew, coming, moved, rings_at, spread
from onefold.timers.words import TickId, schedule_id
from tests.timers.home import HOURLY, SCHEDULE, START, at, tick_id

VIENNA = Every("30 9 * * *", tz="Europe/Vienna")


def schedule(trigger: At | Every = HOURLY, **values: object) -> Schedule:
    return Schedule(id=SCHEDULE, owner="agent-7", key="standup", trigger=trigger, **values)  # type: ignore[arg-type]


@contextmanager
def zone_data(release: str, **moves: str) -> Iterator[None]:
    """A process with other zone data: the zone `Europe_Vienna` shows the clocks of another zone."""
    swapped = {name.replace("_", "/"): other for name, other in moves.items()}
    read = almanac_zones._data

    def other(path: str) -> bytes:
        name = path.removeprefix("zoneinfo/")
        return read(f"zoneinfo/{swapped.get(name, name)}") if path.startswith("zoneinfo/") else read(path)

    def forget() -> None:
        almanac_zones._loaded.cache_clear()
        almanac_triggers._rule.cache_clear()

    with (
        patch.object(almanac_zones, "_data", other),
        patch.object(planning, "tz_version", lambda: release),
        patch.object(making, "tz_version", lambda: release),
    ):
        forget()
        try:
            yield
        finally:
            forget()


def next_due(of: Schedule, now: datetime) -> datetime | None:
    plan = coming(of, now)
    return None if plan is None else plan.due_at


def test_the_next_instant_is_strictly_after_now() -> None:
    assert next_due(schedule(), at(hours=3)) == at(hours=4)
    assert next_due(schedule(), at(hours=3) - timedelta(milliseconds=1)) == at(hours=3)


def test_an_instant_comes_once() -> None:
    once = schedule(At(at(hours=3)))
    assert next_due(once, at(hours=2)) == at(hours=3)
    assert next_due(once, at(hours=3)) is None


def test_none_is_past_the_end_and_one_at_the_end_still_comes() -> None:
    assert next_due(schedule(ends_at=at(hours=4)), at(hours=3)) == at(hours=4)
    assert next_due(schedule(ends_at=at(hours=4)), at(hours=4)) is None
    assert next_due(schedule(At(at(hours=5)), ends_at=at(hours=4)), at(hours=3)) is None


def test_what_was_planned_says_with_which_zone_data_and_which_local_time() -> None:
    assert coming(schedule(VIENNA), START) == Planned(
        datetime(2026, 1, 1, 8, 30, tzinfo=UTC), START, "2026-01-01T09:30", almanac_zones.tz_version()
    )
    assert coming(schedule(At(at(hours=3))), START) == Planned(at(hours=3), START)


@given(st.integers(0, 400 * 24 * 60), st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 9 * * mon-fri", "59 23 31 * *"]))
def test_without_a_change_of_zone_data_it_is_what_the_almanac_says(minutes: int, cron: str) -> None:
    trigger = Every(cron, tz="America/New_York")
    now = START + timedelta(minutes=minutes)
    found = coming(schedule(trigger), now)
    expected = next_instant(trigger, down(now))
    assert found is not None
    assert found.due_at is not None
    assert found.due_at == moment(expected or 0)
    after = schedule(trigger, local=found.local)
    assert coming(after, found.due_at) == coming(schedule(trigger), found.due_at)


# --- the spread -----------------------------------------------------------------------------------


def test_the_delivery_is_put_off_by_a_hash_and_the_due_instant_stays_exact() -> None:
    planned = evolve(schedule(), Planned(at(hours=1), START))
    put_off = spread(tick_id(at(hours=1)))
    assert rings_at(planned) == at(hours=1) + timedelta(milliseconds=put_off)
    assert planned.plan is not None
    assert planned.plan.due_at == at(hours=1)


def test_the_spread_is_the_same_for_a_tick_and_even_over_many() -> None:
    """No more than a third from what is even, with ten thousand schedules at one instant."""
    found = [spread(TickId(schedule_id("o", str(key)), 0, START)) for key in range(10_000)]
    assert found == [spread(TickId(schedule_id("o", str(key)), 0, START)) for key in range(10_000)]
    tenths = [sum(ms // 25 == tenth for ms in found) for tenth in range(10)]
    assert sum(tenths) == 10_000
    assert all(667 < each < 1333 for each in tenths), tenths
    assert set(range(SPREAD_MS)) == set(found)


# --- other zone data ------------------------------------------------------------------------------


def pending(now: datetime = START, trigger: Every = VIENNA, **values: object) -> Schedule:
    plan = coming(schedule(trigger, **values), now)
    assert plan is not None
    return evolve(schedule(trigger, **values), plan)


def test_only_what_other_zone_data_planned_is_moved() -> None:
    before = pending()
    assert not moved(before)
    with zone_data("2099a"):
        assert moved(before)
        assert not moved(evolve(before, anew(before, START)))
        assert not moved(evolve(schedule(), Planned(at(hours=3), START)))


def test_an_occurrence_keeps_its_local_time_and_moves_its_instant() -> None:
    before = pending()
    with zone_data("2099a", Europe_Vienna="Asia/Tokyo"):
        plan = anew(before, START)
    assert (plan.local, plan.due_at, plan.tz) == ("2026-01-01T09:30", at(minutes=30), "2099a")


def test_what_must_be_planned_anew_wakes_at_once() -> None:
    before = pending(at(hours=3))
    with zone_data("2099a"):
        assert rings_at(before) == at(hours=3)


def test_an_occurrence_that_moves_past_the_end_is_none() -> None:
    ending = pending(ends_at=at(hours=9))
    with zone_data("2099a", Europe_Vienna="America/New_York"):
        assert anew(ending, START).due_at is None


def test_an_occurrence_that_was_a_tick_is_not_minted_again_when_the_clocks_move_back() -> None:
    """09:30 rang in Vienna; the zone now shows New York, where it is about to be 09:30 again."""
    done = evolve(pending(), TickSealed(tick_id(datetime(2026, 1, 1, 8, 30, tzinfo=UTC))))
    with zone_data("2099a", Europe_Vienna="America/New_York"):
        plan = coming(done, at(hours=9))
    assert plan is not None
    assert plan.local == "2026-01-02T09:30"


def test_an_occurrence_that_moved_into_the_past_is_due_now_and_not_lost() -> None:
    before = pending()
    with zone_data("2099a", Europe_Vienna="Asia/Tokyo"):
        plan = anew(before, at(hours=4))
    assert plan.due_at == at(minutes=30)


def test_two_ticks_never_share_an_instant() -> None:
    """Local 01:00 rang at 00:00 UTC; the zone moves so that local 02:00 falls on that very instant."""
    hours = Every("0 1,2 * * *", tz="Europe/Vienna")
    first = pending(START - timedelta(hours=1), hours)
    assert first.plan is not None
    assert first.plan.due_at == START
    second = evolve(evolve(first, TickSealed(tick_id(START))), Planned(at(hours=1), START, "2026-01-01T02:00", "2026f"))
    with zone_data("2099a", Europe_Vienna="Africa/Cairo"):
        assert rule_of(hours).plan(Key("2026-01-01T02:00")).at == up(START)
        assert anew(second, at(minutes=1)).due_at == START + timedelta(milliseconds=1)


ZONES = ["Europe/Vienna", "Asia/Tokyo", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe", "America/Nuuk"]


@settings(max_examples=int(os.environ.get("ONEFOLD_TIMERS_EXAMPLES", "60")))
@given(
    st.lists(st.tuples(st.sampled_from(ZONES), st.integers(1, 40 * 60)), min_size=2, max_size=12),
    st.sampled_from(["30 2 * * *", "0 1,2 * * *", "15 */6 * * *", "0 * * * *", "30 23 * * *"]),
    st.integers(0, 365),
)
def test_whatever_the_zone_data_becomes_no_occurrence_is_minted_twice_and_none_goes_back(
    lives: list[tuple[str, int]], cron: str, day: int
) -> None:
    """Each life of the process has other data; an occurrence that is due becomes a tick at once."""
    now = START + timedelta(days=day)
    trigger = Every(cron, tz="Europe/Vienna")
    state = schedule(trigger)
    minted: list[tuple[str, datetime]] = []
    for number, (clocks, minutes) in enumerate(lives):
        with zone_data(f"2099{number:03}", Europe_Vienna=clocks):
            if state.plan is not None and moved(state):
                state = evolve(state, anew(state, now))
            end = now + timedelta(minutes=minutes)
            while now < end:
                plan = state.plan or coming(state, now)
                assert plan is not None
                assert plan.due_at is not None
                state = evolve(state, plan)
                if plan.due_at > end:
                    break
                assert plan.local is not None
                now = max(now, plan.due_at)
                minted.append((plan.local, plan.due_at))
                state = evolve(state, TickSealed(tick_id(plan.due_at)))
            now = end
    assert len({local for local, _ in minted}) == len(minted)
    instants = [due for _, due in minted]
    assert instants == sorted(set(instants))


@pytest.mark.parametrize("clocks", ZONES)
def test_the_pending_occurrence_survives_every_change(clocks: str) -> None:
    before = pending()
    with zone_data("2099a", Europe_Vienna=clocks):
        after = evolve(before, anew(before, START))
    assert before.plan is not None
    assert after.plan is not None
    assert after.plan.local == before.plan.local
